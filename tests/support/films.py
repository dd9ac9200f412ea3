"""Films whose every frame carries its number in black and white blocks, so that what a reader shows can be checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

BLOCK = 16
BITS = 10
"""Blocks in two rows of five, in a frame of 96 x 48 with a grey margin."""
WIDTH, HEIGHT = 96, 48


def numbered(number: int) -> np.ndarray:
    """A frame, height x width x 3, that carries ``number``."""
    frame = np.full((HEIGHT, WIDTH, 3), 128, np.uint8)
    for bit in range(BITS):
        y, x = 8 + BLOCK * (bit // 5), 8 + BLOCK * (bit % 5)
        frame[y : y + BLOCK, x : x + BLOCK] = 255 * (number >> bit & 1)
    return frame


def number_in(frame: np.ndarray) -> int:
    """The number that a frame of any width carries."""
    scale = frame.shape[1] / WIDTH
    number = 0
    for bit in range(BITS):
        y, x = 16 + BLOCK * (bit // 5), round((16 + BLOCK * (bit % 5)) * scale)
        number |= int(frame[y - 3 : y + 3, x - 3 : x + 3].mean() > 128) << bit
    return number


def film(
    path: Path,
    codec: str = "libx264",
    *,
    frames: int = 80,
    rate: int | Fraction = 10,
    key_every: int = 20,
    b_frames: int = 2,
    first: int = 0,
    sound: float = 0.0,
    sound_codec: str = "aac",
    pixel: Fraction | None = None,
    format: str | None = None,
    pix_fmt: str = "yuv420p",
    tag: str = "",
    options: Mapping[str, str] | None = None,
    mux_options: Mapping[str, str] | None = None,
    drawn: Callable[[int], np.ndarray] = numbered,
) -> Path:
    """Frame ``i`` carries ``i`` and is shown at ``(i + first) / rate`` seconds; a hum of ``sound`` seconds."""
    with av.open(str(path), "w", format=format, options=dict(mux_options or {})) as container:
        pictures = container.add_stream(
            codec,
            rate=rate,
            options={**({"x264-params": "scenecut=0"} if codec == "libx264" else {}), **(options or {})},
        )
        pictures.width, pictures.height, pictures.pix_fmt = WIDTH, HEIGHT, pix_fmt
        pictures.codec_context.gop_size = key_every
        pictures.codec_context.max_b_frames = b_frames
        pictures.codec_context.thread_count = 1
        if tag:
            pictures.codec_context.codec_tag = tag
        if pixel is not None:
            pictures.codec_context.sample_aspect_ratio = pixel
        if sound:
            voice = container.add_stream(sound_codec, rate=44100)
            voice.layout = "mono"
            for packet in _tone(voice, sound):
                container.mux(packet)
        for index in range(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(drawn(index)), format="rgb24")
            frame.pts, frame.time_base = index + first, 1 / Fraction(rate)
            container.mux(pictures.encode(frame))
        container.mux(pictures.encode(None))
    return path


def remuxed(path: Path, source: Path, *, begin: int = 0, shift: int = 0, mux_options: Mapping[str, str] | None = None):
    """The packets of ``source`` from its key frame ``begin`` on, in another container, ``shift`` seconds later."""
    with av.open(str(source)) as read, av.open(str(path), "w", options=dict(mux_options or {})) as written:
        streams = {stream.index: written.add_stream_from_template(stream) for stream in read.streams}
        keys = -1
        for packet in read.demux():
            if packet.dts is None:
                continue
            keys += packet.is_keyframe and packet.stream.type == "video"
            if keys < begin:
                continue
            offset = round(shift / packet.time_base)
            packet.pts, packet.dts = packet.pts + offset, packet.dts + offset
            packet.stream = streams[packet.stream.index]
            written.mux(packet)
    return path


def tone(path: Path, seconds: float, *, silent_until: float = 0.0) -> Path:
    """A sound recording of a hum, in the container and codec that its suffix names."""
    codec = {".wav": "pcm_s16le", ".flac": "flac", ".mp3": "libmp3lame", ".m4a": "aac", ".ogg": "libopus"}[path.suffix]
    with av.open(str(path), "w") as container:
        voice = container.add_stream(codec, rate=48000)
        voice.layout = "mono"
        for packet in _tone(voice, seconds, silent_until):
            container.mux(packet)
    return path


def _tone(stream: av.AudioStream, seconds: float, silent_until: float = 0.0) -> Iterator[av.Packet]:
    rate, size = stream.rate, 1024
    for index in range(int(seconds * rate // size)):
        places = np.arange(index * size, (index + 1) * size)
        wave = np.sin(places * 0.06) * 0.5 * (places >= silent_until * rate)
        frame = av.AudioFrame.from_ndarray((wave * 32767).astype(np.int16)[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = rate, index * size, Fraction(1, rate)
        yield from stream.encode(frame)
    yield from stream.encode(None)
