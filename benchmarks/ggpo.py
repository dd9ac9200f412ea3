"""GGPO's masks against no mask, against their halves and against other credit, regime by regime.

Usage: ``python benchmarks/ggpo.py [--out FOLDER] [--seeds N] [--processes N] [--regime NAME ...]``.

Each run imitates a noisy expert in the page hunt (``benchmarks.hunt``) and then learns with one variant; all
variants of a seed begin with the same policy and draw the same questions. Runs that ``FOLDER/runs.jsonl`` holds are
not repeated. Writes tables (``tables.md``), curves (``REGIME.png``) and gradients (``gradients.md``).
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

# ``benchmarks.…`` is found from the repository's root, which Python does not look in for a script below it.
sys.path[0] = str(Path(__file__).parents[1])

from benchmarks.hunt.gradients import measure_gradients
from benchmarks.hunt.learning import Measure, imitate, improve
from benchmarks.hunt.regimes import REGIMES
from benchmarks.hunt.variants import Variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.hunt.policy import HuntPolicy

BASELINE = Variant.GSPO_SEGMENTS
OURS = (Variant.PROGRESS, Variant.PROGRESS_BARE, Variant.PROGRESS_UNBIASED, Variant.GGPO_FIRST_FIND)
DRAWN = {
    Variant.GSPO_SEGMENTS: "black",
    Variant.GRPO_TRAJECTORY: "grey",
    Variant.GGPO: "tab:red",
    Variant.GGPO_POSITIVE: "tab:orange",
    Variant.GGPO_NEGATIVE: "tab:pink",
    Variant.GGPO_SEARCH_TURN: "tab:purple",
    Variant.RANDOM_MASK: "tab:brown",
    Variant.GGPO_FIRST_FIND: "tab:green",
    Variant.PROGRESS: "tab:blue",
}
BANDED = (Variant.GSPO_SEGMENTS, Variant.GGPO, Variant.PROGRESS)
LAST = 4
"""So many last measures, taken together, are what a run ends with."""
TARGET = 0.9
"""Of what the baseline ends with: the success that is to be reached."""
GRADIENT_BATCHES, HALFWAY = 64, 24


@dataclass(frozen=True)
class Run:
    regime: str
    variant: Variant
    seed: int
    measures: tuple[Measure, ...]

    @property
    def end(self) -> float:
        return sum(measure.success for measure in self.measures[-LAST:]) / LAST

    def mean_end(self, figure: Callable[[Measure], float]) -> float:
        return sum(figure(measure) for measure in self.measures[-LAST:]) / LAST

    def smooth(self) -> list[float]:
        """Success, each the mean of itself and its neighbours."""
        success = [measure.success for measure in self.measures]
        windows = (success[max(0, at - 1) : at + 2] for at in range(len(success)))
        return [sum(window) / len(window) for window in windows]

    def reaches(self, target: float, cost: Callable[[Measure], int]) -> float:
        """What it costs to reach ``target`` for the first time, between two measures; infinite where it does not."""
        success = self.smooth()
        if success[0] >= target:
            return 0.0
        for at in range(1, len(success)):
            if success[at] >= target:
                before, after = cost(self.measures[at - 1]), cost(self.measures[at])
                return before + (after - before) * (target - success[at - 1]) / (success[at] - success[at - 1])
        return math.inf


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and the half-width of its 95 % confidence interval (Student's t)."""

    mean: float
    half: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        from scipy import stats

        count, mean = len(values), sum(values) / len(values)
        if count < 2:
            return cls(mean, math.nan)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
        return cls(mean, float(stats.t.ppf(0.975, count - 1)) * deviation / math.sqrt(count))

    def shown(self, form: str) -> str:
        return f"{self.mean:{form}} ± {self.half:{form.lstrip('+')}}"


@cache
def _start(regime: str, seed: int) -> HuntPolicy:
    """One process learns all variants of a seed, so that it imitates once."""
    return imitate(REGIMES[regime].config, REGIMES[regime].imitation, seed)


def learn(job: tuple[str, int, Variant]) -> Run:
    import torch

    torch.set_num_threads(1)
    name, seed, variant = job
    regime = REGIMES[name]
    measures: list[Measure] = []
    improve(_start(name, seed), regime.config, variant, regime.schedule, seed, measures.append)
    return Run(name, variant, seed, tuple(measures))


