"""What the child knows of every kind of document: the interface that each format implements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.model import DecodedUnit, DecodeError, DecodeOptions, Frame, Probe, Sidecar
from vrag_ray.corpus.sniff import Format
from vrag_ray.types import Box, Locator, PageText

if TYPE_CHECKING:
    from vrag_ray.corpus.formats.media.speech import Sound, Speech
    from vrag_ray.corpus.ocr import ReadPicture

_OUT_OF_MEMORY = re.compile(
    r"\b[mc]alloc\b|bad.?alloc|insufficient memory|cannot allocate|failed to (?:allocate|map segment)"
    r"|resource temporarily unavailable|can't start new thread",
    re.IGNORECASE,
)
"""With what a thread says that finds no room for its stack."""


Hear = Callable[["Sound"], "Speech"]


@contextmanager
def damage(message: str) -> Iterator[None]:
    """Raise whatever a library raises in the block as DecodeError with ``message``: what is wrong, and what to do.

    Libraries raise anything on damaged bytes, in words that only their makers understand; those stay in the cause.
    """
    try:
        yield
    except DecodeError:
        raise
    except Exception as error:
        if is_memory_error(error):
            raise
        raise DecodeError(message) from error


def is_memory_error(error: BaseException) -> bool:
    """Whether a library ran into the address space limit; each says so in its own words, some in the cause alone."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or _OUT_OF_MEMORY.search(str(cause)) is not None:
            return True
        cause = cause.__cause__
    return False


@dataclass(frozen=True, slots=True)
class Opening:
    """What a document is opened with. ``name`` is the original file name, empty where the caller does not know it."""

    path: Path
    name: str
    options: DecodeOptions
    limits: DecodeLimits
    read: ReadPicture
    cautious: bool = False
    """Leave content alone: set after a child was killed by looking for a title."""
    format: Format | None = None
    """What a text is written as, where that is known; its name decides otherwise."""
    sidecars: tuple[Sidecar, ...] = ()
    original: Path | None = None
    """The file that LibreOffice made ``path`` of, which ``format`` is the format of; None where ``path`` is it."""
    hear: Hear | None = None
    """Reads speech; None where no model is configured for it."""


class OpenDocument(Protocol):
    """An open document. Every method raises DecodeError, without the file name, for what it cannot read."""

    def probe(self) -> Probe: ...

    def locator(self, unit: int) -> Locator: ...

    def unit(self, unit: int) -> DecodedUnit: ...

    def page_text(self, locator: Locator) -> PageText: ...

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside a document; empty where it is there but cannot be taken out."""

    name: str
    data: bytes


@runtime_checkable
class OpenContainer(Protocol):
    """An open document that may hold files. Every call gives them in the same order."""

    def attachments(self) -> Iterator[Attachment]: ...

    def close(self) -> None: ...


class OpenVideo(OpenDocument, Protocol):
    """An open video, which can also be sampled."""

    def frames(self, locator: Locator, max_pixels: int) -> list[Frame]: ...
