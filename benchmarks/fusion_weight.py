"""Which bound on the lexical leg's weight is best: chosen on some PDFs, measured on others.

    python -m benchmarks.fusion_weight

Questions are titles of outlines and the same in other words, two kinds of equal weight, so that neither leg is
flattered. nDCG@10 is the mean over PDFs and kinds. The difference to the shipped bound has a 95 % interval over the
questions that were not chosen on (paired bootstrap, each PDF and kind drawn within itself).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from benchmarks.fusions import by_coverage, of_best
from benchmarks.recorded_legs import DATA, Question, Recording, recorded
from vrag_ray.cluster import ray_session
from vrag_ray.evaluation.measures.ranking import rank_measures
from vrag_ray.index.search.legs import MOST_LEXICAL_WEIGHT

CHOSEN_ON = ("bash", "nut")
MEASURED_ON = ("lilypond-learning", "octave", "r-intro")
BOUNDS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
MEASURE = "nDCG@10"
DRAWS = 2_000


def main() -> int:
    logging.disable(logging.INFO)
    with ray_session():
        recordings = {name: recorded(DATA / f"{name}.pdf", _started) for name in (*CHOSEN_ON, *MEASURED_ON)}
    chosen = {bound: _groups([recordings[name] for name in CHOSEN_ON], bound) for bound in BOUNDS}
    held_out = {bound: _groups([recordings[name] for name in MEASURED_ON], bound) for bound in BOUNDS}
    best = max(BOUNDS, key=lambda bound: _mean(chosen[bound]))
    shipped = held_out[MOST_LEXICAL_WEIGHT]
    print("| bound | chosen on | measured on | less the shipped bound there |")
    print("|---|---|---|---|")
    for bound in BOUNDS:
        low, high = _interval(held_out[bound], shipped)
        mark = (" (best)" if bound == best else "") + (" (shipped)" if bound == MOST_LEXICAL_WEIGHT else "")
        difference = _mean(held_out[bound]) - _mean(shipped)
        print(
            f"| {bound:.1f}{mark} | {_mean(chosen[bound]):.3f} | {_mean(held_out[bound]):.3f} | "
            f"{difference:+.3f} [{low:+.3f}, {high:+.3f}] |"
        )
    return 0


def _started() -> None:
    """``main`` did."""


def _groups(recordings: Sequence[Recording], bound: float) -> list[list[float]]:
    """nDCG of each question, by PDF and kind."""
    fuse = by_coverage(of_best, bound)
    return [
        [_ndcg(recording, question, fuse(question)) for question in recording.questions if question.paraphrase is kind]
        for recording in recordings
        for kind in (False, True)
    ]


def _ndcg(recording: Recording, question: Question, windows: Sequence[str]) -> float:
    first, last = recording.body
    pages = [int(window.split(":")[1].removeprefix("p")) for window in windows]
    grades = {str(page): 1 for low, high in question.right for page in range(low, high + 1)}
    return rank_measures([str(page) for page in pages if first <= page <= last], grades, (MEASURE,))[MEASURE]


def _mean(groups: Sequence[Sequence[float]]) -> float:
    return fmean(fmean(group) for group in groups)


def _interval(groups: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> tuple[float, float]:
    drawn = np.random.default_rng(0)
    gains = [np.subtract(group, other) for group, other in zip(groups, others, strict=True)]
    means = np.mean([drawn.choice(gain, (DRAWS, len(gain))).mean(axis=1) for gain in gains], axis=0)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


if __name__ == "__main__":
    sys.exit(main())
