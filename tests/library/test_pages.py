import asyncio
import hashlib
from pathlib import Path

import pytest

from tests.support import material
from tests.support.office import pptx
from vrag_ray.config import CorpusConfig, ServingConfig
from vrag_ray.corpus.model import DecodeError
from vrag_ray.library.pages import PageReader, Stored
from vrag_ray.types import Box, Document, DocumentKind, DocumentStatus, Locator, Word

pytestmark = pytest.mark.anyio


async def test_equal_requests_share_one_drawing_and_a_broken_page_breaks_only_itself(tmp_path: Path):
    path = tmp_path / "blob"
    path.write_bytes(material.pdf())
    doc_id = hashlib.sha256(path.read_bytes()).hexdigest()
    document = Document(
        doc_id, ("a.pdf",), "a", DocumentKind.PDF, DocumentStatus.READY, 3, path.stat().st_size, "", "2026-01-01"
    )
    reader = PageReader(CorpusConfig(), ServingConfig(render_threads=2))
    try:
        drawn = await asyncio.gather(
            *(reader.png(document, path, Locator(page=1), 72, None) for _ in range(5)),
            reader.png(document, path, Locator(page=99), 72, None),
            return_exceptions=True,
        )
        assert len({id(png) for png in drawn[:5]}) == 1
        assert isinstance(drawn[5], DecodeError)
        assert str(tmp_path) not in str(drawn[5])

        async def find() -> Stored:
            return Stored(path, ())

        text = await reader.text(document, Locator(page=2), find)
        assert (text.doc_id, "Dredging" in text.text) == (doc_id, True)
        assert any(word.text == "4.7" for word in text.words)
    finally:
        reader.close()


async def test_what_ocr_read_at_ingest_is_the_text_even_where_there_is_a_small_text_layer(tmp_path: Path):
    path = tmp_path / "blob"
    path.write_bytes(material.pdf())
    document = Document("0" * 64, ("a.pdf",), "a", DocumentKind.PDF, DocumentStatus.READY, 3, 1, "", "2026-01-01")
    words = (Word("云企业网", Box(0.1, 0.1, 0.3, 0.2)), Word("CEN", Box(0.4, 0.1, 0.5, 0.2)))
    reader = PageReader(CorpusConfig(), ServingConfig(render_threads=1))

    async def find() -> Stored:
        return Stored(path, words)

    try:
        text = await reader.text(document, Locator(page=2), find)
    finally:
        reader.close()
    assert (text.words, text.text) == (words, "云企业网 CEN")


async def test_the_notes_of_a_slide_stay_where_ocr_read_its_picture(tmp_path: Path):
    path = tmp_path / "blob"
    path.write_bytes(pptx("Cranes lift", notes="Odin is old."))
    document = Document("0" * 64, ("a.pptx",), "a", DocumentKind.PDF, DocumentStatus.READY, 1, 1, "", "2026-01-01")
    reader = PageReader(CorpusConfig(), ServingConfig(render_threads=1))

    async def find() -> Stored:
        return Stored(path, (Word("Lift", Box(0.1, 0.1, 0.3, 0.2)), Word("slowly", Box(0.32, 0.1, 0.5, 0.2))))

    try:
        page = await reader.text(document, Locator(page=1), find)
    finally:
        reader.close()
    assert page.text == "Lift slowly\nNotes: Odin is old."
    [element] = page.elements
    assert (element.text, element.box) == ("Lift slowly", Box(0.1, 0.1, 0.5, 0.2))
