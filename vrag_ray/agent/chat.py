"""The input and the output of a chat model, streams included: values, without IO."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from vrag_ray.imaging.coordinates import Size, View
from vrag_ray.imaging.marks import PictureMarks
from vrag_ray.types import FULL_PAGE, Box, Locator


class Role(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    """The result of a function that the assistant called."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A piece of a message in words."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A piece of a message to look at: a PNG, upright, at exactly the size the model is to see."""

    png: bytes


Part = TextPart | ImagePart


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call that the assistant made earlier. ``arguments`` are JSON text as the model wrote it; ``id`` may be ""."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat; the parts are in reading order.

    ``calls`` are those that the assistant made behind its words. A message of the role ``tool`` is the result of the
    call that ``call_id`` names.
    """

    role: Role
    parts: tuple[Part, ...]
    calls: tuple[FunctionCall, ...] = ()
    call_id: str = ""

    @classmethod
    def of(cls, role: Role, *parts: Part | str) -> Message:
        return cls(role, tuple(TextPart(part) if isinstance(part, str) else part for part in parts))

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


@dataclass(frozen=True, slots=True)
class Tool:
    """A function a model may call. ``parameters`` is a JSON schema, as JSON text so that the value stays frozen."""

    name: str
    description: str
    parameters: str


@dataclass(frozen=True, slots=True)
class Delta:
    """The output of a model since the last delta: thoughts that a server reports apart, and the reply itself.

    ``trouble`` says in words why the reply begins anew: its earlier pieces are void.
    """

    think: str = ""
    content: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class PictureRequest:
    """A picture of a page, image or video frame, or of ``region`` of it, sized for a model.

    Both sides become multiples of ``patch`` pixels and their product lies in ``min_pixels`` to ``max_pixels`` as far
    as ``model_size`` allows. ``t_frame`` (seconds) names the frame of a video; None stands for the clip's middle.
    ``marks`` are numbers that are drawn on it; with them, the margins that they stand in count as pixels too. An
    ``EvidenceSource`` gets requests without any: the driver draws them.
    """

    doc_id: str
    locator: Locator
    region: Box | None
    t_frame: float | None
    patch: int
    min_pixels: int
    max_pixels: int
    marks: PictureMarks | None = None

    @property
    def unmarked(self) -> PictureRequest:
        """The picture that ``marks`` are drawn on, as large as their margins leave room for."""
        if self.marks is None:
            return self
        most = self.marks.page_pixels(self.patch, self.max_pixels)
        return replace(self, min_pixels=min(self.min_pixels, most), max_pixels=most, marks=None)


QUESTION = "question"
"""In place of a document's id: the picture that came with the question."""


@dataclass(frozen=True, slots=True)
class QuestionPicture:
    """The picture that a question came with: an upright PNG that this program wrote.

    ``sha256`` (hex) and ``size`` (bytes) are those of the file as it was sent: all that records keep of it.
    """

    png: bytes = field(repr=False)
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as a model is shown it. ``png`` has exactly the pixels of ``size``, of which ``left`` and ``right``
    pixels of the width are margins beside the page."""

    png: bytes
    size: Size
    left: int = 0
    right: int = 0

    def view(self, region: Box | None) -> View:
        """The frame of the coordinates that a model writes of it. ``region`` is what it shows of the page."""
        width = self.size.width
        return View(region or FULL_PAGE, self.size, self.left / width, (width - self.right) / width)
