"""Practice: an expert's runs over one small world after the other, none of them the one that is to be learnt.

What an agent says mostly stands in its prompt already, and a model from random weights learns to fetch it from there
by where it stands: the second of two names in a note is so many words before the end. Practice has the very prompts of
a run and ever new words; lists of words to be repeated, continued or looked up teach the same ten times more slowly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from benchmarks.mosaic.in_memory_rollout import Call, Draw, run_in_memory
from benchmarks.mosaic.world.agent import mosaic_agent, mosaic_protocol
from benchmarks.mosaic.world.chance import drawn_from
from benchmarks.mosaic.world.drawing import draw, page_pixels
from benchmarks.mosaic.world.expert import MosaicExpert
from benchmarks.mosaic.world.generate import MosaicSize
from benchmarks.mosaic.world.mosaic import Mosaic
from benchmarks.mosaic.world.questions import Kind
from vrag_ray.agent.actions import AddSearchNode
from vrag_ray.types import FamilyName

_SEARCH = str(AddSearchNode.model_fields["name"].default)
SIZE = MosaicSize(pages=12, train=12, validation=1, prints=6)
"""All kinds of questions in turn."""
BRANCHES = replace(SIZE, kinds=(Kind.BRANCH,))
"""Branches alone: notes of two names. Which of them is meant is learnt in a hundred batches of nothing else."""
BOTH = replace(SIZE, kinds=(Kind.MULTI_HOP, Kind.BRANCH))
"""Notes of one name and of two."""


def practice(
    *, seed: int, noise: float = 0.0, size: MosaicSize = SIZE, family: FamilyName = FamilyName.QWEN2_5_VL
) -> Iterator[Call]:
    """Calls without end, the same for the same arguments. ``noise`` is the expert's; ``size`` is that of each world."""
    protocol, agent = mosaic_protocol(family), mosaic_agent(family)
    chance = drawn_from("practice", seed)
    while True:
        world = Mosaic.generate(size, seed=chance.randrange(2**32))
        drawn = drawing_of(world)
        expert = MosaicExpert(world, protocol, noise=noise, seed=chance.randrange(2**32))
        for example in world.train:
            _, calls = run_in_memory(example.question, expert.reply, world.pages, drawn, protocol, agent)
            yield from calls


def drawing_of(world: Mosaic) -> Draw:
    """Draws the pages of ``world``."""
    pixels = {page.name: page_pixels(page) for page in world.pages}
    return lambda request: draw(pixels[request.doc_id], request)


def from_memory(calls: Iterable[Call], *, every: int = 1) -> Iterator[Call]:
    """Those in which the agent sees nothing and decides where to search or what to answer.

    Only every so many'th of those that are learnt at once: first searches, which repeat the question, and answers,
    which repeat the last note. Where a note leads is what takes practice.
    """
    easy = {True: 0, False: 0}
    for call in calls:
        if call.prompt.observation is not None:
            continue
        searches = _SEARCH in call.reply
        led = searches and len(call.prompt.graph.nodes) > 1
        easy[searches] += not led
        if led or easy[searches] % every == 0:
            yield call


def before_its_eyes(calls: Iterable[Call]) -> Iterator[Call]:
    """Those in which the agent looks at what it found, and crops or memorises."""
    return (call for call in calls if call.prompt.observation is not None)
