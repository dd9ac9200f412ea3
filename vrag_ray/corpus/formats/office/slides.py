"""The slides of a PPTX, each as a web page: its title, the texts, tables, charts and diagrams, and its notes.

MuPDF's own reader of PPTX runs the slides together and puts the cells of a table one below the other.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from vrag_ray.corpus.formats.numerals import formatted
from vrag_ray.corpus.formats.office.formulas import formula_line
from vrag_ray.corpus.formats.office.parts import (
    Pictures,
    child,
    every,
    graphic_markup,
    page_markup,
    related,
    relations_of,
    tag_of,
    tree_of,
    xml_of,
)
from vrag_ray.corpus.formats.office.slide_places import pair_of, placed_shapes, unseen_texts
from vrag_ray.corpus.formats.symbol_fonts import PRIVATE_USE, signs_of
from vrag_ray.corpus.formats.unseen import seen_slide

MOST_SLIDES = 2_000
_MAIN = "ppt/presentation.xml"
_HIDDEN = re.compile(rb"<(?:\w+:)?sld\b[^>]*\bshow=\"(?:0|false)\"")
MOST_BESIDE = 4
ROW_OF_PICTURES = (740.0, 260.0)
"""Points of a row of pictures: its width and height."""
_MARKS = frozenset(("buNone", "buAutoNum", "buChar", "buBlip"))
_INDENT = 24
"""Points of a level of a list."""
_NUMBER_FORMATS = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
    "circleNum": "decimalEnclosedCircle",
}
_NUMBERED = re.compile(rf"({'|'.join(_NUMBER_FORMATS)})(?:Db|Wd(?:Black|White))?(\w*)")
_AROUND_NUMBERS = {"Period": ("", "."), "ParenR": ("", ")"), "ParenBoth": ("(", ")"), "Minus": ("", " -")}


@dataclass(frozen=True, slots=True)
class Slide:
    """A slide that is shown: its number among all, from 1, the speaker's notes of it ("" without), its part, and its
    width and height, where the presentation states them."""

    number: int
    notes: str
    part: str
    size: tuple[float, float] | None = None


def shown_slides(file: Path | BinaryIO) -> tuple[list[Slide], list[str]]:
    """The slides of the presentation ``file`` but for the hidden ones, and a notice of each of those.

    None where its parts are not where they belong.
    """
    slides: list[Slide] = []
    notices: list[str] = []
    with zipfile.ZipFile(file) as archive:
        names = frozenset(archive.namelist())
        if _MAIN not in names:
            return slides, notices
        relations = relations_of(archive, _MAIN, names)
        main = tree_of(xml_of(archive, _MAIN))
        size = pair_of(main, "sldSz", "cx", "cy")
        parts = [related(entry, relations) for entry in every(main, "sldId")]
        if len(parts) > MOST_SLIDES:
            notices.append(f"only its first {MOST_SLIDES} slides are read")
        for number, part in enumerate(parts[:MOST_SLIDES], 1):
            if part in names and _HIDDEN.search(xml_of(archive, part)):
                notices.append(f"slide {number} is left out: it is hidden")
            elif part in names:
                slides.append(Slide(number, _notes(archive, part, names), part, size))
            else:
                notices.append(f"slide {number} is left out: the file does not hold it")
    return slides, notices


def slide_page(archive: zipfile.ZipFile, slide: Slide, title: str) -> tuple[str, int, int]:
    """The slide as HTML without what is hidden or struck out on it, and how many words are hidden, and struck out.

    ``title`` is the presentation's.
    """
    names = frozenset(archive.namelist())
    xml, unseen, struck = seen_slide(xml_of(archive, slide.part))
    relations = relations_of(archive, slide.part, names)
    tree = _with_signs(tree_of(xml))
    for group in reversed(list(every(tree, "grpSp"))):
        properties = child(group, "nvGrpSpPr", "cNvPr")
        if properties is not None and properties.get("hidden") in ("1", "true"):
            unseen += _count_of_words(group)
            group[:] = []
    out_of_sight = unseen_texts(tree, slide.size, relations)
    unseen += sum(map(_count_of_words, out_of_sight))
    shapes = [shape for shape, _ in placed_shapes(tree) if not any(shape is other for other in out_of_sight)]
    models = _models(archive, relations, names)
    marked = [_markup(archive, shape, relations, names, models) for shape in shapes if tag_of(shape) != "pic"]
    if shown := _pictures(archive, [shape for shape in shapes if tag_of(shape) == "pic"], relations):
        marked.append((1, shown))
    # The footer stands first in some files, and the title last.
    body = "".join(markup for _, markup in sorted(marked, key=lambda shape: shape[0]))
    return page_markup(body, title), unseen, struck


def _count_of_words(shape: ElementTree.Element) -> int:
    return sum(len((text.text or "").split()) for text in every(shape, "t"))


def _with_signs(tree: ElementTree.Element) -> ElementTree.Element:
    """``tree``, whose runs in a font of signs have those signs as their text now: PowerPoint writes "==>" so."""
    for run in every(tree, "r"):
        styles = child(run, "rPr")
        latin, symbol = (
            element.get("typeface", "") if element is not None else ""
            for element in (child(styles, "latin"), child(styles, "sym"))
        )
        for text in every(run, "t") if latin or symbol else ():
            signs = signs_of(latin, text.text or "")
            # The font of symbols draws what is in private use, and no letter.
            text.text = "".join(signs_of(symbol, sign) if sign >= PRIVATE_USE else sign for sign in signs)
    return tree


def _pictures(archive: zipfile.ZipFile, shapes: Sequence[ElementTree.Element], relations: dict[str, str]) -> str:
    """The pictures of a slide, beside each other below its texts: small enough that few slides need a second page."""
    pictures = Pictures(archive)
    beside = min(len(shapes), MOST_BESIDE)
    markups = [pictures.markup(shape, relations, (ROW_OF_PICTURES[0] / beside, ROW_OF_PICTURES[1])) for shape in shapes]
    drawn = " ".join(filter(None, markups))
    return f"<p>{drawn}</p>" if drawn else ""


def _notes(archive: zipfile.ZipFile, slide: str, names: frozenset[str]) -> str:
    """The speaker's notes of a slide, a line a paragraph; its own number, which stands in them too, is left out."""
    for target in relations_of(archive, slide, names).values():
        if "/notesSlides/" in f"/{target}" and target in names:
            paragraphs = every(_with_signs(tree_of(xml_of(archive, target))), "p")
            lines = ("".join(text.text or "" for text in every(paragraph, "t")) for paragraph in paragraphs)
            return "\n".join(line for line in lines if line.strip() and not line.strip().isdigit())
    return ""


