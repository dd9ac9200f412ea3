"""Agents by name: which policy decides, in which wire protocol."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vrag_ray.agent.families import FAMILIES
from vrag_ray.agent.ports import Policy
from vrag_ray.agent.protocols.base import WireProtocol
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.config import AgentConfig, CorpusConfig
from vrag_ray.policies.chat_model import ChatModel, Sampling
from vrag_ray.policies.chat_policy import ChatPolicy
from vrag_ray.types import VragError


class AgentName(StrEnum):
    """Agents by the name that a request gives."""

    EXTRACTIVE = "extractive"
    VIMRAG = "vimrag"
    VRAG = "vrag"


class UnknownAgentError(VragError):
    """A name that is no agent, or one that needs a model where there is none."""


@dataclass(frozen=True, slots=True)
class Brain:
    """What decides in a run."""

    policy: Policy
    protocol: WireProtocol


def agents(*, has_model: bool) -> tuple[AgentName, ...]:
    """The agents that can be asked."""
    return tuple(AgentName) if has_model else (AgentName.EXTRACTIVE,)


def brain_of(
    agent: str,
    config: AgentConfig,
    corpus: CorpusConfig,
    model: ChatModel | None,
    *,
    session: str = "",
    thinking: bool | None = None,
    native_tools: bool = False,
    reads_pages: bool = True,
) -> Brain:
    """Raises UnknownAgentError for a name that is not in ``agents``.

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
        from vrag_ray.policies.extractive import ExtractivePolicy

        return Brain(ExtractivePolicy(config), GraphProtocol())
    protocol = wire_protocol(AgentName(agent), config, corpus)
    policy = ChatPolicy(
        model,
        protocol,
        sampling=Sampling(max_tokens=config.max_reply_tokens),
        thinking=thinking,
        native_tools=native_tools and bool(protocol.tools),
        session=session,
        reads_pages=reads_pages,
    )
    return Brain(policy, protocol)


def wire_protocol(agent: AgentName, config: AgentConfig, corpus: CorpusConfig) -> WireProtocol:
    """The form in which ``agent`` speaks with its model, in serving and in training alike."""
    if agent is AgentName.VRAG:
        return TagsProtocol(shows=config.tags_results)
    return GraphProtocol(
        family=FAMILIES[config.family],
        picture_pixels=config.picture_pixels,
        frame_pixels=config.frame_pixels,
        video_fps=corpus.video_fps,
        max_frames=corpus.limits.max_frames,
    )
