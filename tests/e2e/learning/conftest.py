"""One Ray, one world of twelve mosaics, and one model that has imitated an expert in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.mosaic.model import save_mosaic_model
from benchmarks.mosaic.world.expert import MosaicExpert
from benchmarks.mosaic.world.mosaic import Mosaic
from tests.support.learning_place import Place, pixels_of
from tests.support.learning_sizes import SHAPE, SIZE
from tests.support.paths import ROOT
from vrag_ray.cluster import start_ray, stop_ray
from vrag_ray.config import Settings
from vrag_ray.ingest import ingest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.training.config import RewardConfig
from vrag_ray.training.launch import train_sft
from vrag_ray.training.rollout.environment import Environment
from vrag_ray.training.rollout.rollout import expert_runs
from vrag_ray.training.rollout.trajectory_store import write_trajectories
from vrag_ray.training.trajectory import Trajectory


@pytest.fixture(scope="package")
def own_ray() -> Iterator[None]:
    """Ray as ``vrag train`` starts it, unless other tests have one already."""
    import ray

    if ray.is_initialized():
        yield
        return
    # Unix socket paths have a length limit that pytest's own folders would break.
    folder = Path(tempfile.mkdtemp(prefix="vrag-ray-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        start_ray(folder)
        yield
        stop_ray()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="package")
def place(own_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The world in a collection, a model of random weights, and what an expert did that now and then errs."""
    root = tmp_path_factory.mktemp("training")
    place = Place(root, Mosaic.generate(SIZE, seed=0))
    place.mosaic.write(root / "world")
    place.write_validation()
    report = ingest(
        [root / "world/pages"], Settings(collection=place.environment.collection, corpus=place.environment.corpus)
    )
    assert report.added == SIZE.pages
    save_mosaic_model(root / "model", shape=SHAPE)
    runs = asyncio.run(_played(place))
    write_trajectories(root / "expert/runs.parquet", runs)
    assert sum(run.reward.success for run in runs) > len(runs) / 2
    return place


async def _played(place: Place) -> list[Trajectory]:
    form = ChatFormat(str(place.root / "model"))
    environment = await Environment.open(place.environment, RewardConfig(), 64)
    try:
        groups = await expert_runs(
            environment.context,
            lambda task, sample: MosaicExpert(place.mosaic, environment.context.protocol, noise=0.2, sample=sample),
            form,
            pixels_of(place).expand_image_tokens,
            environment.tasks(str(place.root / "world/train.jsonl")),
            group=3,
        )
    finally:
        await environment.close()
    return [run for group in groups for run in group]


@pytest.fixture(scope="package")
def tuned(place: Place) -> Path:
    """The folder of the run."""
    lines: list[str] = []
    final = train_sft(place.sft(), lines.append)
    assert final == str(place.root / "runs/sft/final")
    assert lines[-1].startswith("step ")
    return Path(final).parent
