"""Formulas as a line of text, as `a/b`, `x²` and `√(x + 1)`: those of web pages and of office programs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from vrag_ray.types.superscripts import SUPERSCRIPTS, superscript

_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_LOWERED = str.maketrans("0123456789", _SUBSCRIPTS)
_RAISED_SIGNS = str.maketrans({"+": "⁺", "-": "⁻", "\u2212": "⁻"})
_RAISED = re.compile(r"[+\-\u2212]?\d+")
_RAISED_BY_THEMSELVES = {"∘": "°", **{sign: sign for sign in ("′", "″", "‴", "'", "''", "°", "*", "†", "‡", "%")}}  # noqa: RUF001
"""Primes, degrees and marks, as they are written at the side of a letter."""
_SCRIPTS = f"{SUPERSCRIPTS}{_SUBSCRIPTS}⁺⁻′″‴°"  # noqa: RUF001
_PLAIN = re.compile(rf"(?:\d+(?:[.,]\d+)*|[^\W\d_]+(?:_[^\W_]+)?)[{_SCRIPTS}]*|[^\s\w]")
"""A number, a word or a single sign, perhaps with scripts: it needs no brackets."""
_BRACKETS = {"(": ")", "[": "]", "{": "}", "|": "|", "⟨": "⟩", "‖": "‖"}
_BLANKS = re.compile(r"\s+")
_MATHEMATICAL = re.compile("[\U0001d400-\U0001d7ff]")
"""Letters and digits in the types of formulas, which are those of the alphabets otherwise."""
_NOT_SHOWN = re.compile("[\u2062-\u2064\u200b\ufeff]")
"""Invisible operators."""
_APPLIED = "\u2061"
"""The invisible sign between the name of a function and what it is applied to."""
_ACCENTS = {
    **dict.fromkeys("¯‾\u0304\u0305", "\u0304"),
    **dict.fromkeys("^\u02c6\u0302", "\u0302"),
    **dict.fromkeys("~\u02dc\u0303", "\u0303"),
    **dict.fromkeys("→⃗", "\u20d7"),
    **dict.fromkeys(".˙\u0307", "\u0307"),
    **dict.fromkeys("¨\u0308", "\u0308"),
}
"""The sign over a letter, as the character that is written behind the letter for it."""
_LINES_AND_BRACES = frozenset("_\u0332⏞⏟⎴⎵︷︸")
_LARGE = frozenset("∑∏∐∫∬∭∮⋂⋃⋁⋀")  # noqa: RUF001
_ROOTS = {"": "√", "2": "√", "3": "∛", "4": "∜"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a formula in a line. ``is_apart`` says that it must not run into what stands beside it."""

    text: str
    is_apart: bool = False


def joined(pieces: Iterable[Piece]) -> str:
    """The pieces in a line, with blanks where they would run into each other."""
    line, last = "", Piece("")
    for piece in pieces:
        if piece.text:
            meets = _may_run_on(line[-1:]) and _may_run_on(piece.text[0])
            is_call = last.text.isalpha() and piece.text[0] == "("
            line += (" " if meets and not is_call and (last.is_apart or piece.is_apart) else "") + piece.text
            last = piece
    return _BLANKS.sub(" ", line).strip()


def _may_run_on(char: str) -> bool:
    return char.isalnum() or (char != "" and char in f"{_SCRIPTS}()√∛∜{''.join(_LARGE)}")


def plain_letters(text: str) -> str:
    """``text`` with plain letters for those that only formulas have, and without signs that are not shown."""
    shown = _NOT_SHOWN.sub("", text).replace(_APPLIED, " ")
    return _MATHEMATICAL.sub(lambda match: unicodedata.normalize("NFKC", match[0]), shown)


def fraction(above: str, below: str, *, has_line: bool = True) -> Piece:
    """A fraction; one without a line is the number of choices."""
    return Piece(f"{_whole(above)}/{_whole(below)}" if has_line else f"({above} choose {below})", is_apart=True)


def scripted(base: str, below: str, above: str) -> Piece:
    """``base`` with what stands below it and above it, either of which may be ""."""
    scripts = _lowered(below.strip()) + _raised(above.strip())
    is_large = base in _LARGE
    shown = base if is_large or not scripts or not base else _whole(base)
    return Piece(shown + scripts, is_apart=is_large or "_" in scripts or "^" in scripts)


def root(content: str, degree: str) -> Piece:
    """The root of ``content``; ``degree`` is "" for the square root."""
    sign = _ROOTS.get(degree.strip())
    return (
        scripted(content, "", f"1/{_whole(degree)}") if sign is None else Piece(sign + _whole(content), is_apart=True)
    )


def accented(base: str, sign: str, *, is_above: bool) -> Piece:
    """``base`` with a sign right above or below it; lines, arrows and braces over more than a letter are left out."""
    mark = _ACCENTS.get(sign.strip(), "") if is_above else ""
    if mark or sign.strip() in _LINES_AND_BRACES:
        return Piece(base + mark if len(base) == 1 else base)
    return scripted(base, "" if is_above else sign, sign if is_above else "")


def _whole(text: str) -> str:
    """``text`` in brackets where it is more than a number or a word."""
    text = text.strip()
    return text if not text or _PLAIN.fullmatch(text) or _is_enclosed(text) else f"({text})"


def _is_enclosed(text: str) -> bool:
    end = _BRACKETS.get(text[0])
    if end is None or text[-1] != end or len(text) == 1:
        return False
    depth = 0
    for char in text[1:-1]:
        depth += (char == text[0]) - (char == end)
        if depth < 0 or (end == text[0] and depth):
            return False
    return True


def _raised(text: str) -> str:
    if not text or (sign := _RAISED_BY_THEMSELVES.get(text)) is None:
        return superscript(text.translate(_RAISED_SIGNS)) if _RAISED.fullmatch(text) else text and f"^{_whole(text)}"
    return sign


def _lowered(text: str) -> str:
    return text.translate(_LOWERED) if text.isdecimal() and text.isascii() else text and f"_{_whole(text)}"
