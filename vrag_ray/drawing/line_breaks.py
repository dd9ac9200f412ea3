"""Where a line of text may end: at a space, and between Chinese characters."""

from __future__ import annotations

import re
from collections.abc import Callable

_HAN = "\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff00-\uffef"
_OPENING = "\uff08\u300a\u300c"
_CLOSING = "\uff09\u300b\u300d\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
# A closing mark stays with what it closes, an opening one with what it opens; a space belongs to what follows it.
_PIECE = re.compile(rf"\s*[{_OPENING}]*(?:[^\s{_HAN}]+|[{_HAN}])[{_CLOSING}]*")


def broken(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Lines that fit, as far as ``text`` can be broken."""
    lines: list[str] = []
    line = ""
    for piece in _PIECE.findall(text):
        spaced = f" {piece.lstrip()}" if piece[0].isspace() else piece
        longer = f"{line}{spaced}".lstrip()
        if line and not fits(longer):
            lines.append(line)
            line = piece.lstrip()
        else:
            line = longer
    return [*lines, line] if line else lines
