"""From a request to a run: budgets, policy and protocol. The same for the service and for runs in this process."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from vrag_ray.agent.driver import EvidenceSource, Run
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import Settings
from vrag_ray.policies.llm.prompt_limits import PromptBudgetError, limits_of
from vrag_ray.policies.registry import UnknownAgentError, agent_spec
from vrag_ray.serving.errors import InvalidError

if TYPE_CHECKING:
    from vrag_ray.policies.llm.chat_model import ChatModel


def make_run(
    run_id: str, request: RunRequest, settings: Settings, source: EvidenceSource, model: ChatModel | None
) -> Run:
    """Raises InvalidError for an agent that cannot be asked here, and for more results than its model can be shown."""
    wanted = {"max_steps": request.max_steps, "deadline_s": request.deadline_s, "search_top_k": request.top_k}
    config = settings.agent.model_copy(update={k: v for k, v in wanted.items() if v is not None})
    try:
        spec = agent_spec(
            request.agent,
            config,
            settings.corpus,
            model,
            limits=limits_of(settings),
            session=run_id,
            thinking=request.thinking,
            native_tools=settings.openai is not None and settings.vllm is None and settings.openai.native_tools,
        )
    except UnknownAgentError as error:
        raise InvalidError(f"agent: {error}", param="agent") from error
    except PromptBudgetError as error:
        field = "agent" if request.top_k is None else "top_k"
        raise InvalidError(f"{field}: {error}", param=field) from error
    return Run(
        run_id,
        request.question,
        policy=spec.policy,
        protocol=spec.protocol,
        source=source,
        config=config,
        clock=time.monotonic,
        agent=request.agent,
        filter=request.filter,
    )


def endpoint_model(settings: Settings) -> ChatModel | None:
    """The model behind ``settings.openai``; None where none is set."""
    if settings.openai is None:
        return None
    from vrag_ray.policies.llm.openai_api import OpenAiModel

    return OpenAiModel(settings.openai)
