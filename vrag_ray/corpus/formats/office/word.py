"""A DOCX as one web page: mammoth makes HTML of its text, headings, lists, tables and notes, which MuPDF lays out.

MuPDF's own reader of DOCX puts the cells of a table one below the other. mammoth passes over text boxes, charts,
diagrams, documents in it, formulas, numbers before paragraphs, some fields, breaks of sections, and the lines at the
head and foot of pages: they are rewritten before.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

import mammoth

from vrag_ray.corpus.formats.office.chunks import Chunk, chunk_of, format_of
from vrag_ray.corpus.formats.office.formulas import formula_line
from vrag_ray.corpus.formats.office.numbering import Numbering
from vrag_ray.corpus.formats.office.parts import (
    MOST_PART_BYTES,
    Pictures,
    child,
    every,
    graphic_markup,
    page_markup,
    related,
    relations_of,
    stated_title,
    tag_of,
    tree_of,
    xml_of,
)
from vrag_ray.corpus.formats.source import is_memory_error
from vrag_ray.corpus.formats.unseen import seen_document
from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.sniff import Format

_STYLES = """
p[style-name='Title'] => h1.title:fresh
p[style-name='Subtitle'] => h2:fresh
p[style-name='heading 7'] => h6:fresh
p[style-name='heading 8'] => h6:fresh
p[style-name='heading 9'] => h6:fresh
br[type='page'] => hr
"""
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT_BOX = "{urn:schemas-microsoft-com:vml}textbox"
_WORDART = "textpath"
_WATERMARK = "WaterMark"
"""In the name that Word gives to the shape of a watermark. It is WordArt, and lies across every page."""
_UNWRAPPED = frozenset(("fldSimple", "dir", "bdo", "ruby", "rubyBase", "AlternateContent", "Choice"))
"""Elements that mammoth passes over with the words in them."""
_LEFT_OUT = frozenset(("rubyPr", "rt", "Fallback"))
_SAME = {"cr": "br", "ptab": "tab"}
_HEAD, _FOOT = "headerReference", "footerReference"
_MARK = re.compile("\ue010(\\d{1,6})\ue011")
"""Where the HTML of a chart, a diagram or a picture belongs: mammoth carries it through as text."""
_COMMENTS = "word/comments.xml"
_NUMBERING, _STYLE_SHEET = "word/numbering.xml", "word/styles.xml"
_SHOWN = frozenset(("drawing", "pict", "object", "oMath"))
"""What may be in a paragraph without words."""
_LIST = re.compile(r'<ol>(?!<li id="(?:foot|end)note-)')
_NUMBERED = '<ol style="list-style-type:none">'
"""The numbers of its paragraphs are written before them; those of notes are not."""
_NOT_COPIED = ("word/media/", "word/embeddings/")
"""mammoth needs none of them."""
_MOST_COLUMNS = 63
"""That Word has in a table."""
DEEPEST_CHUNK = 3
"""Documents in documents that are read."""
_LARGEST_PICTURE = (500.0, 640.0)
"""Points: as much as a page has room for."""


def document_page(file: Path | BinaryIO) -> tuple[str, list[str]]:
    """The DOCX ``file`` as HTML: each header of its pages once, the text with its notes at the end, each footer
    once.

    Second, notices of what is left out, as the words that are hidden. Raises DecodeError for parts with definitions of
    their own, ParseError for broken XML.
    """
    content = document_content(file, 0)
    return page_markup(content.body, content.title), content.notices


@dataclass(frozen=True, slots=True)
class Content:
    """A DOCX as HTML: its body, its title, and notices of what is left out."""

    body: str
    title: str
    notices: list[str]


def document_content(file: Path | BinaryIO, depth: int) -> Content:
    """The DOCX ``file``, which is in ``depth`` others. The errors are those of ``document_page``."""
    with zipfile.ZipFile(file) as archive:
        seen, notices = seen_document(archive)
        rewriting = _Rewriting(archive, seen, depth)
        title, changed = stated_title(archive), rewriting.rewritten_parts()
        if _COMMENTS in archive.namelist() and (count := len(tree_of(xml_of(archive, _COMMENTS)))):
            notices.append(f"{count} comments in it are left out")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
            for name in archive.namelist():
                if not name.startswith(_NOT_COPIED):
                    out.writestr(name, changed.get(name) or archive.read(name))
    result = mammoth.convert_to_html(
        buffer, style_map=_STYLES, include_embedded_style_map=False, convert_image=lambda _: []
    )

    def drawn(mark: re.Match[str]) -> str:
        number = int(mark[1])
        # The text itself may have such characters.
        return f"</p>{rewriting.graphics[number]}<p>" if number < len(rewriting.graphics) else mark[0]

    notices += rewriting.notices
    if rewriting.hidden_rows:
        notices.append(f"{rewriting.hidden_rows} rows of tables in it are left out: they are hidden")
    return Content(_MARK.sub(drawn, _LIST.sub(_NUMBERED, str(result.value))), title, notices)


class _Rewriting:
    """Makes what mammoth reads of what it passes over. ``seen`` are the parts without hidden text."""

    def __init__(self, archive: zipfile.ZipFile, seen: Mapping[str, bytes], depth: int) -> None:
        self.graphics: list[str] = []
        self.notices: list[str] = []
        self.hidden_rows = 0
        self._depth = depth
        self._pictures = Pictures(archive)
        self._archive = archive
        self._seen = seen
        self._names = frozenset(archive.namelist())
        self._numbering = Numbering.of(*(self._part(name) for name in (_NUMBERING, _STYLE_SHEET)))
        self._relations: dict[str, str] = {}
        """Of the part that is rewritten."""

    def rewritten_parts(self) -> dict[str, bytes]:
        """The changed parts by their names. The other parts that mammoth parses are checked."""
        changed: dict[str, bytes] = {}
        for name in sorted(self._names):
            if name.startswith(("word/", "_rels/")) and name.endswith((".xml", ".rels")):
                if not re.fullmatch(r"word/(?:document\d*|footnotes|endnotes)\.xml", name):
                    xml_of(self._archive, name)
                    continue
                root = self._rewritten(name)
                if (body := child(root, "body")) is not None:
                    self._add_headers_and_footers(name, body)
                changed[name] = ElementTree.tostring(root)
        return changed

    def _rewritten(self, name: str) -> ElementTree.Element:
        checked = xml_of(self._archive, name)
        root = tree_of(self._seen.get(name, checked))
        self._relations = relations_of(self._archive, name, self._names)
        _drop_arguments(root)
        for paragraph in list(every(root, "p")):
            if (number := self._numbering.number_of(paragraph)) and _shows_something(paragraph):
                # A paragraph with a number has properties, which come first.
                paragraph.insert(1, _run(number))
        self._rewrite(root)
        return root

    def _part(self, name: str) -> ElementTree.Element | None:
        return tree_of(xml_of(self._archive, name)) if name in self._names else None

    def _add_headers_and_footers(self, main: str, body: ElementTree.Element) -> None:
        relations, seen = relations_of(self._archive, main, self._names), set[str]()
        lines: dict[str, list[ElementTree.Element]] = {_HEAD: [], _FOOT: []}
        for reference in every(body, _HEAD, _FOOT):
            part = related(reference, relations)
            if part in self._names and part not in seen:
                seen.add(part)
                root = self._rewritten(part)
                for link in every(root, "hyperlink"):
                    # Its id is one of this part's relations, and the document has others.
                    link.attrib.clear()
                lines[tag_of(reference)] += root
        body[:] = [*lines[_HEAD], *body, *lines[_FOOT]]

    def _rewrite(self, parent: ElementTree.Element) -> None:
        parent[:] = [made for element in parent for made in self._made_of(element)]
        if tag_of(parent) == "p" and (properties := child(parent, "pPr")) is not None:
            if child(properties, "pageBreakBefore") is not None:
                parent.insert(1, _page_break())
            section = child(properties, "sectPr")
            if section is not None and not any("continuous" in kind.attrib.values() for kind in every(section, "type")):
                parent.append(_page_break())

    def _made_of(self, element: ElementTree.Element) -> Iterator[ElementTree.Element]:
        tag = tag_of(element)
        if tag in _LEFT_OUT or (tag == "shape" and _WATERMARK in element.get("id", "")):
            return
        if tag == "tr":
            if _is_on(child(element, "trPr", "hidden")):
                self.hidden_rows += 1
                return
            _fill_before(element)
        if tag == "altChunk":
            yield from self._chunk(element)
        elif tag == _WORDART:
            yield from map(_text_box, filter(None, [element.get("string")]))
        elif tag == "drawing":
            yield from self._drawn(element)
        elif tag in ("oMath", "oMathPara"):
            yield _run(formula_line(element))
        elif tag == "tbl":
            self._rewrite(element)
            yield element
            yield from _lifted_tables(element)
        elif tag in _UNWRAPPED:
            self._rewrite(element)
            yield from element
        else:
            if tag == "r":
                _lower_mark(element)
            element.tag = f"{_WORD}{_SAME[tag]}" if tag in _SAME else element.tag
            self._rewrite(element)
            yield element
            if tag == "fldChar" and (choices := child(element, "ffData", "ddList")) is not None:
                yield _text(_chosen(choices))

    def _chunk(self, reference: ElementTree.Element) -> Iterator[ElementTree.Element]:
        """The mark of a document that is held at this place; a notice of a document that cannot be read."""
        part = related(reference, self._relations)
        name = posixpath.basename(part) or "one without a name"
        reason = "not in the file, or too large"
        if part in self._names and self._archive.getinfo(part).file_size <= MOST_PART_BYTES:
            data = self._archive.read(part)
            try:
                format_ = format_of(data, name)
                if format_ is Format.DOCX and self._depth < DEEPEST_CHUNK:
                    content = document_content(io.BytesIO(data), self._depth + 1)
                    chunk = Chunk(content.body, tuple(content.notices))
                else:
                    chunk = chunk_of(data, format_)
                self.notices += chunk.notices
                if chunk.markup:
                    paragraph = ElementTree.Element(f"{_WORD}p")
                    run = ElementTree.SubElement(paragraph, f"{_WORD}r")
                    run.append(self._mark(chunk.markup))
                    yield paragraph
                return
            except DecodeError as error:
                reason = str(error).partition(":")[0][:80]
            except Exception as error:
                # A damaged chunk costs itself alone.
                if is_memory_error(error):
                    raise
                reason = "it is damaged"
        self.notices.append(f"a document in it is left out: {name} ({reason})")

    def _mark(self, markup: str) -> ElementTree.Element:
        """What mammoth carries through to where ``markup`` belongs."""
        self.graphics.append(markup)
        return _text(f"\ue010{len(self.graphics) - 1}\ue011")

    def _drawn(self, drawing: ElementTree.Element) -> Iterator[ElementTree.Element]:
        """Its text boxes as mammoth knows them, or the mark of its chart, diagram or picture."""
        boxes = list(every(drawing, "txbxContent"))
        inner = {id(element) for box in boxes for element in box.iter() if element is not box}
        for box in boxes:
            if id(box) not in inner:
                self._rewrite(box)
                shape = ElementTree.Element(_TEXT_BOX)
                shape.append(box)
                picture = ElementTree.Element(f"{_WORD}pict")
                picture.append(shape)
                yield picture
        if boxes:
            return
        markup = graphic_markup(self._archive, drawing, self._relations, self._names)
        markup = markup or self._pictures.markup(drawing, self._relations, _LARGEST_PICTURE)
        if markup:
            yield self._mark(markup)


def _is_on(switch: ElementTree.Element | None) -> bool:
    return switch is not None and switch.get(f"{_WORD}val", "1") not in ("0", "false", "off")


def _drop_arguments(root: ElementTree.Element) -> None:
    """Takes out the results of fields that stand in the instruction of another field, as that which ``IF`` compares."""
    has_result: list[bool] = []
    """Of the open fields, whether the result has begun."""
    for element in root.iter():
        kind = element.get(f"{_WORD}fldCharType", "") if tag_of(element) == "fldChar" else ""
        if kind == "begin":
            has_result.append(False)
        elif kind and has_result:
            has_result[-1:] = [True] if kind == "separate" else []
        elif tag_of(element) == "t" and has_result[-1:] == [True] and not all(has_result):
            element.text = ""


def _fill_before(row: ElementTree.Element) -> None:
    """Puts empty cells where a row begins behind the first columns of its table."""
    before = child(row, "trPr", "gridBefore")
    count = before.get(f"{_WORD}val", "") if before is not None else ""
    for _ in range(min(int(count), _MOST_COLUMNS) if count.isdecimal() else 0):
        cell = ElementTree.Element(f"{_WORD}tc")
        ElementTree.SubElement(cell, f"{_WORD}p")
        # Behind the properties of the row, which come first.
        row.insert(next((at for at, inner in enumerate(row) if tag_of(inner) in ("tc", "sdt")), len(row)), cell)


def _chosen(choices: ElementTree.Element) -> str:
    """The choice of a drop-down field of a form, or the first where none has been made."""
    stated = child(choices, "result") if child(choices, "result") is not None else child(choices, "default")
    entries = [next(iter(entry.attrib.values()), "") for entry in every(choices, "listEntry")]
    number = next(iter(stated.attrib.values()), "0") if stated is not None else "0"
    return entries[int(number)] if number.isdecimal() and int(number) < len(entries) else ""


def _lower_mark(run: ElementTree.Element) -> None:
    """mammoth raises the mark of a note itself; raised twice it would stand on a line of its own."""
    if next(every(run, "footnoteReference", "endnoteReference"), None) is not None:
        for properties in every(run, "rPr"):
            properties[:] = [inner for inner in properties if tag_of(inner) != "vertAlign"]


def _shows_something(paragraph: ElementTree.Element) -> bool:
    return any(tag_of(inner) in _SHOWN or (tag_of(inner) == "t" and inner.text) for inner in paragraph.iter())


def _lifted_tables(table: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """The tables in the cells of ``table``, taken out of it: MuPDF lays them out across its other cells."""
    for cell in list(every(table, "tc")):
        for inner in [element for element in cell if tag_of(element) == "tbl"]:
            cell.remove(inner)
            yield inner


def _text(words: str) -> ElementTree.Element:
    element = ElementTree.Element(f"{_WORD}t")
    element.text = words
    return element


def _run(words: str) -> ElementTree.Element:
    run = ElementTree.Element(f"{_WORD}r")
    run.append(_text(words))
    return run


def _text_box(words: str) -> ElementTree.Element:
    box = ElementTree.Element(_TEXT_BOX)
    paragraph = ElementTree.SubElement(ElementTree.SubElement(box, f"{_WORD}txbxContent"), f"{_WORD}p")
    paragraph.append(_run(words))
    return box


def _page_break() -> ElementTree.Element:
    run = ElementTree.Element(f"{_WORD}r")
    ElementTree.SubElement(run, f"{_WORD}br", {f"{_WORD}type": "page"})
    return run
