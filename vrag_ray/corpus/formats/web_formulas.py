"""Formulas of web pages (MathML), each written as one line of text before MuPDF lays the page out.

MuPDF lays out the words of its elements one after the other, 3/8 as 38, and with them its source, which is not shown.
Programs that draw formulas by letters in places of their own (KaTeX, MathJax) write the MathML beside them, for readers
by the ear, from whom they hide the letters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from html.parser import HTMLParser

from vrag_ray.corpus.formats.formulas import Piece, accented, fraction, joined, plain_letters, root, scripted

_ATTRIBUTES = r"((?:\s+[^\s=>/]+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?)*)"
_MATH = re.compile(rf"<((?:[\w-]+:)?math)\b{_ATTRIBUTES}\s*(/?)>", re.IGNORECASE)
_END = re.compile(r"</(?:[\w-]+:)?math\s*>", re.IGNORECASE)
_OF_MATHML = re.compile(
    r"\s(?:xmlns(?::[\w-]+)?|display|mode|alttext)\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+)", re.IGNORECASE
)
_BLOCK = re.compile(r"\s(?:display|mode)\s*=\s*[\"']?(?:block|display)\b", re.IGNORECASE)
_ALTERNATIVE = re.compile(r"\salttext\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_HEARD_ONLY = re.compile(r"(<span\b[^>]*\bmwe-math-mathml[^>]*?)\sstyle\s*=\s*\"display:\s*none;?\"", re.IGNORECASE)
"""MediaWiki hides the MathML of the pictures of its formulas."""
_DRAWN = re.compile(
    rf"<(span|nobr|svg|mjx-[\w-]+)\b(?=[^>]*\saria-hidden\s*=\s*[\"']?true){_ATTRIBUTES}\s*(?<!/)>", re.IGNORECASE
)
"""The begin of what may be a second form of a formula."""
_BEHIND_MATH = re.compile(r"</(?:[\w-]+:)?math\s*>\s*(?:</(?:span|mjx-[\w-]+)\s*>\s*)*\Z", re.IGNORECASE)
_BEFORE_MATH = re.compile(
    rf"\s*(?:<(?:span|mjx-[\w-]+)\b{_ATTRIBUTES}\s*>\s*|</(?:span|nobr)\s*>\s*){{,8}}<(?:[\w-]+:)?math\b", re.IGNORECASE
)
_LOOKED_BACK = 400
"""Characters before a place that are looked at."""
_TOKENS = frozenset(("mi", "mn", "mo", "ms", "mtext"))
_LEFT_OUT = frozenset(("annotation", "annotation-xml", "mphantom", "none", "mprescripts", "script", "style"))
_BETWEEN = frozenset("=<>≤≥≈∼≃≅≠≡≪≫→←↔⇒⇐⇔↦∈∉⊂⊆±∓×+-−–÷∝∧∨∪∩≔≜")  # noqa: RUF001
"""Operators that have blanks around them between two terms."""
_OPENING = frozenset("([{⟨,;")
_BEHIND = frozenset(",;")
_FIRST_DIGITS = re.compile(r"[1-9]\d{0,2}")
_THREE_DIGITS = re.compile(r"\d{3}(?!\d)")
_NO_LINE = re.compile(r"0+(?:\.0*)?(?:[a-z%]|\Z)")
_CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2, "munderover": 3, "mroot": 2}


def with_written_formulas(html: str) -> str:
    """The web page with every formula as a line of text, once."""
    if not _MATH.search(html):
        return html
    html = _HEARD_ONLY.sub(r"\1", _without_drawn(html))
    parts, done = list[str](), 0
    for begin in _MATH.finditer(html):
        if begin.start() < done:
            continue
        end = None if begin[3] else _END.search(html, begin.end())
        if end is None and not begin[3]:
            break
        line = formula_text(html[begin.end() : end.start()]) if end is not None else ""
        alternative = _ALTERNATIVE.search(begin[2])
        if not line and alternative is not None:
            parts.append(html[done : begin.start()] + _element(begin[2], alternative[1] or alternative[2] or ""))
        else:
            parts.append(html[done : begin.start()] + _element(begin[2], escape(line)))
        done = end.end() if end is not None else begin.end()
    return "".join([*parts, html[done:]])


def formula_text(markup: str) -> str:
    """The MathML between the tags of its outermost element, in a line."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return _line(reader.root)


def _element(attributes: str, text: str) -> str:
    remaining = _OF_MATHML.sub("", attributes)
    if _BLOCK.search(attributes):
        return f'<span{remaining}><span style="display:block">{text}</span></span>'
    return f"<span{remaining}>{text}</span>"


def _without_drawn(html: str) -> str:
    """The page without what stands beside MathML for the eye alone."""
    parts, done = list[str](), 0
    for begin in _DRAWN.finditer(html):
        if begin.start() < done:
            continue
        end = _end_of(html, begin.end(), begin[1])
        is_behind = _BEHIND_MATH.search(html, max(0, begin.start() - _LOOKED_BACK), begin.start()) is not None
        if end and (is_behind or _BEFORE_MATH.match(html, end)) and not _MATH.search(html, begin.end(), end):
            parts.append(html[done : begin.start()])
            done = end
    return "".join([*parts, html[done:]])


def _end_of(html: str, start: int, tag: str) -> int:
    """Where the element ends whose content begins at ``start``; 0 where it does not."""
    depth = 1
    for match in re.finditer(rf"<(/?){re.escape(tag)}(?=[\s/>])[^>]*>", html[start:], re.IGNORECASE):
        if not match[0].endswith("/>"):
            depth += -1 if match[1] else 1
        if not depth:
            return start + match.end()
    return 0


