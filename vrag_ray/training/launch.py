"""Start a training loop on Ray Train, and bring its end back as an error or as the place of its model."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import yaml

from vrag_ray.policies.llm.model_family import CONFIG as MODEL_CONFIG
from vrag_ray.questions.judge import check_judge
from vrag_ray.training.config import ModelConfig, RLConfig, SFTConfig, TrainConfig
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.training.rewards.grader import AnswerScorer
from vrag_ray.training.run.checkpoints import checkpoints, mend_record
from vrag_ray.training.run.folder import ERRORS, FINAL, claim, follow_progress, refuse_other_kind
from vrag_ray.training.run.same_settings import record_inputs, refuse_other_settings
from vrag_ray.training.run.storage import RunStorage, has_file, is_uri, local_copy
from vrag_ray.training.run.submitted_paths import input_place, model_place, output_place
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

REINFORCEMENT, IMITATION, RETRIEVER = "reinforcement learning", "supervised fine-tuning", "retriever training"
C = TypeVar("C", bound=TrainConfig)
OnLine = Callable[[str], None]
LOST = (
    "its process was killed, mostly because memory had run out, or it crashed. Lower model.tokens_per_batch, "
    "rollout.concurrency or the number of workers, or free memory"
)
FULL_DISK = ". Free space on that disk, or use another storage"
FINISHED = "finished.yaml"
HOW_FAR = ("steps", "epochs", "validation", "validation_every", "validation_samples")
"""Settings with which a finished run has more to do where they differ from those that it ended with."""
SLOW_ON_A_GPU = (
    "notice: the model computes in float32, which a GPU does many times slower and with more memory than in bfloat16 "
    "(docs/results/gpu.md): `model.sharded: true` with `model.compute_dtype: bfloat16` does that with weights in "
    "float32, also for one worker"
)


def train_rl(config: RLConfig, on_line: OnLine) -> str:
    """Run ``config`` to its end, or go on with it where it stopped; the absolute path or URI of the trained model.

    ``on_line`` is given the place of the run and then a line a step. Needs no Ray: one is started for this machine
    where the process has none. Relative paths are those of this process (``submitted_paths``).
    """
    from vrag_ray.training.rl import train_loop

    placed, _ = checked_rl(config)
    return _fit(placed, train_loop, on_line, REINFORCEMENT)


def checked_rl(config: RLConfig) -> tuple[RLConfig, str]:
    """``config`` as the workers get it, and in a line what there is to learn from.

    Starts nothing and writes nothing. Where a judge scores, it is called once. Raises VragError for what is missing, or
    cannot work.
    """
    from vrag_ray.training.rollout.environment import check_questions, with_family

    _require("torch", "transformers", "vllm", *_of_adapters(config))
    environment = with_changes(config.environment, {"collection": _collection(config.environment.collection)})
    cache = config.reward.judge_cache
    reward = with_changes(
        config.reward, {"judge_cache": output_place("reward.judge_cache", cache) if cache is not None else None}
    )
    model = _with_model(config)
    if config.rollout.served is not None and is_uri(model.path):
        raise VragError(
            f"rollout.served loads the model from a folder that every node can read: copy {model.path} to one"
        )
    paths = {
        "examples": input_place("examples", config.examples),
        "validation": input_place("validation", config.validation) if config.validation else "",
    }
    placed = with_changes(config, {"environment": environment, "reward": reward, "model": model, **paths})
    found = check_questions(placed)
    placed = _with_storage(with_family(placed), REINFORCEMENT)
    if reward.scorer == AnswerScorer.JUDGE and reward.judge is not None and not _is_finished(placed):
        # Last, because it is a paid request. The model and the engine take minutes to load before the first rollout.
        found = f"{found}; {asyncio.run(check_judge(reward.judge, 'reward.judge'))}"
    return placed, found


def train_sft(config: SFTConfig, on_line: OnLine) -> str:
    """The same for supervised fine-tuning, which needs no vLLM."""
    from vrag_ray.training.sft import train_loop

    return _fit(_placed_sft(config), train_loop, on_line, IMITATION)


def checked_sft(config: SFTConfig) -> tuple[SFTConfig, str]:
    """The same as ``checked_rl``; reads every trajectory with the model's tokenizer, as each worker will."""
    from vrag_ray.training.sft import replies_of

    placed = _placed_sft(config)
    with local_copy(placed.model.path, weights=False) as model:
        replies = replies_of(placed, str(model))
    return placed, f"{replies}; the longest that are learnt have {max(call.tokens for call in replies.calls)} tokens"


