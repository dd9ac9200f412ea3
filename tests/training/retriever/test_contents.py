"""Pictures at the size at which they are embedded, from files and from the pages of a collection."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.documents import text_pdf
from tests.support.planted import document
from vrag_ray.embedding.base import Content, PictureSpec
from vrag_ray.imaging.fitting import size_of
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.questions.rows import DataError
from vrag_ray.training.retriever.contents import ContentReader
from vrag_ray.training.retriever.pairs import Item, Pair
from vrag_ray.types import DocumentKind

SPEC = PictureSpec(patch=28, min_pixels=28 * 28, max_pixels=112 * 112)


def saved(path: Path, width: int, height: int) -> str:
    Image.fromarray(np.full((height, width, 3), (255, 0, 0), np.uint8)).save(path)
    return str(path)


def test_a_picture_is_fitted_to_whole_patches_within_the_limits(tmp_path: Path):
    with ContentReader(SPEC, None) as reader:
        large, exact, jpeg, words = reader.read(
            [
                Item(picture=saved(tmp_path / "a.png", 448, 224)),
                Item("with words", picture=saved(tmp_path / "b.png", 112, 56)),
                Item(picture=saved(tmp_path / "c.jpg", 112, 112)),
                Item("words"),
            ]
        )
    assert large.picture and exact.picture and jpeg.picture
    size = size_of(large.picture)
    assert (size.width % 28, size.height % 28) == (0, 0)
    assert size.pixels <= 112 * 112
    assert (exact.text, exact.picture) == ("with words", (tmp_path / "b.png").read_bytes())
    assert Image.open(io.BytesIO(jpeg.picture)).format == "PNG"
    assert words == Content(text="words")


def test_what_is_no_picture_is_named(tmp_path: Path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    with ContentReader(SPEC, None) as reader, pytest.raises(DataError, match=r"a\.png is no picture: cannot identify"):
        reader.read([Item(picture=str(tmp_path / "a.png"))])


def collection_of(root: Path, name: str) -> Path:
    """One PDF of a page, as an ingest stores it."""
    path = root / name
    path.write_bytes(text_pdf(["A page"]))
    with CollectionWriter(root / "collection") as writer:
        doc_id, size = writer.files.add_blob(path)
        stored = replace(document(name, units=1), doc_id=doc_id, kind=DocumentKind.PDF, size_bytes=size)
        writer.commit_documents([replace(stored, uris=((Path("/papers") / name).as_uri(),))])
        writer.publish("a page")
    return root / "collection"


def test_a_page_of_the_collection_is_drawn_as_it_is_searched(tmp_path: Path):
    name = "yearly report é.pdf"
    with ContentReader(SPEC, str(collection_of(tmp_path, name))) as reader:
        reader.check([Pair(Item("q"), (Item(doc=name, page=1),))])
        page, words = reader.read([Item(doc=name, page=1), Item("words")])
        assert page.picture
        assert size_of(page.picture).pixels <= 112 * 112
        assert words == Content(text="words")
        for wrong, why in (
            (Item(doc=name, page=99), "the document 'yearly report é.pdf' has 1 pages, so none is page 99"),
            (Item(doc="none.pdf", page=1), "the document 'none.pdf' is not in the collection"),
        ):
            with pytest.raises(DataError, match=why):
                reader.check([Pair(Item("q"), (wrong,))])


def test_a_photo_is_turned_and_a_transparent_drawing_stands_on_white(tmp_path: Path):
    pixels = np.zeros((56, 112, 3), np.uint8)
    pixels[:, :56] = (255, 0, 0)
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(pixels).save(tmp_path / "photo.jpg", exif=turned, quality=95)
    ink = np.zeros((56, 56, 4), np.uint8)
    ink[20:30] = (0, 0, 0, 255)
    Image.fromarray(ink, "RGBA").save(tmp_path / "ink.png")
    with ContentReader(SPEC, None) as reader:
        photo, drawing = (
            np.asarray(Image.open(io.BytesIO(content.picture or b"")).convert("RGB"))
            for content in reader.read([Item(picture=str(tmp_path / name)) for name in ("photo.jpg", "ink.png")])
        )
    # Orientation 6: what is at the left in the file is shown at the top.
    assert photo.shape == (112, 56, 3)
    assert photo[:50].mean(axis=(0, 1)) == pytest.approx((255, 0, 0), abs=8)
    assert photo[62:].max() < 16
    assert (drawing[0, 0].tolist(), drawing[25, 25].tolist()) == ([255] * 3, [0] * 3)
