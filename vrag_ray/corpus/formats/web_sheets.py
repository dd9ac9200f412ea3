"""Style sheets of web pages as they hold on the screen of a desktop.

MuPDF knows no rules in rules, neither those of ``@media``, ``@supports`` and ``@layer`` nor nested ones, and takes the
width of a window for 100 points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

WINDOW_WIDTH, WINDOW_HEIGHT = 1280, 720
"""CSS pixels."""
TYPE_SIZE = 16
"""CSS pixels of an ``em`` in a condition on the window."""
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRACE = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[{}]", re.DOTALL)
"""And strings, in which braces are letters."""
_AT_RULE = re.compile(r"\s*@([\w-]+)(.*)", re.DOTALL)
_LAYERS = re.compile(r"@layer\b([^{};]*);", re.IGNORECASE)
_SCOPE = re.compile(r"@scope\s*\(((?:[^()]|\([^()]*\))*)\)\s*(?=\{)", re.IGNORECASE)
"""One without a lower end is a nested rule."""
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
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
_CONTENT_PART = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|([\w-]+)\((?:[^()\"']|\"[^\"]*\"|'[^']*')*\)|[\w-]+|/", re.DOTALL
)
"""With the name of a function."""
_ARGUMENT = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([\w-]+)")
_QUOTE_SIGNS = {"open-quote": "\u201c", "close-quote": "\u201d"}
_ICONS = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff]")
_SELECTOR = re.compile(r"(?:[^,()\[\]\"']|\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]|\"[^\"]*\"|'[^']*')+")
_MOST_OF_SELECTORS = 2_000
"""Letters of the selectors of a nested rule, which may multiply."""
_SIDE = re.compile(r"::?(before|after)\s*$", re.IGNORECASE)
_BY_HAND = re.compile(r":(?:focus-(?:visible|within)|target(?:-within)?|user-(?:in)?valid|autofill)\b", re.IGNORECASE)
"""Of these lexbor knows none, and none holds before a reader does something, as ``:hover``."""
_LANGUAGE = re.compile(r":lang\(\s*[\"']?([\w-]+)[\"']?\s*\)", re.IGNORECASE)
_OF_LANGUAGE = ":is([lang|=\\1],[lang|=\\1] *,[xml\\:lang|=\\1],[xml\\:lang|=\\1] *)"
_WITHOUT_RANK = re.compile(r":where\((?:[^()]|\([^()]*\))*\)|:(?:not|is|has|matches)(?=\()", re.IGNORECASE)
_CLASS_LIKE = re.compile(r"\.[\w-]|\[|(?<!:):(?!:)")
_TAG_LIKE = re.compile(r"(?:^|[\s>+~(,])[a-zA-Z]|::")
_DECLARATION = re.compile(r"([\w-]+)\s*:\s*((?:\"[^\"]*\"|'[^']*'|\((?:[^()]|\([^()]*\))*\)|[^;()])*)")
_OF_WINDOW = re.compile(r"(\bfont(?:-size)?\s*:\s*(?:[^;{}()\"']*\s)?)(\d*\.?\d+)v(w|h|min|max)\b", re.IGNORECASE)
_SIDES = {
    "w": WINDOW_WIDTH,
    "h": WINDOW_HEIGHT,
    "min": min(WINDOW_WIDTH, WINDOW_HEIGHT),
    "max": max(WINDOW_WIDTH, WINDOW_HEIGHT),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """``declared`` are names, values, and whether they are important. ``rank`` holds the numbers of ids, of classes and
    of tags in the selector; ``layer`` is the place of its layer, the last for what is in none."""

    selector: str
    side: str
    declared: tuple[tuple[str, str, bool], ...]
    layer: int
    rank: tuple[int, int, int]


@dataclass(slots=True)
class _Layer:
    """What is declared in a cascade layer, or in none, with its selectors; and the layers in it by name, in their
    order."""

    blocks: list[tuple[str, str]] = field(default_factory=list)
    layers: dict[str, _Layer] = field(default_factory=dict)

    def inner(self, name: str) -> _Layer:
        """The layer of that name (``outer.inner``) in this one; a new one where it has no name."""
        layer = self
        for part in name.split("."):
            layer = layer.layers.setdefault(part.strip() or f" {len(layer.layers)}", _Layer())
        return layer

    def all(self) -> Iterator[_Layer]:
        for layer in self.layers.values():
            yield from layer.all()
        yield self


@lru_cache(maxsize=4)
def rules_for_screen(sheet: str) -> tuple[Rule, ...]:
    """The rules of ``sheet`` that hold on the screen of a desktop, by their layers: those in none, which overrule the
    others, are the last. The chapters of a book have one sheet."""
    sheet = _SCOPE.sub(r"\1", _COMMENT.sub("", sheet))
    whole = here = _Layer()
    selectors: str | None = ""
    """Of the rule around a place, "" outside of rules; None where a condition around it does not hold."""
    opened: list[tuple[str | None, _Layer]] = []
    end = 0
    for brace in _BRACE.finditer(sheet):
        if brace[0] not in ("{", "}"):
            continue
        text, end = sheet[end : brace.start()], brace.end()
        before, _, prelude = text.rpartition(";") if brace[0] == "{" else (text, "", "")
        if selectors:
            here.blocks.append((selectors, before))
        elif selectors is not None:
            for names in _LAYERS.findall(before + ";"):
                for name in names.split(","):
                    here.inner(name)
        if brace[0] == "}":
            selectors, here = opened.pop() if opened else ("", whole)
            continue
        opened.append((selectors, here))
        rule = _AT_RULE.match(prelude)
        if selectors is None:
            continue
        if rule is None:
            selectors = _nested(prelude.strip(), selectors)
        elif rule[1].lower() == "layer":
            here = here.inner(rule[2])
        elif not _holds(rule[1].lower(), rule[2]):
            selectors = None
    if selectors:
        here.blocks.append((selectors, sheet[end:]))
    return tuple(
        rule for place, layer in enumerate(whole.all()) for block in layer.blocks for rule in _rules(*block, place)
    )


def _nested(selectors: str, around: str) -> str | None:
    """The selectors of a rule in a rule for ``around``, "" where it is in none; None for what nobody writes by hand."""
    if not around:
        return selectors
    outer = f":is({around})" if "," in around else around
    if len(selectors) + len(outer) * (selectors.count("&") + selectors.count(",") + 1) > _MOST_OF_SELECTORS:
        return None
    inner = (part.strip().replace(":scope", "&") for part in _SELECTOR.findall(selectors))
    return ",".join(part.replace("&", outer) if "&" in part else f"{outer} {part}" for part in inner)


def _rules(selectors: str, style: str, layer: int) -> Iterator[Rule]:
    declared = tuple(declared_in(style))
    for stated in _SELECTOR.findall(selectors) if declared else ():
        side = _SIDE.search(stated)
        selector = _BY_HAND.sub(":hover", stated[: side.start()] if side else stated).strip()
        ranked = _WITHOUT_RANK.sub("", selector)
        rank = (ranked.count("#"), len(_CLASS_LIKE.findall(ranked)), len(_TAG_LIKE.findall(ranked)))
        yield Rule(_LANGUAGE.sub(_OF_LANGUAGE, selector) or "*", side[1].lower() if side else "", declared, layer, rank)


def declared_in(style: str) -> Iterator[tuple[str, str, bool]]:
    """The names and values of declarations, and whether they are important."""
    for name, stated in _DECLARATION.findall(style):
        value, sign, _ = stated.partition("!")
        yield name.lower() if not name.startswith("--") else name, value.strip(), bool(sign)


def _holds(rule: str, condition: str) -> bool:
    """Whether a rule with rules in it holds. A container is taken to be as large as the window."""
    if rule == "container":
        return applies(condition[condition.find("(") :])
    return rule in ("media", "supports") and (applies if rule == "media" else supported)(condition)


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