@dataclass(slots=True)
class _Node:
    """An element, and what is in it."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    inner: list[_Node | str] = field(default_factory=list)

    @property
    def children(self) -> list[_Node]:
        return [part for part in self.inner if isinstance(part, _Node)]

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.inner)


class _Reader(HTMLParser):
    """Makes elements of markup; an end tag ends what is still open inside."""

    def __init__(self) -> None:
        super().__init__()
        self.root = _Node("mrow")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = _Node(tag.rpartition(":")[2], dict(attrs))
        self._open[-1].inner.append(node)
        self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        name = tag.rpartition(":")[2]
        depth = next((depth for depth in range(len(self._open) - 1, 0, -1) if self._open[depth].tag == name), 0)
        if depth:
            del self._open[depth:]

    def handle_data(self, data: str) -> None:
        self._open[-1].inner.append(data)


def _line(node: _Node) -> str:
    return joined([_piece(node)])


def _row(node: _Node) -> list[Piece]:
    """The pieces of what stands side by side in an element."""
    parts = [Piece(plain_letters(part)) if isinstance(part, str) else part for part in node.inner]
    shown = [part for part in parts if not (isinstance(part, Piece) and not part.text.strip())]
    pieces: list[Piece] = []
    for place, part in enumerate(shown):
        before = pieces[-1].text.strip() if pieces else ""
        piece = part if isinstance(part, Piece) else _piece(part)
        sign = piece.text.strip()
        if isinstance(part, _Node) and part.tag == "mo":
            is_between = before != "" and before[-1] not in _OPENING and before not in _BETWEEN
            if sign in _BETWEEN and is_between and place + 1 < len(shown):
                piece = Piece(f" {sign} ")
            elif sign == "," and _is_grouped(pieces, shown[place + 1 : place + 2]):
                piece = Piece(sign)
            elif sign in _BEHIND:
                piece = Piece(f"{sign} ")
        elif before[-1:].isdigit() and sign[:1].isdigit():
            piece = Piece(f" {piece.text}", piece.is_apart)
        pieces.append(piece)
    return pieces


def _is_grouped(pieces: Sequence[Piece], following: Sequence[_Node | Piece]) -> bool:
    """Whether a comma is within a number, as in 1,000,000. Behind a bracket or another comma it parts two numbers."""
    before, earlier = (["", "", *(piece.text for piece in pieces)][place].strip(" ") for place in (-1, -2))
    is_first = _FIRST_DIGITS.fullmatch(before) is not None and earlier[-1:] not in _OPENING
    is_later = _THREE_DIGITS.fullmatch(before) is not None and len(pieces) > 1 and pieces[-2].text == ","
    after = "".join(part.text for part in following).strip()
    return (is_first or is_later) and _THREE_DIGITS.match(after) is not None


def _piece(node: _Node) -> Piece:  # noqa: PLR0911
    tag, children = node.tag, node.children
    if tag in _LEFT_OUT:
        return Piece("")
    if tag in _TOKENS:
        text = plain_letters(node.text)
        name = text.strip()
        return Piece(text if tag == "mtext" else name, is_apart=tag != "mo" and len(name) > 1 and name.isalpha())
    if tag == "mspace":
        return Piece(" ")
    if tag in ("semantics", "maction"):
        return _piece(children[0]) if children else Piece("")
    if tag == "mfenced":
        separators = "".join((node.attributes.get("separators") or ",").split())
        marks = [*separators, *separators[-1:] * len(children)]
        inner = [mark for line in zip(map(_line, children), marks, strict=False) for mark in line][:-1]
        return Piece((node.attributes.get("open") or "(") + "".join(inner) + (node.attributes.get("close") or ")"))
    if tag == "msqrt" or (tag == "menclose" and node.attributes.get("notation") == "radical"):
        return root(joined(_row(node)), "")
    if tag == "mmultiscripts":
        return _with_scripts(children)
    if tag == "mtable":
        return Piece("; ".join(filter(None, map(_line, children))))
    if tag in ("mtr", "mlabeledtr"):
        return Piece(" ".join(filter(None, map(_line, children))))
    if len(children) == _CHILDREN.get(tag):
        return _composed(tag, node, [_line(child) for child in children])
    pieces = _row(node)
    return pieces[0] if len(pieces) == 1 else Piece(joined(pieces))


def _composed(tag: str, node: _Node, parts: Sequence[str]) -> Piece:
    """An element whose parts do not stand side by side."""
    match tag:
        case "mfrac":
            return fraction(*parts, has_line=_NO_LINE.match(node.attributes.get("linethickness") or "") is None)
        case "mroot":
            return root(*parts)
        case "munder" | "mover":
            return accented(*parts, is_above=tag == "mover")
        case "msup":
            return scripted(parts[0], "", parts[1])
        case _:
            return scripted(parts[0], parts[1], parts[2] if len(parts) > 2 else "")


def _with_scripts(children: Sequence[_Node]) -> Piece:
    """A base with pairs of scripts behind it, and before it those that follow ``mprescripts``."""
    turn = next((place for place, child in enumerate(children) if child.tag == "mprescripts"), len(children))
    base = _line(children[0]) if children else ""
    behind, before = (
        ["".join(_line(child) for child in part[side::2]) for side in (0, 1)]
        for part in (children[1:turn], children[turn + 1 :])
    )
    leading, main = scripted("", *before), scripted(base, *behind)
    return Piece(leading.text + main.text, is_apart=bool(leading.text) or main.is_apart)
