"""Captions with times in the text of a video clip."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from vrag_ray.types import Cue, Locator
from vrag_ray.types.elements import Element

BESIDE_S = 60.0
"""How far from its clip a caption may begin: it may have begun before."""
_CLOCK = r"(?:(?:\d{1,2}:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?)"
_SECONDS = r"(?:\d+(?:\.\d+)?)"
_STAMP = re.compile(
    rf"^\s*[\[(<]?\s*(?P<start>{_CLOCK}|{_SECONDS}(?=\s*(?:[-–—]|s\b|sec)))"  # noqa: RUF001
    rf"(?:\s*(?:-->|[-–—])\s*(?P<end>{_CLOCK}|{_SECONDS}))?\s*(?:seconds|sec|s)?\s*[\])>]?\s*[:|]?\s*(?P<text>.*)$"  # noqa: RUF001
)


def captions(text: str, clip: Locator) -> list[Cue]:
    """The stamped lines of a clip: ``[12.0-15.5] words``, ``<12.0 seconds> words``, ``00:12 words`` or SRT blocks.

    A caption without an end lasts to the next one. Lines without any stamp before them are no captions; a time of day
    that the clip does not reach is no stamp.
    """
    first, latest = (clip.t_start or 0.0) - BESIDE_S, (math.inf if clip.t_end is None else clip.t_end) + BESIDE_S
    entries: list[tuple[str, float, float | None]] = []
    for line in text.splitlines():
        stamp = _STAMP.match(line)
        if stamp is not None and first <= _seconds(stamp["start"]) <= latest:
            entries.append((stamp["text"].strip(), _seconds(stamp["start"]), _end(stamp["end"])))
        elif entries and line.strip() and not line.strip().isdigit():
            words, start, end = entries[-1]
            entries[-1] = (f"{words} {line.strip()}".strip(), start, end)
    starts = [start for _, start, _ in entries[1:]]
    last = clip.t_end if clip.t_end is not None else (entries[-1][1] if entries else 0.0)
    return [
        Cue(start, max(start, end if end is not None else following), words)
        for (words, start, end), following in zip(entries, [*starts, last], strict=False)
        if words
    ]


def _end(stamp: str | None) -> float | None:
    return _seconds(stamp) if stamp is not None else None


def _seconds(stamp: str) -> float:
    total = 0.0
    for piece in stamp.replace(",", ".").split(":"):
        total = total * 60 + float(piece)
    return total


def stamped(element: Element) -> str:
    """The words of an element, in a clip behind their times, as ``captions`` reads them."""
    text = element.text.strip()
    if element.t_start is None or element.t_end is None:
        return text
    return str(Cue(element.t_start, element.t_end, text))


def quoted_cues(quote: str, cues: Sequence[Cue], moment: float | None) -> range | None:
    """The places of the captions that hold ``quote`` together, those nearest to ``moment``.

    None where no captions in a row hold it.
    """
    words = " ".join(quote.split()).casefold()
    starts: dict[int, int] = {}
    for first in range(len(cues) if words else 0):
        joined = ""
        for last in range(first, len(cues)):
            joined = f"{joined} {' '.join(cues[last].text.split())}".strip().casefold()
            if words in joined:
                # A later start wins: captions before the first that holds a word of it are none of its.
                starts[last] = first
                break
            if len(joined) > len(words) + len(cues[first].text):
                break
    places = (range(first, last + 1) for last, first in starts.items())
    return min(places, key=lambda place: (_apart(cues, place, moment), place.start), default=None)


def _apart(cues: Sequence[Cue], place: range, moment: float | None) -> float:
    if moment is None:
        return 0.0
    return max(0.0, cues[place[0]].start - moment, moment - cues[place[-1]].end)
