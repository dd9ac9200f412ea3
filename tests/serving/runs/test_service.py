"""What a run may share with the request that began it: nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from pathlib import Path

import pytest

from tests.support.stand_in import ScriptedRun
from vrag_ray.agent.chat import QuestionPicture
from vrag_ray.agent.events import Event
from vrag_ray.client.schemas import RunRequest
from vrag_ray.serving.runs.service import RunService
from vrag_ray.serving.runs.store import RunStore

pytestmark = pytest.mark.anyio
REQUEST: ContextVar[str] = ContextVar("request", default="none")


class Witness(ScriptedRun):
    """Notes the request in whose context its steps are made."""

    seen: list[str]

    async def events(self) -> AsyncGenerator[Event, None]:
        self.seen = [REQUEST.get()]
        async for event in super().events():
            self.seen.append(REQUEST.get())
            yield event


async def test_a_run_is_not_made_in_the_context_of_its_request_which_serve_cancels_with_the_reader(tmp_path: Path):
    go = asyncio.Event()
    go.set()
    runs: list[Witness] = []

    def make(run_id: str, request: RunRequest, picture: QuestionPicture | None) -> Witness:
        runs.append(Witness(run_id, request, go))
        return runs[0]

    service = RunService(
        RunStore(tmp_path, keep=3), make, max_concurrent=1, default_deadline_s=30.0, default_agent="extractive"
    )
    REQUEST.set("the one that began it")
    run_id = service.start(RunRequest(question="what?"))
    assert [event.kind async for events in service.read(run_id, -1) for event in events][-1] == "answer"
    assert set(runs[0].seen) == {"none"}
