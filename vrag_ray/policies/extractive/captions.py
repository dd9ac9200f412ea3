"""Captions with times in the text of a video clip."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vrag_ray.types import Locator

_CLOCK = r"(?:(?:\d{1,2}:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?)"
_SECONDS = r"(?:\d+(?:\.\d+)?)"
_STAMP = re.compile(
    rf"^\s*[\[(<]?\s*(?P<start>{_CLOCK}|{_SECONDS}(?=\s*(?:[-–—]|s\b|sec)))"  # noqa: RUF001
    rf"(?:\s*(?:-->|[-–—])\s*(?P<end>{_CLOCK}|{_SECONDS}))?\s*(?:seconds|sec|s)?\s*[\])>]?\s*[:|]?\s*(?P<text>.*)$"  # noqa: RUF001
)


@dataclass(frozen=True, slots=True)
class Caption:
    """Words and when they are shown, in seconds from the start of the video."""

    text: str
    start: float
    end: float


def captions(text: str, clip: Locator) -> list[Caption]:
    """The stamped lines of a clip: ``[12.0-15.5] words``, ``<12.0 seconds> words``, ``00:12 words`` or SRT blocks.

    A caption without an end lasts to the next one. Lines without any stamp before them are no captions.
    """
    found: list[tuple[str, float, float | None]] = []
    for line in text.splitlines():
        stamp = _STAMP.match(line)
        if stamp is not None:
            found.append((stamp["text"].strip(), _seconds(stamp["start"]), _end(stamp["end"])))
        elif found and line.strip() and not line.strip().isdigit():
            words, start, end = found[-1]
            found[-1] = (f"{words} {line.strip()}".strip(), start, end)
    starts = [start for _, start, _ in found[1:]]
    last = clip.t_end if clip.t_end is not None else (found[-1][1] if found else 0.0)
    return [
        Caption(words, start, max(start, end if end is not None else following))
        for (words, start, end), following in zip(found, [*starts, last], strict=False)
        if words
    ]


def _end(stamp: str | None) -> float | None:
    return _seconds(stamp) if stamp is not None else None


def _seconds(stamp: str) -> float:
    total = 0.0
    for piece in stamp.replace(",", ".").split(":"):
        total = total * 60 + float(piece)
    return total
