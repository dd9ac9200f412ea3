"""Single video frames by seeking, as a player shows them and by the player's clock."""

from __future__ import annotations

import heapq
import math
import struct
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.corpus.formats.media.clock import (
    PLAY_IT,
    SLACK_SECONDS,
    clock_origin,
    last_end,
    open_container,
    video_stream,
)
from vrag_ray.corpus.model import DecodeError

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from vrag_ray.corpus.ocr import Picture

EARLY = Fraction(1, 1000)
"""Times come rounded to a millisecond: a frame that begins so soon after a time is meant by it."""
FORWARD_SECONDS = 4
"""A frame so soon after the last one is reached by decoding on, which costs less than from the key frame before."""
STEPS_BACK = (0, 1, 4, 16, 64)
"""Seconds before a time at which decoding begins: a seek in a container without an index may land behind it."""
STEPS_BACK_IN_PACKS = (8, 64)
"""The same for MPEG program streams, which state a time only every few frames; those up to it are guesses."""
MOST_REORDERED = 8
"""Frames of an AVI among which times are put in order."""
ODDEST_PIXEL = 8
"""Pixels that are more times as wide as they are high, or as high as wide, come from a damaged header."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A frame, when it begins, and how long it lasts (0 where the file does not say), in ticks of its stream."""

    begins: int
    length: int
    frame: VideoFrame


