"""The pictures that a prompt shows: which are still missing, and which are held from one prompt to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.types import VragError


class PromptImages:
    """``drawn`` holds the pictures requested last; None for a picture that could not be drawn."""

    def __init__(self, protocol: WireProtocol) -> None:
        self._protocol = protocol
        self.drawn: dict[PictureRequest, Picture | None] = {}

    def illustrated(self, prompt: Prompt) -> Prompt | tuple[PictureRequest, ...]:
        """``prompt`` with its pictures, or those that must be drawn first.

        What it does not show is let go: a run must not hold every page it saw.
        """
        views = dict.fromkeys(self._protocol.pictures(prompt))
        missing = tuple(view for view in views if view not in self.drawn)
        if missing:
            return missing
        self.drawn = {view: self.drawn[view] for view in views}
        return replace(prompt, pictures={view: picture for view, picture in self.drawn.items() if picture is not None})

    def put(
        self, requests: Sequence[PictureRequest], pictures: Sequence[Picture | VragError]
    ) -> Iterator[tuple[PictureRequest, VragError]]:
        """Take what came of ``requests``, in that order; gives those that could not be drawn, with the reason."""
        for request, picture in zip(requests, pictures, strict=True):
            if isinstance(picture, VragError):
                self.drawn[request] = None
                yield request, picture
            else:
                self.drawn[request] = picture
