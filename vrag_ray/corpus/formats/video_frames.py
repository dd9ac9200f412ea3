"""Single video frames by seeking: decord where it is installed and can read the file, PyAV where not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from vrag_ray.corpus.formats.source import damage
from vrag_ray.corpus.model import DecodeError

if TYPE_CHECKING:
    import av

    from vrag_ray.corpus.ocr import Picture

FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi"
"""Demuxers FFmpeg may choose: none that follows a reference to another file or host."""
PLAY_IT = "get the whole file again, or convert it, for example with `ffmpeg -i FILE new.mp4`"
LAST_FRAME_SECONDS = 1.0
"""How long after its end the last frame still stands for the picture; beyond it the video is cut short."""


class FrameReader(Protocol):
    """Upright frames of one video."""

    def frame(self, t: float) -> Picture | None:
        """The picture shown ``t`` seconds after the start, or None where the data ends before."""

    def close(self) -> None: ...


def open_reader(path: Path) -> FrameReader:
    """The best reader that is installed and understands the file; PyAV has read its header before."""
    try:
        import decord
    except (ImportError, OSError):
        return AvReader(path)
    try:
        return DecordReader(path)
    except decord.DECORDError:
        # decord carries an older FFmpeg, which lacks the newest codecs.
        return AvReader(path)


class DecordReader:
    """Seeks by decord's own index of the packets that are really there. It turns frames upright by itself."""

    def __init__(self, path: Path) -> None:
        import decord

        self._broken = decord.DECORDError
        self._video = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=1)
        times = np.asarray(self._video.get_frame_timestamp(range(len(self._video))), dtype=np.float64)
        if times.size == 0:
            raise DecodeError(f"has no video frames; {PLAY_IT}")
        self._starts = times[:, 0] - times[0, 0]
        self._end = float(times[-1, 1] - times[0, 0])

    def frame(self, t: float) -> Picture | None:
        if t > self._end + LAST_FRAME_SECONDS:
            return None
        index = max(0, int(np.searchsorted(self._starts, t, side="right")) - 1)
        try:
            picture: Picture = self._video[index].asnumpy()
        except self._broken:
            return None
        return picture

    def close(self) -> None:
        del self._video


class AvReader:
    """Seeks to the key frame before and decodes forward."""

    def __init__(self, path: Path) -> None:
        self._container = open_container(path)
        self._stream = self._container.streams.video[0]
        self._stream.codec_context.thread_count = 1

    def frame(self, t: float) -> Picture | None:
        import av

        base, origin = self._stream.time_base, self._stream.start_time or 0
        if base is None:
            raise DecodeError(f"has a video stream without a time base; {PLAY_IT}")
        shown: av.VideoFrame | None = None
        try:
            self._container.seek(origin + int(t / base), stream=self._stream)
            for frame in self._container.decode(self._stream):
                if frame.pts is None:
                    continue
                if shown is not None and float((frame.pts - origin) * base) > t:
                    return _rgb(shown)
                shown = frame
        except av.FFmpegError:
            return None
        if shown is None or shown.pts is None:
            return None
        end = float((shown.pts - origin + (shown.duration or 0)) * base)
        return _rgb(shown) if t <= end + LAST_FRAME_SECONDS else None

    def close(self) -> None:
        self._container.close()


def open_container(path: Path) -> av.container.InputContainer:
    """Open ``path`` for reading with PyAV.

    Raises:
        DecodeError: no supported container, or cut short so early that nothing can be read.
    """
    import av

    with damage(f"is no readable video, or is cut short; {PLAY_IT}"):
        return av.open(str(path), options={"format_whitelist": FORMATS, "protocol_whitelist": "file"})


def quarter_turns(frame: av.VideoFrame) -> int:
    """Counter-clockwise quarter turns, 0 to 3, that make the frame upright: phones store what they film lying."""
    return round(frame.rotation / 90) % 4


def _rgb(frame: av.VideoFrame) -> Picture:
    return np.rot90(frame.to_ndarray(format="rgb24").astype(np.uint8, copy=False), quarter_turns(frame))
