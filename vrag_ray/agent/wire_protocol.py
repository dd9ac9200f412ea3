"""What a wire protocol is to the episode: prompts as messages, text as one action, and the rules of its game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from vrag_ray.agent.actions import Action
from vrag_ray.agent.chat import Message, PictureRequest, Tool
from vrag_ray.agent.observation import Prompt, Sighting
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.config import EvidenceForm
from vrag_ray.imaging.coordinates import ModelFamily

Views = Callable[[Sighting], tuple[PictureRequest, ...]]
"""The pictures in which a sighting is shown."""
CROP_ROOM = 2
"""Pictures that are left free for closer looks at the results of a search."""


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What a model takes in one prompt. ``visual_tokens``: of all pictures together, None where it is not known.

    ``memory``: remembered pictures that a prompt may hold. ``question``: 1 where the question came with a picture.
    """

    images: int
    memory: int = 0
    visual_tokens: int | None = None
    question: int = 0

    @property
    def results(self) -> int:
        """Pictures that the results of one search may take."""
        return max(0, self.images - self.memory - CROP_ROOM - self.question)

    def hold(self, pictures: Sequence[PictureRequest]) -> bool:
        """Whether a prompt may show all of ``pictures``, each as large as it was requested."""
        if len(pictures) > self.images:
            return False
        return self.visual_tokens is None or sum(map(most_tokens, pictures)) <= self.visual_tokens


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Characters of page words: of one ``result``, and of all in one ``prompt``, those of the memory included."""

    result: int = 4_000
    prompt: int = 24_000


TEXT_LIMITS = TextLimits()


def most_tokens(picture: PictureRequest) -> int:
    """Visual tokens that ``picture`` takes at most."""
    return picture.max_pixels // picture.patch**2


@dataclass(frozen=True, slots=True)
class Reply:
    """A parsed reply: the thoughts, and either an action or the problem that a correction should name."""

    think: str
    action: Action | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a protocol plays.

    ``must_memorize``: a search has to be memorised before the next one; if not, the episode keeps what was shown.
    ``names_nodes``: the policy names nodes and their parents; if not, each search follows from the one before.
    ``rebuilds``: after a memorise the context is built anew from the graph; if not, every turn stays in it.
    ``asks_for``: hits requested of the retriever, None for the run's own setting. ``shows``: how many of them come into
    view, None for all. ``skips_seen``: pages that were shown before are passed over. ``answer_form`` tells a policy
    how to answer. ``cites_elements``: numbers in brackets in an answer are those of elements of the pages that were
    shown.
    """

    must_memorize: bool
    names_nodes: bool
    rebuilds: bool
    answer_form: str
    asks_for: int | None = None
    shows: int | None = None
    skips_seen: bool = False
    cites_elements: bool = False


class WireProtocol(Protocol):
    """Pure and total: ``parse`` accepts any text and never raises."""

    @property
    def family(self) -> ModelFamily: ...

    @property
    def limits(self) -> PictureLimits | None:
        """What its model takes of pictures in one prompt; None where nothing limits them."""
        ...

    @property
    def evidence(self) -> EvidenceForm:
        """What its model is given of a page. Without pictures there are no views, and nothing to crop."""
        ...

    @property
    def marks_pictures(self) -> bool:
        """Whether pictures of pages are shown with the numbers of their elements, for which the pages are read."""
        ...

    @property
    def rules(self) -> Rules: ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The actions as functions, for models that call functions natively; none where the form is fixed text."""
        ...

    def parse(self, text: str) -> Reply: ...

    def render(self, action: Action) -> str:
        """The inverse of ``parse`` for a valid action."""
        ...

    def views(self, sighting: Sighting) -> tuple[PictureRequest, ...]:
        """The pictures in which a sighting is shown: one of a page, several of a video, none of a text.

        Never more than its ``max_pictures``.
        """
        ...

    def pictures(self, prompt: Prompt) -> tuple[PictureRequest, ...]:
        """Every picture that ``messages`` will show."""
        ...

    def reply_form(self, prompt: Prompt) -> ReplyForm:
        """The replies that are possible at this step, for a model whose server can hold it to them."""
        ...

    def messages(self, prompt: Prompt) -> tuple[Message, ...]:
        """The prompt as a chat. A picture that ``prompt.pictures`` lacks is named in words instead."""
        ...
