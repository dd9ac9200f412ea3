"""In Ray Train's place: keeps what the workers would be given, and starts none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from vrag_ray.training.run.checkpoints import RECORD
from vrag_ray.training.run.storage import RunStorage


@dataclass
class TrainDouble:
    """``config`` is that of the loop on every worker; ``storage_path`` is Ray Train's own.

    ``failure`` is what the run ends with.
    """

    config: dict[str, Any] = field(default_factory=dict)
    storage_path: str = ""
    failure: BaseException | None = None

    def install(self, patch: pytest.MonkeyPatch) -> None:
        double = self

        class Trainer:
            def __init__(self, _: object, *, train_loop_config: dict[str, Any], run_config: Any, **__: object) -> None:
                double.config, double.storage_path = train_loop_config, run_config.storage_path

            def fit(self) -> None:
                """Nothing, or what went wrong."""
                if double.failure is not None:
                    raise double.failure

        patch.setattr("ray.train.torch.TorchTrainer", Trainer)


def leave_checkpoints(storage: RunStorage, *names: str) -> None:
    """Checkpoints of these names with a model each, and Ray Train's own record of them."""
    from ray.train.v2._internal.execution.checkpoint.checkpoint_manager import (
        _CheckpointManagerState,
        _TrainingResultState,
    )

    results = [_TrainingResultState(checkpoint_dir_name=name, metrics={"step": 1}) for name in names]
    for name in names:
        storage.write(f"{name}/model.safetensors", b"weights")
    state = _CheckpointManagerState(
        checkpoint_results=results,
        checkpoint_report_indices=list(range(len(names))),
        latest_checkpoint_result=results[-1],
        pending_training_results=[],
        pending_validation_specs=[],
        current_report_index=len(names),
        validated_checkpoint_dir_names=[],
        timed_out_validation_checkpoint_dir_names=[],
        failed_validation_checkpoint_dir_names=[],
    )
    storage.write(RECORD, state.model_dump_json().encode())
