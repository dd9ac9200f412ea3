"""Two evaluations of the same questions: is the difference there, or chance? Paired, by the bootstrap (Efron 1979;
Sakai, SIGIR 2006): questions are drawn with replacement, and the mean difference of each draw makes the interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vrag_ray.evaluation.folder import EvaluationFolder, Row
from vrag_ray.types import VragError

DRAWS = 10_000
LEVEL = 0.95
_NUMBERS_AT_ONCE = 2_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one measure: means of both, the second less the first, and where that lies with 95 % confidence.

    ``wins`` and ``losses`` are uids of questions in which the second is better, and worse, the greatest first.
    """

    measure: str
    questions: int
    first: float
    second: float
    low: float
    high: float
    wins: tuple[str, ...]
    losses: tuple[str, ...]

    @property
    def mean(self) -> float:
        return self.second - self.first

    @property
    def is_there(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def compared(first: Sequence[Row], second: Sequence[Row], measure: str, seed: int = 0) -> Difference:
    """Rows of one system each. Only questions that both have are compared. Raises VragError where there are none."""
    before, after = _by_question(first, measure), _by_question(second, measure)
    uids = [uid for uid in before if uid in after]
    if not uids:
        raise VragError(f"the two have no question in common that {measure} was measured of")
    pairs = np.array([[before[uid], after[uid]] for uid in uids])
    gains = pairs[:, 1] - pairs[:, 0]
    low, high = np.quantile(_means_of_draws(gains, seed), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    order = sorted(range(len(uids)), key=lambda n: -abs(gains[n]))
    return Difference(
        measure=measure,
        questions=len(uids),
        first=float(pairs[:, 0].mean()),
        second=float(pairs[:, 1].mean()),
        low=float(low),
        high=float(high),
        wins=tuple(uids[n] for n in order if gains[n] > 0),
        losses=tuple(uids[n] for n in order if gains[n] < 0),
    )


def _by_question(rows: Sequence[Row], measure: str) -> dict[str, float]:
    """Means over the samples of each, by uid."""
    values: dict[str, list[float]] = {}
    for row in rows:
        if measure in row.measures:
            values.setdefault(row.uid, []).append(row.measures[measure])
    return {uid: sum(own) / len(own) for uid, own in values.items()}


def _means_of_draws(gains: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """[DRAWS]: of as many gains as there are, drawn with replacement."""
    drawn, count = np.random.default_rng(seed), len(gains)
    together = max(1, _NUMBERS_AT_ONCE // count)
    parts = [
        gains[drawn.integers(0, count, (min(together, DRAWS - start), count))].mean(axis=1)
        for start in range(0, DRAWS, together)
    ]
    return np.concatenate(parts)


def rows_of(folder: EvaluationFolder, system: str) -> list[Row]:
    """Raises VragError for a system that the evaluation does not have; "" stands for the only one."""
    systems = folder.header.systems
    if not system and len(systems) == 1:
        [system] = systems
    if system not in systems:
        raise VragError(f"{folder.root} has the systems {', '.join(systems)}: name one of them with --system")
    return [row for row in folder.rows if row.system == system]


def refuse_other_questions(first: EvaluationFolder, second: EvaluationFolder) -> None:
    """Raise VragError where the two did not ask the same."""
    if first.header.suite_hash != second.header.suite_hash:
        raise VragError(
            f"{first.root} asked {first.header.suite} and {second.root} {second.header.suite}, whose questions or gold "
            "are not the same: only evaluations of one suite can be compared"
        )
