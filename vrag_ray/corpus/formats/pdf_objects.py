"""What PyMuPDF reads wrongly or not at all of the objects of a PDF: trees with kids, embedded files, page labels,
names of glyphs, choices in fields, pictures that cannot be decoded,
page trees that state another number of pages.

All of it goes by the objects of MuPDF itself, which decode text strings in UTF-16, UTF-8 and PDFDocEncoding.
"""

from __future__ import annotations

import itertools
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, reduce
from operator import attrgetter

import pymupdf
from pymupdf import mupdf
from pymupdf.utils import construct_label

from vrag_ray.corpus.formats.source import is_memory_error

MOST_ENTRIES = 100_000
"""Entries of a tree that are read."""
_OF_NAME, _OF_FILE = ("UF", "F", "Unix", "DOS", "Mac"), ("F", "UF", "Unix", "DOS", "Mac")
"""The keys under which a file may have its name and its content, the best first. Older programs use the last three."""
_INHERITED = ("Resources", "MediaBox", "CropBox", "Rotate")
MOST_PICTURES = 16
LEAST_DECODED = 0.03
"""Share of the bytes of a picture below which it shows nothing."""
_DRAWN = re.compile(rb"/([^\s/<>\[\]()]+)\s+Do\b")
_LETTERS = frozenset("aA")
MOST_LETTERS = 26 * 26
"""Pages that are numbered by letters."""
_NUMBERED = re.compile(r"[A-Za-tv-z]?\d+|G[0-9A-F]{2}")
"""Names of glyphs that number them: ``g17``, ``a65``. MuPDF takes the number for a code."""
_NO_LETTER = frozenset((0, 0xFFFD))
_WITHOUT_GLYPH = frozenset((".notdef", "space"))
_OTHER_DINGBATS = dict(
    zip(
        b"\x25\x2a\x2b\x48\x6c\x6e\x73\x74\x75\x77\xa8\xa9\xaa\xab\xd5\xd6\xd7", "☎☛☞★●■▲▼◆◗♣♦♥♠→↔↕", strict=True
    )
)  # fmt: skip
_OTHER_DINGBATS |= {0xAC + number: chr(0x2460 + number) for number in range(10)}
"""Signs of ZapfDingbats that stand elsewhere in Unicode: the others are in the block Dingbats, in the font's order."""
_TABLE = """/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def
1 begincodespacerange <00> <FF> endcodespacerange
{count} beginbfchar
{table}endbfchar
endcmap end end"""


