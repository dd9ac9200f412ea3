"""The numbers that Word writes before paragraphs: 2.1, (a), Clause 7. The file holds how to count, and not the numbers.

Paragraphs count in the order in which they stand. A level begins anew behind each paragraph of a level above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree

from vrag_ray.corpus.formats.numerals import formatted
from vrag_ray.corpus.formats.office.parts import child, tag_of

_LEVELS = 9
_OFF = frozenset(("0", "false", "off"))


@dataclass(frozen=True, slots=True)
class _Level:
    """How the paragraphs of a level are numbered. ``text`` has %1 for the number of the first level, and so on."""

    start: int
    format: str
    text: str
    restart: int | None
    """The number of the levels, from the outermost, behind whose paragraphs it begins anew; None for all above it."""
    is_legal: bool
    """Whether all numbers in it are decimal."""
    gap: str
    style: str
    """The style of paragraphs that are of this level."""


@dataclass(frozen=True, slots=True)
class _List:
    """What the paragraphs that name one list have in common: ``counted`` names what they are counted with."""

    counted: str
    levels: Mapping[int, _Level]
    starts: Mapping[int, int]
    """Where levels begin in this list, and not where they have come to."""


@dataclass(slots=True)
class _Style:
    """What a style of paragraphs states: the list, the level, and the style that it is based on; "" for none."""

    list: str = ""
    level: str = ""
    base: str = ""


@dataclass(slots=True)
class Numbering:
    """Counts the paragraphs of a document, which are given to ``number_of`` in their order."""

    _lists: dict[str, _List]
    _styles: dict[str, _Style]
    _default: str
    """The style of paragraphs that name none."""
    _counts: dict[str, dict[int, int]] = field(default_factory=dict)
    _begun: set[tuple[str, int]] = field(default_factory=set)

    @classmethod
    def of(cls, numbering: ElementTree.Element | None, styles: ElementTree.Element | None) -> Numbering:
        """The numbering of a document with these parts, either of which may be missing."""
        by_name, default = dict[str, _Style](), ""
        for style in styles if styles is not None else ():
            if tag_of(style) == "style":
                properties = child(style, "pPr", "numPr")
                name, base = _value(style, "styleId"), _stated(child(style, "basedOn"))
                by_name[name] = _Style(_stated(child(properties, "numId")), _stated(child(properties, "ilvl")), base)
                if _value(style, "type") == "paragraph" and _value(style, "default") not in ("", *_OFF):
                    default = name
        return cls(_lists_of(numbering, by_name) if numbering is not None else {}, by_name, default)

    def number_of(self, paragraph: ElementTree.Element) -> str:
        """What stands before the next paragraph with a blank behind it; "" for one without a number."""
        properties = child(paragraph, "pPr")
        if child(properties, "rPr", "del") is not None or child(properties, "rPr", "vanish") is not None:
            # Its end is not there: it is a part of the next.
            return ""
        name, level = self._place(properties)
        stated = self._lists.get(name)
        if stated is None or level not in stated.levels:
            return ""
        counts = self._counts.setdefault(stated.counted, {})
        own = stated.levels[level]
        begins = (name, level) not in self._begun and level in stated.starts
        self._begun.add((name, level))
        counts[level] = counts[level] + 1 if level in counts and not begins else stated.starts.get(level, own.start)
        for deeper in range(level + 1, _LEVELS):
            restart = stated.levels[deeper].restart if deeper in stated.levels else None
            if restart is None or level < restart:
                counts.pop(deeper, None)
        return _written(stated, level, counts)

    def _place(self, properties: ElementTree.Element | None) -> tuple[str, int]:
        """The list and the level of a paragraph, by itself or by its style; "" for none."""
        own = child(properties, "numPr")
        name, level = _stated(child(own, "numId")), _stated(child(own, "ilvl"))
        style, seen = _stated(child(properties, "pStyle")) or self._default, list[str]()
        while style in self._styles and style not in seen and not (name and level):
            seen.append(style)
            definition = self._styles[style]
            if not name and definition.list:
                name = definition.list
                linked = self._level_of(name, seen)
                level = level or ("" if linked is None else str(linked))
            level, style = level or definition.level, definition.base
        return ("", 0) if name in ("", "0") else (name, int(level) if level.isdecimal() else 0)

    def _level_of(self, name: str, styles: list[str]) -> int | None:
        """The level of the list that one of the styles is linked with, the nearest first."""
        levels = self._lists[name].levels if name in self._lists else {}
        linked = {level.style: number for number, level in levels.items() if level.style}
        return next((linked[style] for style in styles if style in linked), None)


def _lists_of(numbering: ElementTree.Element, styles: Mapping[str, _Style]) -> dict[str, _List]:
    abstract = {_value(part, "abstractNumId"): part for part in numbering if tag_of(part) == "abstractNum"}
    numbers = {_value(part, "numId"): part for part in numbering if tag_of(part) == "num"}
    lists: dict[str, _List] = {}
    for name, number in numbers.items():
        counted = _stated(child(number, "abstractNumId"))
        link = _stated(child(abstract.get(counted), "numStyleLink"))
        if link in styles and styles[link].list in numbers:
            counted = _stated(child(numbers[styles[link].list], "abstractNumId"))
        stated = abstract.get(counted)
        levels = dict(_level(part) for part in stated if tag_of(part) == "lvl") if stated is not None else {}
        starts: dict[int, int] = {}
        for override in (part for part in number if tag_of(part) == "lvlOverride"):
            if (level := child(override, "lvl")) is not None:
                levels.update([_level(level)])
            if (start := child(override, "startOverride")) is not None:
                starts[_count(_value(override, "ilvl"), 0)] = _count(_stated(start), 1)
        lists[name] = _List(counted, levels, starts)
    return lists


def _level(part: ElementTree.Element) -> tuple[int, _Level]:
    restart, legal = _stated(child(part, "lvlRestart")), child(part, "isLgl")
    format_ = next((inner for inner in part.iter() if tag_of(inner) == "numFmt"), None)
    gap = {"nothing": ""}.get(_stated(child(part, "suff")), " ")
    return _count(_value(part, "ilvl"), 0), _Level(
        _count(_stated(child(part, "start")), 1),
        _stated(format_) or "decimal",
        _stated(child(part, "lvlText")),
        int(restart) if restart.isdecimal() else None,
        legal is not None and _stated(legal) not in _OFF,
        gap,
        _stated(child(part, "pStyle")),
    )


def _written(stated: _List, level: int, counts: Mapping[int, int]) -> str:
    own = stated.levels[level]
    if own.format == "bullet":
        return ""
    text = own.text
    for number in range(_LEVELS):
        if f"%{number + 1}" in text:
            named = stated.levels.get(number)
            start = stated.starts.get(number, named.start if named is not None else 1)
            format_ = "decimal" if own.is_legal or named is None else named.format
            text = text.replace(f"%{number + 1}", formatted(counts.get(number, start), format_))
    return f"{text}{own.gap}" if text.strip() else ""


def _value(element: ElementTree.Element | None, name: str) -> str:
    """An attribute, whose namespace strict files write differently."""
    if element is None:
        return ""
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")


def _stated(element: ElementTree.Element | None) -> str:
    return _value(element, "val")


def _count(text: str, default: int) -> int:
    return int(text) if text.isdecimal() else default
