"""The interface of every policy: defined beside the agent core, which calls it, and named here for implementers."""

from __future__ import annotations

from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Policy
from vrag_ray.types import Completion

__all__ = ["Completion", "Policy", "Prompt"]
