"""What the agent asks of the outside: something that decides, and something that finds and reads."""

from __future__ import annotations

from typing import Protocol

from vrag_ray.agent.observation import Prompt
from vrag_ray.filters import SearchFilter
from vrag_ray.types import Completion, Locator, PageText, SearchAnswer


class Policy(Protocol):
    """Decides the next action. One instance serves many runs at once, so it keeps no state between calls."""

    @property
    def reads_pages(self) -> bool:
        """Whether the words of found pages are read for it; a policy that looks at pictures may do without."""
        ...

    async def complete(self, prompt: Prompt) -> Completion:
        """One reply in the run's wire protocol. Raises ``VragError`` when it cannot reply at all."""
        ...


class EvidenceSource(Protocol):
    """Finds passages and reads pages. Both raise ``VragError`` where they cannot; the run then goes on without."""

    async def search(self, query: str, *, top_k: int, filter: SearchFilter | None) -> SearchAnswer:
        """``results`` holds one tuple of hits, best first."""
        ...

    async def page_text(self, doc_id: str, locator: Locator) -> PageText: ...
