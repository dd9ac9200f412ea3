"""The agent of this world: the ``graph`` protocol and budgets, sized so that a prompt is about a hundred tokens."""

from __future__ import annotations

from benchmarks.mosaic.world.drawing import page_side
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.types import FamilyName

MAX_REPLY_TOKENS = 48
"""Twice the longest reply of the expert."""
DEADLINE_S = 3600.0


def mosaic_protocol(family: FamilyName = FamilyName.QWEN2_5_VL) -> GraphProtocol:
    """A page or a crop of one takes 4 x 4 visual tokens."""
    known = FAMILIES[family]
    pixels = page_side(known) ** 2
    return GraphProtocol(family=known, picture_pixels=pixels, frame_pixels=pixels)


def mosaic_agent(family: FamilyName = FamilyName.QWEN2_5_VL, *, max_steps: int = 8) -> AgentConfig:
    """Two results a search. Remembered pictures are not shown again: summaries carry what is needed.

    A chain of ``hops`` pages takes ``2 * hops + 1`` steps without a mistake, a branch up to seven.
    """
    pixels = page_side(FAMILIES[family]) ** 2
    return AgentConfig(
        max_steps=max_steps,
        search_top_k=2,
        deadline_s=DEADLINE_S,
        memory_pixels=0,
        family=family,
        picture_pixels=pixels,
        frame_pixels=pixels,
        max_reply_tokens=MAX_REPLY_TOKENS,
    )
