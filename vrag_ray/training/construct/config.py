"""Every setting of a construction and its default, once."""

from __future__ import annotations

from pydantic import Field, model_validator

from vrag_ray.config import AgentConfig, AgentName, CorpusConfig, OpenAiConfig, Section
from vrag_ray.training.construct.filters import StructureLimits
from vrag_ray.training.rewards.grader import AnswerScorer
from vrag_ray.types import FamilyName


class ConstructConfig(Section):
    """Every setting of a construction. The endpoints' keys stand in the environment of every node."""

    examples: str
    """Questions (JSON lines, unified JSON or Parquet)."""
    output: str
    """Folder or object-store prefix for the runs. Construction in the same place goes on where it stopped."""
    total: int | None = Field(default=None, ge=1)
    """Runs in the balanced mix at the end; by default all that are good."""
    gateway: str
    """Base URL of a running gateway, whose collection is searched."""
    gateway_key_env: str = "VRAG_API_KEY"
    agent_name: AgentName = AgentName.VRAG
    agent: AgentConfig = AgentConfig(max_steps=10, deadline_s=900.0)
    corpus: CorpusConfig = CorpusConfig()
    planner: OpenAiConfig
    grounding: OpenAiConfig
    grounding_family: FamilyName = FamilyName.QWEN2_5_VL
    """How the grounding expert writes boxes, whatever the agent's own family."""
    scorer: str = AnswerScorer.JUDGE.value
    """What decides that an answer is right: ``judge``, another ``AnswerScorer``, or ``package.module:function``."""
    judge: OpenAiConfig | None = None
    judge_cache: str | None = None
    limits: StructureLimits = StructureLimits()
    workers: int = Field(default=1, ge=1)
    """Actors, spread over the cluster."""
    concurrency: int = Field(default=16, ge=1)
    """Runs that one actor has under way at once."""

    @model_validator(mode="after")
    def _can_be_run(self) -> ConstructConfig:
        if self.agent_name is AgentName.EXTRACTIVE:
            raise ValueError("agent_name extractive asks no model: use vrag or vimrag")
        if not self.agent.evidence.has_pictures:
            raise ValueError(
                "agent.evidence text shows no pictures for the grounding expert to crop: use picture or both"
            )
        if self.scorer == AnswerScorer.JUDGE and self.judge is None:
            raise ValueError("scorer is judge: set judge.base_url and judge.model, or another scorer")
        return self
