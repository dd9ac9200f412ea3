"""What the three kinds of Office Open XML files have in common: parts, relations, charts and diagrams."""

from __future__ import annotations

import base64
import posixpath
import zipfile
from collections.abc import Iterator, Sequence
from html import escape
from xml.etree import ElementTree

from vrag_ray.corpus.model import DecodeError

MOST_PART_BYTES = 64 * 2**20
"""Of XML that is read here, unpacked."""
MOST_DRAWN_BYTES = 48 * 2**20
"""Of the pictures that are drawn on the pages of one document, or on one slide."""
EMU_OF_A_POINT = 12_700
_DRAWN_KINDS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".bmp": "bmp"}
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_STRICT_RELATION = "{http://purl.oclc.org/ooxml/officeDocument/relationships}"
STYLE = """body{font-family:sans-serif} h1.title{font-size:2.5em}
p{margin:4px 0} td p,th p{margin:0} hr{page-break-after:always;border:0}
table{border-collapse:collapse;margin:6px 0}
td,th{border:1px solid #bbb;padding:1px 12px;font-size:9pt;vertical-align:top;text-align:left}"""


def xml_of(archive: zipfile.ZipFile, name: str) -> bytes:
    """A part of an office file. Raises DecodeError where it is too large or holds a definition of its own."""
    if archive.getinfo(name).file_size > MOST_PART_BYTES:
        raise DecodeError(f"holds {name} of more than {MOST_PART_BYTES >> 20} MB: export it as PDF")
    data = archive.read(name)
    if b"<!DOCTYPE" in data[:1000] or b"<!ENTITY" in data or b"\0" in data[:4]:
        # No office program writes one, and an entity can grow without end.
        raise DecodeError(f"holds a definition of its own in {name}: save it anew with an office program")
    return data


def tree_of(xml: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(xml)  # noqa: S314 - ``xml_of`` takes none with a definition; this process is limited.


def relations_of(archive: zipfile.ZipFile, name: str, names: frozenset[str]) -> dict[str, str]:
    """The parts that the part ``name`` refers to, by the id of the relation."""
    folder, base = posixpath.split(name)
    file = posixpath.join(folder, "_rels", f"{base}.rels")
    if file not in names:
        return {}
    return {
        relation.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, relation.get("Target", "")))[1:]
        for relation in tree_of(xml_of(archive, file))
        if relation.get("TargetMode") != "External"
    }


def related(reference: ElementTree.Element, relations: dict[str, str], key: str = "id") -> str:
    """The part that an element refers to, "" without."""
    id_ = reference.get(f"{_RELATION}{key}") or reference.get(f"{_STRICT_RELATION}{key}") or ""
    return relations.get(id_, "")


def stated_title(archive: zipfile.ZipFile) -> str:
    """The title among the properties of the document, "" without."""
    name = "docProps/core.xml"
    if name not in archive.namelist():
        return ""
    return " ".join(next((title.text or "" for title in every(tree_of(xml_of(archive, name)), "title")), "").split())


def tag_of(element: ElementTree.Element) -> str:
    """The name of an element without its namespace, of which strict files have others."""
    return element.tag.rpartition("}")[2]


def every(element: ElementTree.Element, *tags: str) -> Iterator[ElementTree.Element]:
    """The element itself and all within it that have one of the ``tags``, in their order."""
    return (inner for inner in element.iter() if tag_of(inner) in tags)


def child(element: ElementTree.Element | None, *path: str) -> ElementTree.Element | None:
    """The first element at the path of tags below ``element``; None without."""
    current = element
    for tag in path:
        current = next((inner for inner in current if tag_of(inner) == tag), None) if current is not None else None
    return current


def words_of(element: ElementTree.Element | None) -> str:
    """The words of the paragraphs in a shape or a title, in one line."""
    if element is None:
        return ""
    paragraphs = ("".join(text.text or "" for text in every(paragraph, "t")) for paragraph in every(element, "p"))
    return " ".join(" ".join(paragraphs).split())


def table_markup(rows: Sequence[Sequence[str]]) -> str:
    """A table of texts as HTML."""
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def page_markup(body: str, title: str = "") -> str:
    """A web page with the ``body``, which is HTML."""
    named = f"<title>{escape(title)}</title>" if title else ""
    return f'<html><head><meta charset="utf-8"/>{named}<style>{STYLE}</style></head><body>{body}</body></html>'


def graphic_markup(
    archive: zipfile.ZipFile, graphic: ElementTree.Element, relations: dict[str, str], names: frozenset[str]
) -> str:
    """The chart or the diagram in a drawing as HTML, "" where it is neither.

    A chart becomes a table of the values that the file keeps of it, a diagram its texts, one below the other.
    """
    for inner in graphic.iter():
        tag = tag_of(inner)
        if tag not in ("chart", "relIds"):
            continue
        target = related(inner, relations, "id" if tag == "chart" else "dm")
        if target in names:
            part = tree_of(xml_of(archive, target))
            return _chart_markup(part) if tag == "chart" else _diagram_markup(part)
    return ""


