"""Two replicas of a tiny Qwen2.5-VL behind Ray Serve: which weights each has, and what the loss of one costs.

Quick forms: ``test_policy`` for one replica, ``test_sticky_sessions`` for a lost one.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.tiny_vllm import QUESTION, ask, chatted, generated, needs_vllm, served, until
from tests.vllm.conftest import policy_replicas
from vrag_ray.policies.llm.chat_model import Checkpoint, ModelLostError, Sampling, TokenRequest
from vrag_ray.serving.deployments.policy import ServedModel, served_policy
from vrag_ray.types import VragError

pytestmark = [*needs_vllm, pytest.mark.anyio, pytest.mark.exhaustive]
GREEDY = Sampling(max_tokens=12, temperature=0.0)


@pytest.fixture(scope="module")
def folder(policy_folder: Path) -> Path:
    return policy_folder


@pytest.fixture(scope="module")
def model(serving: None, policy_folder: Path) -> Iterator[ServedModel]:
    with policy_replicas(policy_folder, "replicas", 2) as model:
        yield model


@pytest.mark.in_file("first")
async def test_a_replica_with_its_first_weights_loads_the_expected_ones_before_it_replies(
    model: ServedModel, folder: Path
):
    """It stands for one that Serve has just started; `test_a_replica_started_anew...` starts one."""

    expecting = served_policy("replicas")
    expecting.expect(Checkpoint(str(folder / "new"), "expected"))
    request = TokenRequest(tuple(range(40, 90)), sampling=GREEDY, session="one")
    _, before = await generated(model, request)
    (_, first), (_, second) = await asyncio.gather(*[generated(expecting, request) for _ in range(2)])
    assert (before.weights, first.weights, second.weights) == ("default", "expected", "expected")
    assert first.token_ids == second.token_ids != before.token_ids

    late = served_policy("replicas")
    late.expect(Checkpoint(str(folder / "nowhere"), "late"))
    assert (await chatted(late, ask(QUESTION, session="one"))).weights == "expected", "what others loaded stays"
    await model.load_weights(str(folder / "model"), "v0")
    assert [state.weights for state in await model.states()] == ["v0", "v0"]


@pytest.mark.in_file("last")
async def test_a_killed_replica_and_a_dead_engine_are_a_lost_model_and_with_another_replica_a_try_succeeds(
    model: ServedModel,
):
    """Of two replicas one is left, then none."""
    engines = await _engines(model)
    assert len(engines) == 2
    pieces = model.chat(ask(QUESTION, tokens=4000, session="doomed"))
    await anext(pieces)
    [doomed] = [state.pid for state in await model.states() if state.stats.running]
    os.kill(doomed, signal.SIGKILL)
    with pytest.raises(ModelLostError, match="another try may help"):
        async for _ in pieces:
            pass
    again = await chatted(model, ask(QUESTION, session="doomed"))
    assert len(again.token_ids) == 24

    async def alive() -> int:
        # A replica that Serve starts anew has another engine.
        return sum(engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE for engine in engines)

    await until(alive, 1)

    pieces = model.chat(ask(QUESTION, tokens=4000, session="doomed"))
    await anext(pieces)
    for engine in await _engines(model):
        engine.kill()
    with pytest.raises(ModelLostError, match="died: another try may help"):
        async for _ in pieces:
            pass


async def test_a_replica_started_anew_speaks_with_the_weights_that_were_loaded(serving: None, folder: Path):
    with served(folder / "model", "restarted", replicas=1) as lone:
        await lone.load_weights(str(folder / "new"), "v1")
        request = TokenRequest(tuple(range(40, 90)), sampling=GREEDY)
        _, before = await generated(lone, request)
        [doomed] = await lone.states()
        os.kill(doomed.pid, signal.SIGKILL)

        async def others() -> int:
            with suppress(VragError):
                return sum(state.pid != doomed.pid for state in await lone.states())
            return 0

        await until(others, 1)
        [fresh] = await lone.states()
        _, after = await generated(lone, request)
    assert fresh.weights == "default"
    assert (after.weights, after.token_ids) == (before.weights, before.token_ids)


async def _engines(model: ServedModel) -> list[psutil.Process]:
    """The engine of each replica: of the replica's own processes the one that holds the model."""
    replicas = [psutil.Process(state.pid) for state in await model.states()]
    return [max(replica.children(recursive=True), key=lambda child: child.memory_info().rss) for replica in replicas]
