"""What decoding takes and gives: frozen values, no IO. They cross the pipe to the child as JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path, PurePath

from vrag_ray.caching import cache_folder
from vrag_ray.config import CorpusConfig
from vrag_ray.types import Box, Cue, DocumentKind, Locator, Meta, PassageKind, VragError, Word


class DecodeError(VragError):
    """A document, or one piece of it, cannot be read. The message names the file and the reason.

    ``transient`` says that the machine is the reason, not the file: the same decode may succeed later.
    """

    transient = False


class KillReason(StrEnum):
    """Which limit a child process broke."""

    WALL = "wall"
    CPU = "cpu"
    MEMORY = "memory"
    CRASH = "crash"


class KilledError(DecodeError):
    """The child process had to be ended or ended itself. The next call starts a new one."""

    def __init__(self, message: str, reason: KillReason, *, transient: bool = False) -> None:
        super().__init__(message)
        self.reason, self.transient = reason, transient

    def __reduce__(self) -> tuple[Callable[[str, KillReason, bool], KilledError], tuple[str, KillReason, bool]]:
        return _killed, (str(self), self.reason, self.transient)


def with_name(error: DecodeError, name: str) -> DecodeError:
    """The same error with the name of the file that it is about."""
    if isinstance(error, KilledError):
        return KilledError(f"{name}: {error}", error.reason, transient=error.transient)
    return DecodeError(f"{name}: {error}")


def _killed(message: str, reason: KillReason, transient: bool) -> KilledError:
    return KilledError(message, reason, transient=transient)


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """One line of a PDF's outline. ``level`` and ``page`` count from 1."""

    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Probe:
    """What a document is, found out without decoding its content.

    ``units`` counts pages (of an image the frames that are shown, mostly 1), clips of a video, pieces of a text (rows
    of a .jsonl). ``duration`` is in seconds and only a video or a sound recording has one. ``notices`` say what of the
    document was left out or guessed. ``scans`` counts the units that OCR is going to read, as the document's structure
    has it: for order and remaining time.
    """

    kind: DocumentKind
    units: int
    title: str
    outline: tuple[OutlineEntry, ...] = ()
    meta: Meta = field(default_factory=dict)
    duration: float | None = None
    notices: tuple[str, ...] = ()
    scans: int = 0
    pictures: tuple[str, ...] = ()
    """What the pictures that a text shows are named by: files beside it, addresses."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A file that is read with a document: its bytes, and its name.

    Of a video the subtitles that lie beside it; of slides that LibreOffice laid out the presentation with their notes.
    """

    path: Path
    name: str