class Pictures:
    """The pictures of an office file, as HTML that MuPDF draws; all of them up to ``MOST_DRAWN_BYTES``.

    Pictures of other formats and above the limit are not drawn. Like the others they are documents of their own.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = frozenset(archive.namelist())
        self._room = MOST_DRAWN_BYTES

    def markup(self, holder: ElementTree.Element, relations: dict[str, str], most: tuple[float, float]) -> str:
        """The first picture in ``holder`` in its own size, or as large as fits into ``most`` (width and height in
        points); "" where there is none that can be drawn."""
        parts = (related(blip, relations, "embed") for blip in every(holder, "blip"))
        part = next((name for name in parts if name in self._names), "")
        kind = _DRAWN_KINDS.get(posixpath.splitext(part)[1].lower())
        if kind is None or self._archive.getinfo(part).file_size > self._room:
            return ""
        sizes = (
            (int(size.get("cx", "0")) / EMU_OF_A_POINT, int(size.get("cy", "0")) / EMU_OF_A_POINT)
            for size in every(holder, "extent", "ext")
            if size.get("cx", "").isdigit() and size.get("cy", "").isdigit()
        )
        width, height = next(((x, y) for x, y in sizes if x > 0 and y > 0), most)
        scale = min(1.0, most[0] / width, most[1] / height)
        data = self._archive.read(part)
        self._room -= len(data)
        look = f"width:{scale * width:.0f}pt;height:{scale * height:.0f}pt"
        return f'<img src="data:image/{kind};base64,{base64.b64encode(data).decode()}" style="{look}"/>'


def _chart_markup(part: ElementTree.Element) -> str:
    chart, plot = child(part, "chart"), child(part, "chart", "plotArea")
    if chart is None or plot is None:
        return ""
    axes = (axis for axis in plot if tag_of(axis).endswith("Ax") or tag_of(axis) == "axis")
    heads = [words_of(child(titled, "title")) for titled in (chart, *axes)]
    tables: list[tuple[list[str], list[list[str]]]] = []
    for name, labels, values in (*_series(plot), *_newer_series(part, plot)):
        rows = [*labels, *([""] * (len(values) - len(labels)))]
        if not tables or tables[-1][0] != rows:
            tables.append((rows, [["", *rows]]))
        tables[-1][1].append([name, *values, *([""] * (len(rows) - len(values)))])
    # A row for each category: charts have more of these than series, and pages are higher than broad.
    markup = "".join(table_markup(list(zip(*columns, strict=True))) for _, columns in tables)
    return "".join(f"<p>{escape(head)}</p>" for head in heads if head) + markup


def _series(plot: ElementTree.Element) -> Iterator[tuple[str, list[str], list[str]]]:
    """The name, the categories and the values of each series."""
    for series in every(plot, "ser"):
        labels, values = (_cached(next(every(series, *tags), None)) for tags in (("cat", "xVal"), ("val", "yVal")))
        yield next(iter(_cached(child(series, "tx"))), ""), labels, values


def _newer_series(part: ElementTree.Element, plot: ElementTree.Element) -> Iterator[tuple[str, list[str], list[str]]]:
    """The same of waterfalls, treemaps and other charts of Office 2016 and later, whose series name their data."""
    tables = {data.get("id", ""): data for data in every(part, "data")}
    for series in every(plot, "series"):
        reference = child(series, "dataId")
        data = tables.get(reference.get("val", "")) if reference is not None else None
        if data is not None:
            dimensions = (next(every(data, tag), None) for tag in ("strDim", "numDim"))
            labels, values = map(_cached, dimensions)
            yield next((name.text or "" for name in every(series, "v")), ""), labels, values


def _cached(reference: ElementTree.Element | None) -> list[str]:
    """The values that a chart keeps of cells; of categories in several levels those of one place together."""
    if reference is None:
        return []
    levels = list(every(reference, "lvl")) or list(every(reference, "strCache", "numCache", "strLit", "numLit"))
    if not levels:
        return [text for value in every(reference, "v") if (text := (value.text or "").strip())]
    code = next((format_.text or "" for format_ in every(reference, "formatCode")), "")
    places: dict[int, str] = {}
    for level in reversed(levels):
        for point in every(level, "pt"):
            value = child(point, "v")
            text = _number(((point if value is None else value).text or "").strip(), code)
            index = int(point.get("idx", "0"))
            places[index] = f"{places[index]} {text}" if index in places else text
    return [places.get(index, "") for index in range(min(max(places, default=-1) + 1, 10_000))]


def _number(text: str, code: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return text
    return f"{100 * number:.10g}%" if "%" in code else f"{number:.12g}"


def _diagram_markup(part: ElementTree.Element) -> str:
    points = (point for point in every(part, "pt") if point.get("type", "node") in ("node", "asst"))
    return "".join(f"<p>{escape(words)}</p>" for point in points if (words := words_of(point)))
