"""Agents by name: which policy decides, in which wire protocol."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from vrag_ray.agent.ports import Judge, Policy
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.graph_chat import TOOLS_PLACE
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.wire_protocol import PictureLimits, TextLimits, WireProtocol
from vrag_ray.config import AgentConfig, AgentName, CorpusConfig, EvidenceForm, Marks, Settings, VllmConfig
from vrag_ray.imaging.coordinates import FAMILIES, ModelFamily
from vrag_ray.policies.llm.chat_model import ChatModel, Sampling
from vrag_ray.policies.llm.chat_policy import ChatJudge, ChatPolicy
from vrag_ray.policies.llm.model_family import model_facts, require_model, served_family
from vrag_ray.policies.llm.prompt_limits import (
    ModelLimits,
    PictureNeeds,
    PromptBudgetError,
    check_eyes,
    check_texts,
    limits_of,
    picture_limits,
)
from vrag_ray.types import FamilyName, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import expanded

logger = logging.getLogger(__name__)


FAMILY_OF_AGENT = {AgentName.VIMRAG: FamilyName.QWEN3_VL, AgentName.VRAG: FamilyName.QWEN2_5_VL}
"""Of a model behind an endpoint, which does not say of which family it is: those that the agents were made for."""


INSTRUCTION_NAMES = {
    AgentName.VIMRAG: ("add_search_node", "summarize_and_memorize", "add_answer_node"),
    AgentName.VRAG: ("<search>", "<answer>"),
}
"""What an instruction has to name, or its model would never search and answer in the protocol's form."""


class InstructionError(VragError):
    """``agent.instruction`` of an agent lacks what its protocol needs."""


class UnknownAgentError(VragError):
    """A name that is no agent, or an agent that needs a model where there is none."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What decides in a run, and what judges its answer; None for no judge."""

    policy: Policy
    protocol: WireProtocol
    judge: Judge | None = None


def agents(*, has_model: bool) -> tuple[AgentName, ...]:
    """The agents that requests may name."""
    return tuple(AgentName) if has_model else (AgentName.EXTRACTIVE,)


def starting_agent(settings: Settings) -> AgentName:
    """Who answers where a request names no agent; ``ready_settings`` has checked that this agent is served."""
    if settings.serving.agent is not None:
        return settings.serving.agent
    return AgentName.VIMRAG if settings.language_model else AgentName.EXTRACTIVE


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
    with_picture: bool = False,
    has_model: bool = False,
) -> AgentSpec:
    """Raises UnknownAgentError for a name that is not in ``agents``, and PromptBudgetError as ``wire_protocol`` does.

    ``limits`` are those of ``model``, None for one that takes anything. ``with_picture``: the question came with one.
    ``reads_pages``: whether the evidence source can give the words of whole pages; crops then end at whole words.
    ``has_model``: a model is configured, though ``model`` may be None here; what ``extractive`` says of itself.
    """
    known = agents(has_model=model is not None)
    if agent not in known:
        wanting = agent in tuple(AgentName)
        raise UnknownAgentError(
            f"agent {agent} needs a language model: set vllm or openai in the settings"
            if wanting
            else f"{agent[:60]!r} is no agent: use one of {', '.join(known)}"
        )
    judge = ChatJudge(model, session, config.constrained) if config.entailment and model is not None else None
    if model is None or agent == AgentName.EXTRACTIVE:
        from vrag_ray.policies.extractive.policy import ExtractivePolicy

        return AgentSpec(ExtractivePolicy(config, has_model=has_model or model is not None), GraphProtocol(), judge)
    protocol = wire_protocol(
        AgentName(agent), config, corpus, limits, with_picture=with_picture, native_tools=native_tools
    )
    policy = ChatPolicy(
        model,
        protocol,
        sampling=Sampling(max_tokens=config.max_reply_tokens),
        thinking=thinking,
        native_tools=native_tools and bool(protocol.tools),
        session=session,
        reads_pages=reads_pages,
        sees_pictures=config.evidence.has_pictures,
        constrained=config.constrained,
    )
    return AgentSpec(policy, protocol, judge)


def wire_protocol(
    agent: AgentName,
    config: AgentConfig,
    corpus: CorpusConfig,
    limits: ModelLimits | None,
    *,
    with_picture: bool = False,
    native_tools: bool = False,
) -> WireProtocol:
    """The form in which ``agent`` speaks with its model, in serving and in training alike.

    ``limits`` are the model's; None for one that takes anything. ``with_picture``: the question came with one.
    ``native_tools``: the model is given the calls as functions, and not in words too. Raises
    PromptBudgetError where the agent's numbers make prompts that the model cannot take, or pictures that it cannot see,
    and InstructionError for an instruction without what the protocol needs.
    """
    instruction = _instruction(agent, config)
    family = family_of(agent, config)
    texts = TextLimits(config.result_chars, config.prompt_chars)
    tags = agent is AgentName.VRAG
    needs = PictureNeeds.of_tags(config) if tags else PictureNeeds.of_graph(config, family, corpus.limits.max_frames)
    shared = _shared(replace(needs, question=int(with_picture)), config, limits) if limits is not None else None
    if tags:
        return TagsProtocol(config.tags_results, family, shared, config.evidence, texts, instruction, config.marks)
    return GraphProtocol(
        family=family,
        picture_pixels=config.picture_pixels,
        frame_pixels=config.frame_pixels,
        video_fps=corpus.video_fps,
        max_frames=corpus.limits.max_frames,
        limits=shared,
        evidence=config.evidence,
        texts=texts,
        instruction=instruction,
        native_tools=native_tools,
        marks=_marks(config, instruction),
    )