NOTES_NAME = "notes.pptx"
"""The name of the presentation with the notes of slides."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A half-open range of 0-based units of one document.

    ``name`` is the original file name: clips take words from it, errors name it, and ``.jsonl`` is recognised by it.
    """

    doc_id: str
    kind: DocumentKind
    start: int
    stop: int
    name: str = ""
    sidecars: tuple[Sidecar, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How units are read. Two decodes of the same bytes with equal options give equal units."""

    ocr: bool
    ocr_dpi: int
    ocr_min_chars: int
    clip_seconds: float
    video_fps: float
    max_frames: int
    speech_model: str = ""
    """The folder of the model that reads speech; empty where none does."""
    ocr_cache: str = ""
    """The folder of what OCR has read before; empty where nothing is cached."""
    ocr_cache_mb: int = 0

    @classmethod
    def from_config(cls, config: CorpusConfig) -> DecodeOptions:
        """On the machine that decodes: the folder of the cache is its own."""
        cache = cache_folder("ocr") if config.ocr_cache_mb else None
        return cls(
            ocr=config.ocr,
            ocr_dpi=config.ocr_dpi,
            ocr_min_chars=config.ocr_min_chars,
            clip_seconds=config.clip_seconds,
            video_fps=config.video_fps,
            max_frames=config.limits.max_frames,
            speech_model=config.speech_model,
            ocr_cache=str(cache or ""),
            ocr_cache_mb=config.ocr_cache_mb,
        )


@dataclass(frozen=True, slots=True)
class TextLine:
    """Where a piece of a unit's text stands. ``letters`` counts its letters and digits (see ``letters_in``).

    ``box`` is None for a piece without area, which no reader sees.
    """

    letters: int
    box: Box | None


@dataclass(frozen=True, slots=True)
class DecodedUnit:
    """One page, picture, clip or text piece.

    ``lines`` is where the text stands, in its order; empty where that is not known. ``words`` is filled only where
    OCR made them; a PDF's text layer is read again when single words are needed. ``cues`` are a clip's timed words,
    ``shots`` the stretches of it in which one picture stays.
    ``error`` says what of the unit could not be read; ``text`` is what could, and may be empty. ``transient`` says
    that the machine is the reason, not the file: the next run decodes the unit again. ``notices`` say what of the unit
    was left out or guessed, in words for the document's owner.
    """

    unit: int
    kind: PassageKind
    locator: Locator
    text: str = ""
    lines: tuple[TextLine, ...] = ()
    words: tuple[Word, ...] = ()
    cues: tuple[Cue, ...] = ()
    shots: tuple[tuple[float, float], ...] = ()
    ocr: bool = False
    error: str = ""
    transient: bool = False
    notices: tuple[str, ...] = ()
    meta: Meta = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """One sampled video frame: ``t`` in seconds from the start, ``png`` the upright picture."""

    t: float
    png: bytes


PASSAGE_KINDS = {
    DocumentKind.PDF: PassageKind.PAGE,
    DocumentKind.IMAGE: PassageKind.IMAGE,
    DocumentKind.VIDEO: PassageKind.CLIP,
    DocumentKind.TEXT: PassageKind.TEXT,
}


HAS_PICTURE = "has_picture"
"""The metadata name under which a sound recording, which is a video else, says that it has none."""


def clip_count(duration: float, clip_seconds: float) -> int:
    """How many clips a video of ``duration`` seconds has; at least one."""
    return max(1, math.ceil(round(duration / clip_seconds, 6)))


def clip_locator(clip: int, duration: float, clip_seconds: float) -> Locator:
    """Clip ``k`` covers ``[k * clip_seconds, min((k + 1) * clip_seconds, duration))``."""
    start = clip * clip_seconds
    return Locator(t_start=start, t_end=max(min((clip + 1) * clip_seconds, duration), start))


def title_from_name(name: str) -> str:
    """``sales_report-2024.final.pdf`` becomes ``sales report 2024.final``."""
    return " ".join(PurePath(name).stem.replace("_", " ").replace("-", " ").split())


_SAYS_NOTHING = re.compile(r"[0-9a-f]{12,}|[0-9a-f]{8} [0-9a-f]{4} [0-9a-f]{4} [0-9a-f]{4} [0-9a-f]{12}", re.IGNORECASE)


def words_from_name(name: str) -> str:
    """The title that a file name gives, for search; empty for a hash or a UUID, which says nothing of what is shown."""
    title = title_from_name(name)
    return "" if _SAYS_NOTHING.fullmatch(title) else title


def letters_in(text: str) -> int:
    """How many letters and digits ``text`` has: the measure that joined hyphens and removed leaders leave alone."""
    return sum(map(str.isalnum, text))


CHECKED, UNCHECKED = "checked", "unchecked"
"""What is written for the boxes to tick and the buttons of a form."""
UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffd\ue000-\uf8ff]")
"""Characters that say nothing: controls, U+FFFD, private use."""
_BLANKS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160), 0xA0), " ")
"""What parts two words: form feeds, other control characters, and blanks that do not break."""
_UNSEEN: dict[int, str | None] = {**_BLANKS, **dict.fromkeys(range(0xE0000, 0xE0080))}
"""Those, and the tag characters, letters of Unicode that are never shown."""
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_DIVIDED = re.compile("(?<=\\w)\xad[ \\t]*\\r?\\n[ \\t]*(?=\\w)")
_JOINER = re.compile("(?<=[A-Za-z\u00c0-\u052f])[\u200b\u200d\u2060\ufeff](?=[A-Za-z\u00c0-\u052f])")
"""What nobody sees between two Latin, Greek or Cyrillic letters. Words of Thai and Khmer are parted by such."""
_STRUCK_OVER = re.compile(r"[^\n]\x08")


def clean(text: str) -> str:
    """``text`` without what no reader sees and no store takes: escape sequences of terminals, soft hyphens, tag
    characters, lone surrogates. Control characters are blanks."""
    if "\x1b" in text:
        text = _ESCAPE.sub(" ", _STYLE.sub("", text))
    if "\x08" in text:
        # Bold and underlined as printers did: a character, a step back, the character again.
        text = _STRUCK_OVER.sub("", text)
    if "\xad" in text:
        text = _DIVIDED.sub("", text).replace("\xad", "")
    if _JOINER.search(text):
        text = _JOINER.sub("", text)
    return text.translate(_UNSEEN).encode("utf-8", "replace").decode()
