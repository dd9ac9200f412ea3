"""Start a training loop on Ray Train, and bring its end back as an error or as the folder of its model."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from vrag_ray.training.config import RLConfig, SFTConfig, TrainConfig
from vrag_ray.training.run_folder import told
from vrag_ray.types import VragError

Tell = Callable[[str], None]


def train_rl(config: RLConfig, tell: Tell) -> Path:
    """Run ``config`` to its end, or go on with it where it stopped; the folder of the trained model.

    ``tell`` is given a line a step. Needs no Ray: one is started for this machine where the process has none.
    """
    from vrag_ray.training.rl import train_loop

    world = config.world.model_copy(update={"collection": _local(config.world.collection)})
    paths = {"examples": _local(config.examples), "validation": _local(config.validation) if config.validation else ""}
    return _fit(config.model_copy(update={"world": world, **paths}), train_loop, tell)


def train_sft(config: SFTConfig, tell: Tell) -> Path:
    """The same for supervised fine-tuning."""
    from vrag_ray.training.sft import train_loop

    return _fit(config.model_copy(update={"trajectories": _local(config.trajectories)}), train_loop, tell)


def _fit(config: TrainConfig, loop: Callable[[Mapping[str, object]], None], tell: Tell) -> Path:
    missing = [name for name in ("torch", "transformers", "vllm") if importlib.util.find_spec(name) is None]
    if missing:
        raise VragError(f"training needs {', '.join(missing)}: install vrag-ray[cpu] or vrag-ray[gpu]")
    if isinstance(config, RLConfig):
        from vrag_ray.training.world import with_family

        config = with_family(config)
    import ray
    from ray import train
    from ray.train.torch import TorchTrainer

    from vrag_ray.serving.local import start_ray

    if not ray.is_initialized():
        start_ray()
    model = config.model.model_copy(update={"path": _local(config.model.path)})
    config = config.model_copy(update={"model": model, "storage": _local(config.storage)})
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
    watcher = threading.Thread(target=told, args=(config.folder, tell, over), name="progress")
    watcher.start()
    try:
        trainer.fit()
    except Exception as error:
        raise VragError(f"the training run {config.name} failed: {_reason(error)}") from error
    finally:
        over.set()
        watcher.join()
    return config.folder / "final"


def _reason(error: BaseException) -> str:
    """Ray Train's own message begins with where it noticed; the workers' errors say why."""
    failures: object = getattr(error, "worker_failures", None)
    if isinstance(failures, dict) and failures:
        return "; ".join(f"worker {rank}: {_last_line(str(failure))}" for rank, failure in sorted(failures.items()))
    return _last_line(str(error)) or type(error).__name__


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def _local(path: str) -> str:
    """Workers have a working folder of their own: what names a local path becomes absolute, a hub id or URI stays."""
    return os.path.abspath(path) if ("://" not in path and Path(path).exists()) or path.startswith(".") else path  # noqa: PTH100
