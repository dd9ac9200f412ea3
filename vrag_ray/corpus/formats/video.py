"""Videos: clips of a minute, looked at by seeking, read by their captions or by OCR of a few frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.formats.source import Opening, damage
from vrag_ray.corpus.formats.subtitles import Cue, read_cues
from vrag_ray.corpus.formats.video_frames import PLAY_IT, FrameReader, open_container, open_reader, quarter_turns
from vrag_ray.corpus.model import (
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
from vrag_ray.imaging.frame_times import sample_times
from vrag_ray.types import Box, DocumentKind, Locator, PageText, PassageKind

if TYPE_CHECKING:
    from av.container import InputContainer
    from PIL import Image

    from vrag_ray.corpus.ocr import Picture

OCR_FRAMES = 4
UNREADABLE = f"has no readable video frame: it is damaged or cut short; {PLAY_IT}"


class VideoSource:
    """An open video whose header and first frame have been read and found within the limits."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._options = opening.options
        self._reader: FrameReader | None = None
        self._cues: tuple[Cue, ...] | None = None
        container = open_container(opening.path)
        with closing(container), damage(UNREADABLE):
            self._stated_title = clean(container.metadata.get("title", "")).strip()
            self._width, self._height = _look(container, opening.limits)
            self._duration = _duration(container)

    def probe(self) -> Probe:
        clips = clip_count(self._duration, self._options.clip_seconds)
        if clips > self._opening.limits.max_pages:
            raise DecodeError(
                f"has {clips} clips, more than the limit of {self._opening.limits.max_pages}: "
                "split it or raise corpus.limits.max_pages or corpus.clip_seconds"
            )
        meta = {"width": self._width, "height": self._height, "duration": round(self._duration, 3)}
        return Probe(
            DocumentKind.VIDEO,
            clips,
            self._stated_title or title_from_name(self._opening.name),
            meta=meta,
            duration=self._duration,
        )

    def locator(self, unit: int) -> Locator:
        return clip_locator(unit, self._duration, self._options.clip_seconds)

    def unit(self, unit: int) -> DecodedUnit:
        """Words of the file name, then captions or, where there are none, what OCR reads in up to four frames."""
        locator = self.locator(unit)
        start, stop = _range(locator)
        named = words_from_name(self._opening.name)
        lines = [*([named] if named else []), *(cue.text for cue in self._captions(start, stop))]
        captioned = len(lines) > bool(named)
        times = _spread(sample_times(start, stop, self._options.video_fps, self._options.max_frames), OCR_FRAMES)
        last: Picture | None = None
        unread: list[float] = []
        for t in times:
            picture = self._frame(t)
            if picture is None:
                unread.append(t)
            elif self._options.ocr and not captioned and not (last is not None and _looks_same(last, picture)):
                lines += self._opening.read(picture).text.splitlines()
                last = picture
        return DecodedUnit(
            unit,
            PassageKind.CLIP,
            locator,
            "\n".join(_unique(lines)),
            ocr=last is not None,
            error=_no_picture(unread) if unread else "",
            meta={"captioned": captioned},
        )

    def page_text(self, locator: Locator) -> PageText:
        """A line ``[start-end] caption``, in seconds, for each in the range; captions have no place in the picture."""
        start, stop = _range(locator)
        text = "\n".join(f"[{cue.start:.1f}-{cue.end:.1f}] {cue.text}" for cue in self._captions(start, stop))
        return PageText(self._opening.path.name, locator, text, words=(), width=self._width, height=self._height)

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:
        """PNG of the frame at ``t_start``, or of ``box`` of it; see ``crop_png`` for ``dpi``."""
        start, _ = _range(locator)
        if start > self._duration or (picture := self._frame(start)) is None:
            raise DecodeError(f"has no frame at {start:g} s; it lasts {self._duration:g} s")
        return crop_png(_image(picture), dpi=dpi, box=box, max_pixels=max_pixels)

    def frames(self, locator: Locator, max_pixels: int) -> list[Frame]:
        """The frames at the sampled times of the range, of at most ``max_pixels`` each, without unreadable ones."""
        start, stop = _range(locator)
        seen = (
            (t, self._frame(t)) for t in sample_times(start, stop, self._options.video_fps, self._options.max_frames)
        )
        return [
            Frame(t, crop_png(_image(picture), dpi=NATIVE_DPI, box=None, max_pixels=max_pixels))
            for t, picture in seen
            if picture is not None
        ]

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _captions(self, start: float, stop: float) -> list[Cue]:
        if self._cues is None:
            self._cues = read_cues(self._opening.path)
        return [cue for cue in self._cues if cue.start < stop and cue.end > start]

    def _frame(self, t: float) -> Picture | None:
        if self._reader is None:
            with damage(UNREADABLE):
                self._reader = open_reader(self._opening.path)
        with damage(UNREADABLE):
            return self._reader.frame(t)


def _no_picture(times: Sequence[float]) -> str:
    at = ", ".join(f"{t:.1f}" for t in times)
    return (
        f"no picture at {at} s: the pictures end before the sound or the subtitles do, or the file is cut short; if it "
        f"is, {PLAY_IT}"
    )


def _look(container: InputContainer, limits: DecodeLimits) -> tuple[int, int]:
    """Width and height of the upright frame, once its size is within the limits and the first one has been decoded."""
    if not container.streams.video:
        raise DecodeError("has no picture, only sound or subtitles: sound is not transcribed; leave it out")
    context = container.streams.video[0].codec_context
    if context.width * context.height > limits.max_pixels:
        raise DecodeError(
            f"has frames of {context.width} x {context.height}, more than the limit of "
            f"{limits.max_pixels / 1e6:g} million pixels: scale it down or raise corpus.limits.max_pixels"
        )
    context.thread_count = 1
    first = next(iter(container.decode(video=0)), None)
    if first is None:
        raise DecodeError(f"has no video frames; {PLAY_IT}")
    return (first.height, first.width) if quarter_turns(first) % 2 else (first.width, first.height)


def _duration(container: InputContainer) -> float:
    """Seconds by the container's header, or by its last packet where the header does not say (live recordings)."""
    import av

    if container.duration:
        return container.duration / av.time_base
    stream = container.streams.video[0]
    container.seek(0)
    ends = [
        float((packet.pts + (packet.duration or 0) - (stream.start_time or 0)) * packet.time_base)
        for packet in container.demux(stream)
        if packet.pts is not None and packet.time_base is not None
    ]
    if not ends:
        raise DecodeError(f"has no video frames; {PLAY_IT}")
    return max(ends)


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


def _looks_same(one: Picture, other: Picture) -> bool:
    """Whether hardly any pixel of a coarse grid changed, as on a slide that stays: it need not be read twice."""
    changed = np.abs(one[::4, ::4].astype(np.int16) - other[::4, ::4]).max(axis=2) > 24
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
