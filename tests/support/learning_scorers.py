"""What the runs of the tests earn; the workers import it by its dotted path."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.learning_sizes import RUNS_A_WORKER
from vrag_ray.agent.record import RunRecord
from vrag_ray.questions.answer_scores import exact_match, own_answer
from vrag_ray.questions.examples import Example
from vrag_ray.training.rewards.reward import Page, Reward

KILLED = "killed"


def earned(record: RunRecord, example: Example, gold: Sequence[Page]) -> Reward:
    """Hardly any two runs of a group the same, so that every group teaches something."""
    right = exact_match(own_answer(record), example.answers)
    return Reward(right + record.steps / 100 + len(record.answer) / 1000, right, 0.0, 0.0, success=right == 1.0)


@dataclass
class Executioner:
    """Pays the same, and kills the worker that keeps the log in the middle of its second step. Once: the run's folder,
    which outlives the worker, tells."""

    graded: list[str] = field(default_factory=list)

    def __call__(self, record: RunRecord, example: Example, gold: Sequence[Page]) -> Reward:
        from ray import train

        self.graded.append(record.run_id)
        context = train.get_context()
        killed = Path(context.get_storage().experiment_fs_path) / KILLED
        in_mid_step = len(self.graded) == RUNS_A_WORKER + RUNS_A_WORKER // 2
        if in_mid_step and context.get_world_rank() == 0 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return earned(record, example, gold)


earned_until_killed = Executioner()
