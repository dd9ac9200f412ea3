"""Films and sound recordings: clips of a minute, read by captions, by speech, and by OCR of what stays in view."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.corpus.elements import elements
from vrag_ray.corpus.formats.media.changes import still_stretches
from vrag_ray.corpus.formats.media.clock import (
    PLAY_IT,
    audio_stream,
    clock_origin,
    count_falls,
    duration_of,
    open_container,
    video_stream,
)
from vrag_ray.corpus.formats.media.frames import FrameReader
from vrag_ray.corpus.formats.media.speech import AROUND_SECONDS, sound_of
from vrag_ray.corpus.formats.media.subtitles import Track, read_sidecar, read_tracks
from vrag_ray.corpus.formats.source import Opening, damage
from vrag_ray.corpus.model import (
    HAS_PICTURE,
    DecodedUnit,
    DecodeError,
    Frame,
    Probe,
    clean,
    clip_count,
    clip_locator,
    title_from_name,
    words_from_name,
)
from vrag_ray.corpus.png import NATIVE_DPI, crop_png
from vrag_ray.imaging.frame_times import late_moment, sample_times
from vrag_ray.types import Box, Cue, DocumentKind, Locator, PageText, PassageKind
from vrag_ray.types.elements import Element, ElementKind

if TYPE_CHECKING:
    from av.container import InputContainer
    from PIL import Image

    from vrag_ray.corpus.ocr import OcrText, Picture

MOVING_FRAMES = 4
"""Frames of a clip that are read where the picture moves all the time, and looked at to see whether there are any."""
MOST_READ = 12
"""Frames of a clip that are read at most, those that stay longest in view."""
JUST_BEFORE_S = 0.05
"""More than clocks of films are off by, and less than anyone sees."""
_NUMBERED = re.compile(r"(?:[^\W\d_]+[ .]*)?[\d:.,]+")
LATEST_S = 8.0
"""How long after its bytes a picture may come: encoders of AV1 store it up to 32 frames ahead, in another's packet."""
STEP_S = 0.1
UNREADABLE = f"has no readable video frame: it is damaged or cut short; {PLAY_IT}"


