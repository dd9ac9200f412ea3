"""Drawn videos: H.264 in an MP4, with captions as a subtitle track or without."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
import pymupdf
from av.subtitles.stream import SubtitleStream
from av.subtitles.subtitle import SubtitleSet

from vrag_ray.drawing.canvas import Canvas

Layers = Sequence[Callable[[Canvas], object]]
Cue = tuple[float, float, str]
"""From a second to a second: what is spoken."""
_ALIGNED = 128
_MILLISECOND = Fraction(1, 1000)
_ASS_HEADER = b"""[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, Bold, Alignment
Style: Default,Arial,16,&Hffffff,0,2

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""


@dataclass(frozen=True, slots=True)
class Film:
    """``draw`` gives the layers of the frame at a second, the lowest first; without ``cues`` there is no track."""

    title: str
    width: int
    height: int
    seconds: int
    frames_per_second: int
    draw: Callable[[float], Layers]
    cues: Sequence[Cue] = ()

    def __post_init__(self) -> None:
        # x264 reads beyond a row that does not end where its vectors do, and what lies there differs from run to run.
        if self.width % _ALIGNED:
            raise ValueError(f"a film is {self.width} wide: take a multiple of {_ALIGNED}, so that its bytes repeat")


def filmed(film: Film) -> bytes:
    """The MP4. One thread, so the bytes repeat."""
    target = io.BytesIO()
    with av.open(target, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        container.metadata["title"] = film.title
        options = {"crf": "27", "preset": "veryfast"}
        pictures = container.add_stream("libx264", rate=film.frames_per_second, options=options)
        pictures.width, pictures.height, pictures.pix_fmt = film.width, film.height, "yuv420p"
        pictures.codec_context.thread_count = 1
        waiting = list(enumerate(film.cues))
        captions = _subtitles(container) if waiting else None
        container.start_encoding()
        for index in range(film.seconds * film.frames_per_second):
            seconds = index / film.frames_per_second
            while captions is not None and waiting and waiting[0][1][0] <= seconds:
                container.mux(_caption_packet(captions, *waiting.pop(0)))
            container.mux(pictures.encode(_frame(film, seconds)))
        container.mux(pictures.encode(None))
    return target.getvalue()


def _subtitles(container: av.container.OutputContainer) -> SubtitleStream:
    captions = container.add_stream("mov_text")
    captions.codec_context.subtitle_header = _ASS_HEADER
    captions.codec_context.time_base = captions.time_base = _MILLISECOND
    return captions


def _frame(film: Film, seconds: float) -> av.VideoFrame:
    document = pymupdf.open()
    page = document.new_page(width=film.width, height=film.height)
    # A canvas for each layer, since all text of one lies above all its shapes: a caption bar must cover the scene.
    for draw in film.draw(seconds):
        canvas = Canvas(page)
        draw(canvas)
        canvas.finish()
    pixmap = page.get_pixmap()
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(film.height, film.width, 3)
    return av.VideoFrame.from_ndarray(pixels, format="rgb24")


def _caption_packet(stream: SubtitleStream, number: int, cue: Cue) -> av.Packet[SubtitleStream]:
    start, end, text = cue
    event = f"{number},0,Default,,0,0,0,,{text}".encode()
    length = round((end - start) * 1000)
    packet = stream.codec_context.encode_subtitle(SubtitleSet.create(event, 0, length, pts=round(start * 1e6)))
    packet.stream, packet.time_base = stream, _MILLISECOND
    packet.pts = packet.dts = round(start * 1000)
    packet.duration = length
    return packet
