"""In Ray Train's place: keeps what the workers would be given, and starts none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest


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
