"""Captions: the tracks inside a media file (mov_text, SubRip, ASS, WebVTT), and files beside it (.srt, .vtt, .ass)."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from vrag_ray.corpus.formats.media.clock import clock_origin, open_container
from vrag_ray.corpus.model import DecodeError, clean
from vrag_ray.types import Cue

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.subtitles.stream import SubtitleStream

MOST_CUES = 50_000
PICTURE_SUBTITLES = 1 << 16
"""FFmpeg's mark of a subtitle codec whose captions are pictures."""
MOST_SIDECAR_BYTES = 16 << 20
LONGEST_GAP = 0.1
"""Seconds between two captions of which the second still shows lines of the first."""
_STYLING = re.compile(r"\{[^}]*\}|</?[A-Za-z][^>]*>|<(?:\d+:)?\d+:\d+[.,]\d+>")
"""With the times of words in WebVTT."""
_DRAWING = re.compile(r"\{[^}]*\\p[1-9]")
_LINE_END = re.compile(r"\\[Nn]|\n")
_BREAKS = re.compile(r"\\h|\s+")
_TIME = r"(?:(\d+):)?(\d{1,2}):(\d{1,2}[.,]\d{1,3})"
_ARROW = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}")
_DIALOGUE = re.compile(rf"Dialogue:[^,]*,\s*{_TIME}\s*,\s*{_TIME}\s*,(.*)", re.IGNORECASE)
_FIELDS_BEFORE_TEXT = 6
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})?")


@dataclass(frozen=True, slots=True)
class Track:
    """The captions of one language, in time order. ``language`` is as the file states it, empty where it does not."""

    language: str
    cues: tuple[Cue, ...]


@dataclass(frozen=True, slots=True)
class Tracks:
    """The subtitle tracks inside a film that hold text, the default one first; and how many there are that consist of
    pictures, and that cannot be read or not completely."""

    read: tuple[Track, ...]
    in_pictures: int = 0
    damaged: int = 0


def read_tracks(path: Path) -> Tracks:
    """The subtitle tracks of a film. One of an unknown kind costs itself alone, and so does a damaged caption."""
    from av.stream import Disposition

    with closing(open_container(path)) as container:
        streams = sorted(container.streams.subtitles, key=lambda stream: not stream.disposition & Disposition.default)
        # A stream without a decoder has no context, whatever the types of PyAV say.
        known = [stream for stream in streams if getattr(stream, "codec_context", None) is not None]
        of_text = [stream for stream in known if not stream.codec_context.codec.properties & PICTURE_SUBTITLES]
        tracks = [_track(container, stream) for stream in of_text]
    damaged = len(streams) - len(known) + sum(not is_whole for _, is_whole in tracks)
    return Tracks(tuple(track for track, _ in tracks if track.cues), len(known) - len(of_text), damaged)


def read_sidecar(path: Path, name: str) -> Track:
    """The captions of a file beside a video; its language is what stands between the dots of its ``name``.

    Raises:
        DecodeError: it is too large, or has no captions.
    """
    if path.stat().st_size > MOST_SIDECAR_BYTES:
        raise DecodeError(f"the subtitles {name} are larger than {MOST_SIDECAR_BYTES >> 20} MB")
    text = _text_of(path.read_bytes())
    is_ass = PurePath(name).suffix.lower() in {".ass", ".ssa"}
    cues = _ass_cues(text) if is_ass else _arrow_cues(text)
    if not cues:
        raise DecodeError(f"the subtitles {name} have no caption with a time: save them as SRT, VTT or ASS")
    parts = PurePath(name).stem.split(".")[1:]
    language = next((part for part in reversed(parts) if _LANGUAGE.fullmatch(part)), "")
    return Track(language, _unrolled(cues[:MOST_CUES]))


@dataclass(frozen=True, slots=True)
class _Caption:
    """What is on the screen from ``start`` to ``end``."""

    start: float
    end: float
    lines: tuple[str, ...]


