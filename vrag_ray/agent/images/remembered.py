"""Which remembered pictures a model is shown again, in how many pixels, and what that saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.events import BudgetEvent, ItemRef, PruneEvent
from vrag_ray.agent.memory.energy import Allotment, ItemEnergy, energies, pixel_budgets, shares, strongest
from vrag_ray.agent.memory.graph import MemoryGraph, MemoryItem
from vrag_ray.agent.observation import Sighting
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import ModelFamily
from vrag_ray.types.copies import with_changes

Drawn = Mapping[PictureRequest, Picture | None]
"""Every picture requested so far; None for one that could not be drawn."""


def item_view(item: MemoryItem, pixels: int, family: ModelFamily) -> PictureRequest | None:
    """A remembered picture within its budget; None where the item is no picture or the budget holds no patch."""
    area = family.patch**2
    if not item.visual or pixels < area:
        return None
    return PictureRequest(item.doc_id, item.locator, item.box, item.t_frame, family.patch, area, pixels)


def remembered_views(
    graph: MemoryGraph, allotments: Sequence[Allotment], family: ModelFamily
) -> dict[str, PictureRequest]:
    """The views of the remembered items by reference (``<node id>#<number>``), in order of the graph."""
    pixels = {(picture.node_id, picture.index): picture.pixels for picture in allotments}
    views: dict[str, PictureRequest] = {}
    for node in graph.nodes:
        for index, item in enumerate(node.items):
            view = item_view(item, pixels.get((node.id, index), 0), family)
            if view is not None:
                views[f"{node.id}#{index + 1}"] = view
    return views


class VisualMemory:
    """Shares pixels and characters of the context out among what the graph remembers (``energy`` has the formulas)."""

    def __init__(self, config: AgentConfig, protocol: WireProtocol) -> None:
        self._config = config
        self._family = protocol.family
        self._protocol = protocol
        self._dropped: frozenset[tuple[str, int]] = frozenset()
        self._tokens: dict[tuple[str, str], int] = {}
        self.allotments: tuple[Allotment, ...] = ()

    def saw(self, sighting: Sighting, drawn: Drawn) -> None:
        """Note how many tokens a sighting took when it was shown first: what remembering it whole would cost."""
        sizes = [picture.size for view in self._protocol.views(sighting) if (picture := drawn.get(view)) is not None]
        self._tokens[_key(sighting)] = sum(self._family.tokens(size.pixels) for size in sizes)

    def share(self, graph: MemoryGraph, step: int) -> PruneEvent | None:
        """Set ``allotments`` anew; the event names what lost its place by that."""
        everything = self._energies(graph)
        best = strongest(everything, self._config.memory_top_k)
        self.allotments = pixel_budgets(best, self._total_pixels)
        if self._protocol.evidence.has_text:
            self.allotments = self._with_characters(
                strongest(self._energies(graph, texts=True), self._config.memory_top_k)
            )
        out = frozenset((picture.node_id, picture.index) for picture in everything) - {
            (picture.node_id, picture.index) for picture in best
        }
        # What was dropped before is not reported again.
        dropped = tuple(ItemRef(node_id=node_id, index=index) for node_id, index in sorted(out - self._dropped))
        self._dropped = out
        return PruneEvent(step=step, dropped=dropped) if dropped else None

    @property
    def _total_pixels(self) -> int:
        return self._config.memory_pixels if self._protocol.evidence.has_pictures else 0

    def _energies(self, graph: MemoryGraph, *, texts: bool = False) -> tuple[ItemEnergy, ...]:
        return energies(graph, decay=self._config.energy_decay, feedback=self._config.energy_feedback, texts=texts)

    def _with_characters(self, best: Sequence[ItemEnergy]) -> tuple[Allotment, ...]:
        """``pictures`` with the characters of ``best`` too, and below it those of ``best`` that are no pictures."""
        characters = {
            (picture.node_id, picture.index): (picture.energy, share)
            for picture, share in zip(best, shares(best, self._config.memory_chars), strict=False)
        }
        pictures = [
            with_changes(picture, {"characters": characters.pop((picture.node_id, picture.index), (0.0, 0))[1]})
            for picture in self.allotments
        ]
        more = (
            Allotment(node_id=node_id, index=index, energy=energy, pixels=0, characters=share)
            for (node_id, index), (energy, share) in characters.items()
        )
        return (*pictures, *more)

    def report(self, graph: MemoryGraph, drawn: Drawn, step: int, steps_left: int) -> BudgetEvent:
        """How the pixels are shared, and the visual tokens of the memory before and after."""
        before = sum(self._tokens.get(_key(item), 0) for node in graph.nodes for item in node.items if item.visual)
        views = remembered_views(graph, self.allotments, self._family).values()
        sizes = [picture.size for view in views if (picture := drawn.get(view)) is not None]
        return BudgetEvent(
            step=step,
            total_pixels=self._total_pixels,
            kept=self.allotments,
            tokens_before=before,
            tokens_after=sum(self._family.tokens(size.pixels) for size in sizes),
            steps_left=steps_left,
        )


def _key(seen: Sighting | MemoryItem) -> tuple[str, str]:
    """A frame of a video costs what its clip cost to see: it was chosen out of all of them."""
    box = seen.region if isinstance(seen, Sighting) else seen.box
    return seen.doc_id, f"{seen.locator.key} {box}"
