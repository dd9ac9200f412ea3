"""From a request to a run: budgets, policy and protocol. The same for the service and for runs in this process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import QuestionPicture
from vrag_ray.agent.driver import EvidenceSource, Run
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import AgentName, Settings
from vrag_ray.policies.llm.prompt_limits import PromptBudgetError, limits_of
from vrag_ray.policies.registry import UnknownAgentError, agent_spec, starting_agent
from vrag_ray.types import InvalidError, VragError
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.policies.llm.chat_model import ChatModel
    from vrag_ray.policies.llm.openai_api import OpenAiModel


def make_run(
    run_id: str,
    request: RunRequest,
    settings: Settings,
    source: EvidenceSource,
    model: ChatModel | None,
    picture: QuestionPicture | None = None,
) -> Run:
    """``picture`` is that of ``request``, decoded by the caller in the sandbox.

    Raises InvalidError for an agent that this service does not offer, and for more than its model can be shown.
    """
    if request.picture is not None and picture is None:
        raise VragError("the picture of the question has not been decoded")
    agent = request.agent or starting_agent(settings)
    if model is None and settings.vllm is not None and agent != AgentName.EXTRACTIVE:
        raise VragError(
            f"agent {agent} needs the model {settings.vllm.model}, and only the service loads one: start `vrag serve` "
            "with this configuration and ask it with --url, or ask here with --agent extractive"
        )
    requested = {
        "max_steps": request.max_steps,
        "deadline_s": request.deadline_s,
        "search_top_k": request.top_k,
        "evidence": request.evidence,
    }
    config = with_changes(settings.agent, {k: v for k, v in requested.items() if v is not None})
    try:
        spec = agent_spec(
            agent,
            config,
            settings.corpus,
            model,
            limits=limits_of(settings),
            session=run_id,
            thinking=request.thinking,
            with_picture=picture is not None,
            has_model=settings.language_model is not None,
            native_tools=settings.openai is not None and settings.openai.native_tools,
        )
    except UnknownAgentError as error:
        raise InvalidError(f"agent: {error}", param="agent") from error
    except PromptBudgetError as error:
        named = (("evidence", request.evidence), ("top_k", request.top_k), ("picture", picture))
        field = next((name for name, value in named if value is not None), "agent")
        raise InvalidError(f"{field}: {error}", param=field) from error
    return Run(
        run_id,
        request.question,
        policy=spec.policy,
        protocol=spec.protocol,
        source=source,
        config=config,
        clock=time.monotonic,
        agent=agent,
        filter=request.filter,
        picture=picture,
        judge=spec.judge,
    )


def endpoint_model(settings: Settings) -> OpenAiModel | None:
    """The model behind ``settings.openai``; None where none is set."""
    if settings.openai is None:
        return None
    from vrag_ray.policies.llm.openai_api import OpenAiModel

    return OpenAiModel(settings.openai)