@dataclass(slots=True)
class _Shown:
    """What the frames of a clip show: its shots, the lines that OCR read, with times and places in ``cues``, and the
    times at which no frame could be read."""

    shots: list[tuple[float, float]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    cues: list[Cue] = field(default_factory=list)
    unread: list[float] = field(default_factory=list)
    is_read: bool = False


class VideoSource:
    """An open film or sound recording whose header, and first frame, have been read and found within the limits."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._options = opening.options
        self._reader: FrameReader | None = None
        self._read_tracks: tuple[Track, ...] | None = None
        self._notices: list[str] = []
        self._width = self._height = 0
        container = open_container(opening.path)
        with closing(container), damage(UNREADABLE):
            self._stated_title = clean(container.metadata.get("title", "")).strip()
            self._duration = duration_of(container)
            self._chapters = _chapters(container)
            self._has_sound = audio_stream(container) is not None
            self._has_picture = video_stream(container) is not None
            self._has_subtitles = bool(container.streams.subtitles)
            if not self._has_picture and not self._has_sound:
                raise DecodeError(f"has no picture and no sound; {PLAY_IT}")
            if self._has_picture:
                self._check_size(container)
                self._reader = FrameReader(opening.path)
                self._width, self._height = self._reader.size

    def probe(self) -> Probe:
        clips = clip_count(self._duration, self._options.clip_seconds)
        if clips > self._opening.limits.max_pages:
            raise DecodeError(
                f"has {clips} clips, more than the limit of {self._opening.limits.max_pages}: "
                "split it or raise corpus.limits.max_pages or corpus.clip_seconds"
            )
        tracks = self._tracks()
        with closing(open_container(self._opening.path)) as container:
            if falls := count_falls(container):
                times = "once" if falls == 1 else f"{falls} times"
                self._notices.append(
                    f"its clock goes back {times}, as where recordings were joined, and what follows is not read: "
                    "convert it, for example with `ffmpeg -i FILE new.mp4`"
                )
        meta: dict[str, str | int | float | bool] = {"duration": round(self._duration, 3)}
        if self._has_picture:
            meta |= {"width": self._width, "height": self._height}
        else:
            meta[HAS_PICTURE] = False
        if languages := _languages(tracks):
            meta["languages"] = languages
        return Probe(
            DocumentKind.VIDEO,
            clips,
            self._stated_title or title_from_name(self._opening.name),
            meta=meta,
            duration=self._duration,
            notices=tuple(self._notices),
        )

    def locator(self, unit: int) -> Locator:
        return clip_locator(unit, self._duration, self._options.clip_seconds)

    def unit(self, unit: int) -> DecodedUnit:
        """Words of the file name; then captions, in every language, or speech and what OCR reads in the frames.

        Where a picture stays, it is read shortly before it goes; where it moves all the time, at four times.
        """
        locator = self.locator(unit)
        start, stop = _range(locator)
        named = words_from_name(self._opening.name)
        meta: dict[str, str | int | float | bool] = {}
        cues = self._captions(start, stop)
        captioned = bool(cues)
        if not self._tracks() and self._has_sound and self._opening.hear is not None:
            cues, language = self._speech(start, stop)
            meta |= {"language": language} if language else {}
        chapters = [chapter for chapter in self._chapters if start <= chapter.start < stop]
        lines = [*([named] if named else []), *(cue.text for cue in (*chapters, *cues))]
        shown = self._shown(start, stop, captioned=captioned) if self._has_picture else _Shown()
        return DecodedUnit(
            unit,
            PassageKind.CLIP,
            locator,
            "\n".join(_unique([*lines, *shown.lines])),
            cues=tuple(sorted([*chapters, *cues, *shown.cues], key=lambda cue: cue.start)),
            shots=tuple(shown.shots),
            ocr=shown.is_read,
            error=_no_picture(shown.unread) if shown.unread else "",
            meta={**meta, "captioned": captioned},
        )

    def page_text(self, locator: Locator) -> PageText:
        """A line ``[start-end] caption``, in seconds, for each in the range; captions have no place in the picture."""
        start, stop = _range(locator)
        chapters = (chapter for chapter in self._chapters if start <= chapter.start < stop)
        cues = sorted([*chapters, *self._captions(start, stop)], key=lambda cue: cue.start)
        text = "\n".join(map(str, cues))
        return PageText(self._opening.path.name, locator, text, words=(), width=self._width, height=self._height)

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:
        """PNG of the frame at ``t_start``, or of ``box`` of it; see ``crop_png`` for ``dpi``."""
        start, _ = _range(locator)
        if not self._has_picture:
            raise DecodeError("is a sound recording and has no picture: its clips have words and times")
        if start > self._duration or (picture := self._frame(start)) is None:
            raise DecodeError(f"has no frame at {start:g} s; it lasts {self._duration:g} s")
        return crop_png(_image(picture), dpi=dpi, box=box, max_pixels=max_pixels)

    def frames(self, locator: Locator, max_pixels: int) -> list[Frame]:
        """The frames at the sampled times of the range, of at most ``max_pixels`` each, without unreadable ones.

        A sample is moved where a picture that stays would not be among them.
        """
        start, stop = _range(locator)
        if not self._has_picture:
            return []
        times = sample_times(start, stop, self._options.video_fps, self._options.max_frames)
        seen = ((t, self._frame(t)) for t in covering(times, still_stretches(self._opening.path, start, stop)))
        return [
            Frame(t, crop_png(_image(picture), dpi=NATIVE_DPI, box=None, max_pixels=max_pixels))
            for t, picture in seen
            if picture is not None
        ]

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _check_size(self, container: InputContainer) -> None:
        stream = video_stream(container)
        assert stream is not None
        width, height = stream.codec_context.width, stream.codec_context.height
        if width * height > self._opening.limits.max_pixels:
            raise DecodeError(
                f"has frames of {width} x {height}, more than the limit of "
                f"{self._opening.limits.max_pixels / 1e6:g} million pixels: scale it down or raise "
                "corpus.limits.max_pixels"
            )

    def _tracks(self) -> tuple[Track, ...]:
        """The subtitles inside the file, the default ones first, then those beside it. What is not read is noted."""
        if self._read_tracks is not None:
            return self._read_tracks
        tracks: list[Track] = []
        if self._has_subtitles:
            inside = read_tracks(self._opening.path)
            tracks += inside.read
            if inside.in_pictures:
                self._notices.append(
                    f"{inside.in_pictures} of its subtitle tracks consist of pictures, which are not read"
                )
            if inside.damaged:
                self._notices.append(
                    f"{inside.damaged} of its subtitle tracks cannot be read completely: damaged, or of an unknown kind"
                )
        for sidecar in self._opening.sidecars:
            try:
                track = read_sidecar(sidecar.path, sidecar.name, self._opening.name)
            except DecodeError as error:
                self._notices.append(f"not read: {error}")
                continue
            tracks.append(track)
            self._notices += [track.notice] if track.notice else []
        if self._has_sound and not tracks and not self._options.speech_model:
            self._notices.append(
                "its speech is not read: it has no subtitles, and corpus.speech_model names no model for speech"
            )
        self._read_tracks = tuple(tracks)
        return self._read_tracks

    def _captions(self, start: float, stop: float) -> list[Cue]:
        """Those of every track, in time order, the same words at the same time once."""
        cues = (cue for track in self._tracks() for cue in track.cues if cue.start < stop and cue.end > start)
        once: dict[tuple[int, str], Cue] = {}
        for cue in cues:
            once.setdefault((round(cue.start), cue.text.casefold()), cue)
        return sorted(once.values(), key=lambda cue: cue.start)

    def _speech(self, start: float, stop: float) -> tuple[list[Cue], str]:
        assert self._opening.hear is not None
        begin = max(0.0, start - AROUND_SECONDS)
        sound = sound_of(self._opening.path, begin, min(self._duration, stop + AROUND_SECONDS))
        speech = self._opening.hear(sound)
        cues = [replace(cue, start=cue.start + begin, end=cue.end + begin) for cue in speech.cues]
        return [cue for cue in cues if cue.start < stop and cue.end > start], speech.language

    def _shown(self, start: float, stop: float, *, captioned: bool) -> _Shown:
        """What the frames of a clip show. They are read at what stays in view, or evenly where nothing stays; where the
        words are known from captions they are looked at evenly, to see whether there are any."""
        shown = _Shown(still_stretches(self._opening.path, start, stop))
        even = _spread(sample_times(start, stop, self._options.video_fps, self._options.max_frames), MOVING_FRAMES)
        is_read = self._options.ocr and not captioned
        longest = sorted(shown.shots, key=lambda shot: shot[0] - shot[1])[:MOST_READ] if is_read else []
        # The last of the even times too: it shows whether the file goes on so far.
        last: Picture | None = None
        in_view: list[Cue] = []
        for t in sorted({*starmap(late_moment, longest), even[-1]}) if longest else even:
            picture = self._frame(t)
            if picture is None:
                shown.unread.append(t)
                continue
            if not is_read:
                continue
            begin, end = self._lasting(shown.shots, t, picture)
            if last is not None and _looks_same(last, picture):
                in_view = [replace(cue, end=max(cue.end, end)) for cue in in_view]
                continue
            seen = self._opening.read(picture)
            shown.lines += seen.text.splitlines()
            shown.cues += in_view
            in_view = _written(seen, picture.shape[1] / picture.shape[0], begin, end)
            last = picture
        shown.cues += in_view
        shown.is_read = last is not None
        return shown

    def _lasting(self, shots: list[tuple[float, float]], t: float, picture: Picture) -> tuple[float, float]:
        """From when to when the ``picture`` at ``t`` stays: as long as its shot, and until the next where it is still
        there then, for an encoder may sharpen it long after it came. Where it is still there when the next begins, that
        begins later: its picture was stored before it is shown. Without a shot it is known of ``t`` alone."""
        place = next((place for place, (begin, end) in enumerate(shots) if begin <= t < end), None)
        if place is None:
            return t, t
        begin, end = shots[place]
        if place + 1 == len(shots):
            return begin, end
        following, stop = shots[place + 1]
        if following > end:
            if self._shows(picture, following - JUST_BEFORE_S):
                shots[place] = begin, following
        elif self._shows(picture, end) and not self._shows(picture, latest := late_moment(following, stop)):
            while end < min(latest, following + LATEST_S) and self._shows(picture, end):
                end = round(end + STEP_S, 3)
            shots[place : place + 2] = (begin, end), (end, stop)
        return shots[place]

    def _shows(self, picture: Picture, t: float) -> bool:
        """Whether the film shows that picture at ``t`` seconds."""
        shown = self._frame(t)
        return shown is not None and _looks_same(picture, shown)

    def _frame(self, t: float) -> Picture | None:
        assert self._reader is not None
        with damage(UNREADABLE):
            return self._reader.frame(t)


def _written(seen: OcrText, aspect: float, start: float, end: float) -> list[Cue]:
    """What is written in a picture that stays from ``start`` to ``end``: its headings, paragraphs and rows of
    tables."""
    return [
        Cue(start, end, line, element.box)
        for element in elements(seen.words, aspect)
        if element.table is None
        for line in _lines_of(element)
    ]


def _lines_of(element: Element) -> list[str]:
    if element.kind is not ElementKind.TABLE:
        return [" ".join(element.text.split())]
    rows = (" ".join(row.replace("|", " ").split()) for row in element.text.splitlines())
    return [row for row in rows if row.strip("- ")]


def covering(times: Sequence[float], stretches: Sequence[tuple[float, float]]) -> list[float]:
    """``times``, as many: a stretch with several of them gives one to a stretch that has none, the longest first."""
    chosen = list(times)

    def inside(stretch: tuple[float, float]) -> list[float]:
        return [t for t in chosen if stretch[0] <= t < stretch[1]]

    for stretch in sorted(stretches, key=lambda stretch: stretch[0] - stretch[1]):
        richest = max(map(inside, stretches), key=len)
        if not inside(stretch) and len(richest) > 1:
            chosen[chosen.index(richest[0])] = late_moment(*stretch)
    return sorted(chosen)


def _chapters(container: InputContainer) -> list[Cue]:
    """The chapters whose titles say more than a number or a time."""
    origin = float(clock_origin(container))
    chapters: list[Cue] = []
    for chapter in container.chapters():
        title = " ".join(clean(chapter["metadata"].get("title", "")).split())
        unit = chapter["time_base"] or 0
        start, end = (float(at * unit) - origin for at in (chapter["start"], chapter["end"]))
        if title and not _NUMBERED.fullmatch(title):
            chapters.append(Cue(max(0.0, start), end, title))
    return sorted(chapters, key=lambda chapter: chapter.start)


def _languages(tracks: Sequence[Track]) -> str:
    """The languages of subtitles, in their order, as ``de, en``; one that the file does not state is ``?``."""
    named = dict.fromkeys(track.language or "?" for track in tracks)
    return ", ".join(named) if any(track.language for track in tracks) else ""


def _no_picture(times: Sequence[float]) -> str:
    at = ", ".join(dict.fromkeys(f"{t:.1f}" for t in times))
    return (
        f"no picture at {at} s: the pictures end before the sound or the subtitles do, or the file is cut short; if it "
        f"is, {PLAY_IT}"
    )


def _range(locator: Locator) -> tuple[float, float]:
    if locator.t_start is None:
        raise DecodeError(f"is a video and has no {locator}")
    stop = locator.t_start if locator.t_end is None else locator.t_end
    if not 0 <= locator.t_start <= stop:
        raise DecodeError(f"has no time range {locator.t_start} to {stop}")
    return locator.t_start, stop


def _spread(times: tuple[float, ...], count: int) -> tuple[float, ...]:
    """At most ``count`` of ``times``, evenly, the first and the last among them."""
    if len(times) <= count:
        return times
    return tuple(times[round(i * (len(times) - 1) / (count - 1))] for i in range(count))


def _looks_same(first: Picture, other: Picture) -> bool:
    """Whether hardly any pixel of a coarse grid changed, as on a slide that stays: it need not be read twice."""
    changed = np.abs(first[::4, ::4].astype(np.int16) - other[::4, ::4]).max(axis=2) > 24
    return float(changed.mean()) < 0.0005


def _unique(lines: Iterable[str]) -> list[str]:
    """``lines`` without empty ones and without repetitions, letter case aside."""
    first: dict[str, str] = {}
    for line in lines:
        if line:
            first.setdefault(line.casefold(), line)
    return list(first.values())


def _image(picture: Picture) -> Image.Image:
    from PIL import Image

    return Image.fromarray(np.ascontiguousarray(picture))
