"""The picture that a question came with, in both protocols: part of the first user message, or a notice in words."""

from __future__ import annotations

from collections.abc import Iterator

from vrag_ray.agent.chat import QUESTION, ImagePart, Part, PictureRequest
from vrag_ray.agent.observation import Prompt
from vrag_ray.config import EvidenceForm
from vrag_ray.types import Locator

_SHOWN = "\nThe question came with this picture:"
_NOT_SHOWN = "\n(The question came with a picture, which cannot be shown.)"
_NOT_SEEN = (
    "\n(The question came with a picture. You are given no pictures: it was used for the first search, and for nothing "
    "else.)"
)


def question_view(patch: int, min_pixels: int, max_pixels: int) -> PictureRequest:
    """The picture of the question at the size of any other picture of the protocol."""
    return PictureRequest(QUESTION, Locator(page=1), None, None, patch, min_pixels, max_pixels)


def question_parts(prompt: Prompt, view: PictureRequest, evidence: EvidenceForm) -> Iterator[Part | str]:
    """What follows the words of the question; nothing where it came without a picture."""
    if not prompt.with_picture:
        return
    picture = prompt.pictures.get(view)
    if not evidence.has_pictures:
        yield _NOT_SEEN
    elif picture is None:
        yield _NOT_SHOWN
    else:
        yield _SHOWN
        yield ImagePart(picture.png)
