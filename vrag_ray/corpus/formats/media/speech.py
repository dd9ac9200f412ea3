"""The speech of a film or a sound recording, with its times: by faster-whisper (the extra ``speech``)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vrag_ray.corpus.formats.media.clock import audio_stream, clock_origin, open_container
from vrag_ray.corpus.model import clean
from vrag_ray.types import Cue, VragError

RATE = 16_000
"""Samples a second that the model takes."""
Sound = NDArray[np.float32]
"""Samples of one channel, -1 to 1, ``RATE`` a second."""
AROUND_SECONDS = 3.0
"""What is heard of the clips before and after, so that a sentence on the border is understood in both."""
MOST_SILENCE = 0.6
"""A stretch that the model takes for silence with more than this probability, and reads unsurely, is no speech."""
UNSURE = -1.0


@dataclass(frozen=True, slots=True)
class Speech:
    """``language`` is its code, as ``en``; empty without speech. ``cues`` count from the begin of the sound."""

    language: str
    cues: tuple[Cue, ...]


class Segment(Protocol):
    """What a model gives of a sentence or so."""

    start: float
    end: float
    text: str
    no_speech_prob: float
    avg_logprob: float


class Info(Protocol):
    """What a model gives of the whole sound."""

    language: str


class Model(Protocol):
    """The part of ``faster_whisper.WhisperModel`` that is used here."""

    def transcribe(
        self, audio: Sound, *, beam_size: int, vad_filter: bool, condition_on_previous_text: bool
    ) -> tuple[Iterable[Segment], Info]: ...


def model_folder(name: str) -> str:
    """The folder of the model that ``corpus.speech_model`` names by its folder, or by an id that is fetched once.

    Empty where speech is not to be read. Raises VragError where it cannot be.
    """
    if not name:
        return ""
    try:
        from faster_whisper.utils import download_model
    except ImportError as error:
        raise VragError(
            "corpus.speech_model is set: pip install '.[speech]' in the checkout, or set it to ''"
        ) from error
    if Path(name).is_dir():
        return str(Path(name).absolute())
    try:
        return str(download_model(name))
    except (OSError, ValueError) as error:
        raise VragError(
            f"corpus.speech_model is {name}, which is neither a folder nor a model that can be fetched: {error}"
        ) from error


def load_model(folder: str) -> Model:
    """The model in ``folder``, on one core. ``model_folder`` has found it and the extra before."""
    from faster_whisper import WhisperModel

    model: Model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)
    return model


def transcribed(model: Model, sound: Sound) -> Speech:
    """The speech in ``sound``, about one cue for each sentence."""
    segments, info = model.transcribe(sound, beam_size=2, vad_filter=True, condition_on_previous_text=False)
    cues = tuple(
        Cue(float(segment.start), float(segment.end), text)
        for segment in segments
        if (text := " ".join(clean(segment.text).split()))
        and not (segment.no_speech_prob > MOST_SILENCE and segment.avg_logprob < UNSURE)
    )
    return Speech(info.language if cues else "", cues)


def sound_of(path: Path, start: float, stop: float) -> Sound:
    """The sound of ``start`` to ``stop`` in seconds of the player's clock, silent where the file has none.

    What cannot be decoded is silent too: a damaged packet costs itself alone.
    """
    import av

    sound = np.zeros(math.ceil((stop - start) * RATE), np.float32)
    with closing(open_container(path)) as container:
        stream = audio_stream(container)
        if stream is None or stream.time_base is None:
            return sound
        origin, base = clock_origin(container), stream.time_base
        stream.codec_context.thread_count = 1
        # Some codecs need what comes before to begin cleanly.
        container.seek(math.floor((Fraction(max(0.0, start - 0.2)) + origin) / base), stream=stream)
        resampler = av.AudioResampler("flt", "mono", RATE)
        for packet in container.demux(stream):
            try:
                frames = stream.codec_context.decode(packet)
            except av.FFmpegError:
                continue
            for frame in frames:
                if frame.pts is None:
                    continue
                begins = float(frame.pts * base - origin)
                if begins >= stop:
                    return sound
                for piece in resampler.resample(frame):
                    _lay(sound, np.asarray(piece.to_ndarray(), np.float32).reshape(-1), round((begins - start) * RATE))
                    begins += piece.samples / RATE
    return sound


def _lay(sound: Sound, piece: Sound, place: int) -> None:
    """Write ``piece`` into ``sound`` from sample ``place`` on, as far as it lies inside."""
    skip = max(0, -place)
    room = sound[max(0, place) :][: max(0, len(piece) - skip)]
    room[:] = piece[skip : skip + len(room)]
