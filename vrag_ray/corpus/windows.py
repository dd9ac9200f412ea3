"""Text is cut into overlapping windows, the unit that is embedded and searched."""

from __future__ import annotations

import re

from vrag_ray.types import VragError

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
LONGEST_WORD = 64
# Scripts without spaces count a character as a word, and a run without spaces is cut, so that no window is unbounded.
WORD = re.compile(rf"[{CJK}]|[^\s{CJK}]{{1,{LONGEST_WORD}}}")


def split_windows(text: str, words: int, stride: int) -> list[str]:
    """Slices of ``text`` of at most ``words`` words, each starting ``stride`` words after the one before.

    Every word is in a window and every window but the last is full. Empty text gives ``[""]``, so that every
    unit has a passage.
    """
    if not 0 < stride <= words:
        raise VragError(f"window stride {stride} must be from 1 to window words {words}")
    spans = [match.span() for match in WORD.finditer(text)]
    if not spans:
        return [""]
    starts = range(0, max(1, len(spans) - words + stride), stride)
    return [text[spans[start][0] : spans[min(start + words, len(spans)) - 1][1]] for start in starts]
