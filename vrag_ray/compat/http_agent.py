"""One agent's runs from a Python program over two HTTP endpoints, without Ray: a language model and a gateway.

The loop runs here, in the caller's process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass

from pydantic import ValidationError

from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import Event
from vrag_ray.agent.ports import EvidenceSource
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.client.evidence import SystemPages, SystemRetriever
from vrag_ray.client.http import AsyncClient
from vrag_ray.compat.observers import ModelCall, ModelReply, Observation, SearchHits, WatchedModel, WatchedRetriever
from vrag_ray.config import AgentConfig, AgentName, CorpusConfig, OpenAiConfig
from vrag_ray.policies.llm.endpoint_quirks import SentFields
from vrag_ray.policies.llm.openai_api import NO_KEY, OpenAiModel
from vrag_ray.policies.llm.prompt_limits import ModelLimits
from vrag_ray.policies.registry import agent_spec, wire_protocol
from vrag_ray.types import VragError
from vrag_ray.types.errors import validation_message

SEARCH_PATH = "/search"
"""Clients of the original name the route; ours is below the same server."""
Happening = Event | Observation | RunRecord


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The model (``base_url`` ends in ``/v1``) and the gateway that searches and draws pages, with their keys."""

    base_url: str
    model_name: str
    api_key: str | None
    search_url: str
    search_api_key: str | None


class HttpAgent(ABC):
    """Runs of ``agent``, each in a thread with an event loop of its own, so that any number go on at once."""

    agent: AgentName

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        thinking: bool | None,
        temperature: float | None,
        top_p: float | None,
        deadline_s: float,
    ) -> None:
        self._endpoints = endpoints
        # A key that was not given is not looked for in the environment: it might belong to another host.
        self._model = OpenAiConfig(
            base_url=endpoints.base_url,
            model=endpoints.model_name,
            api_key=endpoints.api_key or NO_KEY,
            thinking=thinking,
            temperature=temperature,
            top_p=top_p,
            timeout_s=deadline_s,
        )
        self._sent_fields = SentFields(endpoints.model_name)
        self._limits = ModelLimits.of_endpoint(self._model)

    @property
    def gateway(self) -> str:
        """Base URL of the gateway."""
        return self._endpoints.search_url.rstrip("/").removesuffix(SEARCH_PATH)

    @abstractmethod
    def config(self) -> AgentConfig:
        """The budgets of the next run."""

    def protocol(self) -> WireProtocol:
        """The wire form of the next run. Raises VragError where its prompts cannot fit the model."""
        return wire_protocol(self.agent, self.config(), CorpusConfig(), self._limits)

    def events(self, question: str) -> Generator[Event]:
        """The typed events of one run, as they happen. Leaving the iterator early cancels the run."""
        with closing(self.happenings(question)) as happenings:
            for happened in happenings:
                if not isinstance(happened, ModelCall | ModelReply | SearchHits | RunRecord):
                    yield happened

    def record(self, question: str) -> RunRecord:
        """The finished run. A run that fails is a record too: see its ``status`` and ``error``."""
        return next(happened for happened in self.happenings(question) if isinstance(happened, RunRecord))

    def happenings(self, question: str) -> Generator[Happening]:
        """Events, model calls and hits in order and, last, the record.

        In a thread, so that callers inside an event loop (notebooks) can too.
        """
        happenings: queue.SimpleQueue[Happening | BaseException] = queue.SimpleQueue()
        loop = asyncio.new_event_loop()
        work = loop.create_task(self._drive(question, self.config(), happenings))

        def run() -> None:
            try:
                loop.run_until_complete(work)
            except asyncio.CancelledError:
                happenings.put(VragError("the run was left"))
            except BaseException as error:  # noqa: BLE001  it is raised on the caller's thread
                happenings.put(error)
            finally:
                loop.close()

        thread = threading.Thread(target=run, name="vrag-run", daemon=True)
        thread.start()
        try:
            while True:
                happened = happenings.get()
                if isinstance(happened, BaseException):
                    raise happened
                yield happened
                if isinstance(happened, RunRecord):
                    return
        finally:
            if thread.is_alive() and not loop.is_closed():
                loop.call_soon_threadsafe(work.cancel)
            thread.join()

    async def _drive(
        self, question: str, config: AgentConfig, happenings: queue.SimpleQueue[Happening | BaseException]
    ) -> None:
        run_id = uuid.uuid4().hex
        async with (
            aclosing(OpenAiModel(self._model, self._sent_fields)) as model,
            AsyncClient(self.gateway, api_key=self._endpoints.search_api_key) as client,
        ):
            watched = WatchedModel(model, happenings.put)
            spec = agent_spec(
                self.agent, config, CorpusConfig(), watched, limits=self._limits, session=run_id, reads_pages=False
            )
            run = Run(
                run_id,
                question,
                policy=spec.policy,
                protocol=spec.protocol,
                source=EvidenceSource(WatchedRetriever(SystemRetriever(client), happenings.put), SystemPages(client)),
                config=config,
                clock=time.monotonic,
                agent=self.agent,
                judge=spec.judge,
            )
            async with aclosing(run.events()) as events:
                async for event in events:
                    happenings.put(event)
        happenings.put(run.record())


def agent_config(values: Mapping[str, object], names: Mapping[str, str]) -> AgentConfig:
    """``AgentConfig`` of those ``values`` that are not None.

    Raises VragError for a wrong one, under the name that ``names`` gives its field: the one its caller knows.
    """
    try:
        return AgentConfig.model_validate({name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise VragError(f"{names.get(field, field)}={first['input']!r}: {validation_message(first)}") from error
