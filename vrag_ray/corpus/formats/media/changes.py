"""Where the picture of a film changes for a while: the slides of a talk, found without decoding all of it.

Encoders start anew at a cut (a key frame), or spend far more bytes on a frame than on its neighbours. So the packets of
a clip say where to look, and only key frames, drawn small, are decoded to see which differ from the one before. Where
half of the frames last a second or more, all are decoded: they are few, and each may be a slide.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
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
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

SMALL = (128, 72)
"""Width and height at which pictures are compared, in grey."""
CHANGED_LEVELS = 12
CHANGED_SHARE = 0.002
"""A picture differs where more than this share of its small grey pixels (eighteen) changed by ``CHANGED_LEVELS``."""
LARGE = (512, 288)
LARGE_LEVELS = 24
LARGE_SHARE = 0.0001
"""The same for a film of few frames, of which each may be new by a word: fifteen such pixels."""
BURST = 4.0
"""A frame that takes this many times the bytes of the usual one between key frames shows something new."""
BURST_OF_KEY = 0.08
"""And at least this share of a key frame's bytes: what only sharpens a key frame takes less."""
MOVING_SHARE = 0.08
"""Above this share of a key frame's bytes in the usual other frame, the picture moves all the time."""
DRAWING_ANEW = frozenset(("ffv1",))
"""Codecs whose frames between key frames are as large as these, whatever they show."""
STILL_SECONDS = 1.0
"""What is shown for less is a transition, or no one could read it."""
MOST_SECONDS_APART = 0.9
MOST_PIXELS = 300_000_000
"""Of key frames decoded for one clip: about a second of work."""


Grey = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Packet:
    t: float
    stamp: int
    size: int
    is_key: bool


@dataclass(frozen=True, slots=True)
class _Film:
    """An open film, and what makes seconds of the player's clock of its ticks."""

    container: InputContainer
    stream: VideoStream
    base: Fraction
    origin: Fraction

    def packets(self, start: float, stop: float) -> Iterator[tuple[Packet[VideoStream], int, float]]:
        """The packets that have a time, from the key frame before ``start`` on, with their stamps and seconds."""
        yield from self.packets_at(math.floor((Fraction(start) + self.origin) / self.base), stop)

    def packets_at(self, place: int, stop: float) -> Iterator[tuple[Packet[VideoStream], int, float]]:
        self.container.seek(place, stream=self.stream)
        for packet in self.container.demux(self.stream):
            stamp = packet.pts if packet.pts is not None else packet.dts
            if stamp is None:
                continue
            if packet.dts is not None and self.seconds(packet.dts) >= stop:
                return
            yield packet, stamp, self.seconds(stamp)

    def seconds(self, stamp: int) -> float:
        return float(stamp * self.base - self.origin)


def still_stretches(path: Path, start: float, stop: float) -> list[tuple[float, float]]:
    """The stretches of ``start`` to ``stop`` in which one picture stays, in seconds; between them one goes over.

    Empty where the picture moves most of the time, or nothing can be read: there no moment is better than another.
    """
    with closing(open_container(path)) as container:
        stream = video_stream(container)
        if stream is None:
            return []
        stream.codec_context.thread_count = 1
        film = _Film(container, stream, stream.time_base or Fraction(1, 1_000_000), clock_origin(container))
        changes = _changes(film, start, stop)
    if changes is None:
        return []
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


def _changes(film: _Film, start: float, stop: float) -> list[float] | None:
    """When something new is shown; None where that is most of the time, or nothing can be read."""
    packets, looks = _scan(film, start, stop)
    keys = [packet for packet in packets if packet.is_key]
    if not keys:
        return None
    times = sorted(packet.t for packet in packets)
    lasting = [t for t, following in zip(times, [*times[1:], stop], strict=True) if following - t >= STILL_SECONDS]
    if len(lasting) >= len(times) / 2:
        return _new_of_few(film, start, stop)
    # Of codecs that draw each frame anew, sizes do not tell what changes; key frames do.
    draws_anew = film.stream.codec_context.name in DRAWING_ANEW
    others = [] if draws_anew else [packet.size for packet in packets if not packet.is_key]
    differing = [pair for pair in itertools.pairwise(looks) if _differs(pair[0][1], pair[1][1])]
    usual, of_key = (median(others) if others else 0), median(packet.size for packet in keys)
    if usual > MOVING_SHARE * of_key or (not others and len(differing) > len(looks) / 2):
        return None
    least = max(BURST * usual, BURST_OF_KEY * of_key)
    places = () if draws_anew else range(len(packets))
    bursts = [t for place in places for t in _new_from(packets, place, least)]
    return [_first_new(film, keys, before, after) for before, after in differing] + bursts


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


