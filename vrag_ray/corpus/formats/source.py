"""What the child knows of every kind of document: the interface that each format implements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.model import DecodedUnit, DecodeOptions, Frame, Probe
from vrag_ray.types import Box, Locator, PageText

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import ReadPicture


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


class OpenDocument(Protocol):
    """An open document. Every method raises DecodeError, without the file name, for what it cannot read."""

    def probe(self) -> Probe: ...

    def locator(self, unit: int) -> Locator: ...

    def unit(self, unit: int) -> DecodedUnit: ...

    def page_text(self, locator: Locator) -> PageText: ...

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes: ...

    def close(self) -> None: ...


class OpenVideo(OpenDocument, Protocol):
    """An open video, which can also be sampled."""

    def frames(self, locator: Locator, max_pixels: int) -> list[Frame]: ...
