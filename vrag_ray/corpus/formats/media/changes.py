"""Where the picture of a film changes for a while: the slides of a talk, found without decoding all of it.

Encoders start anew at a cut (a key frame), or spend far more bytes on a frame than on its neighbours. So the packets of
a clip say where to look, and only key frames, drawn small, are decoded to see which differ from the one before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.corpus.formats.media.clock import clock_origin, open_container, video_stream

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

SMALL = (128, 72)
"""Width and height at which pictures are compared, in grey."""
CHANGED_LEVELS = 12
CHANGED_SHARE = 0.002
"""A picture differs where more than this share of its small grey pixels (eighteen) changed by ``CHANGED_LEVELS``."""
BURST = 4.0
"""A frame that takes this many times the bytes of the usual one between key frames shows something new."""
BURST_OF_KEY = 0.08
"""And at least this share of a key frame's bytes: what only sharpens a key frame takes less."""
MOVING_SHARE = 0.08
"""Above this share of a key frame's bytes in the usual other frame, the picture moves all the time."""
STILL_SECONDS = 1.0
"""What is shown for less is a transition, or no one could read it."""
MOST_SECONDS_APART = 0.9
MOST_PIXELS = 300_000_000
"""Of key frames decoded for one clip: about a second of work."""


@dataclass(frozen=True, slots=True)
class _Packet:
    t: float
    size: int
    is_key: bool


def still_stretches(path: Path, start: float, stop: float) -> list[tuple[float, float]]:
    """The stretches of ``start`` to ``stop`` in which one picture stays, in seconds; between them one goes over.

    Empty where the picture moves most of the time, or nothing can be read: there no moment is better than another.
    """
    with closing(open_container(path)) as container:
        stream = video_stream(container)
        if stream is None:
            return []
        stream.codec_context.thread_count = 1
        packets, looks = _scan(container, stream, start, stop)
    keys = [packet.size for packet in packets if packet.is_key]
    others = [packet.size for packet in packets if not packet.is_key]
    if not keys:
        return []
    usual, of_key = (median(others) if others else 0), median(keys)
    times = sorted(packet.t for packet in packets)
    lasting = [t for t, following in zip(times, [*times[1:], stop], strict=True) if following - t >= STILL_SECONDS]
    changes = [after for (_, before), (after, other) in itertools.pairwise(looks) if _differs(before, other)]
    if len(lasting) > len(times) / 2:
        # A recording that has a frame only where something changes.
        changes = times
    elif usual > MOVING_SHARE * of_key or (not others and len(changes) > len(looks) / 2):
        return []
    else:
        least = max(BURST * usual, BURST_OF_KEY * of_key)
        changes += [t for place in range(len(packets)) for t in _new_from(packets, place, least)]
    # From the first to the last of changes close together one picture goes over into the next: neither stays.
    goes, comes = list[float](), [start]
    for t in sorted(changes):
        if start < t < stop:
            if t - comes[-1] < STILL_SECONDS and goes:
                comes[-1] = t
            elif t - start >= STILL_SECONDS:
                goes.append(t)
                comes.append(t)
    return list(zip(comes, [*goes, stop], strict=True))


def _new_from(packets: Sequence[_Packet], place: int, least: float) -> Iterator[float]:
    """When frames are shown that take a new picture from a packet of more than ``least`` bytes, between key frames.

    Beside its own frame those that are stored behind it and shown before it.
    """
    packet = packets[place]
    if packet.is_key or packet.size <= least:
        return
    yield packet.t
    for other in packets[place + 1 :]:
        if other.t >= packet.t:
            return
        yield other.t


def _scan(
    container: InputContainer, stream: VideoStream, start: float, stop: float
) -> tuple[list[_Packet], list[tuple[float, NDArray[np.int16]]]]:
    """The packets of a clip, and small grey pictures of its key frames, those before its start included."""
    import av

    origin, base = clock_origin(container), stream.time_base or Fraction(1, 1_000_000)
    pixels = max(1, stream.codec_context.width * stream.codec_context.height)
    apart = max(MOST_SECONDS_APART, (stop - start) * pixels / MOST_PIXELS)
    packets: list[_Packet] = []
    frames: list[VideoFrame] = []
    last, (width, height) = -math.inf, SMALL
    stream.codec_context.skip_frame = "NONKEY"
    try:
        container.seek(math.floor((Fraction(start) + origin) / base), stream=stream)
        for packet in container.demux(stream):
            stamp = packet.pts if packet.pts is not None else packet.dts
            if stamp is None:
                continue
            t = float(stamp * base - origin)
            if packet.dts is not None and float(packet.dts * base - origin) >= stop:
                break
            if not start <= t < stop and not (packet.is_keyframe and t < start):
                continue
            packets.append(_Packet(t, packet.size, packet.is_keyframe))
            if packet.is_keyframe and t - last >= apart:
                last = t
                frames += stream.codec_context.decode(packet)
        frames += stream.codec_context.decode(None)
    except av.FFmpegError:
        # What is damaged is found, and said, where its pictures are read.
        return [], []
    return packets, [
        (
            float((frame.pts or 0) * base - origin),
            frame.to_ndarray(format="gray", width=width, height=height, threads=1).astype(np.int16),
        )
        for frame in frames
    ]


def _differs(first: NDArray[np.int16], other: NDArray[np.int16]) -> bool:
    return bool((np.abs(first - other) > CHANGED_LEVELS).mean() > CHANGED_SHARE)
