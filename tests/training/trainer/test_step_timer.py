"""Where the time of a step went."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.training.trainer import step_timer as module
from vrag_ray.training.trainer.step_timer import StepTimer


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds: set by the test."""
    seconds = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: seconds[0])
    return seconds


def test_every_second_of_a_step_is_in_a_phase_or_between(now: list[float]):
    clock = StepTimer()
    now[0] += 1
    with clock.phase("rollout"):
        now[0] += 10
    with clock.phase("update"):
        now[0] += 5
    now[0] += 2
    with clock.phase("rollout"):
        now[0] += 3
    assert clock.elapsed() == {
        "seconds/rollout": 13.0,
        "seconds/update": 5.0,
        "seconds/other": 3.0,
        "seconds/step": 21.0,
    }


def test_every_step_is_timed_anew(now: list[float]):
    clock = StepTimer()
    with clock.phase("rollout"):
        now[0] += 10
    clock.elapsed()
    now[0] += 4
    with clock.phase("update"):
        now[0] += 1
    assert clock.elapsed() == {"seconds/update": 1.0, "seconds/other": 4.0, "seconds/step": 5.0}


def test_a_phase_that_fails_has_taken_its_time_too(now: list[float], tmp_path: Path):
    clock = StepTimer()
    with pytest.raises(ValueError, match="broken"), clock.phase("store"):
        now[0] += 2
        raise ValueError("broken")
    assert clock.elapsed()["seconds/store"] == 2.0
