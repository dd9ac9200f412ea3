"""Captions inside a video container (mov_text, SubRip, ASS, WebVTT) through PyAV."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.corpus.formats.source import damage
from vrag_ray.corpus.formats.video_frames import PLAY_IT, open_container
from vrag_ray.corpus.model import clean

if TYPE_CHECKING:
    from av.container import InputContainer

MOST_CUES = 50_000
_STYLING = re.compile(r"\{[^}]*\}|</?[A-Za-z][^>]*>")
_BREAKS = re.compile(r"\\[Nnh]|\s+")


@dataclass(frozen=True, slots=True)
class Cue:
    """One caption: seconds from the start of the video, and its text on one line."""

    start: float
    end: float
    text: str


def read_cues(path: Path) -> tuple[Cue, ...]:
    """The cues of the first subtitle stream that holds text, in time order; empty where there is none.

    Raises:
        DecodeError: a subtitle stream is there but damaged.
    """
    container = open_container(path)
    with closing(container), damage(f"has a damaged subtitle stream; {PLAY_IT}"):
        for index in range(len(container.streams.subtitles)):
            container.seek(0)
            if cues := _cues_of(container, index):
                return cues
    return ()


def _cues_of(container: InputContainer, index: int) -> tuple[Cue, ...]:
    from av.subtitles.subtitle import AssSubtitle

    stream = container.streams.subtitles[index]
    origin = (container.start_time or 0) / 1e6
    cues: list[Cue] = []
    for packet in container.demux(stream):
        if packet.pts is None or packet.time_base is None or len(cues) >= MOST_CUES:
            continue
        decoded = stream.codec_context.decode2(packet)
        if decoded is None:
            continue
        start = float(packet.pts * packet.time_base) - origin
        end = start + (float((packet.duration or 0) * packet.time_base) or decoded.end_display_time / 1000)
        for rect in decoded:
            if isinstance(rect, AssSubtitle) and (text := _plain(rect.dialogue or rect.text)):
                cues.append(Cue(max(0.0, start), end, text))
    return tuple(sorted(cues, key=lambda cue: cue.start))


def _plain(line: bytes) -> str:
    return _BREAKS.sub(" ", _STYLING.sub("", clean(line.decode("utf-8", "replace")))).strip()
