"""Supervised fine-tuning on Ray Train: whole, sharded, and with a worker killed. Too small to learn more than form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.learning_place import Place, alike, metrics, weights
from tests.support.learning_sizes import WORKERS
from tests.support.processes import children_called
from tests.support.tiny_vllm import needs_vllm
from vrag_ray.training.config import SFTConfig
from vrag_ray.training.launch import train_sft
from vrag_ray.training.rollout.trajectory_store import read_calls
from vrag_ray.training.sft import batch_of
from vrag_ray.training.trainer.batch import parts
from vrag_ray.types import VragError

pytestmark = needs_vllm
SHARDING_TOLERANCE = 1e-4


def test_sft_learns_the_replies_of_the_expert(tuned: Path) -> None:
    losses = [line["sft/loss"] for line in metrics(tuned)]
    assert losses[-1] < 0.5 < losses[0]
    assert metrics(tuned)[-1]["sft/exact"] > 0.8
    assert (tuned / "README.md").exists() and any((tuned / "tensorboard").iterdir())


@pytest.mark.exhaustive
def test_a_run_that_fails_says_why_in_one_line(place: Place) -> None:
    (place.root / "broken").mkdir()
    (place.root / "broken/runs.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        VragError, match=r"the training run lost failed: .*runs\.parquet holds no trajectories"
    ) as caught:
        train_sft(place.sft(name="lost", trajectories=str(place.root / "broken")), lambda line: None)
    assert "\n" not in str(caught.value)


def killing(killed: list[int]) -> Callable[[str], None]:
    """Kills a worker once, after the checkpoint of step 10."""

    def tell(line: str) -> None:
        if line.startswith("step 10/") and not killed:
            victim = children_called("ray::RayTrainWorker")[0]
            killed.append(victim.pid)
            victim.kill()

    return tell


# Quick forms: ``trainer/test_optimizer`` (the same bits after a restore), ``retriever/test_command`` (on Ray Train, a
# run goes on from its checkpoint) and ``run/test_folder`` (steps that are done again).
@pytest.mark.exhaustive
def test_a_killed_worker_is_replaced_and_the_run_ends_with_the_same_bits(place: Place, tuned: Path) -> None:
    killed: list[int] = []
    config = place.sft(name="killed", workers={"count": 1, "max_failures": 1}, checkpoint_every=5)
    again = train_sft(config, killing(killed))
    assert killed
    assert alike(weights(Path(again)), weights(tuned / "final"))


def in_two_parts(place: Place, name: str, *, sharded: bool = True) -> SFTConfig:
    model: dict[str, object] = {"path": str(place.root / "model"), "tokens_per_batch": 2048, "sharded": sharded}
    return place.sft(
        name=name, model=model, workers={"count": WORKERS, "max_failures": 1}, epochs=3, checkpoint_every=5
    )


def uneven_steps(config: SFTConfig) -> list[int]:
    """Steps in which the ranks cut their shares into unequal numbers of micro-batches."""
    calls = list(read_calls(Path(config.trajectories)))
    steps: list[int] = []
    for step in range(-(-len(calls) // config.batch)):
        batch = batch_of(calls, step, config.batch, config.seed)
        shares = (batch[rank::WORKERS] for rank in range(WORKERS))
        counts = {len(list(parts([[call.tokens] for call in own], config.model.tokens_per_batch))) for own in shares}
        if len(counts) > 1:
            steps.append(step)
    return steps


# Quick form: the part ``full-2b`` of ``benchmarks/card`` (a step of one rank).
@pytest.mark.exhaustive
def test_one_worker_computes_in_half_precision_with_weights_in_single_precision(place: Place) -> None:
    model = {"path": str(place.root / "model"), "tokens_per_batch": 2048, "sharded": True, "compute_dtype": "bfloat16"}
    config = place.sft(name="alone", model=model, workers={"count": 1}, epochs=3)
    losses = [line["sft/loss"] for line in metrics(Path(train_sft(config, lambda line: None)).parent)]
    assert losses[-1] < losses[0]


# Quick forms: ``trainer/test_dummy_forward`` (a sharded model on two ranks), and those of the test above.
@pytest.mark.exhaustive
def test_a_sharded_model_learns_the_same_and_goes_on_from_its_checkpoint_when_a_worker_is_killed(place: Place) -> None:
    # Ranks of a sharded model that score unequally often would wait for each other for ever.
    assert uneven_steps(in_two_parts(place, "whole"))
    whole = train_sft(in_two_parts(place, "whole", sharded=False), lambda line: None)
    undisturbed = train_sft(in_two_parts(place, "sharded"), lambda line: None)
    first, second = weights(Path(whole)), weights(Path(undisturbed))
    assert first.keys() == second.keys()
    assert max(float((first[name] - second[name]).abs().max()) for name in first) < SHARDING_TOLERANCE
    killed: list[int] = []
    again = train_sft(in_two_parts(place, "sharded-killed"), killing(killed))
    assert killed
    assert alike(weights(Path(again)), second)
