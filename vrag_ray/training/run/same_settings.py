"""Whether a configuration may go on with a run that has checkpoints: what decides the weights has to be as it was.

Without this, a second experiment under an old name would go on from the first one's weights, or only return them, and
``config.yaml`` would say that the new settings made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import PurePosixPath

import yaml

from vrag_ray.training.config import TrainConfig
from vrag_ray.training.run.storage import RunStorage
from vrag_ray.types import VragError

CONFIG = "config.yaml"
MAY_CHANGE = frozenset({
    # How far it goes, and what is measured and stored on the way.
    "steps", "epochs", "checkpoint_every", "kept_checkpoints", "validation", "validation_every", "validation_samples",
    "parity_gate", "rollout.keep",
    # Where it runs and is stored, and how a pass is cut and computed.
    "name", "storage", "gpu_memory_gb", "needs", "workers", "model.gpu", "model.compute_dtype",
    "model.gradient_checkpointing", "model.tokens_per_batch", "rollout.concurrency", "rollout.engine",
    "rollout.served", "environment.index", "environment.agent.deadline_s", "reward.judge_cache",
})  # fmt: skip
JUDGE, JUDGE_MODEL = "reward.judge.", "reward.judge.model"
"""Another endpoint may serve the same judge; another model is another judge."""
PLACES = frozenset({"model.path", "examples", "trajectories", "pairs", "environment.collection", "collection"})
JOB_COPY = "_ray_pkg_"
"""How the name of Ray's copy of a job's ``--working-dir`` begins; the rest is another one for each content."""


def refuse_other_settings(storage: RunStorage, config: TrainConfig) -> None:
    """Raises VragError, with what differs, where the run in ``storage`` has checkpoints that other settings made.

    A run without a checkpoint begins anew with whatever settings. ``model.path`` may be a checkpoint of this run, from
    whose last checkpoint it goes on in any case. Settings that only one of both versions of the program has are not
    compared.
    """
    if not storage.has_checkpoint():
        return
    there = yaml.safe_load(storage.read(CONFIG))
    if not isinstance(there, dict):
        return
    here = config.model_dump(mode="json")
    free = MAY_CHANGE
    if config.model.sharded:
        # Each worker has a part of the optimiser's state.
        free = free - {"workers"} | {"workers.cpus", "workers.threads", "workers.max_failures"}
    if config.model.path.startswith(f"{storage.uri()}/"):
        free |= {"model.path"}
    differing = list(_differing(there, here, free))
    if differing:
        raise VragError(
            f"{storage.uri()} has checkpoints that were made with other settings: {'; '.join(differing)}. Take these "
            "settings back to go on with it, or give this run another name; model.path may be one of those checkpoints"
        )


def _differing(
    there: Mapping[str, object], here: Mapping[str, object], free: Set[str], within: str = ""
) -> Iterator[str]:
    for name, now in here.items():
        setting = f"{within}{name}"
        of_judge = setting.startswith(JUDGE) and setting != JUDGE_MODEL
        if setting in free or of_judge or name not in there or there[name] == now:
            continue
        before = there[name]
        if isinstance(before, dict) and isinstance(now, dict):
            yield from _differing(before, now, free, f"{setting}.")
        elif setting not in PLACES or not _same_place(before, now):
            yield f"{setting} {before} (now {now})"


def _same_place(before: object, now: object) -> bool:
    """The same name in a folder of the same name: a job's inputs are in another copy each time."""
    pairs = zip(*(reversed(PurePosixPath(str(place)).parts[-2:]) for place in (before, now)), strict=False)
    return all(left == right or (JOB_COPY in left + right and index > 0) for index, (left, right) in enumerate(pairs))
