"""A difference that is there is found, and chance is called chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vrag_ray.evaluation.compare import compared, refuse_other_questions, rows_of
from vrag_ray.evaluation.folder import EvaluationFolder, Header, Kind, Row
from vrag_ray.types import VragError


def rows(values: list[float], system: str = "a") -> list[Row]:
    return [
        Row(system=system, uid=f"q{n}", question=f"q{n}?", measures={"RR": value}, seconds=0.1)
        for n, value in enumerate(values)
    ]


def drawn(seed: int, shift: float = 0.0) -> list[float]:
    return [float(value) + shift for value in np.random.default_rng(seed).random(200)]


def test_a_small_gain_in_every_question_is_there_and_two_draws_of_the_same_are_not_different() -> None:
    gained = compared(rows(drawn(1)), rows([value + 0.02 for value in drawn(1)]), "RR")
    assert gained.is_there and gained.mean == pytest.approx(0.02) and (len(gained.wins), len(gained.losses)) == (200, 0)
    chance = compared(rows(drawn(1)), rows(drawn(2)), "RR")
    assert not chance.is_there and chance.low < 0 < chance.high


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    held = 0
    for seed in range(100):
        noise = np.random.default_rng(seed).normal(0.1, 0.3, 60)
        before = [0.5] * 60
        difference = compared(rows(before), rows([0.5 + float(value) for value in noise]), "RR", seed)
        held += difference.low <= 0.1 <= difference.high
    assert 88 <= held <= 99


def test_wins_and_losses_are_named_the_greatest_first() -> None:
    difference = compared(rows([0.5, 0.5, 0.5, 0.5]), rows([0.6, 1.0, 0.5, 0.0]), "RR")
    assert (difference.wins, difference.losses) == (("q1", "q0"), ("q3",))


def test_only_questions_of_both_count() -> None:
    difference = compared(rows([0.0, 1.0]), [*rows([1.0]), *rows([1.0, 1.0, 1.0])[2:]], "RR")
    assert (difference.questions, difference.first, difference.second) == (1, 0.0, 1.0)
    with pytest.raises(VragError, match="no question in common that nDCG@5"):
        compared(rows([1.0]), rows([1.0]), "nDCG@5")


def test_a_system_that_is_not_there_and_other_questions_are_refused(tmp_path: Path) -> None:
    header = Header(
        kind=Kind.RETRIEVAL, suite="s", suite_hash="one", questions=1, subject={}, systems=("hybrid", "text")
    )
    first = EvaluationFolder.begin(tmp_path / "a", header)
    for system in ("", "lexical"):
        with pytest.raises(VragError, match="has the systems hybrid, text"):
            rows_of(first, system)
    other = EvaluationFolder.begin(tmp_path / "b", header.model_copy(update={"suite_hash": "two"}))
    with pytest.raises(VragError, match="not the same"):
        refuse_other_questions(first, other)
