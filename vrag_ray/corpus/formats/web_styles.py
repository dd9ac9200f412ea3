"""Web pages with the declarations of their style sheets in the ``style`` of each element for which they hold.

MuPDF knows few selectors, no ``@media``, ``@supports``, ``@layer``, counters, custom properties, grids and flex
containers. Here rules are matched on the parsed page by lexbor, which knows all selectors that do not depend on a
reader's hand, and what they make of the page is written into it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from vrag_ray.corpus.formats.numerals import formatted
from vrag_ray.corpus.formats.unseen import UNSEEN_ATTRIBUTES, hides
from vrag_ray.corpus.formats.web_parts import BLOCK_TAGS, VOID_TAGS
from vrag_ray.corpus.formats.web_sheets import Rule, applies, content_text, declared_in, in_pixels, rules_for_screen
from vrag_ray.corpus.tables import MAX_CELL_WORDS

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

Look = dict[str, str]
"""Values by properties, in the order in which they overrule each other."""
MOST_CHECKS = 200_000_000
"""Selectors times elements: about 5 s."""
RULES_LEFT_OUT = "rules of its style sheets are left out: there are too many for so large a page"
DEEPEST = 500
"""Elements in elements: for what is deeper lexbor takes a time that grows with the square of the depth."""
DEEPEST_DRAWN = 90
"""Elements in elements: MuPDF draws nothing of what stands in a hundred."""
FLATTENED = f"what is nested more than {DEEPEST_DRAWN} elements deep in it is read as running text"
_ANY_TAG = re.compile(r"<(/?)([a-zA-Z][\w:-]*)[^<>]*>")
_CLOSED_BY_OTHERS = frozenset(
    ("li", "p", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup", "rt", "rp")
)
_PARENTHESES = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_NAME = re.compile(r"[.#][\w-]+")
_COUNT = re.compile(r"([A-Za-z_][\w-]*)(?:\s+([+-]?\d{1,6}))?")
_FORMATS = {
    "lower-alpha": "lowerLetter",
    "upper-alpha": "upperLetter",
    "lower-latin": "lowerLetter",
    "upper-latin": "upperLetter",
    "lower-roman": "lowerRoman",
    "upper-roman": "upperRoman",
    "decimal-leading-zero": "decimalZero",
    "none": "none",
}
_FROM_THE_RIGHT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Letters of Hebrew, Arabic and their like."""
_MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")
_REPEAT = re.compile(r"repeat\(\s*(\d{1,2})\s*,((?:[^()]|\([^()]*\))*)\)", re.IGNORECASE)
_NO_LINE_OF_FLEX = re.compile(r"\b(?:column|\w+-reverse)\b", re.IGNORECASE)
_PLACED = frozenset(("grid-column", "grid-row", "grid-area", "order", "grid-column-start", "grid-column-end"))
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_MOST_NESTED = 5
"""Custom properties that name each other."""
_MOST_CHARS = 20_000
"""Of a style in which custom properties are resolved, which may multiply."""
_ON_LINES = frozenset(("flex", "grid", "flow-root", "contents", "-webkit-box"))
_READINGS = frozenset(("rt", "rp", "rtc"))
_MOST_IN_LINE = 6
"""Children of a container that may set them in several lines."""
_NO_CELLS = frozenset(("table", "tr", "td", "th", "option", "select", "style", "script", "-text"))
_GROUPS = frozenset(("thead", "tbody", "tfoot"))
"""MuPDF gives groups of rows no ground."""
_WITHOUT_SIDES = frozenset(("area", "br", "col", "embed", "hr", "img", "input", "q", "source", "track", "wbr"))
"""MuPDF itself writes quotes around the words of a ``q``."""
_ROWS_AND_CELLS = frozenset(("tr", "td", "th"))


