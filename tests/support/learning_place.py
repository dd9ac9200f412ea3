"""Where the tests train, and how to read what a run has left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import torch
from safetensors.torch import load_file

from benchmarks.mosaic.world.agent import mosaic_agent
from benchmarks.mosaic.world.mosaic import Mosaic
from tests.support.learning_scorers import earned
from tests.support.learning_sizes import GROUP, QUESTIONS, STEPS, WORKERS
from vrag_ray.config import CorpusConfig
from vrag_ray.questions.files import save_examples
from vrag_ray.training.config import EnvironmentConfig, RLConfig, SFTConfig
from vrag_ray.training.trainer.image_processing import Pixels

VALIDATION = "validation.jsonl"
SOURCES = ("slidevqa_test", "mmlongdoc")
"""Of two workers each validates the questions of one: they share them out in turn."""


@dataclass(frozen=True)
class Place:
    """Where the tests train."""

    root: Path
    mosaic: Mosaic

    @property
    def environment(self) -> EnvironmentConfig:
        return EnvironmentConfig(
            collection=str(self.root / "collection"), agent=mosaic_agent(), corpus=CorpusConfig(ocr=False)
        )

    def write_validation(self) -> None:
        """The held-out questions, each from one of ``SOURCES``."""
        sources = cycle(SOURCES)
        named = [example.model_copy(update={"data_source": next(sources)}) for example in self.mosaic.validation]
        save_examples(self.root / VALIDATION, named)

    def sft(self, **values: object) -> SFTConfig:
        own = {
            "name": "sft",
            "storage": str(self.root / "runs"),
            "model": {"path": str(self.root / "model"), "tokens_per_batch": 2048},
            "optimizer": {"lr": 4e-3, "warmup_steps": 10, "schedule": "cosine", "betas": [0.9, 0.98]},
            "trajectories": str(self.root / "expert"),
            "epochs": 9,
            "batch": 32,
            "checkpoint_every": 1000,
        }
        return SFTConfig.model_validate(own | values)

    def rl(self, start: Path, **values: object) -> RLConfig:
        own = {
            "name": "rl",
            "storage": str(self.root / "runs"),
            "model": {"path": str(start), "freeze_vision": False, "tokens_per_batch": 2048},
            "optimizer": {"lr": 3e-4, "weight_decay": 0.0},
            "workers": {"count": WORKERS},
            "examples": str(self.root / "world/train.jsonl"),
            "validation": str(self.root / VALIDATION),
            "validation_every": STEPS,
            "steps": STEPS,
            "algorithm": "ggpo",
            "rollout": {
                "questions": QUESTIONS,
                "group": GROUP,
                "max_reply_tokens": 48,
                "engine": {"max_model_len": 1024, "max_num_seqs": 16, "max_batched_tokens": 2048, "max_images": 8},
            },
            "reward": {"scorer": f"{earned.__module__}:earned"},
            "environment": self.environment.model_dump(),
            "checkpoint_every": 1,
        }
        return RLConfig.model_validate(own | values)


def pixels_of(place: Place) -> Pixels:
    from transformers import AutoProcessor

    return Pixels(AutoProcessor.from_pretrained(str(place.root / "model")))


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def alike(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    """To the last bit."""
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
