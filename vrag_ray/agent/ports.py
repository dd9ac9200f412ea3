"""What the agent asks of the outside: something that decides, and something that finds and reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from vrag_ray.agent.chat import Delta, Picture, PictureRequest
from vrag_ray.agent.entailment import Claim, Verdict
from vrag_ray.agent.observation import Prompt
from vrag_ray.types import Completion, Locator, PageText, SearchAnswer, VragError
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


class EvidenceSource(Protocol):
    """Finds passages, reads pages, draws pictures. All raise ``VragError`` where they cannot; the run then goes on."""

    async def search(
        self, query: str, *, top_k: int, filter: SearchFilter | None, picture: bytes | None = None
    ) -> SearchAnswer:
        """``results`` holds one tuple of hits, best first. ``picture`` (PNG) is looked for together with the words."""
        ...

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        """The words of each page (document id and place), or why it cannot be read, in this order."""
        ...

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        """Each picture, or why it cannot be drawn, in this order."""
        ...
