"""Captions: the tracks inside a media file (mov_text, SubRip, ASS, WebVTT), and files beside it or without it (.srt,
.vtt, .sbv, .ass, .lrc, .smi, .ttml)."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from vrag_ray.corpus.formats.encodings import decode_text
from vrag_ray.corpus.formats.media.clock import clock_origin, open_container
from vrag_ray.corpus.formats.media.sidecar_names import language_of
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
_READING = re.compile(r"<rt\b[^>]*>.*?(?:</rt>|(?=</ruby>)|$)", re.IGNORECASE | re.MULTILINE)
"""How the word before it is pronounced."""
_STYLING = re.compile(r"\{[^}]*\}|</?[A-Za-z][^>]*>|<(?:\d+:)?\d+:\d+[.,]\d+>")
"""With the times of words in WebVTT."""
_VOICE = re.compile(r"<v(?:\.[\w.-]*)?[ \t]+([^<>\n]{1,80})>", re.IGNORECASE)
"""Who speaks the words behind it, in WebVTT."""
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9A-Fa-f]+|[A-Za-z][A-Za-z0-9]*);")
_DRAWING = re.compile(r"\{[^}]*\\p[1-9]")
_TRANSPARENT = re.compile(r"\{[^}]*\\alpha&H[fF]{2}&?[^}]*\}.*", re.DOTALL)
"""What follows in ASS, unless that changes with time."""
_LINE_END = re.compile(r"\\[Nn]|\n")
_BREAKS = re.compile(r"\\h|\s+")
_TIME = r"(-?)(?:(\d+)[ \t]*:[ \t]*)?(\d{1,2})[ \t]*:[ \t]*(\d{1,2})(?:[ \t]*[.,:][ \t]*(\d{1,9}))?"
"""As players read it: with blanks inside, and without thousandths or with a colon before them."""
_ARROW = re.compile(rf"\s*{_TIME}\s*[-\u2013\u2014][-\u2013\u2014 ]*>\s*{_TIME}(?!\d)")
_COMMA = re.compile(r"^(\d+:\d\d:\d\d\.\d{3}),(?=\d+:\d\d:\d\d\.\d{3}\s*$)", re.MULTILINE)
"""In place of an arrow, in the SBV of YouTube."""
_NUMBER = re.compile(r"\s*\d+\s*")
_CLOCK = re.compile(rf"\s*{_TIME}\s*")
_CLOCK_OF_FRAMES = re.compile(r"\s*(\d{1,4}):(\d\d):(\d\d(?:\.\d{1,9})?)(?::(\d{1,3}))?\s*")
_SPAN = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s|f|t)\s*")
_SECTION = re.compile(r"\s*\[(.*)\]\s*")
_STAMP = re.compile(r"\[(\d{1,4}):(\d{1,2}(?:[.:]\d{1,3})?)\]")
_STAMPS = re.compile(rf"\s*(?:{_STAMP.pattern}\s*)+")
_OFFSET = re.compile(r"^\s*\[offset:\s*([+-]?\d{1,9})\s*\]", re.IGNORECASE | re.MULTILINE)
_SYNC = re.compile(
    r"<SYNC\b[^>]*?\bStart\s*=\s*[\"']?(\d{1,12})[^>]*>(.*?)(?=<SYNC\b|</BODY\b|\Z)", re.IGNORECASE | re.DOTALL
)
_PARAGRAPH = re.compile(r"<P\b(?:[^>]*?\bClass\s*=\s*[\"']?([\w-]+))?[^>]*>", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\b[^>]*>", re.IGNORECASE)
_SPEAKER = re.compile(r"([^\W\d_][^\s:]*(?: [^\s:]+){0,4}): (?=\S)")
_TURN = re.compile(r"(?:[-\u2013\u2014] ?|>> ?)(?=\S)")
"""Before the words of another speaker."""
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*$")  # noqa: RUF001
LONGEST_PAUSE = 4.0
"""Seconds of silence within a paragraph of a transcript."""
PARAGRAPH_WORDS = 60
"""From which on the end of a sentence ends a paragraph of a transcript."""
FRAMES_A_SECOND = 30.0
"""Of TTML that states none."""
LAST_SECONDS = 10.0
"""How long a caption stays that nothing follows, in kinds that state no ends."""
_FIELDS: tuple[str, ...] = ("layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text")
"""Of a line of ASS, where the file does not state them."""


@dataclass(frozen=True, slots=True)
class Track:
    """The captions of one language, in time order. ``language`` is as the file states it, empty where it does not;
    ``notice`` says what was guessed to read it."""

    language: str
    cues: tuple[Cue, ...]
    notice: str = ""


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


def read_sidecar(path: Path, name: str, film: str) -> Track:
    """The captions of a file beside a video; its language is what its ``name`` has between that of the ``film`` and
    its suffix.

    Raises:
        DecodeError: it is too large, is no text, or has no captions.
    """
    if path.stat().st_size > MOST_SIDECAR_BYTES:
        raise DecodeError(f"the subtitles {name} are larger than {MOST_SIDECAR_BYTES >> 20} MB")
    try:
        decoded = decode_text(path.read_bytes())
    except DecodeError as error:
        raise DecodeError(f"the subtitles {name}: the file {error}") from error
    readers = {".ass": _ass_cues, ".ssa": _ass_cues, ".lrc": _lyrics, ".smi": _sami_cues}
    readers |= dict.fromkeys((".ttml", ".dfxp"), _timed_text)
    cues = readers.get(PurePath(name).suffix.lower(), _arrow_cues)(_with_line_feeds(decoded.text))
    if not cues:
        raise DecodeError(f"the subtitles {name} have no caption with a time: save them as SRT, VTT or ASS")
    notice = f"the subtitles {name}: {decoded.notice}" if decoded.notice else ""
    return Track(language_of(name, film), _unrolled(cues[:MOST_CUES]), notice)


def transcript(text: str) -> str:
    """The words of a file of captions that is read without its film, whatever its kind: paragraphs of whole sentences,
    each behind the time at which it begins, and who speaks; "" where no caption has a time."""
    lines = _with_line_feeds(text)
    captions = next(
        filter(None, (read(lines) for read in (_arrow_cues, _ass_cues, _sami_cues, _timed_text, _lyrics))), []
    )
    paragraphs: list[str] = []
    speaker, count, before = "", 0, 0.0
    for cue in _unrolled(captions[:MOST_CUES]):
        stated = _SPEAKER.match(cue.text)
        turns = _TURN.match(cue.text) is not None or (stated is not None and stated[1] != speaker)
        is_full = count >= PARAGRAPH_WORDS and _SENTENCE_END.search(paragraphs[-1]) is not None
        words = cue.text
        if not paragraphs or turns or is_full or cue.start - before > LONGEST_PAUSE:
            minutes, seconds = divmod(int(cue.start), 60)
            paragraphs.append(f"[{minutes // 60}:{minutes % 60:02}:{seconds:02}] {words}")
            speaker, count = stated[1] if stated is not None else "" if turns else speaker, 0
        else:
            words = words[stated.end() :] if stated is not None else words
            paragraphs[-1] += f" {words}"
        count += len(words.split())
        before = cue.end
    return "\n\n".join(paragraphs)


def _with_line_feeds(text: str) -> str:
    """A line end that was converted twice is still one."""
    return re.sub(r"\r+\n|\r", "\n", text)


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
    """SubRip and WebVTT: a line of two times, and lines up to the next such line, or to an empty one in WebVTT, behind
    which comments and styles may stand. A line before the times may number the caption."""
    is_vtt = text.lstrip("\ufeff").startswith("WEBVTT")
    cues: list[_Caption] = []
    times: re.Match[str] | None = None
    lines: list[str] = []
    is_numbered: bool | None = None

    def finish() -> None:
        if times is None or not (shown := _plain("\n".join(lines))):
            return
        start, end = _seconds(*times.groups()[:5]), _seconds(*times.groups()[5:])
        if end >= 0:
            cues.append(_Caption(max(0.0, start), end, shown))

    for line in _COMMA.sub(r"\1 --> ", text).split("\n"):
        match = _ARROW.match(line)
        if match is not None:
            while lines and not lines[-1].strip():
                lines.pop()
            has_number = bool(lines) and _NUMBER.fullmatch(lines[-1]) is not None
            is_numbered = has_number if is_numbered is None else is_numbered
            if has_number and is_numbered:
                lines.pop()
            finish()
            times, lines = match, []
        elif is_vtt and not line:
            finish()
            times, lines = None, []
        else:
            lines.append(line)
    finish()
    return cues


def _ass_cues(text: str) -> list[_Caption]:
    cues: list[_Caption] = []
    fields, section = _FIELDS, ""
    for line in text.split("\n"):
        if (begun := _SECTION.fullmatch(line)) is not None:
            section = begun[1].strip().lower()
            continue
        kind, _, content = line.partition(":")
        kind = kind.strip().lower()
        if kind == "format" and section == "events":
            fields = tuple(field.strip().lower() for field in content.split(","))
        if kind != "dialogue":
            continue
        values = dict(zip(fields, content.split(",", len(fields) - 1), strict=False))
        start, end = _CLOCK.fullmatch(values.get("start", "")), _CLOCK.fullmatch(values.get("end", ""))
        if start is not None and end is not None and (shown := _plain(values.get("text", ""))):
            cues.append(_Caption(_seconds(*start.groups()), _seconds(*end.groups()), shown))
    return cues


def _lyrics(text: str) -> list[_Caption]:
    """LRC: the lines of a song behind the times at which each is sung; a positive offset shows all lines earlier."""
    offset = _OFFSET.search(text)
    earlier = int(offset[1]) / 1000 if offset is not None else 0.0
    timed: list[tuple[float, str]] = []
    for line in text.split("\n"):
        stamps = _STAMPS.match(line)
        for minutes, seconds in _STAMP.findall(stamps[0]) if stamps is not None else ():
            start = int(minutes) * 60 + float(seconds.replace(":", ".")) - earlier
            timed.append((start, line[stamps.end() :] if stamps is not None else ""))
    return _until_next(timed)


def _sami_cues(text: str) -> list[_Caption]:
    """SAMI: paragraphs of HTML behind their begin in milliseconds; each class of them is one language."""
    timed: dict[str, list[tuple[float, str]]] = {}
    for milliseconds, content in _SYNC.findall(text):
        _, *parts = _PARAGRAPH.split(f"<P>{content}" if not _PARAGRAPH.search(content) else content)
        for of_class, paragraph in zip(parts[::2], parts[1::2], strict=True):
            shown = _LINE_BREAK.sub("\n", " ".join(paragraph.split()))
            timed.setdefault((of_class or "").lower(), []).append((int(milliseconds) / 1000, shown))
    return [caption for of_class in timed.values() for caption in _until_next(of_class)]


def _timed_text(text: str) -> list[_Caption]:
    """TTML, also called DFXP: XML whose paragraphs have a begin, and an end or a duration."""
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  in the sandbox, and expat bounds what entities become
    except ElementTree.ParseError:
        return []
    rates = {key.rpartition("}")[2]: float(value) for key, value in root.items() if value.isdecimal()}
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "t": 1 / (rates.get("tickRate") or 1.0)}
    units["f"] = 1 / (rates.get("frameRate") or FRAMES_A_SECOND)
    cues: list[_Caption] = []
    for paragraph in root.iter():
        start, end, lasts = (_offset(paragraph.get(name, ""), units) for name in ("begin", "end", "dur"))
        if paragraph.tag.rpartition("}")[2] != "p" or start is None:
            continue
        for line_break in paragraph.iter():
            if line_break.tag.rpartition("}")[2] == "br":
                line_break.text = "\n"
        lines = _plain("\n".join(" ".join(line.split()) for line in "".join(paragraph.itertext()).split("\n")))
        end = end if end is not None else start + (LAST_SECONDS if lasts is None else lasts)
        if lines and end > 0:
            cues.append(_Caption(start, end, lines))
    return cues


def _offset(stated: str, units: Mapping[str, float]) -> float | None:
    """Seconds of ``00:01:02.5``, of ``00:01:02:12`` with frames, or of ``62.5s``; None of what is no time."""
    if (clock := _CLOCK_OF_FRAMES.fullmatch(stated)) is not None:
        hours, minutes, seconds, frames = clock.groups()
        return int(hours) * 3600 + int(minutes) * 60 + float(seconds) + int(frames or 0) * units["f"]
    span = _SPAN.fullmatch(stated)
    return float(span[1]) * units[span[2]] if span is not None else None


def _until_next(timed: list[tuple[float, str]]) -> list[_Caption]:
    """Captions that last until the next one, which may be empty; the last one for ``LAST_SECONDS``."""
    timed = sorted(timed, key=lambda caption: caption[0])
    ends = [*(start for start, _ in timed[1:]), timed[-1][0] + LAST_SECONDS] if timed else []
    return [
        _Caption(max(0.0, start), end, lines)
        for (start, text), end in zip(timed, ends, strict=True)
        if end > 0 and (lines := _plain(text))
    ]


def _seconds(sign: str, hours: str | None, minutes: str, seconds: str, fraction: str | None) -> float:
    total = int(hours or 0) * 3600 + int(minutes) * 60 + float(f"{seconds}.{fraction or 0}")
    return -total if sign else total


def _plain(text: str) -> tuple[str, ...]:
    """The lines of a caption that have words, without styles; none of a drawing."""
    if _DRAWING.search(text):
        return ()
    if text.count("\\alpha") == 1 and "\\t(" not in text:
        text = _TRANSPARENT.sub("", text)
    bare = _STYLING.sub("", _VOICE.sub(r"\1: ", _READING.sub("", clean(text))))
    words = clean(_ENTITY.sub(lambda entity: html.unescape(entity[0]), bare))
    lines = (_BREAKS.sub(" ", line).strip() for line in _LINE_END.split(words))
    return tuple(line for line in lines if line)