@dataclass(frozen=True, slots=True)
class LabelRange:
    """How the pages from ``start`` on (from 0) are called: ``prefix``, and a number in ``style`` from ``first`` on."""

    start: int
    prefix: str
    style: str
    first: int

    def label(self, page: int) -> str:
        number = page - self.start + self.first
        if self.style in _LETTERS and 0 < number <= MOST_LETTERS:
            # ``z`` is followed by ``aa``, ``bb``, ``cc``.
            return self.prefix + chr(ord(self.style) + (number - 1) % 26) * ((number + 25) // 26)
        return self.prefix + str(construct_label(self.style, "", number))


def mend_pages(document: pymupdf.Document) -> None:
    """Give the PDF a flat tree of the pages that it has, in memory, where the tree states another number of them.

    A PDF without pages is first looked through for its objects: its table of them may be wrong throughout.
    """
    pdf = mupdf.pdf_document_from_fz_document(document)
    if _stated_pages(document) == 0:
        with suppress(RuntimeError):
            mupdf.pdf_repair_xref(pdf)
    catalog = _at(mupdf.pdf_trailer(pdf), "Root")
    leaves = list(itertools.islice(_leaves(mupdf.pdf_dict_gets(catalog, "Pages")), MOST_ENTRIES))
    pages = [leaf for leaf in leaves if mupdf.pdf_is_dict(leaf)]
    is_tree = mupdf.pdf_is_array(_at(catalog, "Pages", "Kids"))
    if not 0 < len(pages) <= len(leaves) < MOST_ENTRIES or (is_tree and _stated_pages(document) == len(leaves)):
        return
    kids = mupdf.pdf_new_array(pdf, len(pages))
    tree = mupdf.pdf_new_dict(pdf, 3)
    mupdf.pdf_dict_puts(tree, "Type", mupdf.pdf_new_name("Pages"))
    mupdf.pdf_dict_puts(tree, "Kids", kids)
    mupdf.pdf_dict_puts(tree, "Count", mupdf.pdf_new_int(len(pages)))
    root = mupdf.pdf_add_object(pdf, tree)
    for leaf in pages:
        page = leaf if mupdf.pdf_is_indirect(leaf) else mupdf.pdf_add_object(pdf, leaf)
        for key in _INHERITED:
            value = mupdf.pdf_dict_gets_inheritable(page, key)
            if not mupdf.pdf_is_null(value):
                mupdf.pdf_dict_puts(page, key, value)
        mupdf.pdf_dict_puts(page, "Type", mupdf.pdf_new_name("Page"))
        mupdf.pdf_dict_puts(page, "Parent", root)
        mupdf.pdf_array_push(kids, page)
    mupdf.pdf_dict_puts(catalog, "Pages", root)


def _stated_pages(document: pymupdf.Document) -> int:
    """How many pages the PDF states; 0 where that cannot be."""
    try:
        return int(document.page_count)
    except RuntimeError:
        return 0


def _leaves(tree: mupdf.PdfObj) -> Iterator[mupdf.PdfObj]:
    """What a page tree has in the places of its pages, in order."""
    nodes, seen = [tree], set()
    while nodes:
        node = nodes.pop()
        kids = mupdf.pdf_dict_gets(node, "Kids")
        number = mupdf.pdf_to_num(node)
        if mupdf.pdf_is_null(kids):
            yield node
        elif not number or number not in seen:
            seen.add(number)
            nodes += reversed(_items(kids)) if mupdf.pdf_is_array(kids) else [kids]


def settle_layers(document: pymupdf.Document) -> None:
    """Give each membership that needs all of several layers the layer that is off, in memory, where a layer is.

    MuPDF shows what belongs to it where any of them is on.
    """
    if mupdf.pdf_is_null(mupdf.pdf_dict_gets(_catalog(document), "OCProperties")):
        return
    pdf = mupdf.pdf_document_from_fz_document(document)
    for number in range(1, min(document.xref_length(), MOST_ENTRIES)):
        with suppress(RuntimeError):
            if document.xref_get_key(number, "Type")[1] != "/OCMD" or document.xref_get_key(number, "P")[1] != "/AllOn":
                continue
            membership = _object(document, number)
            for layer in _items(mupdf.pdf_dict_gets(membership, "OCGs")):
                if mupdf.pdf_is_ocg_hidden(pdf, mupdf.PdfResourceStack(), "View", layer):
                    mupdf.pdf_dict_puts(membership, "OCGs", layer)
                    mupdf.pdf_dict_dels(membership, "P")
                    break


def is_dynamic_form(document: pymupdf.Document) -> bool:
    """Whether the PDF is a form (XFA) whose pages a program makes of its data; those in the file only say so."""
    catalog = _catalog(document)
    form = _at(catalog, "AcroForm", "XFA")
    return not mupdf.pdf_is_null(form) and bool(mupdf.pdf_to_bool(mupdf.pdf_dict_gets(catalog, "NeedsRendering")))


def page_labels(document: pymupdf.Document) -> list[LabelRange]:
    """The ranges of page labels of a PDF, the first pages first."""
    ranges = []
    for start, rule in _entries(mupdf.pdf_dict_gets(_catalog(document), "PageLabels"), "Nums"):
        first = mupdf.pdf_dict_gets(rule, "St")
        ranges.append(
            LabelRange(
                mupdf.pdf_to_int(start),
                text_string(mupdf.pdf_dict_gets(rule, "P")),
                mupdf.pdf_to_name(mupdf.pdf_dict_gets(rule, "S")),
                mupdf.pdf_to_int(first) if mupdf.pdf_is_int(first) else 1,
            )
        )
    return sorted(ranges, key=attrgetter("start"))


def label_of(ranges: Sequence[LabelRange], page: int) -> str:
    """What the page (from 0) is called; "" before the first range."""
    place = bisect_right(ranges, page, key=attrgetter("start"))
    return ranges[place - 1].label(page) if place else ""


def fonts_without_letters(page: pymupdf.Page) -> set[str]:
    """The fonts of ``page`` whose codes stand for letters that the file does not state, by the names that MuPDF's spans
    have for them: fonts without a table of Unicode, most of whose glyphs have numbers for names."""
    fonts = set()
    for number, extension, kind, name, *_ in page.get_fonts():
        if kind == "Type0" or (extension == "n/a" and kind != "Type3"):
            continue
        font = _object(page.parent, number)
        names = [mupdf.pdf_to_name(item) for item in _items(_at(font, "Encoding", "Differences"))]
        names = [of_glyph for of_glyph in names if of_glyph and of_glyph not in _WITHOUT_GLYPH]
        unknown = sum(
            _NUMBERED.fullmatch(of_glyph) is not None or mupdf.fz_unicode_from_glyph_name(of_glyph) in _NO_LETTER
            for of_glyph in names
        )
        if 2 * unknown > len(names) and not mupdf.pdf_is_stream(mupdf.pdf_dict_gets(font, "ToUnicode")):
            fonts.add(f"Type3 ({number} 0 R)" if kind == "Type3" else name.rpartition("+")[2])
    return fonts


def name_dingbats(page: pymupdf.Page) -> None:
    """Give each font ZapfDingbats of ``page`` a table of Unicode in memory, where it has none: MuPDF reads its ticks as
    figures, and other signs as nothing. Nothing of the page may have been read before."""
    document = page.parent
    for number, _, kind, name, *_ in page.get_fonts():
        font = _object(document, number)
        if "ZapfDingbats" not in name or kind == "Type0" or mupdf.pdf_is_stream(_at(font, "ToUnicode")):
            continue
        signs = {code: sign for code in range(0x21, 0xFF) if (sign := _dingbat(code))}
        at = 0
        for item in _items(_at(font, "Encoding", "Differences")):
            if mupdf.pdf_is_int(item):
                at = mupdf.pdf_to_int(item)
                continue
            if 0 <= at <= 0xFF and (named := _signs_by_name().get(mupdf.pdf_to_name(item))):
                signs[at] = named
            at += 1
        table = "".join(f"<{code:02X}> <{ord(sign):04X}>\n" for code, sign in signs.items())
        xref = document.get_new_xref()
        document.update_object(xref, "<<>>")
        document.update_stream(xref, _TABLE.format(count=len(signs), table=table).encode(), new=True)
        document.xref_set_key(number, "ToUnicode", f"{xref} 0 R")


def _dingbat(code: int) -> str:
    """The sign of a code of ZapfDingbats."""
    if code in _OTHER_DINGBATS:
        return _OTHER_DINGBATS[code]
    if 0x21 <= code <= 0x7E:
        return chr(0x2700 + code - 0x20)
    return chr(0x2700 + code - 0x40) if 0xA1 <= code <= 0xFE and code != 0xF0 else ""


@cache
def _signs_by_name() -> dict[str, str]:
    """The signs of ZapfDingbats by the names of their glyphs, as ``a20``."""
    font = pymupdf.Font("zadb")
    signs = filter(None, map(_dingbat, range(0x100)))
    return {mupdf.fz_get_glyph_name2(font.this, font.has_glyph(ord(sign))): sign for sign in signs}


def undecoded_pictures(page: pymupdf.Page) -> list[tuple[int, int]]:
    """The width and height in pixels of each picture that ``page`` draws and that cannot be decoded, of the first few.

    MuPDF leaves such a picture out, or draws zeros.
    """
    document = page.parent
    drawn = {name.decode("latin-1") for name in _DRAWN.findall(page.read_contents())}
    sizes = []
    for number, _, width, height, bits, _, _, name, kind, form in page.get_images(full=True)[:MOST_PICTURES]:
        if not form and name not in drawn:
            continue
        try:
            if kind == "JPXDecode":
                pymupdf.Pixmap(document, number)
                continue
            # A component at least; MuPDF ends a stream where its filter fails.
            pixels = len(document.xref_stream(number) or b"")
            is_lost = pixels < LEAST_DECODED * height * math.ceil(width * max(bits, 1) / 8)
        except Exception as error:
            if is_memory_error(error):
                raise
            is_lost = True
        if is_lost:
            sizes.append((width, height))
    return sizes


def choices(document: pymupdf.Document, field: int) -> list[tuple[str, str]]:
    """What is chosen in the list or combo box of that number: each choice as the file names it, and as it is shown."""
    holder = _object(document, field)
    options = _items(mupdf.pdf_dict_gets_inheritable(holder, "Opt"))
    pairs = [option if len(option) == 2 else 2 * option for option in map(_texts, options)]
    value = mupdf.pdf_dict_gets_inheritable(holder, "V")
    if mupdf.pdf_is_null(value):
        places = map(mupdf.pdf_to_int, _items(mupdf.pdf_dict_gets_inheritable(holder, "I")))
        return [(pairs[place][0], pairs[place][1]) for place in places if 0 <= place < len(pairs) and pairs[place]]
    shown = {pair[0]: pair[1] for pair in pairs if pair}
    return [(name, shown.get(name, name)) for name in _texts(value)]


def _texts(value: mupdf.PdfObj) -> list[str]:
    """The text strings of an array; the only one of a text string."""
    return list(map(text_string, _items(value) if mupdf.pdf_is_array(value) else [value]))


def listed_files(document: pymupdf.Document) -> Iterator[mupdf.PdfObj]:
    """The specifications of the files that the document lists as embedded."""
    return (file for _, file in _entries(_at(_catalog(document), "Names", "EmbeddedFiles"), "Names"))


def noted_files(document: pymupdf.Document, note: int) -> Iterator[mupdf.PdfObj]:
    """The specifications of the files that the annotation of that number holds or plays."""
    annotation = _object(document, note)
    yield from filter(_is_file, [mupdf.pdf_dict_gets(annotation, "FS"), _at(annotation, "Movie", "F")])
    yield from (file for _, file in _entries(_at(annotation, "RichMediaContent", "Assets"), "Names"))
    played = [mupdf.pdf_dict_gets(annotation, "A")]
    triggers = mupdf.pdf_dict_gets(annotation, "AA")
    played += [mupdf.pdf_dict_get_val(triggers, place) for place in range(mupdf.pdf_dict_len(triggers))]
    for action in played:
        yield from _films(mupdf.pdf_dict_gets(action, "R"))


def played_files(document: pymupdf.Document) -> Iterator[mupdf.PdfObj]:
    """The specifications of the films and sounds that the document lists, for scripts to play."""
    for _, rendition in _entries(_at(_catalog(document), "Names", "Renditions"), "Names"):
        yield from _films(rendition)


def _films(rendition: mupdf.PdfObj) -> Iterator[mupdf.PdfObj]:
    """The specifications of the files of a rendition, or of those that it selects from."""
    choices = _items(mupdf.pdf_dict_gets(rendition, "R"))
    yield from filter(_is_file, (_at(choice, "C", "D") for choice in (rendition, *choices)))


def _is_file(specification: mupdf.PdfObj) -> bool:
    return bool(mupdf.pdf_is_dict(specification) or mupdf.pdf_is_string(specification))


def _at(holder: mupdf.PdfObj, *path: str) -> mupdf.PdfObj:
    """The object at the path of keys below ``holder``; null where there is none."""
    return reduce(mupdf.pdf_dict_gets, path, holder)


def associated_files(document: pymupdf.Document, holder: int) -> list[mupdf.PdfObj]:
    """The specifications of the files that belong to the object of that number, the catalog or a page."""
    files = mupdf.pdf_dict_gets(_object(document, holder), "AF")
    return [files] if mupdf.pdf_is_dict(files) else _items(files)


def embedded_file(specification: mupdf.PdfObj) -> tuple[str, bytes]:
    """The name and the content of a file; each empty where the specification has none, as of a file beside the PDF."""
    if mupdf.pdf_is_string(specification):
        return text_string(specification), b""
    names = (text_string(mupdf.pdf_dict_gets(specification, key)) for key in _OF_NAME)
    contents = mupdf.pdf_dict_gets(specification, "EF")
    streams = (mupdf.pdf_dict_gets(contents, key) for key in _OF_FILE)
    stream = next(filter(mupdf.pdf_is_stream, streams), None)
    name = next(filter(None, names), "")
    return name, mupdf.fz_buffer_extract_copy(mupdf.pdf_load_stream(stream)) if stream is not None else b""


def text_string(text: mupdf.PdfObj) -> str:
    """The characters of a text string, without what follows an end mark; "" of any other object."""
    return str(mupdf.pdf_to_text_string(text)).partition("\0")[0]


def _entries(tree: mupdf.PdfObj, leaves: str) -> Iterator[tuple[mupdf.PdfObj, mupdf.PdfObj]]:
    """The keys and values of a tree of names (``leaves`` is "Names") or of numbers ("Nums"), in order."""

    def pairs() -> Iterator[tuple[mupdf.PdfObj, mupdf.PdfObj]]:
        nodes, seen = [tree], set()
        while nodes:
            node = nodes.pop()
            number = mupdf.pdf_to_num(node)
            # A damaged tree may lead back to a node. One that is part of another has no number.
            if number and number in seen:
                continue
            seen.add(number)
            items = _items(mupdf.pdf_dict_gets(node, leaves))
            yield from zip(items[::2], items[1::2], strict=False)
            nodes += reversed(_items(mupdf.pdf_dict_gets(node, "Kids")))

    return itertools.islice(pairs(), MOST_ENTRIES)


def _items(array: mupdf.PdfObj) -> list[mupdf.PdfObj]:
    return [mupdf.pdf_array_get(array, place) for place in range(mupdf.pdf_array_len(array))]


def _catalog(document: pymupdf.Document) -> mupdf.PdfObj:
    return _object(document, document.pdf_catalog())


def _object(document: pymupdf.Document, number: int) -> mupdf.PdfObj:
    return mupdf.pdf_load_object(mupdf.pdf_document_from_fz_document(document), number)
