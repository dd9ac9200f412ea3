"""Parts of web pages of which MuPDF draws nothing, or something else than a browser: written as plain markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape, unescape

from vrag_ray.corpus.formats.references import is_held
from vrag_ray.corpus.formats.unseen import SHEET, STYLE_VALUE, TAG, outermost, seen_drawing

_ATTRIBUTES = r"((?:[^>\"']|\"[^\"]*\"|'[^']*'){0,1000})"
MOST_NESTED = 12
"""Shadow trees in shadow trees; those further out are not read."""
_OPEN_OR_END = re.compile(r"<svg\b|</svg\s*>", re.IGNORECASE)
_HAS_WORDS = re.compile(r"<(?:text|foreignObject)\b", re.IGNORECASE)
_FOREIGN = re.compile(rf"<foreignObject\b{_ATTRIBUTES}>(.{{0,20000}}?)</foreignObject\s*>", re.IGNORECASE | re.DOTALL)
_INNER_TEMPLATE = re.compile(
    rf"<template\b{_ATTRIBUTES}>((?:(?!</?template\b).)*)</template\s*>", re.IGNORECASE | re.DOTALL
)
_SHADOW = re.compile(r"\sshadowrootmode\s*=", re.IGNORECASE)
_NO_PART = re.compile(
    r"<!doctype[^>]*>|<(style|script|title)\b.*?</\1\s*>|</?(?:html|head|body)\b[^>]*>", re.IGNORECASE | re.DOTALL
)
"""What of a page does not belong into another page; its style sheets would hold for all of that."""
_NO_FRAMES = re.compile(r"<(/?)noframes\b[^>]*>", re.IGNORECASE)
_FRAMES = re.compile(r"</?frame(?:set)?\b[^>]*>|</?body\b[^>]*>", re.IGNORECASE)
_CAPTION = re.compile(
    rf"(<table\b{_ATTRIBUTES}>)(\s*)<caption\b{_ATTRIBUTES}>((?:(?!</?(?:table|tr)\b).)*?)</caption\s*>",
    re.IGNORECASE | re.DOTALL,
)
_TEXT_INPUTS = frozenset(
    ("", "text", "search", "email", "url", "tel", "number", "date", "time", "datetime-local", "month", "week")
)
_BUTTONS = frozenset(("submit", "button", "reset"))
_SELECT = re.compile(rf"(<select\b{_ATTRIBUTES}>)(.{{0,200000}}?)(?=</select\s*>)", re.IGNORECASE | re.DOTALL)
_OPTION = re.compile(
    rf"<option\b{_ATTRIBUTES}>((?:(?!<(?:/?option|/?optgroup|/select)\b).)*)(?:</option\s*>)?",
    re.IGNORECASE | re.DOTALL,
)
_LOOKS = frozenset(("class", "style", "hidden"))
_LIST_PART = re.compile(rf"<(/?)(ol|ul|menu|li)\b{_ATTRIBUTES}>", re.IGNORECASE)
_NUMBERINGS = {"a": "lower-alpha", "A": "upper-alpha", "i": "lower-roman", "I": "upper-roman"}
_NUMBER = re.compile(r"[+-]?\d{1,9}")
_RUBY = re.compile(
    r"<ruby\b[^>]*>(.{0,2000}?)</ruby\s*>(?=(?:</?(?:a|b|em|i|ruby|span|strong)\b[^>]*>)*(.?))",
    re.IGNORECASE | re.DOTALL,
)
_READING = re.compile(r"<rt\b[^>]*>(.*?)(?=</rt\b|<r[bpt]\b|$)", re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(r"([^\s=>/\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+)))?")
_ANY_TAG = re.compile(r"<[^>]*>")
_BLOCKS = """
address article aside blockquote br caption center dd details div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr
legend li main nav ol p pre section summary table tr ul
"""
BLOCK_TAGS = frozenset(_BLOCKS.split())
VOID_TAGS = frozenset(("area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"))
_DECLARATIONS = re.compile(
    r"<\?xml\b[^>]*>|<!DOCTYPE\b[^\[>]*(?:\[(?:[^\]\"']|\"[^\"]*\"|'[^']*'){0,20000}+\]\s*)?>", re.IGNORECASE
)
_ENTITY = re.compile(r"<!ENTITY\s+([\w.-]+)\s+[\"']([^\"'&%<]{0,1000})[\"']\s*>")
_PREFIX = re.compile(r"\sxmlns:([\w-]+)\s*=\s*[\"']http://www\.w3\.org/(?:1999/xhtml|2000/svg)[\"']")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)


def with_drawn_parts(html: str) -> str:
    """``html`` with the words of drawings below them, what inner frames and shadow trees hold in their places, captions
    before their tables, values of fields, the choice in closed lists, what pictures that are not drawn are called, and
    lists as they count."""
    html = _with_shadow_trees(TAG.sub(_with_held_page, html) if "srcdoc" in html else html)
    if _NO_FRAMES.search(html) and "<frameset" in html.lower():
        html = _NO_FRAMES.sub(r"<\1div>", _FRAMES.sub("", html))
    html = with_readings(html)
    html = _CAPTION.sub(r"<div\4>\5</div>\1\3", html)
    html = _SELECT.sub(_with_choice, html)
    html = _with_counted_lists(TAG.sub(_with_words, html))
    return _with_words_of_drawings(html)


def html_of_xml(markup: str) -> str:
    """XHTML, or a drawing, as HTML, of which a parser makes the same elements."""
    entities = dict(_ENTITY.findall(markup))
    if entities:
        markup = re.sub(r"&([\w.-]+);", lambda name: entities.get(name[1], name[0]), markup)
    if prefixes := "|".join(map(re.escape, set(_PREFIX.findall(markup)))):
        markup = re.sub(rf"<(/?)(?:{prefixes}):(?=\w)", r"<\1", markup)
    markup = TAG.sub(_with_end, _DECLARATIONS.sub("", markup))
    markup = SHEET.sub(lambda sheet: sheet[1] + unescape(_CDATA.sub(r"\1", sheet[2])) + sheet[3], markup)
    return _CDATA.sub(lambda text: escape(text[1]), markup)


def _with_end(tag: re.Match[str]) -> str:
    return f"<{tag[1]}{tag[2]}></{tag[1]}>" if tag[3] and tag[1].lower() not in VOID_TAGS else tag[0]


def _with_words_of_drawings(html: str) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in outermost(_OPEN_OR_END, html):
        drawing = html[start:stop]
        parts.append(html[end:stop])
        end = stop
        if _HAS_WORDS.search(drawing) and (lines := _lines_of(drawing)):
            # A drawing that is hidden hides them with it.
            attributes = TAG.match(drawing)
            look = "" if attributes is None else _look(attributes[2])
            parts.append(f"<span{look}><br>{'<br>'.join(map(escape, lines))}<br></span>")
    return "".join([*parts, html[end:]])


def _lines_of(drawing: str) -> list[str]:
    """The words of a drawing as lines, from top to bottom."""
    # The child that reads plain texts imports this module and needs no MuPDF before a notebook has a drawing.
    import pymupdf

    try:
        with pymupdf.open(stream=seen_drawing(drawing).encode("utf-8", "replace"), filetype="svg") as document:
            blocks = document[0].get_text("dict")["blocks"] if document.page_count else []
    except (pymupdf.FileDataError, pymupdf.mupdf.FzErrorBase, RuntimeError, ValueError):
        blocks = []
    places = [
        (line["bbox"], "".join(span["text"] for span in line["spans"] if span["alpha"]))
        for block in blocks
        for line in block.get("lines", ())
    ]
    rows: list[list[tuple[float, float, str]]] = []
    for (x0, y0, _, y1), text in sorted(places, key=lambda place: (place[0][1] + place[0][3], place[0][0])):
        middle = (y0 + y1) / 2
        if rows and middle - rows[-1][0][1] < (y1 - y0) / 4:
            rows[-1].append((x0, rows[-1][0][1], text))
        else:
            rows.append([(x0, middle, text)])
    lines = [" ".join(" ".join(text for _, _, text in sorted(row)).split()) for row in rows]
    foreign = (" ".join(unescape(_ANY_TAG.sub(" ", part[2])).split()) for part in _FOREIGN.finditer(drawing))
    return [line for line in (*lines, *foreign) if line]


def _with_held_page(match: re.Match[str]) -> str:
    page = _value(match[2], "srcdoc") if match[1].lower() == "iframe" else None
    if not page:
        return match[0]
    return f"<div{_look(match[2])}>{with_drawn_parts(_NO_PART.sub('', page))}</div>{match[0]}"


def _with_shadow_trees(html: str) -> str:
    if not _SHADOW.search(html):
        return html

    def shown(match: re.Match[str]) -> str:
        return f"<div>{_NO_PART.sub('', match[2])}</div>" if _SHADOW.search(match[1]) else ""

    for _ in range(MOST_NESTED):
        # From the inside.
        html, count = _INNER_TEMPLATE.subn(shown, html)
        if not count:
            break
    return html


def _with_words(match: re.Match[str]) -> str:
    name, attributes = match[1].lower(), match[2]
    words = words_of_element(name, dict(reversed(list(_stated(attributes))))) if name in ("input", "img") else None
    if words is not None:
        return f"{match[0] if name == 'input' else ''}<span{_look(attributes)}> {escape(words)} </span>"
    if name == "ol" and (look := _NUMBERINGS.get((_value(attributes, "type") or "").strip())) is not None:
        stated = _value(attributes, "style") or ""
        style = escape(f"list-style-type:{look};{stated}")
        return f'<{match[1]}{STYLE_VALUE.sub("", attributes)} style="{style}"{match[3]}>'
    return match[0]


def words_of_element(name: str, attributes: Mapping[str, str | None]) -> str | None:
    """What a field shows as its value, or what stands for a picture that a page does not hold; None for what has no
    such words."""
    if name == "input":
        kind, value = (attributes.get("type") or "").lower(), attributes.get("value") or ""
        return value if kind in _TEXT_INPUTS | _BUTTONS and value.strip() else None
    if name == "img" and not is_held((attributes.get("src") or "").strip()) and "alt" in attributes:
        return attributes["alt"] or ""
    return None


def _with_counted_lists(html: str) -> str:
    """``html`` with a list of its own from each item that states its number."""
    opened: list[str | None] = []
    """The attributes of the open lists; None for those that do not count."""

    def counted(match: re.Match[str]) -> str:
        name = match[2].lower()
        if name != "li":
            if match[1]:
                del opened[-1:]
            else:
                opened.append(match[3] if name == "ol" else None)
        elif not match[1] and opened and opened[-1] is not None:
            number = (_value(match[3], "value") or "").strip()
            if _NUMBER.fullmatch(number):
                look = _look(opened[-1])
                return f'</ol><ol{look} start="{int(number)}">{match[0]}'
        return match[0]

    return _LIST_PART.sub(counted, html)


def with_readings(html: str) -> str:
    """``html`` with how a word is read, which style sheets are to hide above it, in brackets behind it. Within a longer
    word it would part that, and is left out."""
    return _RUBY.sub(_with_reading, html) if "<ruby" in html else html


def _with_reading(match: re.Match[str]) -> str:
    reading = "".join(_ANY_TAG.sub("", part) for part in _READING.findall(match[1])).strip()
    return match[0] if not reading or match[2].isalpha() else f"{match[0]}<span>({reading})</span>"


def _with_choice(match: re.Match[str]) -> str:
    """A closed list with the option alone that is chosen in it; with all where none is, or where it shows several."""
    size = (_value(match[2], "size") or "").strip()
    chosen = [option[0] for option in _OPTION.finditer(match[3]) if _value(option[1], "selected") is not None]
    is_open = _value(match[2], "multiple") is not None or (size.isdecimal() and int(size) > 1)
    return match[0] if is_open or not chosen else match[1] + chosen[-1]


def _value(attributes: str, name: str) -> str | None:
    """The value of an attribute, "" where it has none, None where it is not stated."""
    return next((value for key, value in _stated(attributes) if key == name), None)


def _look(attributes: str) -> str:
    """Those of the attributes that may hide an element, as markup."""
    return "".join(f' {key}="{escape(value)}"' for key, value in _stated(attributes) if key in _LOOKS)


def _stated(attributes: str) -> Iterator[tuple[str, str]]:
    for match in _ATTRIBUTE.finditer(attributes):
        yield match[1].lower(), unescape(match[2] or match[3] or match[4] or "")
