"""Style sheets of web pages as they hold on the screen of a desktop.

MuPDF leaves out all that stands in ``@media``, ``@supports`` and ``@layer``, knows no escapes in the names of classes,
and takes the width of a window for 100 points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from vrag_ray.corpus.formats.unseen import BLOCK, SHEET, STYLE_VALUE, TAG

WINDOW_WIDTH, WINDOW_HEIGHT = 1280, 720
"""CSS pixels."""
TYPE_SIZE = 16
"""CSS pixels of an ``em`` in a condition on the window."""
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MEDIA_OF_SHEET = re.compile(r"\smedia\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_BRACE = re.compile(r"@(media|supports|layer)\b([^{};]*)\{|[{}]", re.IGNORECASE)
_LAYERS = re.compile(r"@layer\b([^{};]*);", re.IGNORECASE)
_NOT = re.compile(r"[\s(]*not\b")
_OF_ONE_MAKER = re.compile(r"-(?:moz|ms|apple|o)-|-webkit-(?:touch-callout|overflow-scrolling|hyphens)\b")
_QUERY = re.compile(r"\s*(?:(not|only)\s+)?(?:([a-z-]+)\b)?(.*)", re.IGNORECASE | re.DOTALL)
_FEATURE = re.compile(r"\(([^()]*)\)")
_LENGTH = re.compile(r"(\d*\.?\d+)(px|r?em)?")
_RANGE = re.compile(r"<=|>=|<|>|=")
_SIZES = {"width": WINDOW_WIDTH, "height": WINDOW_HEIGHT, "device-width": WINDOW_WIDTH, "device-height": WINDOW_HEIGHT}
_HOLDS = {
    "orientation": "landscape",
    "hover": "hover",
    "any-hover": "hover",
    "pointer": "fine",
    "any-pointer": "fine",
    "prefers-color-scheme": "light",
    "prefers-reduced-motion": "no-preference",
    "scripting": "enabled",
}
_ESCAPED_CLASS = re.compile(r"\.(?=[A-Za-z_\\-])((?:[\w-]|\\[0-9a-fA-F]{1,6}\s?|\\[^\s0-9a-fA-F])+)")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
_CONTENT = re.compile(
    r"((?:^|(?<=[;{\s]))content\s*:\s*)((?:\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^;{}\"'!])+)",
    re.IGNORECASE | re.DOTALL,
)
_CONTENT_PART = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|([\w-]+)\((?:[^()\"']|\"[^\"]*\"|'[^']*')*\)|[\w-]+|/", re.DOTALL
)
"""With the name of a function."""
_ARGUMENT = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([\w-]+)")
_OF_PAGE = frozenset(("attr", "counter", "counters", "var", "target-counter", "leader"))
_QUOTE_SIGNS = {"open-quote": "\u201c", "close-quote": "\u201d"}
_ICONS = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
_PLAIN_SELECTOR = re.compile(r"([A-Za-z][\w-]*|\*)?((?:[.#][\w-]+)*)")
_NAME = re.compile(r"[.#][\w-]+")
DECLARATION = re.compile(r"([\w-]+)\s*:\s*((?:\"[^\"]*\"|'[^']*'|\((?:[^()]|\([^()]*\))*\)|[^;()])*)")
_BREAKS_SELECTORS = frozenset(',{}"\\')
_OF_WINDOW = re.compile(r"(\bfont(?:-size)?\s*:\s*(?:[^;{}()\"']*\s)?)(\d*\.?\d+)v(w|h|min|max)\b", re.IGNORECASE)
_SIDES = {
    "w": WINDOW_WIDTH,
    "h": WINDOW_HEIGHT,
    "min": min(WINDOW_WIDTH, WINDOW_HEIGHT),
    "max": max(WINDOW_WIDTH, WINDOW_HEIGHT),
}


def for_screen(html: str) -> str:
    """``html`` with the rules of its style sheets that hold on the screen of a desktop, none of them in ``@media``,
    ``@supports`` or ``@layer``."""

    def held(match: re.Match[str]) -> str:
        media = _MEDIA_OF_SHEET.search(match[1])
        holds = media is None or applies(media[1] or media[2] or media[3] or "")
        return match[1] + (sheet_for_screen(match[2]) if holds else "") + match[3]

    def sized(match: re.Match[str]) -> str:
        return STYLE_VALUE.sub(lambda style: in_pixels(style[0]), match[0])

    return SHEET.sub(held, TAG.sub(sized, html) if _OF_WINDOW.search(html) else html)


def sheet_for_screen(sheet: str) -> str:
    """The rules of ``sheet`` that hold on the screen of a desktop as MuPDF draws them."""
    rules = _CONTENT.sub(lambda content: content[1] + _drawn_content(content[2]), "".join(rules_for_screen(sheet)))
    return in_pixels(_ESCAPED_CLASS.sub(_by_attribute, rules))


def rules_for_screen(sheet: str) -> list[str]:
    """The rules of ``sheet`` that hold on the screen of a desktop, without comments: those of each layer, and
    last those in none, which overrule them."""
    sheet = _COMMENT.sub("", sheet)
    layers = _Layer()
    opened: list[tuple[bool | None, _Layer]] = []
    """Of each open brace, whether the condition holds that it belongs to, None where it belongs to a rule; and the
    layer around it."""
    here = layers
    dropped = end = 0
    """Open conditions that do not hold, and where the last brace ends."""

    def take(text: str) -> None:
        if not dropped:
            here.parts.append(_LAYERS.sub(lambda named: here.name(named[1]), text) if "@" in text else text)

    for brace in _BRACE.finditer(sheet):
        take(sheet[end : brace.start()])
        end = brace.end()
        if brace[0] != "}":
            rule, condition = (brace[1] or "").lower(), brace[2]
            holds = None if not rule else rule == "layer" or (applies if rule == "media" else supported)(condition)
            opened.append((holds, here))
            if rule == "layer" and not dropped and all(open_ is not None for open_, _ in opened):
                here = here.inner(condition)
            dropped += holds is False
            here.parts += ["{"] if holds is None and not dropped else []
        else:
            holds, outer = opened.pop() if opened else (None, here)
            here.parts += ["}"] if holds is None and not dropped else []
            dropped -= holds is False
            here = outer
    take(sheet[end:])
    return list(layers.rules())


@dataclass
class _Layer:
    """Rules of a cascade layer, or those in none, and the layers in it by name, in their order."""

    parts: list[str] = field(default_factory=list)
    layers: dict[str, _Layer] = field(default_factory=dict)

    def inner(self, name: str) -> _Layer:
        """The layer of that name (``outer.inner``) in this one; a new one where it has no name."""
        layer = self
        for part in name.split("."):
            layer = layer.layers.setdefault(part.strip() or f" {len(layer.layers)}", _Layer())
        return layer

    def name(self, names: str) -> str:
        """Put layers into their order; what is left of the statement is nothing."""
        for name in names.split(","):
            self.inner(name)
        return ""

    def rules(self) -> Iterator[str]:
        for layer in self.layers.values():
            yield from layer.rules()
        yield "".join(self.parts)


def supported(condition: str) -> bool:
    """Whether a condition of ``@supports`` holds in a browser of today: it knows all but what one maker alone has."""
    parts = re.split(r"\)\s*(?:and|or)\b", condition.lower())
    holds = [(_NOT.match(part) is None) is (_OF_ONE_MAKER.search(part) is None) for part in parts]
    return any(holds) if re.search(r"\)\s*or\b", condition.lower()) else all(holds)


def applies(queries: str) -> bool:
    """Whether a list of media queries holds on the screen of a desktop. What is unknown does not."""
    return not queries.strip() or any(_query_applies(query) for query in queries.lower().split(","))


def in_pixels(style: str) -> str:
    """Declarations whose type sizes are no shares of the window."""
    return _OF_WINDOW.sub(lambda match: f"{match[1]}{float(match[2]) * _SIDES[match[3].lower()] / 100:g}px", style)


def _query_applies(query: str) -> bool:
    match = _QUERY.match(query)
    assert match is not None
    modifier, kind, conditions = match[1], match[2], match[3]
    features = [_feature_holds(feature) for feature in _FEATURE.findall(conditions)]
    holds = (any if re.search(r"\)\s*or\b", conditions) else all)(features)
    holds = holds and kind in (None, "screen", "all")
    return not holds if modifier == "not" else holds


def _feature_holds(feature: str) -> bool:
    name, _, value = (part.strip() for part in feature.partition(":"))
    if name in _HOLDS:
        return value in ("", _HOLDS[name])
    bound, _, side = name.partition("-")
    if bound in ("min", "max") and side in _SIZES and (length := _pixels(value)) is not None:
        return _SIZES[side] >= length if bound == "min" else _SIZES[side] <= length
    signs = _RANGE.findall(name)
    terms = [_SIZES.get(term.strip(), _pixels(term.strip())) for term in _RANGE.split(name)]
    return bool(signs) and all(
        left is not None and right is not None and _compares(left, sign, right)
        for left, sign, right in zip(terms, signs, terms[1:], strict=False)
    )


def _compares(left: float, sign: str, right: float) -> bool:
    return (left < right and "<" in sign) or (left > right and ">" in sign) or (left == right and "=" in sign)


def _pixels(length: str) -> float | None:
    match = _LENGTH.fullmatch(length)
    return None if match is None else float(match[1]) * (TYPE_SIZE if match[2] in ("em", "rem") else 1)


def _drawn_content(value: str) -> str:
    """What a rule puts before or behind an element, as one string: MuPDF draws the first of several, and the names of
    all others. Nothing where a part of it is in the page and not in the rule."""
    is_of_page = any(part[1] in _OF_PAGE for part in _CONTENT_PART.finditer(value.partition("/")[0]))
    text = "" if is_of_page else content_text(value, lambda *_: "")
    quote = "'" if '"' in text else '"'
    return f"{quote}{text.replace(quote, '')}{quote}"


def content_text(value: str, function: Callable[[str, list[str]], str]) -> str:
    """The text of a value of ``content``, without letters of fonts of icons. ``function`` makes text of the name and
    the arguments of a function."""
    parts: list[str] = []
    # Behind a stroke stands what is read aloud.
    for part in takewhile(lambda part: part[0] != "/", _CONTENT_PART.finditer(value)):
        if part[0][0] in "\"'":
            parts.append(_ESCAPE.sub(_escaped, part[0][1:-1]))
        elif part[1]:
            given = [double or single or word for double, single, word in _ARGUMENT.findall(part[0][len(part[1]) :])]
            parts.append(function(part[1].lower(), [_ESCAPE.sub(_escaped, argument) for argument in given]))
        else:
            parts.append(_QUOTE_SIGNS.get(part[0].lower(), ""))
    return " ".join(_ICONS.sub("", "".join(parts)).split("\n")).replace("\\", "")


def _escaped(match: re.Match[str]) -> str:
    return chr(min(int(match[1], 16), 0x10FFFF)) if match[1] else match[2]


def _by_attribute(match: re.Match[str]) -> str:
    """The selector of a class whose name has escapes, without them; the same where others would not read it."""
    if "\\" not in match[1]:
        return match[0]
    name = _ESCAPE.sub(_escaped, match[1])
    return match[0] if _BREAKS_SELECTORS.intersection(name) else f'[class~="{name}"]'


@dataclass(frozen=True, slots=True)
class _Rule:
    """Declarations for elements of that tag ("" for any) with those classes and ids, and the rank of the rule: numbers
    of its ids, classes and tags, and its place."""

    tag: str
    names: frozenset[str]
    style: str
    rank: tuple[int, int, int, int]


class PlainRules:
    """Rules of style sheets whose selectors name the tag, classes and id of an element, and nothing around it."""

    def __init__(self) -> None:
        self._rules: dict[str, list[_Rule]] = {}
        """By one of the names that an element needs for them."""
        self._count = 0

    def add(self, sheet: str) -> None:
        end = 0
        sheet = sheet_for_screen(sheet.replace("<!--", "").replace("-->", ""))
        for block in BLOCK.finditer(sheet):
            for selector in sheet[end : block.start()].rpartition(";")[2].split(","):
                if (match := _PLAIN_SELECTOR.fullmatch(selector.strip())) is not None and match[0]:
                    tag, names = (match[1] or "").lower().strip("*"), frozenset(_NAME.findall(match[2]))
                    ids = sum(name.startswith("#") for name in names)
                    rank = (ids, len(names) - ids, bool(tag), self._count)
                    self._rules.setdefault(min(names, default=tag), []).append(_Rule(tag, names, block[1], rank))
                    self._count += 1
            end = block.end()

    def style_of(self, tag: str, attributes: Mapping[str, str | None]) -> str:
        """The declarations that hold for an element: of each property the one that overrules the others."""
        names = {f".{name}" for name in (attributes.get("class") or "").split()}
        if id_ := attributes.get("id"):
            names.add(f"#{id_}")
        rules = [
            rule
            for name in ("", tag, *names)
            for rule in self._rules.get(name, ())
            if rule.tag in ("", tag) and rule.names <= names
        ]
        styles = [rule.style for rule in sorted(rules, key=lambda rule: rule.rank)]
        held: dict[str, tuple[str, bool]] = {}
        for name, stated in DECLARATION.findall(";".join([*styles, attributes.get("style") or ""])):
            value, sign, _ = stated.partition("!")
            if sign or not held.get(name.lower(), ("", False))[1]:
                held[name.lower()] = (value.strip(), bool(sign))
        return ";".join(f"{name}:{value}" for name, (value, _) in held.items())
