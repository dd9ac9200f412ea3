"""What a reward for cited elements does: fine print of the mosaic world, with and without it, two seeds.

Usage: ``python benchmarks/mosaic_grounding.py [--out FOLDER] [--steps N] [--seeds N N …] [--masks]``.

A model of 1.3 million parameters learns to see and imitates a noisy expert on questions about fine print, and is then
reinforced twice from the same weights: for its answers alone, and for the region that it cites too. With ``--masks``
the second is done by ``ggpo`` and by ``ggpo_cited`` as well, whose mask spares what the answer cites. A right region
has an intersection over union of at least 0.5 with the crop that shows the fine print. A run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path

# ``benchmarks.…`` is found from the repository's root, which Python does not look in for a script below it.
sys.path[0] = str(Path(__file__).parents[1])

from benchmarks.mosaic.exercises import SEEING
from benchmarks.mosaic.world.generate import MosaicSize
from benchmarks.mosaic.world.questions import Kind
from benchmarks.mosaic_rl import ANSWERS, Course, Imitation, Lessons
from vrag_ray.cluster import start_ray
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.config import OptimizerConfig, RewardConfig, Schedule

KINDS = (Kind.FINE_PRINT,)
WORLD = MosaicSize(pages=160, train=900, validation=120, prints=8, kinds=KINDS)
PRACTISED = MosaicSize(pages=12, train=12, validation=1, prints=6, kinds=KINDS)
LESSONS = Lessons(SEEING, 9600, PRACTISED, 4800, 0)
IMITATION = Imitation(expert_runs=600, practice=9600, readings=2400, size=PRACTISED)
EPOCHS = 3
LEARNING_RATE = 2e-4
REWARDS = {
    "answer": ANSWERS,
    "answer-and-region": RewardConfig(answer=0.6, retrieval=0.0, format=0.1, grounding=0.3),
}


MASKS = ("ggpo", "ggpo_cited")


def run(out: Path, seed: int, steps: int, masks: bool) -> None:
    course = Course(out, seed, WORLD, IMITATION)
    out.mkdir(parents=True, exist_ok=True)
    constant = OptimizerConfig(lr=2e-3, warmup_steps=40, betas=(0.9, 0.95))
    falling = OptimizerConfig(lr=2e-3, warmup_steps=20, betas=(0.9, 0.95), schedule=Schedule.COSINE, final_lr=1e-4)
    course.stage("world", out / "model", course.make_world)
    course.stage("lessons", out / "imitating" / "reading.parquet", course.write_lessons)
    seeing = course.prepare("seeing", out / "model", LESSONS, constant)
    imitated = out / "imitating-run" / "final"
    course.stage("imitating", imitated, lambda: course.learn("imitating", seeing, 40, EPOCHS, falling))
    courses = [(name, "gspo_segments", reward) for name, reward in REWARDS.items()]
    if masks:
        courses += [(name, name, REWARDS["answer-and-region"]) for name in MASKS]
    for name, algorithm, reward in courses:
        reinforced = partial(course.reinforce, name, ALGORITHMS[algorithm], steps, LEARNING_RATE, reward)
        course.stage(name, out / name / "final", reinforced)
        for measure in ("success", "grounding"):
            curve = ", ".join(f"{step}: {value:.3f}" for step, value in course.curve(name, measure))
            print(f"seed {seed}, {name}, validation {measure}: {curve}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("mosaic-grounding"))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--masks", action="store_true")
    chosen = parser.parse_args()
    # Ray's workers are nice to everything else by default; here they are all that runs.
    os.environ.setdefault("RAY_worker_niceness", "0")
    start_ray()
    for seed in chosen.seeds:
        run(chosen.out.absolute() / f"seed-{seed}", seed, chosen.steps, chosen.masks)


if __name__ == "__main__":
    main()
