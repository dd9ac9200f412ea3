"""The routing of ``Policy`` over replicas that only tell who they are: no model is needed to see where sessions go."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.serving.deployments.policy import PolicyAlone
from vrag_ray.serving.deployments.sessions import sticky_sessions
from vrag_ray.serving.local import start_serving
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from ray.serve.handle import DeploymentHandle

pytestmark = pytest.mark.anyio
SESSIONS = [f"run-{number}" for number in range(24)]


class Replica:
    """Tells its id, after it has held a request long enough for all to be in flight at once."""

    async def who(self) -> str:
        from ray import serve

        await asyncio.sleep(0.2)
        return str(serve.get_replica_context().replica_id.unique_id)


@pytest.fixture(scope="module")
def handle(serving: None) -> Iterator[DeploymentHandle]:
    from ray import serve

    deployment = serve.deployment(
        name="Replica",
        num_replicas=3,
        max_ongoing_requests=100,
        ray_actor_options={"num_cpus": 0.1},
        request_router_config=sticky_sessions(),
    )(Replica)
    serve.run(serve.deployment(PolicyAlone).bind(deployment.bind()), name="sticky", route_prefix=None)
    running = serve.get_deployment_handle("Replica", "sticky")
    method = running.options(method_name="who")
    # The router hears of the replicas one after the other: a session stays where it is once it knows them all.
    while len({answer.result() for answer in [method.remote() for _ in range(24)]}) < 3:
        pass
    yield running
    serve.delete("sticky")


async def homes(handle: DeploymentHandle, turns: int) -> dict[str, set[str]]:
    """The replicas that each session met, all sessions and turns at once."""

    async def turn(session: str) -> tuple[str, str]:
        return session, await handle.options(method_name="who", session_id=session).remote()

    met: dict[str, set[str]] = defaultdict(set)
    for session, replica in await asyncio.gather(*[turn(session) for session in SESSIONS for _ in range(turns)]):
        met[session].add(replica)
    return met


async def test_all_turns_of_a_session_meet_one_replica_and_all_replicas_have_sessions(handle: DeploymentHandle):
    met = await homes(handle, turns=4)
    assert all(len(replicas) == 1 for replicas in met.values())
    assert len(set.union(*met.values())) == 3


async def test_requests_without_a_session_meet_every_replica(handle: DeploymentHandle):
    met = await asyncio.gather(*[handle.options(method_name="who").remote() for _ in range(48)])
    assert len(set(met)) == 3


@pytest.mark.in_file("last")
async def test_a_lost_replica_moves_its_own_sessions_and_no_others(handle: DeploymentHandle):
    import ray

    before = {session: replicas.pop() for session, replicas in (await homes(handle, turns=1)).items()}
    lost = before[SESSIONS[0]]
    ray.kill(ray.get_actor(f"SERVE_REPLICA::sticky#Replica#{lost}", namespace="serve"))
    async with asyncio.timeout(60):
        while True:
            try:
                after = {session: replicas.pop() for session, replicas in (await homes(handle, turns=1)).items()}
                break
            except ray.exceptions.RayActorError:
                continue  # already on its way to the replica that was lost
    staying = [session for session in SESSIONS if before[session] != lost]
    # A replica that Serve starts anew may take over a session; it has the lost one's share of the ring at most.
    assert lost not in after.values()
    assert all(after[session] == before[session] for session in staying if after[session] in before.values())


def test_a_service_is_refused_where_serve_runs_without_http(serving: None, tmp_path: Path) -> None:
    Collection.open_or_create(tmp_path / "c")
    with pytest.raises(VragError, match=r"Serve runs in this Ray without HTTP.* end it by `serve shutdown`"):
        start_serving(Settings(collection=str(tmp_path / "c")), 0)
