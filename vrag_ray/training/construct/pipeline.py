"""``construct``: questions in, trajectories of two experts out, filtered and judged, on Ray Data.

examples → (skip what is finished) → one block a question → run, filter, judge, store, many at once in each actor.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.ports import EvidenceSource
from vrag_ray.client.blocking import Client
from vrag_ray.client.evidence import SystemPages, SystemRetriever
from vrag_ray.client.http import AsyncClient
from vrag_ray.cluster import require_ray
from vrag_ray.config import OpenAiConfig
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.policies.llm.chat_model import Sampling
from vrag_ray.policies.llm.chat_policy import ChatPolicy
from vrag_ray.policies.llm.openai_api import OpenAiModel
from vrag_ray.policies.llm.prompt_limits import ModelLimits
from vrag_ray.policies.registry import wire_protocol
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace, gold_places
from vrag_ray.questions.judge import Judge, MalformedVerdictError, check_judge
from vrag_ray.questions.judge_endpoint import check_endpoint
from vrag_ray.training.construct.config import ConstructConfig
from vrag_ray.training.construct.experts import TwoExperts
from vrag_ray.training.construct.filters import refusal
from vrag_ray.training.construct.store import Constructed, ConstructStore
from vrag_ray.training.rewards.grader import AnswerScorer, Grader
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    import ray.data

logger = logging.getLogger(__name__)
ACTOR_CPUS = 0.1
"""An actor waits for endpoints nearly all of its time."""


@dataclass(frozen=True, slots=True)
class ConstructReport:
    """What a construction did. ``skipped`` were finished before; ``refused`` counts runs by reason; ``failed`` maps
    the uids that could not be run to the error: the next construction tries them again.
    """

    kept: int
    skipped: int
    refused: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One example is through: ``refused`` and ``error`` are both "" where its run is to be learnt from."""

    uid: str
    refused: str
    error: str


def construct(
    examples: Sequence[Example],
    config: ConstructConfig,
    on_outcome: Callable[[Outcome], None] | None = None,
) -> ConstructReport:
    """Run every example that has no finished run yet, on this process's Ray, or on one that is started where there is
    something to run. Blocks until all are through.

    A run is stored the moment it is over, so what a kill loses are the runs under way. Raises ``VragError`` for a
    configuration that cannot work, and for gold pages that the gateway's collection lacks where gold boxes are
    demanded; an example that fails is in ``ConstructReport.failed`` and ends nothing.
    """
    _grader(config)  # refuses a scorer that is none before anything is started
    store = ConstructStore(config.output)
    # Workers have working folders of their own.
    config = with_changes(config, {"output": store.root, "judge_cache": _absolute(config.judge_cache)})
    finished = store.finished(example.uid for example in examples)
    waiting = [example for example in examples if example.uid not in finished]
    refused: Counter[str] = Counter()
    failed: dict[str, str] = {}
    stored = 0
    if waiting:
        gold = _gold(examples, config) if config.limits.min_box_recall else {}
        for block in _graph(waiting, config, gold).iter_batches(
            batch_size=None, batch_format="pyarrow", prefetch_batches=0
        ):
            for row in block.to_pylist():
                outcome = Outcome(**row)
                if outcome.error:
                    failed[outcome.uid] = outcome.error
                elif outcome.refused:
                    refused[outcome.refused] += 1
                else:
                    stored += 1
                if on_outcome is not None:
                    on_outcome(outcome)
    store.write_failures(failed)
    return ConstructReport(stored, len(finished), dict(refused.most_common()), failed)


def checked(examples: Sequence[Example], config: ConstructConfig) -> str:
    """What there is to run, in a line; calls the gateway and each endpoint once, and starts and writes nothing.

    Raises VragError for what cannot work.
    """
    _grader(config)
    with _gateway(config) as client:
        documents = client.documents(limit=1).total
    if config.limits.min_box_recall:
        _gold(examples, config)
    finished = len(ConstructStore(config.output).finished(example.uid for example in examples))
    found = [f"{len(examples)} questions, {finished} of them finished", f"{documents} documents to search"]
    found += [asyncio.run(check_endpoint(config.planner, "planner"))]
    found += [asyncio.run(check_endpoint(config.grounding, "grounding"))]
    if config.scorer == AnswerScorer.JUDGE and config.judge is not None:
        found += [asyncio.run(check_judge(config.judge, "judge"))]
    return "; ".join(found)


def _gateway(config: ConstructConfig) -> Client:
    return Client(config.gateway, api_key=os.environ.get(config.gateway_key_env) or None)


