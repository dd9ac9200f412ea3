"""A media file's streams, and the clock that frames, captions, speech and clips share: the clock that players show.

Its zero is where a player begins: the presentation of the container after its edit lists. Every time that leaves this
package is in seconds of it.
"""

from __future__ import annotations

from contextlib import closing, suppress
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.corpus.formats.source import damage
from vrag_ray.corpus.model import DecodeError

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.video.stream import VideoStream

FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf,wav,w64,mp3,flac,aac,aiff,amr,caf,mxf"
"""Demuxers FFmpeg may choose: none that follows a reference to another file or host, as playlists do."""
PLAY_IT = "get the whole file again, or convert it, for example with `ffmpeg -i FILE new.mp4`"
SLACK_SECONDS = 1.0
"""How far the end of the packets may lie from the end that the header states in a file that is whole."""
PRIMING_SECONDS = Fraction(1, 10)
"""What encoders of sound put in front is shorter."""
TAIL_SECONDS = 10.0
_WITHOUT_INDEX = frozenset(("mpegts", "mpeg"))
"""Transport and program streams, which can be cut and joined anywhere."""
MOST_REORDERED = 64
"""Packets from the begin of a file, at most, until the frame that is shown first."""


def open_container(path: Path) -> InputContainer:
    """Open ``path`` for reading with PyAV.

    Raises:
        DecodeError: no supported container, or cut short so early that nothing can be read.
    """
    import av

    with damage(f"is no readable video, or is cut short; {PLAY_IT}"):
        return av.open(str(path), options={"format_whitelist": FORMATS, "protocol_whitelist": "file"})


def video_stream(container: InputContainer) -> VideoStream | None:
    """The stream that players show; None where there is none but the picture of a cover."""
    from av.stream import Disposition

    still = Disposition.attached_pic | Disposition.timed_thumbnails
    moving = [stream for stream in container.streams.video if not stream.disposition & still]
    best = container.streams.best("video")
    return next(
        (stream for stream in moving if best is not None and stream.index == best.index), next(iter(moving), None)
    )


def audio_stream(container: InputContainer) -> AudioStream | None:
    """The stream that players play."""
    best = container.streams.best("audio")
    return next((stream for stream in container.streams.audio if best is not None and stream.index == best.index), None)


def clock_origin(container: InputContainer) -> Fraction:
    """The time stamp, in seconds, at which the player's clock shows zero.

    MP4 and MOV have a clock of their own, at whose zero every stream may still be silent. Elsewhere the earliest stream
    begins at zero, and so it does in recordings of a live stream, which begin at a time of day, and after less than a
    second, for which a decoder waits that is to reorder frames. Sound that begins just before the picture is what its
    encoder puts in front.
    """
    start = Fraction(container.start_time or 0, 1_000_000)
    if container.format.name.startswith("mov") and (start == 0 or 1 <= start <= (container.duration or 0) / 1e6):
        return Fraction(0)
    first = _first_picture(container)
    return first if first is not None and abs(first - start) <= PRIMING_SECONDS else start


def duration_of(container: InputContainer) -> float:
    """Seconds of the player's clock from zero to the end of the last stream.

    The header says so, but for live recordings, and for containers that do not begin at zero: those are measured.

    Raises:
        DecodeError: there is not a single packet.
    """
    stated = (container.duration or 0) / 1e6
    if stated and (not container.start_time or container.format.name.startswith(("mov", "asf"))):
        return stated
    end = last_end(container, max(0.0, stated - TAIL_SECONDS))
    if end <= 0 and not stated:
        raise DecodeError(f"has no picture and no sound; {PLAY_IT}")
    return end if end > 0 else stated


def last_end(container: InputContainer, begin: float) -> float:
    """Where the last packet of any stream ends, looked for from ``begin`` on; 0 where there is none. No decoding.

    It leaves the container at its end.
    """
    import av

    origin = clock_origin(container)
    with suppress(av.FFmpegError):
        container.seek(int((Fraction(begin) + origin) * av.time_base))
    end = Fraction(0)
    with suppress(av.FFmpegError):
        for packet in container.demux():
            stamp = packet.pts if packet.pts is not None else packet.dts
            if stamp is not None and packet.time_base is not None:
                end = max(end, (stamp + (packet.duration or 0)) * packet.time_base - origin)
    return float(end)


def count_falls(container: InputContainer) -> int:
    """How often the clock of the stored packets goes back, as in transport streams that were joined end to end: a
    player goes on, and no time leads behind the first fall. 0 in containers that state where each packet is. It reads
    all packets, decodes none, and leaves the container at its end."""
    import av

    if container.format.name not in _WITHOUT_INDEX:
        return 0
    leading = next(
        (stream for stream in (video_stream(container), audio_stream(container)) if stream is not None), None
    )
    falls, before = 0, Fraction(-(1 << 40))
    with suppress(av.FFmpegError):
        for packet in container.demux(*([] if leading is None else [leading])):
            if packet.dts is None or packet.time_base is None:
                continue
            at = packet.dts * packet.time_base
            falls += at < before - SLACK_SECONDS
            before = at
    return falls


def _first_picture(container: InputContainer) -> Fraction | None:
    """The time stamp of the first frame, in seconds; None where there is none."""
    picture = video_stream(container)
    if picture is None or picture.start_time is None or picture.time_base is None:
        return None
    stamps = [picture.start_time]
    if container.format.name.startswith("matroska") and picture.start_time:
        # The start that is stated is that of the packet stored first, and a frame shown before it may come after it.
        # Another container reads it: this one could not be brought back to packets without a time.
        with closing(open_container(Path(container.name))) as again:
            packets = islice(again.demux(video_stream(again)), MOST_REORDERED)
            stamps += [packet.pts for packet in packets if packet.pts is not None]
    return min(stamps) * picture.time_base
