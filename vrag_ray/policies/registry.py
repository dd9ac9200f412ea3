"""Agents by name: which policy decides, in which wire protocol."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

from vrag_ray.agent.ports import Policy
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig, CorpusConfig, Settings
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily
from vrag_ray.policies.llm.chat_model import ChatModel, Sampling
from vrag_ray.policies.llm.chat_policy import ChatPolicy
from vrag_ray.policies.llm.model_family import served_family
from vrag_ray.policies.llm.prompt_limits import ModelLimits, PictureNeeds, PromptBudgetError, limits_of, picture_limits
from vrag_ray.types import FamilyName, VragError

logger = logging.getLogger(__name__)


class AgentName(StrEnum):
    """Agents by the name that a request gives."""

    EXTRACTIVE = "extractive"
    VIMRAG = "vimrag"
    VRAG = "vrag"


FAMILY_OF_AGENT = {AgentName.VIMRAG: FamilyName.QWEN3_VL, AgentName.VRAG: FamilyName.QWEN2_5_VL}
"""Of a model behind an endpoint, which does not say of which family it is: those that the agents were made for."""


class UnknownAgentError(VragError):
    """A name that is no agent, or one that needs a model where there is none."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What decides in a run."""

    policy: Policy
    protocol: WireProtocol


def agents(*, has_model: bool) -> tuple[AgentName, ...]:
    """The agents that can be asked."""
    return tuple(AgentName) if has_model else (AgentName.EXTRACTIVE,)


def agent_spec(
    agent: str,
    config: AgentConfig,
    corpus: CorpusConfig,
    model: ChatModel | None,
    *,
    limits: ModelLimits | None = None,
    session: str = "",
    thinking: bool | None = None,
    native_tools: bool = False,
    reads_pages: bool = True,
) -> AgentSpec:
    """Raises UnknownAgentError for a name that is not in ``agents``, and PromptBudgetError as ``wire_protocol`` does.

    ``limits`` are those of ``model``; a model that takes no pictures is told in words.
    ``reads_pages``: whether the evidence source can give the words of whole pages; crops then end at whole words.
    """
    known = agents(has_model=model is not None)
    if agent not in known:
        wanting = agent in tuple(AgentName)
        raise UnknownAgentError(
            f"agent {agent} needs a language model: set vllm or openai in the settings"
            if wanting
            else f"{agent[:60]!r} is no agent: use one of {', '.join(known)}"
        )
    if model is None or agent == AgentName.EXTRACTIVE:
        from vrag_ray.policies.extractive.policy import ExtractivePolicy

        return AgentSpec(ExtractivePolicy(config), GraphProtocol())
    protocol = wire_protocol(AgentName(agent), config, corpus, limits)
    policy = ChatPolicy(
        model,
        protocol,
        sampling=Sampling(max_tokens=config.max_reply_tokens),
        thinking=thinking,
        native_tools=native_tools and bool(protocol.tools),
        session=session,
        reads_pages=reads_pages,
        sees_pictures=limits is None or limits.images > 0,
    )
    return AgentSpec(policy, protocol)


def wire_protocol(
    agent: AgentName, config: AgentConfig, corpus: CorpusConfig, limits: ModelLimits | None
) -> WireProtocol:
    """The form in which ``agent`` speaks with its model, in serving and in training alike.

    ``limits`` are the model's; None for one that takes anything. Raises PromptBudgetError where the agent's numbers
    make prompts that the model cannot take.
    """
    family = family_of(agent, config)
    shows = limits is not None and limits.images > 0
    if agent is AgentName.VRAG:
        needs = PictureNeeds.of_tags(config)
        shared = picture_limits(needs, config, limits) if limits is not None and shows else None
        return TagsProtocol(config.tags_results, family, shared)
    needs = PictureNeeds.of_graph(config, family, corpus.limits.max_frames)
    return GraphProtocol(
        family=family,
        picture_pixels=config.picture_pixels,
        frame_pixels=config.frame_pixels,
        video_fps=corpus.video_fps,
        max_frames=corpus.limits.max_frames,
        limits=picture_limits(needs, config, limits) if limits is not None and shows else None,
    )


def family_of(agent: AgentName, config: AgentConfig) -> ModelFamily:
    """Of the model that ``agent`` asks; ``ready_settings`` has found that of a served model."""
    return FAMILIES[config.family or FAMILY_OF_AGENT[agent]]


def ready_settings(settings: Settings) -> Settings:
    """``settings`` with the family of the model that they serve.

    Raises VragError where that is another one than ``agent.family`` says, or none that is known, and PromptBudgetError
    where the prompts of ``vimrag`` cannot fit the model. Those of ``vrag`` are as large as its checkpoint was trained
    on: where they cannot fit, it is not offered.
    """
    if settings.vllm is not None:
        family = served_family(settings.agent.family, settings.vllm.model, "vllm.model")
        settings = settings.model_copy(update={"agent": settings.agent.model_copy(update={"family": family})})
    limits = limits_of(settings)
    try:
        wire_protocol(AgentName.VIMRAG, settings.agent, settings.corpus, limits)
    except PromptBudgetError as error:
        raise PromptBudgetError(f"the agent {AgentName.VIMRAG} cannot be served: {error}") from error
    try:
        wire_protocol(AgentName.VRAG, settings.agent, settings.corpus, limits)
    except PromptBudgetError as error:
        logger.warning("the agent %s is not offered: %s", AgentName.VRAG, error)
    return settings


def offered(settings: Settings, *, has_model: bool) -> tuple[AgentName, ...]:
    """The agents that can be asked and whose prompts fit the model."""
    limits = limits_of(settings)

    def fits(agent: AgentName) -> bool:
        try:
            wire_protocol(agent, settings.agent, settings.corpus, limits)
        except PromptBudgetError:
            return False
        return True

    return tuple(one for one in agents(has_model=has_model) if one is AgentName.EXTRACTIVE or fits(one))
