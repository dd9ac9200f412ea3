"""Drawings (SVG) with words in elements that MuPDF does not know, written as plain text elements.

Programs for diagrams write labels as HTML in the drawing (``foreignObject``), often with a second form for other
programs (``switch``). MuPDF knows neither, nor style sheets, entities, text on paths, and elements with a prefix.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import count
from xml.etree import ElementTree

from vrag_ray.corpus.formats.unseen import TAG, hides, states_visible
from vrag_ray.corpus.formats.web_parts import html_of_xml
from vrag_ray.corpus.formats.web_styles import written_styles
from vrag_ray.corpus.formats.web_text import text_of_html

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_XML = "http://www.w3.org/XML/1998/namespace"
_WITH_WORDS = frozenset(("text", "tspan", "textPath", "a"))
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?:px)?\s*")
_LENGTH_IN_STYLE = re.compile(r"(?:^|[;\s\"'])(width|margin-left|padding-top|font-size)\s*:\s*(\d+(?:\.\d+)?)px")
_START = re.compile(r"\s*[Mm]\s*([+-]?[\d.]+(?:[eE][+-]?\d+)?)[\s,]*([+-]?[\d.]+(?:[eE][+-]?\d+)?)")
_NUMBERED = "data-number"
_TYPE_SIZE, _LEADING, _LETTER = 12.0, 1.2, 0.45
"""Of text in HTML, in user units; of a line, and of a letter at least on average, in type sizes."""
MOST_CHARS = 32 * 2**20
"""Of a drawing that is rewritten: as a tree it takes ten times as much memory."""
_LEAST_LETTERS = 8
"""On a line: no line is broken further."""


def plain_drawing(svg: str) -> tuple[str, int]:
    """``svg`` with its words in text elements, and how many are left out since they are hidden; ``svg`` itself where it
    is no XML, is very large, or is nested very deeply."""
    if len(svg) > MOST_CHARS:
        return svg, 0
    numbers = count()
    numbered = TAG.sub(lambda tag: f'<{tag[1]} {_NUMBERED}="{next(numbers)}"{tag[2]}{tag[3]}>', svg)
    try:
        # This process is limited, and expat itself limits what entities make.
        root = ElementTree.fromstring(numbered.encode("utf-8", "replace"))  # noqa: S314
    except ElementTree.ParseError:
        return svg, 0
    styles = written_styles(html_of_xml(numbered), _NUMBERED)
    paths = {path.get("id", ""): path.get("d", "") for path in root.iter() if _is_drawn(path) and _name(path) == "path"}
    try:
        hidden = _rewrite(root, styles, paths, is_gone=False, is_invisible=False)
        root.set("xmlns", _SVG)
        root.set("xmlns:xlink", _XLINK)
        return ElementTree.tostring(root, encoding="unicode"), hidden
    except RecursionError:
        return svg, 0


def _rewrite(
    element: ElementTree.Element,
    styles: Mapping[str, str],
    paths: Mapping[str, str],
    *,
    is_gone: bool,
    is_invisible: bool,
) -> int:
    """Makes what MuPDF draws of an element and all in it, which is in one that is not displayed, or in one that is
    invisible: in this it may be visible again. How many hidden words are left out."""
    element.tag = _name(element)
    element.attrib = dict(_plain_attributes(element))
    looks = (f"{name}:{element.get(name)}" for name in ("display", "visibility", "opacity") if element.get(name))
    if style := styles.get(element.attrib.pop(_NUMBERED, ""), ""):
        element.set("style", style)
    style = ";".join([*looks, style])
    is_gone = is_gone or hides(style)
    visible = states_visible(style)
    is_invisible = is_invisible if visible is None else not visible
    is_hidden, hidden = is_gone or is_invisible, 0
    if element.tag in _WITH_WORDS and is_hidden:
        hidden += len((element.text or "").split())
        element.text = ""
    if element.tag == "textPath":
        element.tag = "tspan"
        if start := _START.match(paths.get(_target(element), "")):
            element.attrib.update(x=start[1], y=start[2])
    children: list[ElementTree.Element] = []
    for child in element:
        if not _is_drawn(child):
            # What an editor stores for itself.
            continue
        if _name(child) == "switch":
            _choose(child, styles)
        inner = _as_text(child, child, styles) if _name(child) == "foreignObject" else child
        hidden += _rewrite(inner, styles, paths, is_gone=is_gone, is_invisible=is_invisible)
        if element.tag in _WITH_WORDS and is_hidden:
            hidden += len((inner.tail or "").split())
            inner.tail = ""
        children.append(inner)
    element[:] = children
    return hidden


def _is_drawn(element: ElementTree.Element) -> bool:
    """Whether an element is one of SVG, whose namespace is not always stated."""
    return element.tag.startswith(f"{{{_SVG}}}") or "}" not in element.tag


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _plain_attributes(element: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """The attributes with the prefixes that MuPDF knows them by, without those that programs keep for themselves."""
    for key, value in element.attrib.items():
        space, _, name = key.rpartition("}")
        if space in ("", f"{{{_XML}"):
            yield (f"xml:{name}" if space else name), value
        elif space == f"{{{_XLINK}":
            yield f"xlink:{name}", value


def _target(element: ElementTree.Element) -> str:
    return (element.get("href") or element.get("xlink:href") or "").removeprefix("#")


def _choose(switch: ElementTree.Element, styles: Mapping[str, str]) -> None:
    """Makes a group of a switch, with the child that a browser shows: the first that needs no extension, and is for any
    language where there is one. The next one has the place of HTML, whose own place is stated in HTML."""
    able = [child for child in switch if _is_drawn(child) and not child.get("requiredExtensions")]
    shown = next((child for child in able if "systemLanguage" not in child.attrib), next(iter(able), None))
    switch.tag = f"{{{_SVG}}}g"
    switch[:] = [] if shown is None else [shown]
    if shown is not None and _name(shown) == "foreignObject":
        place = next((child for child in able if _name(child) in ("text", "image")), shown)
        switch[:] = [_as_text(shown, place, styles)]


def _as_text(
    foreign: ElementTree.Element, place: ElementTree.Element, styles: Mapping[str, str]
) -> ElementTree.Element:
    """The words of HTML in a drawing as a text of as many lines, at the place of an element that stands for it."""
    for inner in foreign.iter():
        inner.tag = _name(inner)
        if style := styles.get(inner.get(_NUMBERED, "")):
            inner.set("style", style)
    markup = ElementTree.tostring(foreign, encoding="unicode", method="html")
    lengths = {name: float(value) for name, value in reversed(_LENGTH_IN_STYLE.findall(markup)) if float(value)}
    size = lengths.get("font-size", _TYPE_SIZE)
    width = _length(place, "width") or lengths.get("width", 0.0)
    is_wrapped = width and "nowrap" not in markup
    letters = max(_LEAST_LETTERS, int(width / (size * _LETTER))) if is_wrapped else len(markup)
    lines = [line for text in text_of_html(markup).splitlines() for line in textwrap.wrap(text, letters)]
    x, y = _length(place, "x"), _length(place, "y")
    text = ElementTree.Element(f"{{{_SVG}}}text", {"font-size": f"{size:g}"})
    if _name(place) == "text":
        # Its line is in the middle of those of the HTML.
        y -= (len(lines) - 1) * size * _LEADING / 2
        text.attrib.update({key: place.get(key, "") for key in ("text-anchor", "transform") if place.get(key)})
    else:
        stated = place is foreign and _length(place, "width") == 0
        x, y = (x + lengths.get("margin-left", 0), y + lengths.get("padding-top", 0)) if stated else (x, y)
        y += size
    text.attrib.update({key: foreign.get(key, "") for key in (_NUMBERED, "display", "visibility") if foreign.get(key)})
    for number, line in enumerate(lines):
        place_of_line = {"x": f"{x:g}", "y": f"{y + number * size * _LEADING:g}"}
        ElementTree.SubElement(text, f"{{{_SVG}}}tspan", place_of_line).text = line
    return text


def _length(element: ElementTree.Element, name: str) -> float:
    """A length in user units; 0 where it is not stated so."""
    number = _NUMBER.fullmatch(element.get(name, ""))
    return float(number[1]) if number is not None else 0.0
