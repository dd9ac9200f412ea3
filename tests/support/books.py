"""E-books in the EPUB format."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from tests.support.office import archive

_CONTAINER = (
    "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container' version='1.0'><rootfiles><rootfile "
    "full-path='OEBPS/p.opf' media-type='application/oebps-package+xml'/></rootfiles></container>"
)


def chapter(body: str) -> str:
    return f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{body}</body></html>"


def epub(chapters: Mapping[str, str | bytes | None], others: Mapping[str, str | bytes]) -> bytes:
    """A book with these ``chapters`` by their names below OEBPS, None for one that is not there, and ``others``."""
    items = "".join(
        f"<item id='c{number}' href='{escape(name)}' media-type='application/xhtml+xml'/>"
        for number, name in enumerate(chapters)
    )
    listed = "".join(f'<itemref linear="yes" idref="c{number}"/>' for number in range(len(chapters)))
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": _CONTAINER,
        "OEBPS/p.opf": "<package xmlns='http://www.idpf.org/2007/opf' version='2.0' unique-identifier='i'><metadata "
        "xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>Book</dc:title></metadata>"
        f"<manifest>{items}</manifest><spine>{listed}</spine></package>",
        **{f"OEBPS/{name}": content for name, content in chapters.items() if content is not None},
        **others,
    }
    return archive(files)
