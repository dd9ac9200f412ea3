"""JSON and XML as records, a line each that names its values: ``beacons name: Lisa, voltage: 12``. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias
from xml.etree import ElementTree

from vrag_ray.corpus.formats.named_rows import NamedRow
from vrag_ray.corpus.formats.web_text import text_of_html
from vrag_ray.corpus.model import clean

LONGEST_LINE = 60
"""Words of a line. The values of a longer record have a line each, with the name of the record."""

Value: TypeAlias = "str | bool | list[Value] | tuple[tuple[str, Value], ...] | None"
"""Numbers are the text that stands in the file; an object is the tuple of its members, whose names may be the same."""
Json: TypeAlias = "str | list[Json] | dict[str, Json]"
Pairs: TypeAlias = Sequence[tuple[str, str]]

_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str)
LEAST_ROWS = 3
"""Of lists of one length that are columns of a table."""
_FIGURE = re.compile(r"-?\d[\d.eE+-]*")
_BLANKS = re.compile(r"[ \t\r\n]*")
_OF_SCHEMA = "{http://www.w3.org/2001/XMLSchema-instance}"
_MARKUP = re.compile(
    r"</(?:a|b|blockquote|code|div|em|h[1-6]|i|li|ol|p|pre|span|strong|table|td|th|ul)\s*>|<(?:br|hr|img|p)\b[^<>]*>",
    re.IGNORECASE,
)
_IDENTITY = re.compile(r"(?:.*[_ -])?(?:name|title|label|id|key|code)", re.IGNORECASE)


def json_rows(text: str) -> list[NamedRow]:
    """The records of ``text``, in order; together they cover it from its first value on. Several values may follow each
    other, as in JSON Lines.

    Raises:
        ValueError: no JSON.
        RecursionError: it is nested too deeply.
    """
    lines: list[tuple[int, str]] = []
    at = _after_blanks(text, 0)
    while at < len(text):
        value, end = _DECODER.raw_decode(text, at)
        lines.extend(_lines(text, at, value, "", ()))
        at = _after_blanks(text, end)
    ends = [*(start for start, _ in lines[1:]), len(text)]
    return [NamedRow(start, end, f"{line}\n\n") for (start, line), end in zip(lines, ends, strict=False)]


def record_text(row: str) -> str:
    """The records of the JSON value ``row``, a line each; the errors are those of ``json_rows``."""
    return "".join(named.text for named in json_rows(row)).strip()


def xml_rows(text: str) -> list[NamedRow]:
    """The records of the XML document ``text``, in order, each at its place in the text that they make together.

    Elements are objects of their attributes and children; an element in which text and children are mixed is its text.

    Raises:
        ElementTree.ParseError: no XML.
        RecursionError: it is nested too deeply.
    """
    root = ElementTree.fromstring(text)  # noqa: S314  in the sandbox, and expat bounds what entities become
    value = json.dumps({_local_name(root.tag): _value_of(root)}, ensure_ascii=False)
    lines = [row.text for row in json_rows(value)]
    ends = accumulate(map(len, lines))
    return [NamedRow(end - len(line), end, line) for end, line in zip(ends, lines, strict=True)]


def _value_of(element: ElementTree.Element) -> Json:
    texts = (element.text, *(child.tail for child in element))
    own = " ".join(" ".join(filter(None, texts)).split())
    if own and len(element):
        return " ".join(_mixed_text(element).split())
    members: dict[str, list[Json]] = {}
    if _local_name(element.tag) == "dict" and [child.tag for child in element[::2]] == ["key"] * -(-len(element) // 2):
        # A property list of Apple.
        for key, child in zip(element[::2], element[1::2], strict=False):
            members.setdefault(key.text or "", []).append(_value_of(child) or _local_name(child.tag))
        return {name: values[0] if len(values) == 1 else values for name, values in members.items()}
    for name, attribute in element.items():
        if not name.startswith(_OF_SCHEMA):
            members.setdefault(_local_name(name), []).append(attribute)
    for child in element:
        members.setdefault(_local_name(child.tag), []).append(_value_of(child))
    if not members:
        return own
    if own:
        members.setdefault("", []).append(own)
    return {name: values[0] if len(values) == 1 else values for name, values in members.items()}


def _mixed_text(element: ElementTree.Element) -> str:
    """The text in ``element``. Elements without content end lines or pages, and part words, but where a break in TEI
    says that it is inside one."""
    parts = [element.text or ""]
    for child in element:
        if len(child) or child.text:
            parts.append(_mixed_text(child))
        elif child.get("break") != "no":
            parts.append(" ")
        parts.append(child.tail or "")
    return "".join(parts)


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def _lines(text: str, at: int, value: Value, path: str, above: Pairs) -> Iterator[tuple[int, str]]:
    """The lines of the value that begins at ``at``, each with the place where its values begin.

    ``path`` is made of the keys that lead to the value from the last record that has a name, and ``above`` has the
    names of these records.
    """
    if (table := _table_of(value)) is not None:
        first, names, rows = table
        begin = next(place for name, place, _ in _members(text, at) if name == first)
        for (_, place, _), row in zip(_members(text, begin), rows, strict=True):
            pairs = [pair for name, cell in zip(names, row, strict=True) for pair in _pairs(name, cell)]
            if pairs:
                yield place, _line(path, above, pairs)
        return
    has_rows = isinstance(value, list) and any(isinstance(element, list) for element in value)
    if _is_flat(value) and not has_rows:
        pairs = _pairs("", value)
        if not isinstance(value, list | tuple) or _words(pairs) <= LONGEST_LINE:
            if pairs:
                yield at, _line(path, above, pairs)
            return
    shown: set[str] = set()
    if isinstance(value, tuple):
        own = [
            (name, pair)
            for name, member in value
            if not isinstance(member, tuple) and _is_flat(member)
            for pair in _pairs(name, member)
        ]
        if own and _words([pair for _, pair in own]) <= LONGEST_LINE:
            yield at, _line(path, above, [pair for _, pair in own])
            shown = {name for name, _ in own}
        identity = next((pair for name, pair in own if _IDENTITY.fullmatch(name)), None)
        if identity is not None and at != _after_blanks(text, 0):
            above, path = [*above, (f"{path} {identity[0]}".strip(), identity[1])], ""
    for name, place, member in _members(text, at):
        if name not in shown or isinstance(member, tuple):
            yield from _lines(text, place, member, f"{path} {name}".strip(), above)


def _table_of(value: Value) -> tuple[str, list[str], list[list[Value]]] | None:
    """Of an object that is a table, the name of the member in which its rows begin, the heads, and the rows; None of
    any other. It has a list of heads and one of rows, or columns side by side.

    Lists of one length are columns where there are figures alone in one of them.
    """
    if not isinstance(value, tuple) or len(value) < 2:
        return None
    parts = dict(value)
    heads, data, index = parts.get("columns"), parts.get("data"), parts.get("index")
    if isinstance(heads, list) and isinstance(data, list) and {"columns", "data", "index"}.issuperset(parts):
        names = [name for name in heads if isinstance(name, str)]
        rows = [row for row in data if isinstance(row, list) and len(row) == len(heads)]
        if isinstance(index, list) and len(index) == len(rows) and index != list(map(str, range(len(rows)))):
            names, rows = ["", *names], [[label, *row] for label, row in zip(index, rows, strict=True)]
        return ("data", names, rows) if len(names) >= len(heads) and len(rows) == len(data) else None
    columns = [_column(member) for _, member in value]
    is_table = len(columns[0]) >= LEAST_ROWS and len(set(map(len, columns))) == 1
    if not is_table or not any(all(_is_figure(cell) for cell in column if cell) for column in columns):
        return None
    return value[0][0], [name for name, _ in value], [list(row) for row in zip(*columns, strict=True)]


def _column(value: Value) -> Sequence[Value]:
    """The values of a list without lists and objects, or of an object whose keys count from 0."""
    if isinstance(value, tuple):
        is_numbered = [name for name, _ in value] == list(map(str, range(len(value))))
        value = [member for _, member in value] if is_numbered else None
    is_column = isinstance(value, list) and not any(isinstance(element, list | tuple) for element in value)
    return value if isinstance(value, list) and is_column else ()


def _is_figure(value: Value) -> bool:
    return isinstance(value, str) and _FIGURE.fullmatch(value) is not None


def _members(text: str, at: int) -> Iterator[tuple[str, int, Value]]:
    """The name, the place and the value of each member of the object, or element of the list, that begins at ``at``."""
    is_object = text[at] == "{"
    at = _after_blanks(text, at + 1)
    while text[at] not in "]}":
        name = ""
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _after_blanks(text, _after_blanks(text, at) + 1)
        value, end = _DECODER.raw_decode(text, at)
        yield name, at, value
        at = _after_blanks(text, end)
        if text[at] == ",":
            at = _after_blanks(text, at + 1)


def _is_flat(value: Value) -> bool:
    """Whether ``value`` can be a line: no list of objects is in it, and no two objects beside each other that share the
    name of a value, which are records under their keys."""
    if isinstance(value, list):
        return not any(isinstance(element, tuple) or not _is_flat(element) for element in value)
    if isinstance(value, tuple):
        names = [name for _, member in value if isinstance(member, tuple) for name in dict(member)]
        return (
            _table_of(value) is None and len(names) == len(set(names)) and all(_is_flat(member) for _, member in value)
        )
    return True


def _pairs(label: str, value: Value) -> list[tuple[str, str]]:
    """Each value in a flat ``value`` with the keys that lead to it; empty values are left out."""
    if isinstance(value, tuple):
        return [pair for name, member in value for pair in _pairs(f"{label} {name}".strip(), member)]
    if isinstance(value, list):
        text = "; ".join(shown for element in value for _, shown in _pairs("", element))
    else:
        text = "" if value is None else str(value).lower() if isinstance(value, bool) else _words_of(value)
    return [(label, text)] if text else []


def _words_of(value: str) -> str:
    """What a value says, on one line: feeds and exports of web sites hold parts of web pages."""
    shown = text_of_html(value) if _MARKUP.search(value) is not None else value
    return " ".join(clean(shown).split())


def _words(pairs: Pairs) -> int:
    return sum(len(label.split()) + len(shown.split()) for label, shown in pairs)


def _line(path: str, above: Pairs, pairs: Pairs) -> str:
    (label, shown), *others = pairs
    own = [(f"{path} {label}".strip(), shown), *others]
    named = [*(pair for pair in above if pair not in own), *own]
    return ", ".join(f"{label}: {shown}" if label else shown for label, shown in named)


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    assert match is not None
    return match.end()