class FrameReader:
    """Upright frames of one video, in the shape in which players show them. Not thread-safe.

    Raises DecodeError where the file has no video stream or not a single frame.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()
        origin = clock_origin(self._container)
        first = next(self._frames, None)
        if first is None:
            self.close()
            raise DecodeError(f"has no video frames; {PLAY_IT}")
        self._zero = origin / self._base
        """Where the player's clock is at zero, in ticks."""
        if self._container.format.name == "avi" and 0 < (first.begins - self._zero) * self._base < 1:
            # AVI stores no times: frames that a decoder had to reorder come out late by the number it waited for.
            self._zero = Fraction(first.begins)
        self._first = first
        self._shown: _Shown | None = first
        self._following: _Shown | None = None
        self._whole: bool | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the pictures."""
        width, height = _displayed_size(self._stream, self._first.frame)
        return (height, width) if _turns(self._first.frame)[0] else (width, height)

    def frame(self, t: float) -> Picture | None:
        """The picture shown at ``t`` seconds, or None where the file is cut short before.

        Before the first picture that is the first, and after the last one, which sound may outlast, the last.
        """
        target = math.floor((Fraction(t) + EARLY) / self._base + self._zero)
        shown = self._reach(target) if target > self._first.begins else self._first
        after = (target - shown.begins - shown.length) * self._base
        if self._following is None and after > SLACK_SECONDS and not self._is_whole(shown):
            return None
        return _picture(self._stream, shown.frame)

    def close(self) -> None:
        """Let go of the film. A reader and its iterator hold each other, and with them pictures that may be large."""
        self._frames.close()
        self._container.close()

    def _open(self) -> None:
        self._container: InputContainer = open_container(self._path)
        stream = video_stream(self._container)
        if stream is None:
            raise DecodeError("has no picture, only sound or subtitles")
        stream.codec_context.thread_count = 1
        self._stream: VideoStream = stream
        self._base = stream.time_base or Fraction(1, 1_000_000)
        self._frames = self._decoded()

    def _reach(self, target: int) -> _Shown:
        """The last frame that begins at ``target`` or before: by decoding on, by a seek, or from the beginning."""
        if self._shown is not None and 0 <= (target - self._shown.begins) * self._base <= FORWARD_SECONDS:
            return self._onward(target)
        for back in STEPS_BACK_IN_PACKS if self._container.format.name == "mpeg" else STEPS_BACK:
            stamp = target - math.ceil(back / self._base)
            if stamp < self._first.begins:
                break
            if self._seek(stamp) and (shown := self._onward(target)).begins <= target:
                return shown
        self.close()
        self._open()
        self._shown, self._following = next(self._frames, self._first), None
        return self._onward(target)

    def _seek(self, stamp: int) -> bool:
        """Begin at the key frame before ``stamp``; whether a frame comes from there."""
        import av

        try:
            self._container.seek(stamp, stream=self._stream)
        except av.FFmpegError:
            return False
        self._frames = self._decoded()
        self._shown, self._following = next(self._frames, None), None
        return self._shown is not None

    def _onward(self, target: int) -> _Shown:
        assert self._shown is not None
        while self._shown.begins <= target:
            following = self._following or next(self._frames, None)
            self._following = following
            if following is None or following.begins > target:
                break
            self._shown, self._following = following, None
        return self._shown

    def _decoded(self) -> Generator[_Shown]:
        """The frames in the order in which they are shown. A damaged packet costs itself alone, as in players."""
        timed = self._timed_in_order() if self._container.format.name == "avi" else self._timed()
        last: int | None = None
        for shown in timed:
            if last is None or shown.begins > last:
                last = shown.begins
                yield shown

    def _timed_in_order(self) -> Iterator[_Shown]:
        """AVI has no times but the order of storing, and a decoder may hand those out to the wrong frames."""
        waiting: deque[_Shown] = deque()
        stamps: list[int] = []
        timed = self._timed()
        while True:
            shown = next(timed, None)
            if shown is not None:
                waiting.append(shown)
                heapq.heappush(stamps, shown.begins)
            if not waiting:
                return
            if shown is None or len(waiting) > MOST_REORDERED:
                yield replace(waiting.popleft(), begins=heapq.heappop(stamps))

    def _timed(self) -> Iterator[_Shown]:
        import av

        step = math.ceil(1 / (self._base * (self._stream.average_rate or 25)))
        begins: int | None = None
        packets = self._container.demux(self._stream)
        flushed = False
        while not flushed:
            try:
                packet = next(packets, None)
            except av.FFmpegError:
                packet = None
            flushed = packet is None or packet.size == 0
            try:
                frames = self._stream.codec_context.decode(None if flushed else packet)
            except av.FFmpegError:
                frames = []
            for frame in frames:
                stamp = frame.pts if frame.pts is not None else frame.dts
                if stamp is not None:
                    begins = stamp
                if begins is None:
                    # Matroska cannot say when a frame before zero is shown: it is none that a player shows.
                    continue
                yield _Shown(begins, frame.duration or 0, frame)
                # A frame without a time of its own follows at the stated rate.
                begins += step

    def _is_whole(self, last: _Shown) -> bool:
        """Whether the last frame that can be read is the last that there was, and the file goes on without pictures."""
        if self._whole is None:
            stream = self._stream
            if stream.duration:
                missing = (stream.start_time or 0) + stream.duration - last.begins - last.length
                self._whole = missing * self._base <= SLACK_SECONDS
            else:
                with closing(open_container(self._path)) as container:
                    stated = (container.duration or 0) / 1e6
                    end = last_end(container, float((last.begins - self._zero) * self._base))
                    self._whole = max(end, end + float(self._zero * self._base)) >= stated - SLACK_SECONDS
        return self._whole


def _picture(stream: VideoStream, frame: VideoFrame) -> Picture:
    """Height x width x 3: square pixels, upright."""
    width, height = _displayed_size(stream, frame)
    pixels = frame.to_ndarray(format="rgb24", width=width, height=height, threads=1).astype(np.uint8, copy=False)
    transposed, mirrored, upturned = _turns(frame)
    if transposed:
        pixels = pixels.transpose(1, 0, 2)
    return pixels[:: -1 if upturned else 1, :: -1 if mirrored else 1]


def _displayed_size(stream: VideoStream, frame: VideoFrame) -> tuple[int, int]:
    """The stored size with one side enlarged until pixels are square; no pixel is given away."""
    pixel = stream.sample_aspect_ratio or Fraction(1)
    if not Fraction(1, ODDEST_PIXEL) <= pixel <= ODDEST_PIXEL:
        return frame.width, frame.height
    if pixel >= 1:
        return round(frame.width * pixel), frame.height
    return frame.width, round(frame.height / pixel)


def _turns(frame: VideoFrame) -> tuple[bool, bool, bool]:
    """What makes the frame upright: whether it is transposed, then mirrored left to right, then upside down.

    Cameras store what they film as it comes, with a matrix (a, b, u; c, d, v; x, y, w) that takes a place (x, y) of the
    picture to (ax + cy, bx + dy) on the screen.
    """
    from av.sidedata.sidedata import SideData, SideDataContainer

    # Not frame.side_data, which the frame would hold, and it the frame: pictures would pile up.
    matrix = SideDataContainer(frame).get("DISPLAYMATRIX")  # type: ignore[call-arg]
    if not isinstance(matrix, SideData) or len(bytes(matrix)) < 36:
        return False, False, False
    a, b, _, c, d = struct.unpack_from("=5i", bytes(matrix))
    if abs(b) + abs(c) > abs(a) + abs(d):
        return True, c < 0, b < 0
    return False, a < 0, d < 0