def _unrolled(captions: list[_Caption]) -> tuple[Cue, ...]:
    """The captions in time order, each line once: lines that roll up are in the caption behind it again."""
    cues: list[Cue] = []
    before: _Caption | None = None
    for caption in sorted(captions, key=lambda caption: caption.start):
        repeated = 0
        if before is not None and before.start < caption.start <= before.end + LONGEST_GAP:
            most = min(len(before.lines), len(caption.lines))
            sizes = (size for size in range(most, 0, -1) if before.lines[-size:] == caption.lines[:size])
            repeated = next(sizes, 0)
        if repeated < len(caption.lines):
            cues.append(Cue(caption.start, caption.end, " ".join(caption.lines[repeated:])))
        else:
            cues[-1] = Cue(cues[-1].start, max(cues[-1].end, caption.end), cues[-1].text)
        before = caption
    return tuple(cues)


def _track(container: InputContainer, stream: SubtitleStream) -> tuple[Track, bool]:
    """What can be read of a track, and whether that is all."""
    import av
    from av.subtitles.subtitle import AssSubtitle

    origin = float(clock_origin(container))
    cues: list[_Caption] = []
    is_whole = True
    try:
        container.seek(0)
        for packet in container.demux(stream):
            if packet.pts is None or packet.time_base is None or len(cues) >= MOST_CUES:
                continue
            try:
                decoded = stream.codec_context.decode2(packet)
            except av.FFmpegError:
                is_whole = False
                continue
            if decoded is None:
                continue
            start = float(packet.pts * packet.time_base) - origin
            end = start + (float((packet.duration or 0) * packet.time_base) or decoded.end_display_time / 1000)
            for rect in decoded:
                if isinstance(rect, AssSubtitle):
                    lines = _plain((rect.dialogue or rect.text).decode("utf-8", "replace"))
                    if lines and end > 0:
                        cues.append(_Caption(max(0.0, start), end, lines))
    except av.FFmpegError:
        is_whole = False
    language = str(stream.metadata.get("language", ""))
    return Track("" if language == "und" else language, _unrolled(cues)), is_whole


def _arrow_cues(text: str) -> list[_Caption]:
    """SubRip and WebVTT: a line of two times, and lines up to an empty one. Comments and styles have no times."""
    cues: list[_Caption] = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip("\n").split("\n")
        place = next((number for number, line in enumerate(lines[:3]) if _ARROW.match(line)), None)
        if place is None:
            continue
        times = _ARROW.match(lines[place])
        shown = _plain("\n".join(lines[place + 1 :]))
        if times is not None and shown:
            cues.append(_Caption(_seconds(*times.groups()[:3]), _seconds(*times.groups()[3:]), shown))
    return cues


def _ass_cues(text: str) -> list[_Caption]:
    cues: list[_Caption] = []
    for line in text.split("\n"):
        if (event := _DIALOGUE.match(line)) is None:
            continue
        fields = event[7].split(",", _FIELDS_BEFORE_TEXT)
        if len(fields) > _FIELDS_BEFORE_TEXT and (shown := _plain(fields[_FIELDS_BEFORE_TEXT])):
            cues.append(_Caption(_seconds(*event.groups()[:3]), _seconds(*event.groups()[3:6]), shown))
    return cues


def _seconds(hours: str | None, minutes: str, seconds: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))


def _text_of(data: bytes) -> str:
    """UTF-8 or UTF-16 by its mark; else UTF-8, and where that is not what it is, the Western code page of Windows."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("cp1252", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _plain(text: str) -> tuple[str, ...]:
    """The lines of a caption that have words, without styles; none of a drawing."""
    if _DRAWING.search(text):
        return ()
    lines = (_BREAKS.sub(" ", line).strip() for line in _LINE_END.split(_STYLING.sub("", clean(text))))
    return tuple(line for line in lines if line)
