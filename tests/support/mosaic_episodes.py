"""A small world, and runs of its expert without a collection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from benchmarks.mosaic.in_memory_rollout import Call, run_in_memory
from benchmarks.mosaic.world.agent import mosaic_agent, mosaic_protocol
from benchmarks.mosaic.world.expert import MosaicExpert
from benchmarks.mosaic.world.mosaic import Mosaic
from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.episode import Episode
from vrag_ray.agent.observation import Prompt
from vrag_ray.imaging.coordinates import Size
from vrag_ray.questions.examples import Example
from vrag_ray.types import FamilyName

PROTOCOL = mosaic_protocol()
FAMILIES = [FamilyName.QWEN2_5_VL, pytest.param(FamilyName.QWEN3_VL, marks=pytest.mark.exhaustive)]
"""Parameters of fixtures: the world is the same for both, and takes long to cut into tokens."""


@cache
def small_world() -> Mosaic:
    return Mosaic.generate(seed=4)


def play(
    example: Example,
    reply: Callable[[Prompt], str],
    *,
    world: Mosaic | None = None,
    max_steps: int = 8,
    family: FamilyName = FamilyName.QWEN2_5_VL,
    draw: Callable[[PictureRequest], Picture] | None = None,
) -> tuple[Episode, tuple[Call, ...]]:
    world = world or small_world()
    config = mosaic_agent(family, max_steps=max_steps)
    return run_in_memory(example.question, reply, world.pages, draw or _unseen, mosaic_protocol(family), config)


def _unseen(request: PictureRequest) -> Picture:
    """For replies that do not look: nothing is drawn, at the right size."""
    side = math.isqrt(request.max_pixels)
    return Picture(b"", Size(side, side))


def answer_of(episode: Episode) -> str:
    assert episode.answer is not None
    return episode.answer.answer


def success(examples: Sequence[Example], *, noise: float, samples: int = 1, world: Mosaic | None = None) -> float:
    world = world or small_world()
    right = 0
    for sample in range(samples):
        expert = MosaicExpert(world, PROTOCOL, noise=noise, sample=sample)
        right += sum(
            answer_of(play(example, expert.reply, world=world, max_steps=12)[0]) == example.answers[0]
            for example in examples
        )
    return right / (samples * len(examples))
