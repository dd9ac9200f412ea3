"""It finds what is only drawn: a retriever trained from random weights, on pages without words.

Usage: ``python benchmarks/visual_retrieval.py [--out FOLDER] [--seed N] [--stages late,control,...]``.

Mechanics and a toy world, not quality of published models. Pages are mosaics of coloured cells under names that say
nothing, queries name some of their cells. A model of 1.4 million parameters first learns to read cells, then, by
``vrag train retriever``, to find pages: late interaction, the same without reading, and single vectors. 1,000 pages
that no training saw are ranked, beside an oracle that knows every cell, and beside the legs of text. A run goes on
where it stopped: every stage that is done is skipped.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

# ``benchmarks.…`` is found from the repository's root, which Python does not look in for a script below it.
sys.path[0] = str(Path(__file__).parents[1])

from benchmarks.mosaic.model import ModelShape, save_mosaic_model
from benchmarks.mosaic.reading_warmup import PROMPT, warm_up
from benchmarks.mosaic.retrieval_scores import ranked_by_model, ranked_by_text
from benchmarks.mosaic.retrieval_task import (
    PAIRS,
    SIZES,
    HitRates,
    held_out,
    hit_rates,
    oracle_rates,
    read_queries,
    write_held_out,
    write_pairs,
)
from vrag_ray.cluster import start_ray
from vrag_ray.training.config import ModelConfig, OptimizerConfig, Schedule, WorkersConfig
from vrag_ray.training.launch import train_retriever
from vrag_ray.training.retriever.config import LateConfig, RetrieverConfig, Scored
from vrag_ray.types import LEXICAL, TEXT

PAGES, QUERIES_EACH, BATCH = 23_040, 4, 64
"""Of training: two of the queries a step, so that a second epoch has others."""
READING_STEPS, STEPS = 857, 720
QUERY_PREFIX = "<|im_start|>user\n"
LATE = LateConfig(dims=32, score=Scored.BODY, page_prompt=PROMPT, query_prefix=QUERY_PREFIX)
SINGLE_KINDS = {"single": 0.0, "single-hard": 0.0, "single-joint": 1.0}
"""By name: the weight of the loss over tokens. All but the first learn from hard negatives too."""
STAGES = ("late", "control", *SINGLE_KINDS, "text")


class Course:
    """Everything lies in ``out``; what each stage took and gave, in ``stages.json``."""

    def __init__(self, out: Path, seed: int, scale: float, threads: int) -> None:
        self.out, self.seed, self.scale, self.threads = out, seed, scale, threads
        self.record: dict[str, dict[str, float]] = {}
        if (out / "stages.json").exists():
            self.record = json.loads((out / "stages.json").read_text(encoding="utf-8"))

    def scaled(self, steps: int) -> int:
        return max(round(steps * self.scale), 2)

    def stage(self, name: str, work: Callable[[], dict[str, float]]) -> dict[str, float]:
        """What ``work`` measured, with its seconds; done once."""
        if name in self.record:
            print(f"{name}: done before", flush=True)
            return self.record[name]
        wall, cpu = time.monotonic(), time.process_time()
        result = work()
        spent = {"seconds": time.monotonic() - wall, "cpu_seconds": time.process_time() - cpu}
        self.record[name] = spent | result
        (self.out / "stages.json").write_text(json.dumps(self.record, indent=1), encoding="utf-8")
        print(f"{name}: {self.record[name]}", flush=True)
        return self.record[name]

    def make_data(self) -> dict[str, float]:
        pages = BATCH * self.scaled(PAGES // BATCH)
        write_held_out(self.out / "held-out", held_out(self.seed))
        write_pairs(self.out / "pairs", self.seed, pages=pages, queries=QUERIES_EACH)
        save_mosaic_model(self.out / "model", seed=self.seed, shape=ModelShape())
        return {"pages": pages}

    def make_hard_pairs(self) -> dict[str, float]:
        pages = BATCH * self.scaled(PAGES // BATCH // 2)
        write_pairs(self.out / "hard-pairs", self.seed, pages=pages, queries=QUERIES_EACH, hard=True)
        return {"pages": pages}

    def read(self, name: str, *, plain_positions: bool) -> dict[str, float]:
        steps = self.scaled(READING_STEPS)
        right = warm_up(
            self.out / "model",
            self.out / name,
            steps=steps,
            seed=self.seed,
            plain_positions=plain_positions,
            threads=self.threads,
        )
        return {"steps": steps, "right": right}

    def train(
        self, name: str, model: str, steps: int, *, pairs: str = "pairs", late_weight: float | None = None
    ) -> dict[str, float]:
        """``late_weight`` None: late interaction; else a single vector, with that weight of the loss over tokens."""
        config = RetrieverConfig(
            name=name,
            storage=str(self.out),
            seed=self.seed,
            model=ModelConfig(path=str(self.out / model), freeze_vision=False, tokens_per_batch=1 << 16),
            optimizer=OptimizerConfig(
                lr=1e-3, warmup_steps=20, betas=(0.9, 0.95), schedule=Schedule.COSINE, final_lr=1e-4
            ),
            workers=WorkersConfig(count=1, threads=self.threads),
            checkpoint_every=100,
            pairs=str(self.out / pairs / PAIRS),
            late=LATE if late_weight is None else None,
            late_weight=late_weight or 0.0,
            steps=steps,
            batch=BATCH,
            queries=2,
            temperature=0.02,
        )
        train_retriever(config, lambda line: print(f"  {line}", flush=True))
        lines = (self.out / name / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        # The work is done by another process: what it took is in its own lines.
        return {"steps": steps, "cpu_seconds": sum(row["seconds/cpu"] for row in rows)}

    def judge(self, name: str) -> dict[str, float]:
        folder = self.out / "held-out"
        ranked = ranked_by_model(self.out / name / "final", folder, self.threads)
        return _by_size(folder, ranked)

    def judge_text(self) -> dict[str, float]:
        folder = self.out / "held-out"
        rates: dict[str, float] = {}
        for leg, ranked in ranked_by_text(folder, self.out / "text-collection").items():
            rates |= {f"{leg} {name}": rate for name, rate in _by_size(folder, ranked).items()}
        return rates


def _by_size(folder: Path, ranked: Sequence[Sequence[str]]) -> dict[str, float]:
    queries = read_queries(folder)
    rates: dict[str, float] = {}
    for size in SIZES:
        rows = [(query, files) for query, files in zip(queries, ranked, strict=True) if len(query.cells) == size]
        rates |= _named(hit_rates([query for query, _ in rows], [files for _, files in rows]), size)
    return rates


def _named(rates: HitRates, size: int) -> dict[str, float]:
    return {f"{size} {name}": float(value) for name, value in asdict(rates).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("visual-retrieval"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of steps and pages, to try it out")
    parser.add_argument("--stages", default=",".join(STAGES), help=f"some of {', '.join(STAGES)}")
    chosen = parser.parse_args()
    stages = chosen.stages.split(",")
    os.environ.setdefault("OMP_NUM_THREADS", str(chosen.threads))
    course = Course(chosen.out.absolute(), chosen.seed, chosen.scale, chosen.threads)
    course.out.mkdir(parents=True, exist_ok=True)
    # Ray's workers are nice to everything else by default; here they are all that runs.
    os.environ.setdefault("RAY_worker_niceness", "0")
    start_ray()
    course.stage("data", course.make_data)
    steps = course.scaled(STEPS)
    if "late" in stages or "control" in stages:
        course.stage("reading", lambda: course.read("reader", plain_positions=True))
        course.stage("late", lambda: course.train("late-run", "reader", steps))
        course.stage("late judged", lambda: course.judge("late-run"))
    if "control" in stages:
        # As many steps more as the time of reading is worth.
        reading, late = course.record["reading"]["cpu_seconds"], course.record["late"]["cpu_seconds"]
        more = round(steps * (1 + reading / late))
        course.stage("control", lambda: course.train("control-run", "model", more))
        course.stage("control judged", lambda: course.judge("control-run"))
    for name, weight in SINGLE_KINDS.items():
        if name in stages:
            hard = name != "single"
            course.stage("reading for single", lambda: course.read("single-reader", plain_positions=False))
            if hard:
                course.stage("hard data", course.make_hard_pairs)
            train = _single(course, name, steps, "hard-pairs" if hard else "pairs", weight)
            course.stage(name, train)
            course.stage(f"{name} judged", lambda: course.judge(f"{name}-run"))  # noqa: B023  called at once
    if "text" in stages:
        course.stage("text judged", course.judge_text)
    print(table(course))


def _single(course: Course, name: str, steps: int, pairs: str, weight: float) -> Callable[[], dict[str, float]]:
    return lambda: course.train(f"{name}-run", "single-reader", steps, pairs=pairs, late_weight=weight)


def table(course: Course) -> str:
    """All rates of all that were judged, with what they took."""
    queries = read_queries(course.out / "held-out")
    oracle: dict[str, float] = {}
    for size in SIZES:
        oracle |= _named(oracle_rates([query for query in queries if len(query.cells) == size]), size)
    columns = [f"{size} {rate}" for size in SIZES for rate in ("hit_1", "first_fits", "hit_10")]
    lines = ["| | " + " | ".join(columns) + " | steps | seconds | CPU seconds |", "|---" * (len(columns) + 4) + "|"]
    rows: list[tuple[str, dict[str, float], dict[str, float]]] = [("oracle", oracle, {})]
    for stage, figures in course.record.items():
        name = stage.removesuffix(" judged")
        if name == "text" and stage != name:
            for leg in (LEXICAL, TEXT):
                own = {key.removeprefix(f"{leg} "): rate for key, rate in figures.items() if key.startswith(f"{leg} ")}
                rows.append((f"text leg: {leg}", own, {}))
        elif stage != name:
            rows.append((name, figures, course.record[name]))
    for name, figures, spent in rows:
        rates = " | ".join(f"{figures[column]:.3f}" for column in columns)
        cost = " | ".join(f"{spent[key]:.0f}" if key in spent else "" for key in ("steps", "seconds", "cpu_seconds"))
        lines.append(f"| {name} | {rates} | {cost} |")
    for name in ("reading", "reading for single"):
        if name in course.record:
            took = course.record[name]
            spent_on = f"{took['steps']:.0f} steps, {took['seconds']:.0f} s, {took['cpu_seconds']:.0f} CPU s"
            lines.append(f"{name}: {spent_on}, {took['right']:.3f} of cells right")
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end"
    lines.append(f"seed {course.seed}, {len(queries)} queries; {machine}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
