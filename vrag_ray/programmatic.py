"""``VimRAG`` and ``VRAG``: the agents from a Python program, over two HTTP endpoints and without Ray.

One endpoint is a language model (anything that speaks OpenAI's chat completions), the other a gateway of this project,
which searches and draws pages. The loop runs here, in the caller's process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import aclosing, closing

from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import AnswerEvent, ErrorEvent, Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client import AsyncClient
from vrag_ray.config import AgentConfig, CorpusConfig, OpenAiConfig
from vrag_ray.http_evidence import HttpEvidence
from vrag_ray.policies.brains import AgentName, brain_of, wire_protocol
from vrag_ray.policies.openai_api import OpenAiModel
from vrag_ray.policies.prompt_limits import ModelLimits
from vrag_ray.types import FamilyName, VragError

SEARCH_PATH = "/search"
"""Clients of the original name the route; ours is found below the same server."""


class _HttpAgent:
    """What the two agents share: a model endpoint, a gateway, and one thread a run with an event loop of its own."""

    agent: AgentName

    def __init__(
        self,
        base_url: str,
        search_url: str = "http://127.0.0.1:8000",
        model_name: str = "policy",
        *,
        api_key: str = "",
        search_api_key: str | None = None,
        enable_thinking: bool | None = None,
        family: FamilyName | None = None,
        max_steps: int = 20,
        search_top_k: int = 3,
        deadline_s: float = 600.0,
    ) -> None:
        """``base_url`` ends in ``/v1``; without ``api_key`` the environment's ``OPENAI_API_KEY`` is sent.

        ``search_api_key`` is a key of the gateway.
        ``family`` says how the model writes boxes; by default Qwen3-VL for VimRAG and Qwen2.5-VL for VRAG.
        """
        self._model = OpenAiConfig(
            base_url=base_url, model=model_name, api_key=api_key, thinking=enable_thinking, timeout_s=deadline_s
        )
        self._search_url = search_url.rstrip("/").removesuffix(SEARCH_PATH)
        self._search_api_key = search_api_key
        self._config = AgentConfig(family=family, max_steps=max_steps, search_top_k=search_top_k, deadline_s=deadline_s)
        self._limits = ModelLimits.of_endpoint(self._model)
        wire_protocol(self.agent, self._config, CorpusConfig(), self._limits)  # refuses what cannot fit at once

    def events(self, question: str) -> Generator[Event]:
        """The typed events of one run, as they happen. Leaving the iterator early cancels the run."""
        with closing(self._happenings(question)) as happenings:
            for happened in happenings:
                if not isinstance(happened, RunRecord):
                    yield happened

    def record(self, question: str) -> RunRecord:
        """The finished run. A run that fails is a record too: see its ``status`` and ``error``."""
        return next(happened for happened in self._happenings(question) if isinstance(happened, RunRecord))

    def _happenings(self, question: str) -> Generator[Event | RunRecord]:
        """Every event and, last, the record. In a thread, so that callers inside an event loop (notebooks) can too."""
        told: queue.SimpleQueue[Event | RunRecord | BaseException] = queue.SimpleQueue()
        loop = asyncio.new_event_loop()
        work = loop.create_task(self._drive(question, told))

        def run() -> None:
            try:
                loop.run_until_complete(work)
            except asyncio.CancelledError:
                told.put(VragError("the run was left"))
            except BaseException as error:  # noqa: BLE001  it is raised on the caller's thread
                told.put(error)
            finally:
                loop.close()

        thread = threading.Thread(target=run, name="vrag-run", daemon=True)
        thread.start()
        try:
            while True:
                happened = told.get()
                if isinstance(happened, BaseException):
                    raise happened
                yield happened
                if isinstance(happened, RunRecord):
                    return
        finally:
            if thread.is_alive() and not loop.is_closed():
                loop.call_soon_threadsafe(work.cancel)
            thread.join()

    async def _drive(self, question: str, told: queue.SimpleQueue[Event | RunRecord | BaseException]) -> None:
        run_id = uuid.uuid4().hex
        async with (
            aclosing(OpenAiModel(self._model)) as model,
            AsyncClient(self._search_url, api_key=self._search_api_key) as client,
        ):
            brain = brain_of(
                self.agent,
                self._config,
                CorpusConfig(),
                model,
                limits=self._limits,
                session=run_id,
                reads_pages=False,
            )
            run = Run(
                run_id,
                question,
                policy=brain.policy,
                protocol=brain.protocol,
                source=HttpEvidence(client),
                config=self._config,
                clock=time.monotonic,
                agent=self.agent,
            )
            async with aclosing(run.events()) as events:
                async for event in events:
                    told.put(event)
        told.put(run.record())


class VimRAG(_HttpAgent):
    """The memory-graph agent."""

    agent = AgentName.VIMRAG

    def run(self, sample: Mapping[str, str]) -> Iterator[dict[str, object]]:
        """Events of the run on ``sample["query"]`` as dicts: ``type`` and the names the original gives.

        ``think`` and ``content`` (``content``), ``search`` (``query``, ``node_id``), ``search_done`` (``results``),
        ``memorize`` (``summary``), ``error`` and ``max_steps`` (``content``), ``answer`` (``content``, ``sample`` with
        graph, citations, status and usage), besides all fields of the typed event.
        """
        if "query" not in sample:
            raise VragError("the sample has no query: pass {'query': question}")
        last: AnswerEvent | None = None
        with closing(self._happenings(sample["query"])) as happenings:
            for happened in happenings:
                if isinstance(happened, AnswerEvent):
                    last = happened
                elif isinstance(happened, RunRecord):
                    if last is not None:
                        yield _as_dict(last) | {"sample": dict(sample) | _outcome(happened)}
                else:
                    yield _as_dict(happened)


class VRAG(_HttpAgent):
    """The agent of tags; made for the released Qwen2.5-VL-7B-VRAG."""

    agent = AgentName.VRAG

    def run(self, question: str) -> str:
        """The answer. Raises VragError where the run failed."""
        record = self.record(question)
        if record.error:
            raise VragError(record.error)
        return record.answer

    def stream(self, question: str) -> Generator[Event]:
        """The steps of the run, as they happen."""
        return self.events(question)


def _as_dict(event: Event) -> dict[str, object]:
    told: dict[str, object] = {"type": event.kind, **event.model_dump(mode="json", exclude={"kind"})}
    if isinstance(event, AnswerEvent):
        told["content"] = event.answer
    elif isinstance(event, ErrorEvent):
        told["content"] = event.message
    elif event.kind == "max_steps":
        told["content"] = f"no answer within {event.max_steps} steps"
    return told


def _outcome(record: RunRecord) -> dict[str, object]:
    return record.model_dump(mode="json", include={"graph", "citations", "status", "usage", "steps", "notices"})
