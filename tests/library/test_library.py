"""The library over a real collection: what many askers share, and that they see what has changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pymupdf
import pytest

from tests.support import material
from vrag_ray.agent.chat import PictureRequest
from vrag_ray.config import CorpusConfig, Settings
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter, now_utc
from vrag_ray.library.library import Library
from vrag_ray.library.newest import UnreadableError
from vrag_ray.types import Document, DocumentKind, DocumentStatus, Locator, NotFoundError, PageText

pytestmark = pytest.mark.anyio
ASKERS = 40


def add(root: Path, name: str, content: bytes) -> str:
    """The id of a PDF of three pages, in a new version of the collection."""
    path = root.parent / name
    path.write_bytes(content)
    with CollectionWriter(root) as writer:
        doc_id, size = writer.files.add_blob(path)
        writer.commit_documents(
            [
                Document(
                    doc_id=doc_id,
                    uris=(name,),
                    title=name,
                    kind=DocumentKind.PDF,
                    status=DocumentStatus.READY,
                    units=3,
                    size_bytes=size,
                    added_at=now_utc(),
                )
            ]
        )
        writer.publish(f"{name} added")
    return doc_id


def library_of(root: Path) -> Library:
    return Library(Settings(collection=str(root), corpus=CorpusConfig(ocr=False)))


class Counted:
    """How often a method was called, while the method goes on as it was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.calls = 0
        real = getattr(owner, name)

        def counting(*args: object, **named: object) -> object:
            self.calls += 1
            return real(*args, **named)

        monkeypatch.setattr(owner, name, counting)


async def test_many_who_ask_at_once_open_the_collection_once_and_read_each_page_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = tmp_path / "c"
    doc_id = add(root, "a.pdf", material.pdf())
    library = library_of(root)
    opened = Counted(monkeypatch, Collection, "open")
    read, drawn = Counted(monkeypatch, Sandbox, "page_text"), Counted(monkeypatch, Sandbox, "render")
    pages = [(doc_id, Locator(page=page)) for page in (1, 2)]
    picture = PictureRequest(doc_id, Locator(page=2), None, None, 28, 28 * 28, 100 * 28 * 28)
    try:
        texts = await asyncio.gather(*(library.page_texts(pages) for _ in range(ASKERS)))
        pictures = await asyncio.gather(*(library.pictures([picture]) for _ in range(ASKERS)))
    finally:
        library.close()
    for first, second in texts:
        assert isinstance(first, PageText) and "Annual report" in first.text
        assert isinstance(second, PageText) and "Dredging" in second.text
    assert len({shown for (shown,) in pictures}) == 1
    assert (opened.calls, read.calls, drawn.calls) == (1, 2, 1)


async def test_what_was_added_or_deleted_a_moment_ago_is_seen_by_all_who_ask_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = tmp_path / "c"
    old = add(root, "a.pdf", material.pdf())
    library = library_of(root)
    try:
        assert [document.doc_id for document in (await library.documents())[0]] == [old]
        new = add(root, "b.pdf", material.pdf() + b"%\n")
        opened = Counted(monkeypatch, Collection, "open")
        listings = await asyncio.gather(*(library.documents() for _ in range(ASKERS)))
        assert {frozenset(document.doc_id for document in listed) for listed, _ in listings} == {frozenset({old, new})}
        assert opened.calls == 1
        await library.delete(old)
        with pytest.raises(NotFoundError):
            await library.page_text(old, Locator(page=1))
        assert isinstance(await library.page_text(new, Locator(page=1)), PageText)
    finally:
        library.close()


async def test_of_two_deletions_at_once_the_second_finds_no_document(tmp_path: Path):
    root = tmp_path / "c"
    doc_id = add(root, "a.pdf", material.pdf())
    library = library_of(root)
    try:
        results = await asyncio.gather(library.delete(doc_id), library.delete(doc_id), return_exceptions=True)
    finally:
        library.close()
    assert sorted(type(result) for result in results if not isinstance(result, str)) == [NotFoundError]
    assert Collection.open(root).version == 2


async def test_documents_of_a_collection_are_read_while_another_is_not_where_it_should_be(tmp_path: Path) -> None:
    gone, here = tmp_path / "gone", tmp_path / "here"
    doc_id = add(here, "a.pdf", material.pdf())
    library = Library(Settings(collection=str(gone), collections={"here": str(here)}, corpus=CorpusConfig(ocr=False)))
    try:
        assert (await library.document(doc_id)).doc_id == doc_id
        assert isinstance(await library.page_text(doc_id, Locator(page=1)), PageText)
        for missing in (library.document("f" * 64), library.ready(), library.documents()):
            with pytest.raises(UnreadableError, match=r"gone cannot be read: .*is not a collection") as caught:
                await missing
            assert caught.value.status == 503
    finally:
        library.close()


async def test_agents_are_given_the_cells_of_several_lines_and_readers_of_a_page_all(tmp_path: Path) -> None:
    document = pymupdf.open()
    page = document.new_page()
    rows = [
        ["Method", "What it does", "Since"],
        ["Policies", "A policy applies to a whole bucket and to all the objects that lie in it.", "2019"],
        ["Lists", "A list names who may read an object, and who may write one in its place.", "2021"],
    ]
    for number, row in enumerate(rows):
        for text, left, right in zip(row, (72, 172, 372), (172, 372, 472), strict=True):
            cell = pymupdf.Rect(left, 100 + 60 * number, right, 160 + 60 * number)
            page.draw_rect(cell, width=0.8)
            page.insert_textbox(
                pymupdf.Rect(left + 6, cell.y0 + 8, right - 6, cell.y1), text, fontsize=11, fontname="helv"
            )
    for _ in range(2):
        document.new_page()
    root = tmp_path / "c"
    doc_id = add(root, "table.pdf", document.tobytes())
    library = library_of(root)
    try:
        whole = await library.page(doc_id, 1)
        [given] = await library.page_texts([(doc_id, Locator(page=1))])
    finally:
        library.close()
    assert isinstance(given, PageText)
    cells = [
        [" ".join(part.text.split()) for part in text.elements if part.table is not None] for text in (whole, given)
    ]
    assert cells[0] == [text for row in rows for text in row]
    assert cells[1] == [rows[1][1], rows[2][1]]
    assert given.cells == tuple(part.box.as_tuple() for part in whole.elements if part.table is not None)


async def test_a_page_says_how_the_next_one_goes_on_with_its_last_paragraph(tmp_path: Path) -> None:
    document = pymupdf.open()
    for number, lines in enumerate(
        [
            [
                "The new crane on the northern quay was built in Stavanger",
                "and paid in full by the insurers of the har-",
            ],
            ["bour, who hold nine shares in it. The old one was sold.", "The meeting closed at ten and the board went"],
            [],
        ]
    ):
        page = document.new_page()
        page.insert_text((72, 40), "Minutes of the board", fontsize=9)
        for line, text in enumerate(lines):
            page.insert_text((72, 600 + 15 * line) if number == 0 else (72, 120 + 15 * line), text, fontsize=11)
        page.insert_text((290, 810), str(number + 1), fontsize=9)
    root = tmp_path / "c"
    doc_id = add(root, "minutes.pdf", document.tobytes())
    library = library_of(root)
    try:
        pages = await library.page_texts([(doc_id, Locator(page=number)) for number in (1, 2, 3)])
        shown = await library.page(doc_id, 1)
    finally:
        library.close()
    rest = "bour, who hold nine shares in it. The old one was sold. The meeting closed at ten and the board went"
    assert [page.continuation for page in pages if isinstance(page, PageText)] == [rest, "", ""]
    assert shown.continuation == rest