def _markup(
    archive: zipfile.ZipFile,
    shape: ElementTree.Element,
    relations: dict[str, str],
    names: frozenset[str],
    models: Sequence[tuple[str, ElementTree.Element]],
) -> tuple[int, str]:
    """Whether the shape belongs at the top (0), below (1) or at the foot (2) of its slide, and its HTML."""
    if (table := next(every(shape, "tbl"), None)) is not None:
        return 1, _table(table)
    if tag_of(shape) == "graphicFrame":
        return 1, graphic_markup(archive, shape, relations, names)
    place = next((holder.get("type", "") for holder in every(shape, "ph")), "")
    text = child(shape, "txBody")
    if text is None or place == "sldNum":
        return 1, ""
    if place in ("title", "ctrTitle"):
        return 0, f"<h2>{'<br/>'.join(line for _, line in _paragraphs(text))}</h2>"
    inherited = list(_inherited_styles(shape, models))
    lines = (
        f'<p style="margin-left:{_INDENT * level}px">{line}</p>' if level else f"<p>{line}</p>"
        for level, line in _paragraphs(text, inherited)
    )
    return 2 if place in ("ftr", "dt") else 1, "".join(lines)


def _models(
    archive: zipfile.ZipFile, relations: dict[str, str], names: frozenset[str]
) -> list[tuple[str, ElementTree.Element]]:
    """The layout of a slide and the layout's master, each with what names its places; none without numbers."""
    models: list[tuple[str, bytes]] = []
    for folder, key in (("/slideLayouts/", "idx"), ("/slideMasters/", "type")):
        part = next((part for part in relations.values() if folder in f"/{part}" and part in names), "")
        if part:
            models.append((key, xml_of(archive, part)))
            relations = relations_of(archive, part, names)
    return [(key, tree_of(xml)) for key, xml in models] if any(b"buAutoNum" in xml for _, xml in models) else []


