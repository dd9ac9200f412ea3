"""Text is cut into windows, the unit that is embedded and searched."""

from __future__ import annotations

import math
import re

from vrag_ray.types import VragError

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
SPACELESS = re.compile(rf"[{CJK}]")
"""A character of a script that is written without spaces."""
LONGEST_WORD = 64
# Scripts without spaces count a character as a word, and a run without spaces is cut, so that no window is unbounded.
WORD = re.compile(rf"[{CJK}]|[^\s{CJK}]{{1,{LONGEST_WORD}}}")


_LEADERS = re.compile(r"(?:[.·…]\s?){4,}")


def without_leaders(text: str) -> str:
    """``text`` with each dotted line to a page number, as in contents and indexes, as one ellipsis.

    Dots say nothing, and yet each is a word and a token: in a manual of 1,158 pages they were a sixth of all tokens.
    """
    return _LEADERS.sub("… ", text)


def window_spans(text: str, words: int, overlap: int) -> list[tuple[int, int]]:
    """The fewest spans of ``text`` of at most ``words`` words that share ``overlap`` words with the span before.

    They are of equal length, give or take a word that more is shared, because a window of a few leftover words
    would be found for those words alone. Every word is in a window. Empty text gives one empty span, so that
    every unit has a passage.
    """
    if not 0 <= overlap < words:
        raise VragError(f"window overlap {overlap} must be from 0 to less than window words {words}")
    spans = [match.span() for match in WORD.finditer(text)]
    if not spans:
        return [(0, 0)]
    count = max(1, math.ceil((len(spans) - overlap) / (words - overlap)))
    size = math.ceil((len(spans) + overlap * (count - 1)) / count)
    starts = [i * (len(spans) - size) // max(1, count - 1) for i in range(count)]
    return [(spans[start][0], spans[start + size - 1][1]) for start in starts]
