"""The shard actors: N shards times R replicas, each rebuilt from the collection alone after a crash.

Several processes may search one set of actors: those whose settings make the same indexes share a name. Each user holds
the versions that it searches, and says every few seconds that it is there; actors that nobody uses end.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from vrag_ray.config import IndexConfig
from vrag_ray.index.shards.scored import Scored, merge
from vrag_ray.index.shards.shard_index import ShardIndex, ShardStatus, SpaceSpec, load_shard
from vrag_ray.index.shards.shard_rows import shard_of
from vrag_ray.index.shards.shards import FanOut, PageQuery
from vrag_ray.index.shards.space_index import PageTraits, QueryVectors
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from ray.actor import ActorHandle

T = TypeVar("T")
REVIVE_FIRST_DELAY_S = 0.2
REVIVE_MAX_DELAY_S = 5.0
ACTOR_CONCURRENCY = 16
ACTOR_CPUS = 0.1
"""Logical CPUs that an actor reserves."""
PING_AFTER_S = 0.5
"""How long a call waits for an answer before it checks that the shard is alive."""
HEALTH = "health"
"""The concurrency group of that question: searches that fill the others do not keep it from being answered."""
RENEW_S = 5.0
"""How often a user of shared actors says that it is there."""
LEASE_S = 60.0
"""A user that says nothing for so long is gone: a busy machine delays some of its calls."""
NAMESPACE = "vrag"
"""Of the names of shared actors: their users may be of different Ray jobs."""


class SilentError(Exception):
    """The shard does not say that it is alive."""


class NotLoadedError(VragError):
    """The shard does not hold that version (yet): it has just been restarted."""


@dataclass
class _User:
    """Of an actor: the versions that it searches, and when it was heard last, by ``time.monotonic``."""

    versions: set[int]
    heard: float


class IndexShard:
    """The code inside a shard actor. Holds one index a version, so that a refresh leaves no gap in service."""

    def __init__(self, root: str, shard: int, config: IndexConfig, lease_s: float | None = None) -> None:
        """With ``lease_s`` the actor ends itself once its last user has left, or was not heard for so long."""
        self._root, self._shard, self._config = root, shard, config
        self._indexes: dict[int, ShardIndex] = {}
        self._users: dict[str, _User] = {}
        self._was_used = False
        self._changing = threading.Lock()
        if lease_s is not None:
            threading.Thread(target=self._end_unused, args=(lease_s,), name="shard-lease", daemon=True).start()

    def load(self, user: str, version: int, spaces: Sequence[SpaceSpec]) -> tuple[ShardStatus, ...]:
        """Hold a version for a user. Users that load it at the same time wait for one reading."""
        known = self._users.setdefault(user, _User(set(), time.monotonic()))
        with self._changing:
            if version not in self._indexes:
                self._indexes[version] = load_shard(
                    CollectionFiles(self._root),
                    version,
                    spaces,
                    self._config,
                    shard=self._shard,
                    shards=self._config.shards,
                    earlier=self._indexes.get(max(self._indexes, default=0)),
                )
            known.versions.add(version)
            # Reading may have taken longer than a lease.
            known.heard = time.monotonic()
            self._users[user] = known
            self._was_used = True
            return self._indexes[version].statuses

    def renew(self, user: str) -> bool:
        """That a user is there; False where the actor does not know it, because it was started anew."""
        known = self._users.get(user)
        if known is not None:
            known.heard = time.monotonic()
        return known is not None

    def leave(self, user: str) -> None:
        with self._changing:
            self._users.pop(user, None)
            self._free_unused()

    def nearest(
        self, version: int, space: str, queries: QueryVectors, k: int, filter: SearchFilter | None
    ) -> list[list[tuple[str, float]]]:
        hits = self._index(version).nearest(space, queries, k, filter)
        return [[(scored.id, scored.score) for scored in per_query] for per_query in hits]

    def page_traits(
        self, version: int, space: str, pairs: Sequence[tuple[str, int | None]], queries: QueryVectors
    ) -> list[PageTraits | None]:
        return self._index(version).page_traits(space, pairs, queries)

    def keep_only(self, user: str, version: int) -> None:
        """A user searches no other version any more: those that no user searches are freed."""
        with self._changing:
            if user in self._users:
                self._users[user].versions = {version}
            self._free_unused()

    def pid(self) -> int:
        """Also the answer to whether the shard is alive."""
        return os.getpid()

    def _free_unused(self) -> None:
        in_use = {version for user in self._users.values() for version in user.versions}
        self._indexes = {number: index for number, index in self._indexes.items() if number in in_use}

    def _end_unused(self, lease_s: float) -> None:
        """In a thread of its own. An actor that is new waits for its first user as long as a lease."""
        import ray

        started = time.monotonic()
        while True:
            time.sleep(min(1.0, lease_s / 4))
            with self._changing:
                now = time.monotonic()
                self._users = {name: user for name, user in self._users.items() if now <= user.heard + lease_s}
                self._free_unused()
                if not self._users and (self._was_used or now > started + lease_s):
                    break
        ray.kill(ray.get_runtime_context().current_actor)

    def _index(self, version: int) -> ShardIndex:
        if version not in self._indexes:
            raise NotLoadedError(f"shard {self._shard} does not hold version {version}")
        return self._indexes[version]


@dataclass
class _Replica:
    shard: int
    number: int
    actor: ActorHandle
    statuses: tuple[ShardStatus, ...] = ()
    problem: str = "is loading"
    lost: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    """Set as long as the replica counts as down: ends all that waits for it."""
    reviving: asyncio.Task[None] | None = field(default=None, repr=False)


class ShardPool:
    """Fan-out over the shard actors of one collection. All methods run on one event loop."""

    def __init__(
        self, root: str, config: IndexConfig, num_gpus: float = 0.0, *, shared: str = "", lease_s: float = LEASE_S
    ) -> None:
        """``num_gpus`` is the GPU share of each actor where ``config`` has none.

        ``shared`` names the actors: pools of the same name use the same ones, wherever they are in the cluster, and
        must load the same spaces. Without it the actors are this pool's own, and end with the process that made it.
        """
        self._root, self._config, self._version = root, config, 0
        self._num_gpus = num_gpus if config.num_gpus is None else config.num_gpus
        self._user = uuid4().hex[:8]
        self._shared, self._lease_s = shared, lease_s
        self._renew_s = min(RENEW_S, lease_s / 4)
        self._spaces: tuple[SpaceSpec, ...] = ()
        self._turn = 0
        self._renewing: asyncio.Task[None] | None = None
        self._closed = False
        self._shards = [
            [_Replica(shard, replica, self._actor(shard, replica)) for replica in range(config.replicas)]
            for shard in range(config.shards)
        ]

    def _actor(self, shard: int, replica: int) -> ActorHandle:
        """A new actor, or the one of that name that other pools use."""
        import ray

        options = {
            "name": f"vrag-{self._shared or self._user}-shard-{shard:02d}-r{replica}",
            "num_cpus": ACTOR_CPUS,
            "num_gpus": self._num_gpus,
            "max_restarts": -1,
            "max_concurrency": ACTOR_CONCURRENCY,
            "scheduling_strategy": "SPREAD",
        }
        if self._shared:
            options |= {"lifetime": "detached", "namespace": NAMESPACE, "get_if_exists": True}
        actor_class = ray.remote(concurrency_groups={HEALTH: 1})(IndexShard)
        lease_s = self._lease_s if self._shared else None
        return actor_class.options(**options).remote(self._root, shard, self._config, lease_s)

    @property
    def total(self) -> int:
        return len(self._shards)

    @property
    def healthy(self) -> int:
        return sum(any(not replica.problem for replica in replicas) for replicas in self._shards)

    @property
    def actors(self) -> list[list[ActorHandle]]:
        """Handles by shard and replica, for health checks and for tests that kill them."""
        return [[replica.actor for replica in replicas] for replicas in self._shards]

    def statuses(self) -> list[ShardStatus]:
        """One status a space of each shard that has a healthy replica."""
        best = (next((r.statuses for r in replicas if not r.problem), ()) for replicas in self._shards)
        return [status for statuses in best for status in statuses]

    def problems(self) -> tuple[str, ...]:
        return tuple(
            f"shard {number} {replicas[0].problem}"
            for number, replicas in enumerate(self._shards)
            if all(replica.problem for replica in replicas)
        )

    async def load(self, version: int, spaces: Sequence[SpaceSpec]) -> None:
        """Load ``version`` everywhere beside what is served now. A replica that cannot is revived in the background.

        One that is down already is not waited for: its revival brings it to this version.
        """
        self._version, self._spaces = version, tuple(spaces)
        if self._shared and self._renewing is None:
            self._renewing = asyncio.create_task(self._renew(), name="shard-lease")
        up = [replica for replicas in self._shards for replica in replicas if not replica.lost.is_set()]
        await asyncio.gather(*(self._load_replica(replica) for replica in up))

    async def keep_only(self, version: int) -> None:
        """Free all other versions. A replica that is down frees them by its restart, or at the next version."""
        healthy = [replica for replicas in self._shards for replica in replicas if not replica.problem]
        await asyncio.gather(*(r.actor.keep_only.remote(self._user, version) for r in healthy), return_exceptions=True)

    async def nearest(
        self, version: int, space: str, queries: QueryVectors, k: int, filter: SearchFilter | None
    ) -> FanOut:
        """The ``k`` best windows over all shards that answer in time; the others are counted and named."""
        self._turn += 1

        async def ask(number: int) -> list[list[Scored]] | str:
            answer = await self._ask(number, lambda actor: actor.nearest.remote(version, space, queries, k, filter))
            return answer if isinstance(answer, str) else [[Scored(*row) for row in per_query] for per_query in answer]

        answers = await asyncio.gather(*map(ask, range(self.total)))
        good = [answer for answer in answers if not isinstance(answer, str)]
        results = [merge((part[number] for part in good), k) for number in range(len(queries))]
        return FanOut(results, len(good), tuple(answer for answer in answers if isinstance(answer, str)))

    async def page_traits(
        self, version: int, space: str, pages: Sequence[PageQuery], queries: QueryVectors
    ) -> list[PageTraits | None]:
        """What a space tells of each page; None where it, or its shard, tells nothing."""
        by_shard: dict[int, list[int]] = {}
        for place, page in enumerate(pages):
            by_shard.setdefault(shard_of(page.doc_id, self.total), []).append(place)

        async def ask(number: int, places: list[int]) -> list[PageTraits | None]:
            pairs = [(pages[place].passage_id, pages[place].query) for place in places]
            traits = await self._ask(number, lambda actor: actor.page_traits.remote(version, space, pairs, queries))
            return [None] * len(places) if isinstance(traits, str) else traits

        answers = await asyncio.gather(*(ask(number, places) for number, places in by_shard.items()))
        known: list[PageTraits | None] = [None] * len(pages)
        for places, answer in zip(by_shard.values(), answers, strict=True):
            for place, traits in zip(places, answer, strict=True):
                known[place] = traits
        return known

    def close(self) -> None:
        """Leave shared actors, which end with their last user; end one's own."""
        import ray

        if self._closed:
            return
        self._closed = True
        if self._renewing is not None:
            self._renewing.cancel()
        for replicas in self._shards:
            for replica in replicas:
                if replica.reviving is not None:
                    replica.reviving.cancel()
                if self._shared:
                    replica.actor.leave.remote(self._user)
                else:
                    ray.kill(replica.actor)

    async def _renew(self) -> None:
        """Say to shared actors every few seconds that this pool uses them."""
        while True:
            await asyncio.sleep(self._renew_s)
            up = [replica for replicas in self._shards for replica in replicas if not replica.problem]
            await asyncio.gather(*map(self._renew_at, up))

    async def _renew_at(self, replica: _Replica) -> None:
        """An actor that was started anew loads its version again. One that hangs must not keep others from hearing of
        this pool; searches find out whether it is alive."""
        from ray.exceptions import RayError

        renewal = replica.actor.renew.options(concurrency_group=HEALTH).remote(self._user)
        try:
            async with asyncio.timeout(self._renew_s):
                is_known = await renewal
        except TimeoutError:
            return
        except RayError as error:
            self._down(replica, f"is down ({type(error).__name__})")
            return
        if not is_known:
            self._down(replica, "was started anew and is loading")

    async def _ask(self, number: int, call: Callable[[ActorHandle], Awaitable[T]]) -> T | str:
        """One shard's answer from the first replica that gives one, or the reason why none does."""
        from ray.exceptions import RayError

        replicas = self._shards[number]
        start = self._turn % len(replicas)
        for replica in replicas[start:] + replicas[:start]:
            if replica.problem:
                continue
            try:
                try:
                    return await self._while_alive(replica, call(replica.actor), self._config.shard_timeout_s)
                except NotLoadedError:
                    # Ray has started it anew since its last search.
                    async with asyncio.timeout(self._config.shard_timeout_s):
                        await self._load_replica(replica)
                    if replica.lost.is_set():
                        continue
                    return await self._while_alive(replica, call(replica.actor), self._config.shard_timeout_s)
            except TimeoutError:
                self._down(replica, f"did not answer within {self._config.shard_timeout_s:g} s")
            except SilentError:
                self._down(replica, f"gave no sign of life for {self._config.shard_silence_s:g} s")
            except (RayError, NotLoadedError) as error:
                self._down(replica, f"is down ({type(error).__name__})")
        return f"shard {number} {replicas[0].problem}"

    async def _while_alive(self, replica: _Replica, answering: Awaitable[T], timeout_s: float | None) -> T:
        """The answer of a replica.

        Raises TimeoutError after ``timeout_s``, and SilentError as soon as the replica gives no sign of life, or is
        found to be down by another that waits for it.
        """
        answer, lost = asyncio.ensure_future(answering), asyncio.ensure_future(replica.lost.wait())
        first, silence_s = asyncio.FIRST_COMPLETED, self._config.shard_silence_s
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    await asyncio.wait({answer, lost}, timeout=PING_AFTER_S, return_when=first)
                    if not (answer.done() or lost.done()):
                        ping = asyncio.ensure_future(_sign_of_life(replica.actor))
                        await asyncio.wait({answer, lost, ping}, timeout=silence_s, return_when=first)
                        if ping.done():
                            continue
                        ping.cancel()
                    if answer.done():
                        return answer.result()
                    raise SilentError
        finally:
            answer.cancel()
            lost.cancel()

    async def _load_replica(self, replica: _Replica) -> None:
        from ray.exceptions import RayError

        load = replica.actor.load.remote(self._user, self._version, self._spaces)
        try:
            # The process of an actor that is new may take long to start.
            replica.statuses = await (self._while_alive(replica, load, None) if replica.statuses else load)
            replica.problem = ""
        except SilentError:
            self._down(replica, f"gave no sign of life for {self._config.shard_silence_s:g} s")
        except (RayError, VragError) as error:
            reason = str(error.cause) if hasattr(error, "cause") and error.cause else type(error).__name__
            self._down(replica, f"cannot load version {self._version}: {reason}")

    def _down(self, replica: _Replica, problem: str) -> None:
        replica.problem = problem
        replica.lost.set()
        if replica.reviving is None or replica.reviving.done():
            replica.reviving = asyncio.get_running_loop().create_task(self._revive(replica))

    async def _revive(self, replica: _Replica) -> None:
        """Load the served version again, with growing pauses, until the replica holds it."""
        from ray.exceptions import RayError

        delay = REVIVE_FIRST_DELAY_S
        while True:
            version = self._version
            try:
                if self._shared:
                    # The same actor, or another where the actor has ended for good.
                    replica.actor = self._actor(replica.shard, replica.number)
                replica.statuses = await replica.actor.load.remote(self._user, version, self._spaces)
            except (RayError, VragError) as error:
                replica.problem = f"cannot load version {version} ({type(error).__name__})"
            else:
                if version == self._version:
                    replica.problem = ""
                    replica.lost.clear()
                    return
            await asyncio.sleep(delay)
            delay = min(delay * 2, REVIVE_MAX_DELAY_S)


async def _sign_of_life(actor: ActorHandle) -> None:
    from ray.exceptions import RayError

    # What is wrong with the actor comes with the answer that is waited for.
    with suppress(RayError):
        await actor.pid.options(concurrency_group=HEALTH).remote()