def _inherited_styles(
    shape: ElementTree.Element, models: Sequence[tuple[str, ElementTree.Element]]
) -> Iterator[ElementTree.Element]:
    """The styles of lists that a placeholder has from the ``models`` of its slide, the nearest first."""
    place = next(every(shape, "ph"), None)
    if place is None:
        return
    for key, model in models:
        name = key if key in place.attrib else "type"
        for other, _ in placed_shapes(model):
            holder, styles = next(every(other, "ph"), None), child(other, "txBody", "lstStyle")
            if holder is not None and styles is not None and holder.get(name, "body") == place.get(name, "body"):
                yield styles
                break


def _paragraphs(text: ElementTree.Element, inherited: Sequence[ElementTree.Element] = ()) -> Iterator[tuple[int, str]]:
    """The level of each paragraph with words, from 0, and its HTML with the number that the program counts.

    ``inherited`` are styles of lists behind that of the text itself, the nearest first.
    """
    counts: dict[int, int] = {}
    own = child(text, "lstStyle")
    styles = [*([own] if own is not None else []), *inherited]
    for paragraph in (element for element in text if tag_of(element) == "p"):
        properties = child(paragraph, "pPr")
        level = int(properties.get("lvl", "0")) if properties is not None else 0
        places = (properties, *(child(style, f"lvl{level + 1}pPr") for style in styles))
        marks = (mark for place in places if place is not None for mark in place if tag_of(mark) in _MARKS)
        mark = next(marks, None)
        line = "".join(_run(element) for element in paragraph)
        if not line.strip():
            continue
        counts = {at: count for at, count in counts.items() if at <= level}
        if mark is not None and tag_of(mark) == "buAutoNum" and (kind := _NUMBERED.match(mark.get("type", ""))):
            counts[level] = counts.get(level, int(mark.get("startAt", "1")) - 1) + 1
            before, behind = _AROUND_NUMBERS.get(kind[2], ("", ""))
            line = f"{before}{formatted(counts[level], _NUMBER_FORMATS[kind[1]])}{behind} {line}"
        else:
            counts.pop(level, None)
        yield level, line


def _run(element: ElementTree.Element) -> str:
    tag = tag_of(element)
    if tag == "br":
        return "<br/>"
    if tag in ("AlternateContent", "Choice"):
        return "".join(_run(inner) for inner in element if tag_of(inner) != "Fallback")
    if tag == "m":
        return escape(formula_line(element))
    line = "".join(escape(text.text or "") for text in every(element, "t"))
    properties = child(element, "rPr")
    baseline = properties.get("baseline", "") if properties is not None else ""
    return f"<sup>{line}</sup>" if line and re.fullmatch(r"[1-9][\d.]*%?", baseline) else line


def _table(table: ElementTree.Element) -> str:
    rows: list[str] = []
    for row in every(table, "tr"):
        cells = ""
        for cell in (element for element in row if tag_of(element) == "tc"):
            if "hMerge" in cell.attrib or "vMerge" in cell.attrib:
                continue
            spans = (("colspan", cell.get("gridSpan", "1")), ("rowspan", cell.get("rowSpan", "1")))
            spanned = "".join(f' {name}="{n}"' for name, n in spans if n.isdigit() and n != "1")
            text = child(cell, "txBody")
            lines = "<br/>".join(line for _, line in _paragraphs(text)) if text is not None else ""
            cells += f"<td{spanned}>{lines}</td>"
        rows.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"
