"""An expert that knows the truth of a world, and makes mistakes at a given rate."""

from __future__ import annotations

import random
from dataclasses import dataclass

from benchmarks.mosaic.world.chance import drawn_from
from benchmarks.mosaic.world.colours import COLOURS, FIRST_WORDS, SECOND_WORDS, Colour
from benchmarks.mosaic.world.drawing import page_side, print_box
from benchmarks.mosaic.world.mosaic import Mosaic
from benchmarks.mosaic.world.notes import NOTHING, Finding, Leads, OtherMark
from benchmarks.mosaic.world.page import BODY, Page, cell_at
from benchmarks.mosaic.world.questions import Kind, Task, understood
from benchmarks.mosaic.world.trail import Trail, trail_of
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.memory.graph import ROOT_ID, MemoryGraph
from vrag_ray.agent.observation import Observation, Prompt, Sighting
from vrag_ray.agent.ports import Say
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.imaging.coordinates import ModelFamily, Size, View
from vrag_ray.types import FULL_PAGE, Completion, VragError

USEFUL = 5
"""The priority of what the expert keeps."""


@dataclass(frozen=True, slots=True)
class MosaicExpert:
    """A ``Policy`` that answers the questions of ``world`` in the form of ``protocol``.

    It acts by the titles and the memory graph that the prompt shows, and takes the colours of what it sees from the
    world. With the probability ``noise`` a decision is a mistake: it searches for a wrong page or without need,
    answers before it knows, crops a wrong cell or none, misreads a word, a colour or a mark. Mistakes are drawn from
    ``seed``, the question, ``sample`` and the step, so that each sample of a question is another run that can be
    repeated exactly.
    """

    world: Mosaic
    protocol: WireProtocol
    noise: float = 0.0
    seed: int = 0
    sample: int = 0
    reads_pages: bool = False
    sees_pictures: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.noise <= 1.0:
            raise VragError(f"noise is the probability of a mistake, 0 to 1, not {self.noise}")

    async def complete(self, prompt: Prompt, say: Say) -> Completion:  # noqa: ARG002  its replies come whole
        """Raises ``VragError`` on a question that is none of this world's kinds."""
        return Completion(text=self.reply(prompt))

    def reply(self, prompt: Prompt) -> str:
        """What ``complete`` says."""
        return self.protocol.render(self.decide(prompt))

    def decide(self, prompt: Prompt) -> Action:
        task = understood(prompt.question)
        chance = drawn_from(self.seed, prompt.question, self.sample, prompt.steps_left)
        seen = prompt.observation
        closed = prompt.graph
        if seen is not None:
            closed = MemoryGraph(nodes=tuple(node for node in closed.nodes if node.id != seen.node_id))
        trail = trail_of(task, closed)
        slips = chance.random() < self.noise
        if prompt.must_answer:
            return _answer(prompt.graph, trail, chance)
        if seen is None:
            return self._move(prompt.graph, trail, chance, slips=slips)
        return self._look(task, trail, seen, chance, slips=slips)

    # With nothing before its eyes: search or answer ----------------------------------------------------------------

    def _move(self, graph: MemoryGraph, trail: Trail, chance: random.Random, *, slips: bool) -> Action:
        if trail.finding is not None or not trail.query:
            if slips:
                return _search(graph, graph.nodes[-1].id, self._other_page(graph, "", chance))
            return _answer(graph, trail, chance)
        if not slips:
            return _search(graph, trail.parent, trail.query)
        mistake = chance.random()
        if mistake < 0.3:
            return _answer(graph, trail, chance)
        # Half a name remembered wrongly, or a search that has nothing to do with the question.
        alike = trail.target if mistake < 0.7 else ""
        return _search(graph, trail.parent, self._other_page(graph, alike, chance))

    def _other_page(self, graph: MemoryGraph, name: str, chance: random.Random) -> str:
        """A page that was not searched for yet, and that shares a word with ``name`` where there is such a one."""
        queries = {node.query for node in graph.nodes}
        pages = [page.name for page in self.world.pages if page.name not in queries and page.name != name]
        alike = [page for page in pages if set(page.split()) & set(name.split())]
        return chance.choice(alike or pages)

    # With results before its eyes: crop or memorise ----------------------------------------------------------------

    def _look(self, task: Task, trail: Trail, seen: Observation, chance: random.Random, *, slips: bool) -> Action:
        page = self.world.page(trail.target)
        whole = next(
            (sighting for sighting in seen.sightings if sighting.title == trail.target and sighting.region is None),
            None,
        )
        if page is None or whole is None or trail.finding is not None:
            return _memorise(NOTHING, seen)
        if task.kind is Kind.FINE_PRINT:
            return self._look_closer(task, page, whole, seen, chance, slips=slips)
        if trail.hop < task.hops - 1:
            return _memorise(str(Leads((_misread(page.names[0], chance, slips=slips),))), seen, whole)
        if task.kind is Kind.BRANCH and trail.hop == 0:
            names = page.names
            wrong = chance.randrange(2)
            read_names = tuple(_misread(name, chance, slips=slips and at == wrong) for at, name in enumerate(names))
            return _memorise(str(Leads(read_names)), seen, whole)
        mark: Colour | None = None
        if task.mark is not None:
            misread = slips and chance.random() < 0.5
            slips = slips and not misread
            mark = page.mark
            if misread:
                mark = _misseen(mark, chance, slips=True) if mark == task.mark else task.mark
            if mark != task.mark:
                return _memorise(str(OtherMark(mark, task.mark)), seen)
        colour = _misseen(page.colour(task.cell), chance, slips=slips)
        return _memorise(str(Finding(task.cell, colour, mark)), seen, whole)

    def _look_closer(
        self, task: Task, page: Page, whole: Sighting, seen: Observation, chance: random.Random, *, slips: bool
    ) -> Action:
        closer = seen.sightings[-1]
        if closer.region is None and slips and chance.random() < 0.5:
            return _memorise(str(Finding(task.cell, chance.choice(COLOURS))), seen, whole)
        if closer.region is None:
            cell = chance.choice([cell for cell in BODY if cell != task.cell]) if slips else task.cell
            return Crop(information_id=whole.id, bbox=print_crop(cell, self.protocol.family))
        region = closer.region
        cell = cell_at((region.x0 + region.x1) / 2, (region.y0 + region.y1) / 2)
        # It takes what the crop shows for the answer: a crop of a wrong cell is not noticed.
        return _memorise(str(Finding(task.cell, _misseen(page.colour(cell), chance, slips=slips))), seen, closer)