def read_runs(path: Path) -> Iterator[Run]:
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = json.loads(line)
        measures = tuple(Measure(**values) for values in row["measures"])
        yield Run(row["regime"], Variant(row["variant"]), row["seed"], measures)


def learn_all(regimes: Sequence[str], seeds: int, processes: int, path: Path) -> list[Run]:
    done = list(read_runs(path))
    had = {(run.regime, run.seed, run.variant) for run in done}
    jobs = [
        (name, seed, variant)
        for name in regimes
        for seed in range(seeds)
        for variant in Variant
        if (name, seed, variant) not in had
    ]
    with multiprocessing.get_context("spawn").Pool(processes) as pool, path.open("a", encoding="utf-8") as file:
        for run in pool.imap_unordered(learn, jobs, chunksize=len(Variant)):
            file.write(json.dumps(asdict(run)) + "\n")
            file.flush()
            print(f"{run.regime}, seed {run.seed}, {run.variant}: ends with {run.end:.3f}", flush=True)
            done.append(run)
    return [run for run in done if run.regime in regimes and run.seed < seeds]


def table(runs: Sequence[Run]) -> Iterator[str]:
    """One regime's table in Markdown; rows from the fewest rollouts to the target on."""
    by_variant = {variant: sorted((run for run in runs if run.variant is variant), key=_seed) for variant in Variant}
    baseline = by_variant[BASELINE]
    target = TARGET * sum(run.end for run in baseline) / len(baseline)
    budget = baseline[0].measures[-1].rollouts
    first = Estimate.of([run.measures[0].success for run in baseline])
    cost = {variant: _reached(each, target) for variant, each in by_variant.items()}
    best = min((variant for variant in Variant if variant not in OURS), key=lambda variant: cost[variant])
    yield (
        f"{len(baseline)} seeds; imitation ends with {first.shown('.3f')}; the target is {target:.3f}; "
        f"the cheapest published way to it is `{best}`."
    )
    yield ""
    yield (
        "| variant | ends with | against no mask | rollouts to target | of the cheapest | learnt tokens to target "
        "| turns | repeats | dead ends | masked in successes, failures |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for variant in sorted(Variant, key=lambda variant: cost[variant]):
        each = by_variant[variant]
        against = Estimate.of([run.end - other.end for run, other in zip(each, baseline, strict=True)])
        tokens = [run.reaches(target, lambda measure: measure.kept_tokens) for run in each]
        missed = sum(math.isinf(value) for value in tokens)
        note = f" ({missed} never)" if missed else ""
        yield (
            f"| `{variant}` | {Estimate.of([run.end for run in each]).shown('.3f')} "
            f"| {against.shown('+.3f') if variant is not BASELINE else ''} "
            f"| {_capped(each, target, budget).shown('.0f')}{note} | {_ratio(each, by_variant[best], target, budget)} "
            f"| {_thousands(tokens)} | {_mean(each, lambda measure: measure.turns):.2f} "
            f"| {_mean(each, lambda measure: measure.repeats):.2f} "
            f"| {_mean(each, lambda measure: measure.dead_ends):.2f} "
            f"| {_mean(each, lambda measure: measure.masked_in_successes):.2f}, "
            f"{_mean(each, lambda measure: measure.masked_in_failures):.2f} |"
        )


def _seed(run: Run) -> int:
    return run.seed


def _capped(runs: Sequence[Run], target: float, budget: int) -> Estimate:
    """Rollouts to the target; a run that never got there counts as if it had at the end of its budget."""
    return Estimate.of([min(run.reaches(target, _rollouts), budget) for run in runs])


def _reached(runs: Sequence[Run], target: float) -> float:
    return _capped(runs, target, runs[0].measures[-1].rollouts).mean


def _ratio(runs: Sequence[Run], others: Sequence[Run], target: float, budget: int) -> str:
    """Mean rollouts over mean rollouts, and the 95 % interval of the seeds' ratios (Student's t on logarithms)."""
    ours, theirs = ([min(run.reaches(target, _rollouts), budget) for run in each] for each in (runs, others))
    ratio = sum(ours) / sum(theirs)
    if runs is others:
        return f"{ratio:.2f}"
    logs = Estimate.of([math.log(our / their) for our, their in zip(ours, theirs, strict=True)])
    return f"{ratio:.2f} ({math.exp(logs.mean - logs.half):.2f} to {math.exp(logs.mean + logs.half):.2f})"


def _rollouts(measure: Measure) -> int:
    return measure.rollouts


def _mean(runs: Sequence[Run], figure: Callable[[Measure], float]) -> float:
    return sum(run.mean_end(figure) for run in runs) / len(runs)


def _thousands(tokens: Sequence[float]) -> str:
    reached = [value for value in tokens if math.isfinite(value)]
    return f"{sum(reached) / len(reached) / 1000:.0f} k" if reached else "never"


def draw(regime: str, runs: Sequence[Run], path: Path) -> None:
    """Success against rollouts and against tokens that carried a gradient: means, and 95 % bands of three variants."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for axis, label, cost in (
        (axes[0], "rollouts", _rollouts),
        (axes[1], "tokens that carried a gradient", lambda measure: measure.kept_tokens),
    ):
        for variant, colour in DRAWN.items():
            _curve(axis, [run for run in runs if run.variant is variant], variant, colour, cost)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("success on fresh questions, T = 1")
    axes[1].legend(fontsize="small", loc="lower right")
    figure.suptitle(f"{regime}: {REGIMES[regime].about}")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _curve(axis: Axes, runs: Sequence[Run], variant: Variant, colour: str, cost: Callable[[Measure], int]) -> None:
    import numpy as np

    ends = min(cost(run.measures[-1]) for run in runs)
    grid = np.linspace(0, ends, 33)
    curves = np.stack([np.interp(grid, [cost(measure) for measure in run.measures], run.smooth()) for run in runs])
    estimates = [Estimate.of(column.tolist()) for column in curves.T]
    middle = np.array([estimate.mean for estimate in estimates])
    axis.plot(grid, middle, color=colour, label=str(variant), linewidth=2 if variant in BANDED else 1.2)
    if variant in BANDED:
        half = np.array([estimate.half for estimate in estimates])
        axis.fill_between(grid, middle - half, middle + half, color=colour, alpha=0.15, linewidth=0)


def gradients(regimes: Iterable[str]) -> Iterator[str]:
    """Gradients at the imitated policy and at what the baseline makes of it, in Markdown."""
    from dataclasses import replace

    for name in regimes:
        regime = REGIMES[name]
        start = _start(name, 0)
        schedule = replace(regime.schedule, updates=HALFWAY, measure_every=HALFWAY)
        later = improve(start, regime.config, BASELINE, schedule, 0, lambda _: None)
        for when, policy in (("after imitation", start), (f"after {HALFWAY} updates", later)):
            yield f"### {name}, {when}"
            yield ""
            yield "| gradient | cosine with that of success | noise | cosine of one batch | searching again |"
            yield "|---|---|---|---|---|"
            for row in measure_gradients(
                policy,
                regime.config,
                tuple(Variant),
                batches=GRADIENT_BATCHES,
                groups=regime.schedule.groups,
                size=regime.schedule.size,
                seed=0,
            ):
                yield (
                    f"| `{row.variant}` | {row.cosine:.2f} | {row.noise:.1f} | {row.batch_cosine:.2f} "
                    f"| {row.search_again:+.3f} ± {1.96 * row.search_again_error:.3f} |"
                )
            yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("ggpo"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--regime", nargs="+", choices=list(REGIMES), default=list(REGIMES))
    parser.add_argument("--gradients", nargs="*", choices=list(REGIMES), default=["short", "long"])
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    runs = learn_all(chosen.regime, chosen.seeds, chosen.processes, chosen.out / "runs.jsonl")
    lines: list[str] = []
    for name in chosen.regime:
        ours = [run for run in runs if run.regime == name]
        lines += [f"### {name}: {REGIMES[name].about}", "", *table(ours), ""]
        draw(name, ours, chosen.out / f"{name.replace(' ', '-')}.png")
    (chosen.out / "tables.md").write_text("\n".join(lines), encoding="utf-8")
    (chosen.out / "gradients.md").write_text("\n".join(gradients(chosen.gradients)), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
