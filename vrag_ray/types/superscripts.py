"""Superscript digits: marks of notes and powers of units, apart from the figures and words before them.

Print raises them by their place and their size alone. As plain digits they would change a figure: 340 with the mark of
note 2 would be 3402.
"""

from __future__ import annotations

import re

SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_FORMS = str.maketrans("0123456789", SUPERSCRIPTS)
_LETTER = rf"[^\W\d_{SUPERSCRIPTS}]"
_HAS_SUPERSCRIPT = re.compile(f"[{SUPERSCRIPTS}]")
_RUN = re.compile(rf"((?<!{_LETTER}){_LETTER}{{1,2}})?[⁺⁻]?[{SUPERSCRIPTS}]+")
_BEGUN = re.compile(rf"\d|{_LETTER}{{3}}")
_APART = "\u2060"
"""It joins words, and is itself neither a letter nor a blank."""


def superscript(text: str) -> str:
    """``text`` with its digits as superscripts; its length stays."""
    return text.translate(_FORMS)


def without_note_marks(text: str) -> str:
    """``text`` for those that compare words and figures: marks of notes are no characters of a word; all keep places.

    To bring a text to its compatible forms (NFKC) would make digits of the marks. A power of a unit of one or two
    letters stays, so that m² and m2 are found alike, as does what leads a symbol, as in ¹⁴C.
    """
    if text.isascii() or _HAS_SUPERSCRIPT.search(text) is None:
        return text
    return _RUN.sub(_apart, text)


def _apart(match: re.Match[str]) -> str:
    begins_a_word = match.start() == 0 or match.string[match.start() - 1].isspace()
    if match[1] or (begins_a_word and _BEGUN.match(match.string, match.end()) is None):
        return match[0]
    return _APART * len(match[0])
