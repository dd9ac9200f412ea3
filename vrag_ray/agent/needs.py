"""What an episode may ask its driver for, one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from vrag_ray.agent.chat import PictureRequest
from vrag_ray.agent.entailment import Claim
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.observation import Prompt
from vrag_ray.types import Locator


@dataclass(frozen=True, slots=True)
class NeedCompletion:
    """A reply of the policy to ``prompt``; feed ``completed``."""

    prompt: Prompt


@dataclass(frozen=True, slots=True)
class NeedSearch:
    """The best ``top_k`` hits for ``query``; feed ``searched`` or ``search_failed``.

    ``picture`` (PNG) is looked for together with the words: the question's, in the first search of a run.
    """

    query: str
    top_k: int
    picture: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class NeedPageText:
    """The words of these pages; feed ``read`` with one result each, in this order."""

    pages: tuple[tuple[str, Locator], ...]


@dataclass(frozen=True, slots=True)
class NeedPictures:
    """These pictures, drawn; feed ``pictured`` with one result each, in this order."""

    pictures: tuple[PictureRequest, ...]


@dataclass(frozen=True, slots=True)
class NeedVerdicts:
    """Whether the sources of these claims state them; feed ``judged`` with one result each, in this order."""

    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The run is over; nothing more can be fed. ``engine_limited`` as in ``RunRecord``."""

    status: RunStatus
    engine_limited: bool = False


Need = NeedCompletion | NeedSearch | NeedPageText | NeedPictures | NeedVerdicts | Done
