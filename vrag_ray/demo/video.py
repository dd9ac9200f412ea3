"""The captioned video: drawn frames with the captions burnt in, and the same captions as a subtitle track."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np
import pymupdf
from av.subtitles.stream import SubtitleStream
from av.subtitles.subtitle import SubtitleSet

from vrag_ray.demo import facts
from vrag_ray.demo.scenes import HEIGHT, WIDTH, draw_caption, draw_scene
from vrag_ray.drawing.canvas import Canvas

FRAMES_PER_SECOND = 4
_MILLISECOND = Fraction(1, 1000)
_ASS_HEADER = b"""[Script Info]
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname, Fontsize, PrimaryColour, Bold, Alignment
Style: Default,Arial,16,&Hffffff,0,2

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
"""


def write_video() -> bytes:
    """An MP4 of ``facts.VIDEO_SECONDS`` seconds: H.264 with a mov_text track. One thread, so the bytes repeat."""
    target = io.BytesIO()
    with av.open(target, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        container.metadata["title"] = "Blade inspection of turbine T4"
        pictures = container.add_stream("libx264", rate=FRAMES_PER_SECOND, options={"crf": "27", "preset": "veryfast"})
        pictures.width, pictures.height, pictures.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        pictures.codec_context.thread_count = 1
        captions = container.add_stream("mov_text")
        captions.codec_context.subtitle_header = _ASS_HEADER
        captions.codec_context.time_base = captions.time_base = _MILLISECOND
        container.start_encoding()
        waiting = list(enumerate(facts.VIDEO_CUES))
        for index in range(facts.VIDEO_SECONDS * FRAMES_PER_SECOND):
            seconds = index / FRAMES_PER_SECOND
            while waiting and waiting[0][1][0] <= seconds:
                number, (start, end, text) = waiting.pop(0)
                container.mux(_caption_packet(captions, number, start, end, text))
            container.mux(pictures.encode(_frame(seconds)))
        container.mux(pictures.encode(None))
    return target.getvalue()


def _frame(seconds: float) -> av.VideoFrame:
    document = pymupdf.open()
    page = document.new_page(width=WIDTH, height=HEIGHT)
    canvas = Canvas(page)
    length = facts.VIDEO_SECONDS / len(facts.VIDEO_CUES)
    scene = int(seconds // length)
    draw_scene(canvas, scene, seconds / length - scene, seconds)
    canvas.finish()
    # A second canvas, since all text of one lies above all its shapes: the caption bar must cover the scene.
    overlay = Canvas(page)
    draw_caption(overlay, facts.VIDEO_CUES[scene][2])
    overlay.finish()
    pixmap = page.get_pixmap()
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(HEIGHT, WIDTH, 3)
    return av.VideoFrame.from_ndarray(pixels, format="rgb24")


def _caption_packet(
    stream: SubtitleStream, number: int, start: float, end: float, text: str
) -> av.Packet[SubtitleStream]:
    event = f"{number},0,Default,,0,0,0,,{text}".encode()
    length = round((end - start) * 1000)
    packet = stream.codec_context.encode_subtitle(SubtitleSet.create(event, 0, length, pts=round(start * 1e6)))
    packet.stream, packet.time_base = stream, _MILLISECOND
    packet.pts = packet.dts = round(start * 1000)
    packet.duration = length
    return packet
