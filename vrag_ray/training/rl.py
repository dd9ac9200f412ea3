"""The reinforcement-learning loop: rollouts, rewards, an update, new weights for the engine; once more.

Each Ray Train worker has a share of the questions, a vLLM engine of its own, and a copy of the model. A step depends on
nothing but the configuration, its number, the weights, and the place in the order of questions, which dynamic sampling
decides: after a restart the same steps give the same weights.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.policies.llm.chat_model import Sampling
from vrag_ray.training.algorithms.credit_assignment import TrainSample, train_samples
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import RLConfig
from vrag_ray.training.rollout.backend import RolloutBackend, open_backend
from vrag_ray.training.rollout.environment import Environment, grounding_line
from vrag_ray.training.rollout.rollout import Task, chosen, rollouts, with_repeats
from vrag_ray.training.rollout.rollout_metrics import ENGINE_LIMITED, SAMPLED, rollout_metrics
from vrag_ray.training.rollout.search_copies import copies_line, search_copy
from vrag_ray.training.rollout.trajectory_store import write_trajectories
from vrag_ray.training.run.storage import RunStorage, local_copy
from vrag_ray.training.trainer.learner import Learner, Update
from vrag_ray.training.trainer.step_timer import StepTimer
from vrag_ray.training.trainer.weights import full_weights
from vrag_ray.training.trajectory import Trajectory
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat
    from vrag_ray.training.run.folder import RunFolder
    from vrag_ray.training.trainer.worker import Worker

PROBED = 8
"""Questions of a rank in whose validation runs sampler and trainer are compared."""
MOSTLY_BROKEN = 0.5
"""Share of refused replies from which the form is what is to be learnt first."""
Groups = list[list[Trajectory]]


def train_loop(values: Mapping[str, object]) -> None:
    """What Ray Train runs in each worker; ``values`` are those of an ``RLConfig``."""
    config = RLConfig.model_validate(values)
    with local_copy(config.model.path) as source, asyncio.Runner() as runner:
        runner.run(_train(config, str(source)))


async def _train(config: RLConfig, source: str) -> None:
    session = await Session.open(config, source)
    try:
        for step in range(session.first, config.steps):
            if config.validation_every and step % config.validation_every == 0:
                await session.validate(step)
            await session.step(step)
        if config.validation_every:
            await session.validate(config.steps)
        session.worker.export(session.storage)
    finally:
        await session.close()


@dataclass(frozen=True, slots=True)
class Session:
    """One worker's part of a run. ``log`` is the first rank's."""

    config: RLConfig
    storage: RunStorage
    worker: Worker
    environment: Environment
    form: ChatFormat
    backend: RolloutBackend
    learner: Learner
    log: RunFolder | None
    timer: StepTimer

    @classmethod
    async def open(cls, config: RLConfig, source: str) -> Session:
        """``source`` is where the model of the run is on this machine."""
        from vrag_ray.policies.llm.vllm_prompt import ChatFormat
        from vrag_ray.training.run.folder import RunFolder
        from vrag_ray.training.trainer.image_processing import Pixels
        from vrag_ray.training.trainer.worker import reference_of, start_worker

        algorithm, temperature = config.recipe, config.rollout.temperature
        worker = start_worker(
            config,
            source,
            config.steps * config.minibatches,
            seed=config.seed,
            temperature=temperature,
            entropy_learns=algorithm.entropy > 0,
        )
        learner = Learner(
            worker.scorer,
            worker.optimizer,
            Pixels(worker.processor),
            worker.ranks,
            pad_id=worker.pad_id,
            tokens_per_batch=config.model.tokens_per_batch,
            reference=reference_of(worker, temperature) if algorithm.kl else None,
        )
        backend = await open_backend(config, worker)
        environment = await Environment.open(
            config.environment, config.reward, config.rollout.concurrency, config.prompt_limits
        )
        storage = RunStorage(config.storage, config.name)
        log = RunFolder(storage, config, config.name, config.made_for) if worker.ranks.rank == 0 else None
        session = cls(
            config, storage, worker, environment, ChatFormat(worker.source), backend, learner, log, StepTimer()
        )
        await backend.load_weights(full_weights(worker.model), str(session.first))
        copies = worker.ranks.gathered(search_copy(environment.evidence.retriever, config.environment.index))
        notes = [copies_line(copies)]
        if config.reward.grounding > 0:
            notes.append(grounding_line(environment.tasks(config.examples), config.examples, config.reward))
        if log is not None:
            log.rewind(session.first)
            for line in notes:
                log.note(line)
        return session

    @property
    def first(self) -> int:
        """The step that comes next after the last checkpoint."""
        return self.worker.done // self.config.minibatches

    async def step(self, step: int) -> None:
        """Sample, learn, and hand the new weights to the engine."""
        config, timer, ranks = self.config, self.timer, self.worker.ranks
        with timer.phase("rollout"):
            groups = await self._sampled(step)
        if config.rollout.keep:
            with timer.phase("store"), self.storage.staged("rollouts") as folder:
                write_trajectories(folder.path / f"step-{step + 1:06d}-rank-{ranks.rank}.parquet", _flat(groups))
        await self.backend.sleep()
        with timer.phase("update"):
            updates = self.learner.update(_cut(groups, config, ranks), config.recipe)
        _check_parity(updates[0], config, step)
        with timer.phase("weights"):
            await self._hand_over(step + 1)
        metrics = rollout_metrics(groups, ranks, config.recipe) | _update_metrics(updates)
        with timer.phase("report"):
            saves = step + 1 == config.steps or (step + 1) % config.checkpoint_every == 0
            self.worker.report({"step": step + 1, "reward": metrics.get("reward/mean", math.nan)}, checkpoint=saves)
        if self.log is not None:
            self.log.log(step + 1, metrics | _speeds(metrics, timer.elapsed()))
            self.log.report(step + 1, config.steps, _progress_line(metrics))

    async def validate(self, step: int) -> None:
        """Run the held-out questions with the weights as they are; every time with the same seeds."""
        with self.timer.phase("validation"):
            groups = await self._run(
                self.worker.ranks.share(self.environment.tasks(self.config.validation)),
                self.config.validation_samples,
                f"{self.config.seed}/validation",
            )
            probed = train_samples(groups[:PROBED], self.config.recipe, self.worker.ranks)
            slept = await self.backend.sleep()
            gap_mean, gap_max = self.learner.gap([sample for run in probed for sample in run])
            if slept:
                await self._hand_over(step)
        metrics = rollout_metrics(groups, self.worker.ranks, self.config.recipe)
        metrics |= {"parity/gap_mean": gap_mean, "parity/gap_max": gap_max}
        if self.log is not None:
            self.log.log(step, {f"validation/{name}": value for name, value in metrics.items()})
            self.log.report(step, self.config.steps, f"validation {_graded(metrics)}{_limited(metrics)}")

    async def _hand_over(self, version: int) -> None:
        """The trainer's weights to the engine, and the device with them."""
        await self.backend.load_weights(full_weights(self.worker.model), str(version))
        await self.backend.wake()

    async def close(self) -> None:
        await self.environment.close()
        await self.backend.close()
        if self.log is not None:
            self.log.close()

    async def _sampled(self, step: int) -> Groups:
        """This rank's groups of a step. With dynamic sampling, groups of equal reward make room for other questions."""
        config, worker = self.config, self.worker
        ranks = worker.ranks
        dynamic = config.recipe.dynamic_sampling
        count = config.rollout.questions
        rounds = 1 + (config.rollout.refill if dynamic else 0)
        tasks = self.environment.tasks(config.examples)
        share = len(ranks.share(range(count)))
        # A checkpoint of an earlier version has no cursor: its steps took as much of the order as they could need.
        first = step * rounds * count if worker.cursor is None else worker.cursor
        end = first
        sampled: Groups = []
        for _ in range(rounds):
            turns = in_turn(ranks.gathered(share - len(sampled)))
            if not turns:
                break
            drawn = with_repeats(chosen(tasks, range(first, end + len(turns)), seed=config.seed))[end - first :]
            end += len(turns)
            own = [task for task, rank in zip(drawn, turns, strict=True) if rank == ranks.rank]
            groups = await self._run(own, config.rollout.group, f"{config.seed}/{step}")
            sampled += [group for group in groups if not dynamic or _teaches(group)]
        worker.cursor = end
        return sampled

    async def _run(self, tasks: Sequence[Task], group: int, seed: str) -> Groups:
        rollout = self.config.rollout
        sampling = Sampling(rollout.max_reply_tokens, rollout.temperature)
        return await rollouts(
            self.environment.context, self.backend, self.form, tasks, group=group, sampling=sampling, seed=seed
        )


