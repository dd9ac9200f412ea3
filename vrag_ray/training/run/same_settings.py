"""Whether a configuration may go on with a run that has checkpoints: what decides the weights has to be as it was, the
settings and the contents of what they name.

Without this, a second experiment under an old name would go on from the first one's weights, or only return them, and
``config.yaml`` would say that the new settings made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path, PurePosixPath

import yaml

from vrag_ray.training.config import RLConfig, TrainConfig
from vrag_ray.training.run.checkpoints import checkpoints
from vrag_ray.training.run.storage import RunStorage, digest, is_uri
from vrag_ray.types import VragError

CONFIG = "config.yaml"
INPUTS = "inputs.yaml"
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
    """Raises VragError, with what differs, where the run in ``storage`` has checkpoints that other settings or other
    inputs made.

    A run without a checkpoint begins anew with whatever settings. ``model.path`` may be a checkpoint of this run, from
    whose last checkpoint it goes on in any case, unless the run reads its first weights again. Settings that only one
    of both versions of the program has are not compared, nor are inputs without a record.
    """
    if not checkpoints(storage):
        return
    there = yaml.safe_load(storage.read(CONFIG))
    if not isinstance(there, dict):
        return
    here = config.model_dump(mode="json")
    free = MAY_CHANGE
    if config.model.sharded:
        # Each worker has a part of the optimiser's state.
        free = free - {"workers"} | {"workers.cpus", "workers.threads", "workers.max_failures"}
    again = _reads_model_again(config)
    if config.model.path.startswith(f"{storage.uri()}/") and not again:
        free |= {"model.path"}
    differing = list(_differing(there, here, free))
    if differing:
        of_model = any(name.startswith("model.path ") for name in differing)
        its_own = (
            "; model.path cannot be one of those checkpoints: the run still reads its first model, as the reference of "
            "its KL term or below its adapters"
            if again
            else "; model.path may be one of those checkpoints"
        )
        raise VragError(
            f"{storage.uri()} has checkpoints that were made with other settings: {'; '.join(differing)}. Take these "
            f"settings back to go on with it, or give this run another name{its_own if of_model else ''}"
        )
    recorded = yaml.safe_load(storage.read(INPUTS))
    if isinstance(recorded, dict):
        contents = input_contents(config)
        changed = [
            f"{name} had {recorded[name]} (now {now})"
            for name, now in contents.items()
            if recorded.get(name, now) != now
        ]
        if changed:
            raise VragError(
                f"{storage.uri()} has checkpoints that were made with other inputs: {'; '.join(changed)}. Put these "
                f"back to go on with it, give this run another name, or remove {storage.uri(INPUTS)} to go on with the "
                "inputs as they are now"
            )


def record_inputs(storage: RunStorage, config: TrainConfig) -> None:
    """For ``refuse_other_settings``; what a run with checkpoints has recorded stays."""
    if not (checkpoints(storage) and storage.size(INPUTS)):
        storage.write(INPUTS, yaml.safe_dump(input_contents(config), sort_keys=False).encode())


def input_contents(config: TrainConfig) -> dict[str, str]:
    """What ``config`` (with absolute places) names to learn from, by setting: sizes and hashes of files, and the
    version of a collection."""
    from vrag_ray.index.storage.collection import Collection

    values = config.model_dump(mode="json")
    names = ("examples", "trajectories", "pairs")
    places: dict[str, str] = {name: str(values[name]) for name in names if name in values}
    if _reads_model_again(config) and (is_uri(config.model.path) or Path(config.model.path).exists()):
        places["model.path"] = config.model.path
    contents = {name: digest(place) for name, place in places.items()}
    for section, within in (("environment.", values.get("environment", {})), ("", values)):
        if within.get("collection") is not None:
            record = Collection.open(within["collection"]).record
            made = f"version {record.number} of {record.created_at}" if record is not None else "nothing"
            contents[f"{section}collection"] = made
    return contents


def _reads_model_again(config: TrainConfig) -> bool:
    """Whether a run that goes on needs the weights that it began with: below its adapters, or as its reference."""
    return config.model.lora_rank > 0 or (isinstance(config, RLConfig) and config.recipe.kl > 0)


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
