"""The simulation against what queueing theory says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from vrag_ray.planning.tail import FanOutModel, simulate

IDLE = FanOutModel(qps=0.01, shards=1, replicas=1, scan_s=0.1)


def test_one_server_waits_as_an_m_m_1_queue():
    """Mean time in the system 1 / (mu - lambda), its 99th percentile ln(100) times that."""
    seconds = simulate(dataclasses.replace(IDLE, qps=6), 200_000, seed=1)
    assert seconds.mean() == pytest.approx(1 / (10 - 6), rel=0.05)
    assert np.percentile(seconds, 99) == pytest.approx(np.log(100) / 4, rel=0.07)


def test_constant_service_waits_as_an_m_d_1_queue():
    """Pollaczek-Khinchine: mean wait rho / (2 mu (1 - rho))."""
    seconds = simulate(dataclasses.replace(IDLE, qps=6, is_exponential=False), 200_000, seed=1)
    assert seconds.mean() == pytest.approx(0.1 + 0.6 / (2 * 10 * 0.4), rel=0.05)


@pytest.mark.parametrize("shards", [2, 5, 40])
def test_the_slowest_of_many_shards_is_a_harmonic_number_of_means(shards: int):
    seconds = simulate(dataclasses.replace(IDLE, shards=shards), 20_000, seed=2)
    assert seconds.mean() == pytest.approx(0.1 * sum(1 / n for n in range(1, shards + 1)), rel=0.03)


def test_one_straggler_in_a_hundred_is_met_by_most_searches_of_a_hundred_shards():
    """Dean and Barroso: 1 - 0.99 ** 100 = 63 %."""
    model = dataclasses.replace(IDLE, shards=100, is_exponential=False, stragglers=0.01)
    seconds = simulate(model, 5_000, seed=3)
    assert np.mean(seconds > 0.5) == pytest.approx(1 - 0.99**100, abs=0.02)


def test_replicas_shorten_the_wait_and_a_dead_one_lengthens_it_again():
    busy = dataclasses.replace(IDLE, qps=9, replicas=1)
    single, double, lost = (
        simulate(model, 50_000, seed=4).mean()
        for model in (
            busy,
            dataclasses.replace(busy, replicas=2),
            dataclasses.replace(busy, replicas=2, lost=1),
        )
    )
    assert double < single / 2
    assert lost == pytest.approx(single)


def test_the_same_seed_gives_the_same():
    np.testing.assert_array_equal(simulate(IDLE, 100, seed=5), simulate(IDLE, 100, seed=5))