def _gold(examples: Sequence[Example], config: ConstructConfig) -> dict[str, tuple[GoldPlace, ...]]:
    """By uid. Raises VragError as ``gold_places``, and where no example has a gold box to demand."""
    with _gateway(config) as client:
        gold = gold_places(examples, client.every_document())
    if all(place.box is None for places in gold.values() for place in places):
        raise VragError(
            f"limits.min_box_recall is {config.limits.min_box_recall:g}, but no question of {config.examples} has a "
            "gold box: give their gold pages boxes, or set limits.min_box_recall to 0"
        )
    return gold


def _graph(
    waiting: Sequence[Example], config: ConstructConfig, gold: Mapping[str, Sequence[GoldPlace]]
) -> ray.data.Dataset:
    import ray.data
    from ray.data import ActorPoolStrategy, DataContext

    require_ray()
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.issue_detectors_config.detectors = []
    rows = [{"example": example.model_dump_json()} for example in waiting]
    # A block a question: none waits for a slower one, and none is lost with another.
    return ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        Experts,
        batch_size=1,
        fn_constructor_args=(config, gold),
        compute=ActorPoolStrategy(
            size=min(config.workers, len(rows)),
            max_tasks_in_flight_per_actor=config.concurrency,
            max_concurrent_calls_per_actor=config.concurrency,
        ),
        num_cpus=ACTOR_CPUS,
    )


class Experts:
    """The actor: holds the endpoints open and runs many examples at once on one event loop.

    ``gold`` is by the uid of an example; it may be left empty where the limits demand no gold boxes.
    """

    def __init__(self, config: ConstructConfig, gold: Mapping[str, Sequence[GoldPlace]]) -> None:
        self._config = config
        self._gold = gold
        self._store = ConstructStore(config.output)
        # Both experts get the same instruction.
        limits = ModelLimits(min(config.planner.max_images, config.grounding.max_images), model="planner")
        self._protocol = wire_protocol(config.agent_name, config.agent, config.corpus, limits)
        self._planner = OpenAiModel(config.planner)
        self._grounding = OpenAiModel(config.grounding)
        self._grade = _grader(config)
        gateway = AsyncClient(config.gateway, api_key=os.environ.get(config.gateway_key_env) or None)
        self._source = EvidenceSource(SystemRetriever(gateway), SystemPages(gateway))
        self._experts = {
            "planner": config.planner.model,
            "grounding": config.grounding.model,
            "scorer": config.scorer,
            "judge": config.judge.model if config.judge is not None else "",
        }

    async def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        texts = [str(text) for text in batch["example"]]
        done = await asyncio.gather(*(self._outcome(Example.model_validate_json(text)) for text in texts))
        return {
            "uid": [question.uid for question in done],
            "refused": [question.refused for question in done],
            "error": [question.error for question in done],
        }

    async def _outcome(self, example: Example) -> Outcome:
        """Never raises: Ray Data would drop or end more than this example."""
        try:
            run = await self._run(example)
            await asyncio.to_thread(self._store.put, run)
        except VragError as error:
            return Outcome(example.uid, "", str(error))
        except Exception as error:
            logger.exception("the construction of %s failed", example.uid)
            return Outcome(example.uid, "", f"internal error: {type(error).__name__}: {error}")
        return Outcome(example.uid, run.refused, "")

    async def _run(self, example: Example) -> Constructed:
        config = self._config
        policy = TwoExperts(
            self._policy(self._planner, config.planner, example),
            self._policy(self._grounding, config.grounding, example),
            self._protocol,
            FAMILIES[config.grounding_family],
        )
        run = Run(
            example.uid,
            example.question,
            policy=policy,
            protocol=self._protocol,
            source=self._source,
            config=config.agent,
            clock=time.monotonic,
            agent=config.agent_name,
        )
        record = await run.finish()
        if record.status is RunStatus.ERROR:
            raise VragError(record.error)
        refused = refusal(record, config.limits, self._gold.get(example.uid, ()))
        reward = None
        if not refused:
            try:
                reward = await self._grade(record, example)
                refused = "" if reward.success else "judged wrong"
            except MalformedVerdictError as error:
                logger.warning("example %s: %s", example.uid, error)
                refused = "no verdict"
        return Constructed(example, record, tuple(policy.exchanges), refused, reward, policy.turns, self._experts)

    def _policy(self, model: OpenAiModel, endpoint: OpenAiConfig, example: Example) -> ChatPolicy:
        return ChatPolicy(
            model,
            self._protocol,
            sampling=Sampling(max_tokens=self._config.agent.max_reply_tokens),
            thinking=endpoint.thinking,
            native_tools=endpoint.native_tools and bool(self._protocol.tools),
            session=example.uid,
            reads_pages=False,
        )


def _absolute(folder: str | None) -> str | None:
    return CollectionFiles(folder).root if folder is not None else None


def _grader(config: ConstructConfig) -> Grader:
    judge = Judge(config.judge, cache=config.judge_cache) if config.judge is not None else None
    return Grader(config.scorer, judge=judge)
