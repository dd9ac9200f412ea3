"""What the agent asks of the outside: something that decides, and something that finds and reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from vrag_ray.agent.chat import Delta, Picture, PictureRequest
from vrag_ray.agent.entailment import Claim, Verdict
from vrag_ray.agent.observation import Prompt
from vrag_ray.types import HYBRID, Completion, Locator, PageText, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter

Say = Callable[[Delta], None]
"""Takes what a policy says while it is still speaking. Cheap, and never raises."""


class PromptRefusedError(VragError):
    """The model cannot take this prompt, now or ever: it is too long, or has too many pictures.

    The limit is the engine's, not the policy's: a policy that spends its steps or tokens ends in another way.
    """


class Policy(Protocol):
    """Decides the next action. One instance serves many runs at once, so it keeps no state between calls."""

    @property
    def reads_pages(self) -> bool:
        """Whether the words of found pages are read for it; a policy that looks at pictures may do without."""
        ...

    @property
    def sees_pictures(self) -> bool:
        """Whether pictures are drawn for it, as its protocol asks for them."""
        ...

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        """One reply in the run's wire protocol, passed to ``say`` piece by piece where it comes in pieces.

        Raises ``VragError`` when it cannot reply at all; ``PromptRefusedError`` where its model takes no such prompt.
        """
        ...


class Judge(Protocol):
    """Says whether the sources of a sentence say it, many at once."""

    async def judge(self, claim: Claim) -> Verdict:
        """Raises ``VragError`` when it cannot reply."""
        ...


class Retriever(Protocol):
    """Anything that answers queries with passages."""

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """``top_k`` pages, pictures, clips or spans for each query, best first, with each one's best window.

        Raises ``VragError`` where it cannot.
        """
        ...


class Pages(Protocol):
    """What documents say and show. Raises ``VragError`` where all requests fail alike."""

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        """The words of each page (document id and place), or why it cannot be read, in this order."""
        ...

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        """Each picture, or why it cannot be drawn, in this order."""
        ...


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """What agents search, and what they read of the results. A run goes on where either raises ``VragError``."""

    retriever: Retriever
    pages: Pages