def with_written_styles(
    html: str, sheet_of: Callable[[str], str] = lambda _: "", pages: int = 1
) -> tuple[str, list[str]]:
    """``html`` without style sheets, with what they state in its elements and what they write before and behind them,
    and with tables of the short children of grids and flex containers; and a notice where rules are left out.

    ``sheet_of`` gives the sheets that the page links to by their addresses, "" for those that are not there. ``pages``
    are the pages of its document, which share the time for it.
    """
    page, notices = _styled(html, sheet_of, MOST_CHECKS // pages)
    if page.lift_deep():
        notices.append(FLATTENED)
    return page.tree.html or "", notices


def written_styles(html: str, key: str) -> dict[str, str]:
    """The styles that ``with_written_styles`` writes, by the values of the attribute ``key`` of their elements."""
    tree = _styled(html, lambda _: "", MOST_CHECKS)[0].tree
    return {node.attributes[key] or "": node.attributes.get("style") or "" for node in tree.css(f"[{key}][style]")}


def _styled(html: str, sheet_of: Callable[[str], str], most_checks: int) -> tuple[_Page, list[str]]:
    # The children that read other formats need no parser of web pages.
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(_flattened(html))
    rules = rules_for_screen("\n".join(_sheets(tree, sheet_of)))
    page = _Page(tree)
    is_whole = page.hold(rules, most_checks)
    page.write()
    return page, [] if is_whole else [RULES_LEFT_OUT]


def _flattened(html: str) -> str:
    """``html`` without the tags of the elements that stand in ``DEEPEST`` others."""
    parts: list[str] = []
    opened: list[tuple[str, bool]] = []
    """The open elements, and whether their tags are left out."""
    counts: Counter[str] = Counter()
    end = 0
    for tag in _ANY_TAG.finditer(html) if html.count("<") > DEEPEST else ():
        name, is_left_out = tag[2].lower(), False
        if name in VOID_TAGS or name in _CLOSED_BY_OTHERS or tag[0].endswith("/>"):
            if len(opened) >= DEEPEST and name in _ROWS_AND_CELLS:
                # Without its table a cell is nothing.
                parts += [html[end : tag.start()], " "]
                end = tag.start()
            continue
        if not tag[1]:
            is_left_out = len(opened) >= DEEPEST
            opened.append((name, is_left_out))
            counts[name] += 1
        while tag[1] and counts[name]:
            inner, is_left_out = opened.pop()
            counts[inner] -= 1
            if inner == name:
                break
        if is_left_out:
            parts += [html[end : tag.start()], " " if name in BLOCK_TAGS else ""]
            end = tag.end()
    return "".join([*parts, html[end:]])


def _sheets(tree: LexborHTMLParser, sheet_of: Callable[[str], str]) -> Iterator[str]:
    """Those that hold on a screen, in their order; taken out of the page."""
    for element in tree.css("style,link"):
        attributes = element.attributes
        relations = (attributes.get("rel") or "").lower().split()
        if applies(attributes.get("media") or ""):
            if element.tag == "style":
                yield element.text().replace("<!--", "").replace("-->", "")
            elif "stylesheet" in relations and "alternate" not in relations:
                yield sheet_of((attributes.get("href") or "").strip())
        if element.tag == "style":
            element.decompose()


@dataclass(slots=True)
class _Page:
    tree: LexborHTMLParser
    looks: dict[int, Look] = field(default_factory=dict)
    """By the identity of an element."""
    sides: dict[tuple[int, str], Look] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    with_rows: set[int] = field(default_factory=set)
    counters: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By name, the innermost last: in which element they live, and their values."""
    hiding: dict[str, bool] = field(default_factory=dict)
    has_boxes: bool = False

    def hold(self, rules: Sequence[Rule], most_checks: int) -> bool:
        """Gives each element what is declared for it; whether all rules could be looked at."""
        names, elements = set[str](), self.tree.css("*")
        stated: dict[int, tuple[tuple[str, str, bool], ...]] = {}
        for element in elements:
            attributes = element.attributes
            names.update(f".{name}" for name in (attributes.get("class") or "").split())
            names.add(f"#{attributes.get('id')}")
            if style := attributes.get("style"):
                stated[element.mem_id] = tuple(declared_in(style))
        used = [
            rule
            for rule in rules
            if "\\" in rule.selector
            or names.issuperset(_NAME.findall(_PARENTHESES.sub("", _PARENTHESES.sub("", rule.selector))))
        ]
        most = most_checks // max(1, len(elements))
        hits = [(rule, self._elements(rule.selector)) for rule in used[:most]]
        for is_important in (False, True):
            # Important declarations of an earlier layer overrule those of a later one.
            hits.sort(key=lambda hit: (-hit[0].layer if is_important else hit[0].layer, *hit[0].rank))
            for rule, ids in hits:
                declared = [(name, value) for name, value, sign in rule.declared if sign is is_important]
                for id_ in ids if declared else ():
                    look = self.sides.setdefault((id_, rule.side), {}) if rule.side else self.looks.setdefault(id_, {})
                    _overrule(look, declared)
            for id_, inline in stated.items():
                _overrule(
                    self.looks.setdefault(id_, {}),
                    [(name, value) for name, value, sign in inline if sign is is_important],
                )
        displays = {look.get("display", "").lower() for look in self.looks.values()}
        self.has_boxes = any("flex" in display or "grid" in display for display in displays)
        return len(used) <= most

    def _elements(self, selector: str) -> list[int]:
        from selectolax.lexbor import SelectolaxError

        try:
            return [element.mem_id for element in self.tree.css(selector)]
        except SelectolaxError:
            # A browser leaves out such a rule, too.
            return []

    def write(self) -> None:
        root = self.tree.root
        stack: list[tuple[LexborNode, Mapping[str, str], bool]] = [] if root is None else [(root, {}, True)]
        while stack:
            element, properties, is_new = stack.pop()
            id_ = element.mem_id
            if is_new:
                properties = self._write_look(element, properties)
                if id_ in self.hidden:
                    continue
                self._run(self.looks.get(id_, {}), element.parent.mem_id if element.parent is not None else id_)
                children = [(child, properties, True) for child in element.iter()]
                self._write_side(element, "before", properties)
                stack.append((element, properties, False))
                stack += reversed(children)
                continue
            self._write_side(element, "after", properties)
            for counters in self.counters.values():
                counters[:] = [counter for counter in counters if counter[0] != id_]
            if self.has_boxes:
                self._set_in_rows(element)

    def lift_deep(self) -> bool:
        """Takes the elements that stand too deep to be drawn out from around what is in them; whether there are any."""
        deep: list[tuple[LexborNode, bool]] = []
        """And whether each has a line of its own."""
        stack = [] if self.tree.root is None else [(self.tree.root, 0)]
        while stack:
            element, depth = stack.pop()
            stack += [(child, depth + 1) for child in element.iter()]
            if depth > DEEPEST_DRAWN:
                inside = element.iter(include_text=True, skip_empty=True)
                has_line = element.tag in BLOCK_TAGS and any(part.is_text_node for part in inside)
                if element.tag in ("td", "th"):
                    element.insert_before(" ")
                deep.append((element, has_line or element.tag == "tr"))
        # What is in an element is behind it.
        for element, is_line in reversed(deep):
            if element.mem_id in self.hidden:
                element.decompose()
            elif element.tag not in VOID_TAGS:
                if is_line:
                    element.insert_before(self.tree.create_node("br"))
                    element.insert_after(self.tree.create_node("br"))
                element.unwrap()
        return bool(deep)

    def _write_look(self, element: LexborNode, properties: Mapping[str, str]) -> Mapping[str, str]:
        """Writes what holds for an element into it. The custom properties that hold in it, of those around it."""
        id_, look = element.mem_id, self.looks.get(element.mem_id, {})
        if not UNSEEN_ATTRIBUTES.isdisjoint(element.attributes):
            self.hidden.add(id_)
        if element.tag == "bdo" or "override" in look.get("unicode-bidi", ""):
            look = self.looks[id_] = _turned(element, look)
        if element.tag == "ol" and "reversed" in element.attributes:
            look = self.looks[id_] = _counted_down(element, look)
        if not look:
            return properties
        if own := {name: value for name, value in look.items() if name.startswith("--")}:
            properties = {**properties, **own}
            look = self.looks[id_] = {name: value for name, value in look.items() if name not in own}
        if element.tag in _READINGS:
            look.pop("display", None)
        if element.tag in _GROUPS and (ground := {name: look[name] for name in look if "background" in name}):
            for row in element.iter():
                self.looks[row.mem_id] = {**ground, **self.looks.get(row.mem_id, {})}
        style = _style_of(_as_drawn(look), properties)
        element.attrs["style"] = style
        if self._hides(style):
            self.hidden.add(id_)
        elif look.get("display") == "table-cell":
            element.insert_before(" ")
        return properties

    def _hides(self, style: str) -> bool:
        if style not in self.hiding:
            self.hiding[style] = hides(style)
        return self.hiding[style]

    def _write_side(self, element: LexborNode, side: str, properties: Mapping[str, str]) -> None:
        look = self.sides.get((element.mem_id, side))
        if look is None or element.tag in _WITHOUT_SIDES:
            return
        self._run(look, element.mem_id)
        style = _style_of({name: value for name, value in look.items() if name != "content"}, properties)
        content = _resolved(look.get("content", ""), properties)
        text = content_text(content, lambda name, given: self._text(element, name, given))
        if not text or self._hides(style):
            return
        span = self.tree.create_node("span")
        span.insert_child(text)
        if style:
            span.attrs["style"] = style
        first = element.child
        if side == "before" and first is not None:
            first.insert_before(span, move=True)
        else:
            element.insert_child(span, move=True)

    def _run(self, look: Look, home: int) -> None:
        """Counters live in the element around that which began them."""
        for name, number in _COUNT.findall(look.get("counter-reset", "")):
            counters = self.counters.setdefault(name, [])
            counters[:] = [counter for counter in counters if counter[0] != home]
            counters.append((home, int(number or 0)))
        for name, number in _COUNT.findall(look.get("counter-increment", "")):
            counters = self.counters.setdefault(name, [])
            last, value = counters.pop() if counters else (home, 0)
            counters.append((last, value + int(number or 1)))

    def _text(self, element: LexborNode, function: str, given: Sequence[str]) -> str:
        if function == "attr" and given:
            return element.attributes.get(given[0].lower()) or ""
        if function not in ("counter", "counters") or not given:
            return ""
        name, *more = given
        values = [value for _, value in self.counters.get(name, [])] or [0]
        separator = more.pop(0) if function == "counters" and more else ""
        format_ = _FORMATS.get(more[0] if more else "", "decimal")
        shown = values if function == "counters" else values[-1:]
        return separator.join(formatted(value, format_) for value in shown)

    def _set_in_rows(self, element: LexborNode) -> None:
        """Makes a table of the short children of a grid, and of the flex containers that follow each other in an
        element with as many short children each."""
        children = list(element.iter(include_text=True, skip_empty=True))
        if any(child.mem_id in self.with_rows for child in children):
            self.with_rows.add(element.mem_id)
        look = self.looks.get(element.mem_id, {})
        if "flex" in look.get("display", "") or "grid" in look.get("display", ""):
            # A browser puts the children apart, of which some have no lines of their own.
            for child in element.iter():
                child.insert_before(" ")
        columns = _columns(look)
        if columns and len(children) > columns and self._are_cells(children):
            table = self.tree.create_node("table")
            children[0].insert_before(table, move=True)
            for at in range(0, len(children), columns):
                self._add_row(table, children[at : at + columns], "")
            self.with_rows.add(element.mem_id)
            return
        for size, run in groupby(children, lambda child: self._size_of_row(child, is_in_grid=columns > 0)):
            if size < 2:
                continue
            rows = list(run)
            table = self.tree.create_node("table")
            rows[0].insert_before(table, move=True)
            for row in rows:
                style = row.attributes.get("style") or ""
                self._add_row(table, list(row.iter()), f"{style};display:table-row")
                row.decompose()
            self.with_rows.add(element.mem_id)

    def _add_row(self, table: LexborNode, children: Sequence[LexborNode], style: str) -> None:
        row = self.tree.create_node("tr")
        if style:
            row.attrs["style"] = style
        for child in children:
            cell = self.tree.create_node("td")
            cell.insert_child(child, move=True)
            row.insert_child(cell, move=True)
        table.insert_child(row, move=True)

    def _size_of_row(self, element: LexborNode, *, is_in_grid: bool) -> int:
        """Of a flex container, or of a row in a grid, that sets short children in a line: their number; else 0."""
        look = self.looks.get(element.mem_id, {})
        display = look.get("display", "").lower()
        is_row = is_in_grid and display == "contents"
        if display in ("flex", "inline-flex"):
            stated = (look.get(name, "") for name in ("flex-direction", "flex-wrap", "flex-flow"))
            is_row = not any(map(_NO_LINE_OF_FLEX.search, stated))
        if not is_row or element.mem_id in self.hidden or element.tag in _NO_CELLS:
            return 0
        children = list(element.iter(include_text=True, skip_empty=True))
        wraps = any("wrap" in look.get(name, "").replace("nowrap", "") for name in ("flex-wrap", "flex-flow"))
        if wraps and (len(children) > _MOST_IN_LINE or any(map(self._takes_a_line, children))):
            return 0
        return len(children) if self._are_cells(children) else 0

    def _takes_a_line(self, element: LexborNode) -> bool:
        look = self.looks.get(element.mem_id, {})
        return any("100%" in look.get(name, "") for name in ("width", "flex", "flex-basis"))

    def _are_cells(self, children: Sequence[LexborNode]) -> bool:
        """Whether they are elements, short, seen, and in the order and the places of the page."""
        return all(
            child.tag not in _NO_CELLS
            and child.mem_id not in self.hidden
            and child.mem_id not in self.with_rows
            and _PLACED.isdisjoint(self.looks.get(child.mem_id, {}))
            and 0 < len(child.text(separator=" ").split()) <= MAX_CELL_WORDS
            for child in children
        )


def _turned(element: LexborNode, look: Look) -> Look:
    """The look of an element whose letters stand from the right to the left, though its script does not: MuPDF draws
    them from the left."""
    parts = list(element.iter(include_text=True))
    side = look.get("direction", element.attributes.get("dir") or "")
    text = element.text()
    if side == "rtl" and all(part.is_text_node for part in parts) and not _FROM_THE_RIGHT.search(text):
        for part in parts:
            part.decompose()
        element.insert_child(text[::-1].translate(_MIRRORED))
        element.attrs["dir"] = "ltr"
        return {name: value for name, value in look.items() if name not in ("direction", "unicode-bidi")}
    return look


def _counted_down(element: LexborNode, look: Look) -> Look:
    """The look of a list whose numbers fall, which are written into its items: MuPDF counts upwards alone."""
    style = look.get("list-style-type", look.get("list-style", ""))
    if "none" in style:
        return look
    items = [item for item in element.iter() if item.tag == "li"]
    stated = element.attributes.get("start") or ""
    first = int(stated) if stated.isdecimal() else len(items)
    for number, item in zip(range(first, first - len(items), -1), items, strict=True):
        text = f"{formatted(number, _FORMATS.get(style, 'decimal'))}. "
        begin = item.child
        while begin is not None and begin.tag in BLOCK_TAGS and begin.child is not None:
            begin = begin.child
        if begin is not None:
            begin.insert_before(text)
    return {**look, "list-style-type": "none"}


def _overrule(look: Look, declared: Sequence[tuple[str, str]]) -> None:
    for name, value in declared:
        # A property that is stated again comes behind the others: it may be one of several values of theirs.
        look.pop(name, None)
        look[name] = value


def _as_drawn(look: Look) -> Look:
    """MuPDF takes a display that it does not know for a part of the line, and puts no room between cells."""
    display = look.get("display", "").lower()
    if display == "table-cell":
        return {"padding-right": "12px", **look}
    return {**look, "display": "block"} if display in _ON_LINES else look


def _style_of(look: Look, properties: Mapping[str, str]) -> str:
    style = ";".join(f"{name}:{value}" for name, value in look.items())
    return in_pixels(_resolved(style, properties)).replace('"', "'")


def _resolved(style: str, properties: Mapping[str, str]) -> str:
    for _ in range(_MOST_NESTED):
        if "var(" not in style or len(style) > _MOST_CHARS:
            break
        style = _VARIABLE.sub(lambda match: properties.get(match[1], match[2] or "inherit"), style)
    return style


def _columns(look: Look) -> int:
    """Of a grid whose columns are counted in its style; else 0."""
    shorthand = look.get("grid-template") or look.get("grid") or ""
    stated = look.get("grid-template-columns", shorthand.partition("/")[2])
    if "grid" not in look.get("display", "") or "auto-fi" in stated:
        return 0
    stated = _REPEAT.sub(lambda repeat: f"{_PARENTHESES.sub('', repeat[2])} " * int(repeat[1]), stated)
    return len([part for part in _PARENTHESES.sub("", stated).split() if part not in ("none", "subgrid")])
