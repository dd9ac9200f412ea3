"""What a wire protocol is to the episode: text in, one action out, and the numbers in which boxes are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from vrag_ray.agent.actions import Action
from vrag_ray.agent.coordinates import BoxCodec


@dataclass(frozen=True, slots=True)
class Reply:
    """A parsed reply: the thoughts, and either an action or the problem that a correction should name."""

    think: str
    action: Action | None
    problem: str = ""


class WireProtocol(Protocol):
    """Pure and total: ``parse`` accepts any text and never raises."""

    @property
    def codec(self) -> BoxCodec: ...

    @property
    def must_memorize(self) -> bool:
        """Whether a search has to be memorised before the next one. If not, the episode keeps what was shown."""
        ...

    def parse(self, text: str) -> Reply: ...

    def render(self, action: Action) -> str:
        """The inverse of ``parse`` for a valid action."""
        ...