def _scan(film: _Film, start: float, stop: float) -> tuple[list[_Packet], list[tuple[float, Grey]]]:
    """The packets of a clip, and small grey pictures of its key frames, those before its start included."""
    import av

    codec = film.stream.codec_context
    apart = max(MOST_SECONDS_APART, (stop - start) * max(1, codec.width * codec.height) / MOST_PIXELS)
    packets: list[_Packet] = []
    looks: list[tuple[float, Grey]] = []
    last = -math.inf
    codec.skip_frame = "NONKEY"
    try:
        for packet, stamp, t in film.packets(start, stop):
            if not start <= t < stop and not (packet.is_keyframe and t < start):
                continue
            packets.append(_Packet(t, stamp, packet.size, packet.is_keyframe))
            if packet.is_keyframe and t - last >= apart:
                last = t
                looks += [(film.seconds(frame.pts or 0), _grey(frame, SMALL)) for frame in codec.decode(packet)]
        looks += [(film.seconds(frame.pts or 0), _grey(frame, SMALL)) for frame in codec.decode(None)]
    except av.FFmpegError:
        # Damage is detected and reported where the pictures are read.
        return [], []
    return packets, looks


def _first_new(film: _Film, keys: Sequence[_Packet], before: tuple[float, Grey], after: tuple[float, Grey]) -> float:
    """When the first key frame between two looks is shown that differs from the earlier one as the later one does."""
    between = sorted((key for key in keys if before[0] < key.t < after[0]), key=lambda key: key.t)
    place = bisect_left(between, True, key=lambda key: _is_new(film, key, before[1]))
    return between[place].t if place < len(between) else after[0]


def _is_new(film: _Film, key: _Packet, before: Grey) -> bool:
    """Whether a key frame differs from the picture ``before``; one that cannot be decoded does not."""
    import av

    codec = film.stream.codec_context
    try:
        packet = next((packet for packet, stamp, _ in film.packets_at(key.stamp, math.inf) if stamp == key.stamp), None)
        frames = [] if packet is None else [*codec.decode(packet), *codec.decode(None)]
    except av.FFmpegError:
        return False
    return any(_differs(before, _grey(frame, SMALL)) for frame in frames)


def _new_of_few(film: _Film, start: float, stop: float) -> list[float]:
    """When the frames are shown that differ from the one before, in a film that has few. All are decoded."""
    import av

    codec = film.stream.codec_context
    codec.skip_frame = "DEFAULT"
    new: list[float] = []
    before: Grey | None = None
    packets = film.packets(start, stop)
    is_over = False
    while not is_over:
        packet = next(packets, None)
        is_over = packet is None
        try:
            frames = codec.decode(packet[0] if packet is not None else None)
        except av.FFmpegError:
            # It costs itself alone, as it does where pictures are read.
            continue
        for frame in frames:
            t, picture = film.seconds(frame.pts or 0), _grey(frame, LARGE)
            if before is not None and t < stop and _differs(before, picture, LARGE_LEVELS, LARGE_SHARE):
                new.append(t)
            before = picture
    return new


def _grey(frame: VideoFrame, size: tuple[int, int]) -> Grey:
    """``frame`` in grey, height x width, as large as ``size`` (width, height) says."""
    pixels = frame.to_ndarray(format="gray", width=size[0], height=size[1], threads=1)
    return pixels.astype(np.uint8, copy=False)


def _differs(first: Grey, other: Grey, levels: int = CHANGED_LEVELS, share: float = CHANGED_SHARE) -> bool:
    return bool((np.abs(first.astype(np.int16) - other) > levels).mean() > share)