def in_turn(missing: Sequence[int]) -> list[int]:
    """The ranks that take the next questions, in order; ``missing`` is the number that each of them still needs."""
    return [rank for number in range(max(missing)) for rank, left in enumerate(missing) if number < left]


def _flat(groups: Groups) -> list[Trajectory]:
    return [run for group in groups for run in group]


def _teaches(group: Sequence[Trajectory]) -> bool:
    return len({run.reward.total for run in group if not run.engine_limited}) > 1


def _cut(groups: Groups, config: RLConfig, ranks: Collectives) -> list[list[TrainSample]]:
    """The samples of each mini-batch: whole runs, as many in each. Their advantages are those of whole groups."""
    parts = config.minibatches
    runs = train_samples(groups, config.recipe, ranks)
    size = -(-len(runs) // parts)
    cut = [runs[start * size : (start + 1) * size] for start in range(parts)]
    return [[sample for run in part for sample in run] for part in cut]


def _check_parity(update: Update, config: RLConfig, step: int) -> None:
    gap = update.gap_mean
    # Not `>`: a gap that is no number is larger than any.
    if not gap <= config.parity_gate:
        raise VragError(
            f"step {step + 1}: sampler and trainer differ by {gap:.3g} in the mean log-prob of a token, more than "
            f"parity_gate = {config.parity_gate:g}: the engine has other weights than the trainer, or other precision"
        )


def _update_metrics(updates: Sequence[Update]) -> dict[str, float]:
    """Means over the optimiser steps of one batch of rollouts; the gap is that of the weights that sampled, and left
    out where nothing taught, so that nothing was compared."""
    count = len(updates)
    names = ("loss", "policy", "kl", "entropy", "clip_low", "clip_high", "grad_norm", "lr")
    means = {f"update/{name}": sum(getattr(update, name) for update in updates) / count for name in names}
    compared = updates[0]
    if compared.tokens:
        means |= {
            "parity/gap_mean": compared.gap_mean,
            "parity/gap_max": compared.gap_max,
            "parity/kl": compared.gap_kl,
            "parity/effective_share": compared.effective,
            "parity/truncated_share": compared.truncated,
        }
    if taught := [update for update in updates if update.tokens]:
        means["update/ratio_min"] = min(update.ratio_min for update in taught)
        means["update/ratio_max"] = max(update.ratio_max for update in taught)
    segments, counted = sum(update.segments for update in updates), sum(update.kept_segments for update in updates)
    return means | {
        "update/tokens": float(sum(update.tokens for update in updates)),
        "update/kept_tokens": float(sum(update.kept_tokens for update in updates)),
        "update/kept_share": counted / max(segments, 1),
    }


def _progress_line(metrics: Mapping[str, float]) -> str:
    reward = f"reward {metrics['reward/mean']:.3f}, " if "reward/mean" in metrics else ""
    return (
        f"{reward}{_graded(metrics)}, "
        f"turns {metrics.get('run/turns', 0.0):.1f}, kept {metrics['update/kept_share']:.2f}, "
        f"{_gap(metrics)}{_equal(metrics)}{_limited(metrics)}"
    )


def _gap(metrics: Mapping[str, float]) -> str:
    gap = metrics.get("parity/gap_mean")
    return f"sampler/trainer gap {gap:.1e}" if gap is not None else "nothing to learn from"


def _graded(metrics: Mapping[str, float]) -> str:
    return f"success {metrics['reward/success']:.3f}" if "reward/success" in metrics else "no run could be graded"


def _equal(metrics: Mapping[str, float]) -> str:
    """Where no two runs of a question differ, most algorithms learn nothing, and a base model may stay so for ever."""
    if metrics.get("reward/equal_groups") != 1.0:
        return ""
    broken = metrics.get("run/invalid", 0.0)
    why = f" ({broken:.0%} of replies break the form: imitate first)" if broken >= MOSTLY_BROKEN else ""
    return f", all runs of each question earn the same{why}"


def _limited(metrics: Mapping[str, float]) -> str:
    """Reported only where there is something to mend; a step without any run has no share."""
    count = metrics[ENGINE_LIMITED]
    share = metrics.get(f"{ENGINE_LIMITED}_share", 0.0)
    return f", {count:.0f} runs ({share:.0%}) cut short by the engine's limits" if count else ""


def _speeds(metrics: Mapping[str, float], seconds: Mapping[str, float]) -> dict[str, float]:
    rollout, update = seconds.get("seconds/rollout", 0.0), seconds.get("seconds/update", 0.0)
    return dict(seconds) | {
        "speed/rollout_tokens_per_s": metrics[SAMPLED] / rollout if rollout else 0.0,
        "speed/update_tokens_per_s": metrics["update/tokens"] / update if update else 0.0,
        "speed/overhead_share": 1 - (rollout + update) / seconds["seconds/step"],
    }