def print_crop(cell: str, family: ModelFamily) -> tuple[float, float, float, float]:
    """``print_box`` in the numbers that models of ``family`` write, of a page shown as a whole."""
    shown = View(FULL_PAGE, Size(page_side(family), page_side(family)))
    x0, y0, x1, y1 = family.codec.encode(print_box(cell), shown)
    return (float(x0), float(y0), float(x1), float(y1))


def _search(graph: MemoryGraph, parent: str, query: str) -> AddSearchNode:
    return AddSearchNode(id=f"s{len(graph.nodes)}", parent_ids=(parent,), query=query)


def _memorise(summary: str, seen: Observation, useful: Sighting | None = None) -> SummarizeAndMemorize:
    entries = (
        MemorizeEntry(information_id=sighting.id, is_useful=True, priority_score=USEFUL)
        if sighting is useful
        else MemorizeEntry(information_id=sighting.id, is_useful=False)
        for sighting in seen.sightings
    )
    return SummarizeAndMemorize(summarize=summary, memorize=tuple(entries))


def _answer(graph: MemoryGraph, trail: Trail, chance: random.Random) -> AddAnswerNode:
    """What was found, or a guess from where the way has led."""
    if trail.finding is not None:
        node, note = trail.finding
        return AddAnswerNode(parent_ids=(node,), answer=note.colour.value)
    last = graph.nodes[-1].id if len(graph.nodes) > 1 else ROOT_ID
    return AddAnswerNode(parent_ids=(last,), answer=chance.choice(COLOURS).value)


def _misread(name: str, chance: random.Random, *, slips: bool) -> str:
    """A page's name, with one of its words misread if the expert ``slips``."""
    if not slips:
        return name
    first, second = name.split()
    if chance.random() < 0.5:
        return f"{chance.choice([word for word in FIRST_WORDS if word != first])} {second}"
    return f"{first} {chance.choice([word for word in SECOND_WORDS if word != second])}"


def _misseen(colour: Colour, chance: random.Random, *, slips: bool) -> Colour:
    return chance.choice([other for other in COLOURS if other != colour]) if slips else colour