def _instruction(agent: AgentName, config: AgentConfig) -> str:
    text = config.instruction_of(agent)
    listed = TOOLS_PLACE in text and agent is AgentName.VIMRAG
    missing = [name for name in INSTRUCTION_NAMES[agent] if text and not listed and name not in text]
    if missing:
        place = f", or put {TOOLS_PLACE} where the tools are to be listed" if agent is AgentName.VIMRAG else ""
        raise InstructionError(
            f"agent.instruction.{agent}: {config.instruction[agent].file} does not name {', '.join(missing)}, and "
            f"without that the model cannot know how to reply: name it{place}"
        )
    return text


def _marks(config: AgentConfig, instruction: str) -> Marks:
    """Off where a custom instruction lists no tools: nothing would explain the numbers before words. Raises
    InstructionError where they are to be on pictures."""
    if not instruction or TOOLS_PLACE in instruction:
        return config.marks
    if config.marks.on_pictures:
        raise InstructionError(
            f"agent.marks {config.marks}: {config.instruction[AgentName.VIMRAG].file} does not say what the numbers on "
            f"pictures are for: put {TOOLS_PLACE} where the tools are to be listed, or set agent.marks to {Marks.OFF}"
        )
    return Marks.OFF


def _shared(needs: PictureNeeds, config: AgentConfig, limits: ModelLimits) -> PictureLimits | None:
    """How the pictures of a prompt share what its model takes; None where none are shown."""
    if config.evidence.has_pictures:
        check_eyes(config, limits)
        return picture_limits(needs, config, limits)
    check_texts(config, limits)
    return None


def family_of(agent: AgentName, config: AgentConfig) -> ModelFamily:
    """Of the model that ``agent`` asks; ``ready_settings`` has that of a served model."""
    return FAMILIES[config.family or FAMILY_OF_AGENT[agent]]


def ready_settings(settings: Settings, *, check: bool = True) -> Settings:
    """``settings`` with the family of the model that they serve, in words alone for a model without eyes.

    ``check``: whether prompts have to fit the model. Raises UnknownAgentError where ``serving.agent`` needs a model and
    there is none, VragError where the family is another than ``agent.family`` says, or none that is known, and
    PromptBudgetError where the prompts of ``vimrag`` cannot fit the model, or show pictures to one without eyes. Those
    of ``vrag`` are as large as its checkpoint was trained on: where they cannot fit, it is not offered.
    """
    if settings.serving.agent not in (None, AgentName.EXTRACTIVE) and settings.language_model is None:
        raise UnknownAgentError(
            f"serving.agent {settings.serving.agent} needs a language model: set vllm or openai in the settings"
        )
    if settings.agent.entailment and settings.language_model is None:
        raise VragError(
            "agent.entailment asks a language model, and none is configured: set vllm or openai, or entailment to false"
        )
    if settings.vllm is not None:
        settings = _as_the_model_sees(settings, settings.vllm)
    if not check:
        return settings
    limits = limits_of(settings)
    try:
        wire_protocol(AgentName.VIMRAG, settings.agent, settings.corpus, limits)
    except PromptBudgetError as error:
        raise PromptBudgetError(f"the agent {AgentName.VIMRAG} cannot be served: {error}") from error
    try:
        wire_protocol(AgentName.VRAG, settings.agent, settings.corpus, limits)
    except PromptBudgetError as error:
        if settings.serving.agent is AgentName.VRAG:
            raise PromptBudgetError(f"serving.agent {AgentName.VRAG} cannot be served: {error}") from error
        logger.warning("the agent %s is not offered: %s", AgentName.VRAG, error)
    return settings


def _as_the_model_sees(settings: Settings, vllm: VllmConfig) -> Settings:
    """``settings`` with the family of the served model; those of a model without eyes show it no pictures."""
    agent = settings.agent
    if agent.family is None or not expanded(vllm.model).is_absolute():
        # An absolute folder may be one of the nodes that serve it: they look for it again.
        require_model(vllm.model, "vllm.model")
    if model_facts(vllm.model, fetch=agent.family is None).sees is False:
        if agent.evidence.has_pictures:
            if "evidence" in agent.model_fields_set:
                raise PromptBudgetError(
                    f"agent.evidence {agent.evidence} shows pictures, but the model {vllm.model} has no eyes: set "
                    f"agent.evidence to {EvidenceForm.TEXT}, or serve a model that sees"
                )
            logger.warning("%s has no eyes: its agents are given the words of pages (agent.evidence text)", vllm.model)
            if agent.marks.on_pictures:
                logger.warning("agent.marks %s: the numbers of elements stand before their words alone", agent.marks)
            marks = Marks.WORDS if agent.marks.on_pictures else agent.marks
            agent = with_changes(agent, {"evidence": EvidenceForm.TEXT, "marks": marks})
        vllm = with_changes(vllm, {"max_images": 0})
    family = served_family(agent.family, vllm.model, "vllm.model", shows_pictures=agent.evidence.has_pictures)
    return with_changes(settings, {"agent": with_changes(agent, {"family": family}), "vllm": vllm})


def offered(settings: Settings, *, has_model: bool) -> tuple[AgentName, ...]:
    """The agents that requests may name and whose prompts fit the model."""
    limits = limits_of(settings)

    def fits(agent: AgentName) -> bool:
        try:
            wire_protocol(agent, settings.agent, settings.corpus, limits)
        except PromptBudgetError:
            return False
        return True

    return tuple(agent for agent in agents(has_model=has_model) if agent is AgentName.EXTRACTIVE or fits(agent))
