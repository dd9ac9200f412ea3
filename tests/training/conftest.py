"""Models of random weights for the tests of training, made once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mosaic.model import save_mosaic_model
from tests.support.mosaic_runs import TINY, Groups, played, sampled
from tests.support.two_ranks import TwoRanks
from vrag_ray.training.trajectory import Trajectory
from vrag_ray.types import FamilyName


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Qwen2.5-VL."""
    folder = tmp_path_factory.mktemp("qwen2_5_vl")
    save_mosaic_model(folder, shape=TINY)
    return folder


@pytest.fixture(scope="session")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Qwen3-VL."""
    folder = tmp_path_factory.mktemp("qwen3_vl")
    save_mosaic_model(folder, FamilyName.QWEN3_VL, shape=TINY)
    return folder


@pytest.fixture(params=["model", "qwen3"], ids=["qwen2.5-vl", "qwen3-vl"])
def folder(request: pytest.FixtureRequest) -> Path:
    """The folder of each of the two, in turn."""
    path = request.getfixturevalue(request.param)
    assert isinstance(path, Path)
    return path


@pytest.fixture(scope="session")
def groups(model: Path) -> Groups:
    """Three runs of each of four questions, with mistakes, crops and corrections among them."""
    return played(model)


@pytest.fixture(scope="session")
def runs(groups: Groups, model: Path) -> Groups:
    """Two runs of each question, as if the model had written the expert's replies. No two of a group earn the same."""

    def graded(place: int, number: int, run: Trajectory) -> Trajectory:
        return replace(run, reward=replace(run.reward, total=(0.0, 1.0, 0.25)[(place + number) % 3]))

    return [
        [graded(place, number, run) for number, run in enumerate(group)]
        for place, group in enumerate(sampled([group[:2] for group in groups], model))
    ]


@pytest.fixture(scope="session")
def on_two_ranks() -> Iterator[TwoRanks]:
    ranks = TwoRanks()
    yield ranks
    ranks.close()