def _placed_sft(config: SFTConfig) -> SFTConfig:
    from vrag_ray.training.sft_replies import conversations_file

    _require("torch", "transformers", *_of_adapters(config))
    paths = {
        "trajectories": input_place("trajectories", config.trajectories),
        "validation": input_place("validation", config.validation) if config.validation else "",
    }
    for place in paths.values():
        if place and not is_uri(place):
            conversations_file(Path(place))
    return _with_storage(with_changes(config, {**paths, "model": _with_model(config)}), IMITATION)


def train_retriever(config: RetrieverConfig, on_line: OnLine) -> str:
    """The same for a retriever: contrastive training on pairs."""
    from vrag_ray.training.retriever.train import train_loop

    return _fit(_placed_retriever(config), train_loop, on_line, RETRIEVER)


def checked_retriever(config: RetrieverConfig) -> tuple[RetrieverConfig, str]:
    """The same as ``checked_sft``, of pairs; pictures are looked for, not decoded."""
    from vrag_ray.training.retriever.train import material

    placed = _placed_retriever(config)
    with (
        local_copy(placed.model.path, weights=False) as model,
        material(placed, str(model)) as (pairs, _, _, batches),
    ):
        return placed, f"{pairs}; {batches.steps_an_epoch} steps an epoch"


def _placed_retriever(config: RetrieverConfig) -> RetrieverConfig:
    _require("torch", "transformers", *_of_adapters(config))
    paths = {
        "pairs": input_place("pairs", config.pairs),
        "model": _with_model(config),
        "collection": _collection(config.collection, "collection") if config.collection is not None else None,
    }
    return _with_storage(with_changes(config, paths), RETRIEVER)


def _with_storage(config: C, kind: str) -> C:
    """With the place of the run, where no run of another kind or of other settings may be."""
    placed = with_changes(config, {"storage": output_place("storage", config.storage)})
    storage = RunStorage(placed.storage, placed.name)
    refuse_other_kind(storage, kind)
    refuse_other_settings(storage, placed)
    return placed


def _require(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise VragError(f"training needs {', '.join(missing)}: pip install '.[cpu]' or '.[gpu]' in the checkout")


def _of_adapters(config: TrainConfig) -> Sequence[str]:
    return ("peft",) if config.model.lora_rank else ()


def _with_model(config: TrainConfig) -> ModelConfig:
    place = model_place(config.model.path)
    if (is_uri(place) or Path(place).is_absolute()) and not has_file(place, MODEL_CONFIG):
        raise VragError(f"model.path: {place} is no folder of a Hugging Face model: it has no {MODEL_CONFIG}")
    return with_changes(config.model, {"path": place})


def _collection(root: str, field: str = "environment.collection") -> str:
    """Searching would make an empty collection where there is none."""
    from vrag_ray.index.storage.collection import Collection

    place = input_place(field, root)
    if Collection.open(place).record is None:
        raise VragError(f"{field}: {place} is empty: fill it with `vrag ingest` first")
    return place


def _fit(config: TrainConfig, loop: Callable[[Mapping[str, object]], None], on_line: OnLine, kind: str) -> str:
    storage = RunStorage(config.storage, config.name)
    if _is_finished(config):
        on_line(f"this run is finished, and nothing is left to do: {storage.uri()}")
        return storage.uri(FINAL)
    from ray import train
    from ray.train.torch import TorchTrainer

    from vrag_ray.cluster import require_ray

    storage.create()
    claim(storage, kind)
    if storage.size(FINISHED):
        storage.write(FINISHED, b"")
    record_inputs(storage, config)
    on_line(f"everything of this run: {storage.uri()}")
    for notice in mend_record(storage):
        on_line(notice)
    if config.model.gpu and config.model.computed_in == "float32":
        on_line(SLOW_ON_A_GPU)
    require_ray()
    workers = config.workers
    trainer = TorchTrainer(
        loop,
        train_loop_config=config.model_dump(mode="json"),
        scaling_config=train.ScalingConfig(
            num_workers=workers.count, use_gpu=workers.gpu, resources_per_worker={"CPU": workers.cpus}
        ),
        run_config=train.RunConfig(
            name=config.name,
            storage_path=config.storage,
            failure_config=train.FailureConfig(max_failures=workers.max_failures),
            checkpoint_config=train.CheckpointConfig(num_to_keep=config.kept_checkpoints),
            # Ray gives a worker as many threads as it has logical CPUs, and those are only counters.
            worker_runtime_env={"env_vars": {"OMP_NUM_THREADS": str(workers.threads)}},
        ),
    )
    over = threading.Event()
    watcher = threading.Thread(target=follow_progress, args=(storage, on_line, over), name="progress")
    watcher.start()
    try:
        trainer.fit()
    except SystemExit as left:
        # Ray Train's own handler of Ctrl-C stops the workers, and then leaves the process without a word.
        raise KeyboardInterrupt(
            f"interrupted: the same command goes on after the last checkpoint in {storage.uri()}"
        ) from left
    except Exception as error:
        raise VragError(f"the training run {config.name} failed: {_failure(error, config, storage)}") from error
    finally:
        over.set()
        watcher.join()
    storage.write(FINISHED, yaml.safe_dump(_extent(config)).encode())
    return storage.uri(FINAL)


def _is_finished(config: TrainConfig) -> bool:
    """Whether the run has ended with all that ``config`` demands, and its model is there: model and engine need not be
    loaded to export it once more. A run without checkpoints begins anew, whatever its settings."""
    storage = RunStorage(config.storage, config.name)
    has_ended = yaml.safe_load(storage.read(FINISHED)) == _extent(config)
    return has_ended and bool(checkpoints(storage)) and storage.size(f"{FINAL}/config.json") > 0


def _extent(config: TrainConfig) -> dict[str, object]:
    return config.model_dump(mode="json", include=set(HOW_FAR))


def _failure(error: BaseException, config: TrainConfig, storage: RunStorage) -> str:
    """Cause, remedy, and last where more stands: Ray Train's own message begins with where it noticed."""
    failures: object = getattr(error, "worker_failures", None)
    by_rank: dict[int, BaseException] = dict(sorted(failures.items())) if isinstance(failures, dict) else {}
    alone: object = getattr(error, "controller_failure", error)
    # Of a process that is gone, the others' errors only say that it does not answer.
    lost = [rank for rank, cause in by_rank.items() if _is_gone(cause)]
    ranks: dict[str, list[int]] = {}
    for rank, cause in by_rank.items():
        ranks.setdefault(_reason(cause), []).append(rank)
    if lost or _is_gone(alone):
        text = f"{_workers(lost) if lost else 'a worker'}: {LOST}"
        text += "" if config.workers.max_failures else "; workers.max_failures above 0 replaces lost workers"
    else:
        text = "; ".join(f"{_workers(own)}: {reason}" for reason, own in ranks.items()) or _reason(alone)
        if by_rank and all(isinstance(cause, VragError) for cause in by_rank.values()):
            return text
        text += FULL_DISK if any(map(_is_full_disk, (*by_rank.values(), alone))) else ""
    last = checkpoints(storage)[-1:]
    then = f"goes on from {last[0]}" if last else "begins anew"
    return f"{text}. The same command {then}. {_stored(str(error), storage)}"


def _reason(cause: object) -> str:
    """An error of this package names what is wrong; of others, the class may say more than the message."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    if isinstance(cause, VragError):
        return " ".join(lines)
    return ": ".join([type(cause).__name__, *lines[-1:]])


def _is_gone(cause: object) -> bool:
    """Whether it reports a process that ended: at its start, or when its state is requested."""
    from ray.exceptions import RayActorError

    return isinstance(getattr(cause, "health_check_failure", cause), RayActorError)


def _is_full_disk(cause: object) -> bool:
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _workers(ranks: Sequence[int]) -> str:
    return f"worker {ranks[0]}" if len(ranks) == 1 else f"workers {', '.join(map(str, ranks))}"


def _stored(traceback: str, storage: RunStorage) -> str:
    """Where ``traceback`` is now: Ray's logs end with Ray."""
    try:
        storage.write(ERRORS, traceback.encode())
    except OSError as fault:
        # The failure itself is what the user must hear of; on a full disk it is the same.
        return f"The traceback cannot be written to {storage.uri(ERRORS)}: {fault.strerror or fault}"
    return f"Traceback: {storage.uri(ERRORS)}"
