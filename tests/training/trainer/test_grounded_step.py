"""One step on rewards that grade cited elements, with a tiny model of random weights: mechanics, not quality.

That such rewards make a better agent is not shown here, nor anywhere else.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.mosaic_runs import Groups, School, context, expert, pixels_of, recipe, sampled, tasks, taught
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.questions.examples import Corners
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.rewards.grader import Grader
from vrag_ray.training.rewards.reward import RewardWeights
from vrag_ray.training.rollout.rollout import expert_runs
from vrag_ray.training.rollout.rollout_metrics import rollout_metrics
from vrag_ray.training.rollout.trajectory_store import read_trajectories, write_trajectories

ANSWER_ALONE = RewardWeights(answer=1.0, retrieval=0.0, format=0.0)
GRADES_CITATIONS = RewardWeights(answer=0.7, retrieval=0.0, format=0.0, grounding=0.3)
NOISE = 0.4


def fine_print(model: Path, weights: RewardWeights, box: Corners | None = None) -> Groups:
    """Four runs of an expert that errs on a question that needs a closer look; ``box`` is where its answer stands."""
    task = next(task for task in tasks(4) if task.example.kind == "fine_print")
    task = replace(task, gold=tuple(replace(place, box=box) for place in task.gold))
    grade = Grader("exact_match", weights=weights)
    form, expand_image_tokens = ChatFormat(str(model)), pixels_of(model).expand_image_tokens
    setting = replace(context(), grade=grade)
    return asyncio.run(expert_runs(setting, expert(NOISE), form, expand_image_tokens, [task], group=4))


def test_a_step_on_graded_citations_from_runs_to_new_weights(model: Path, tmp_path: Path) -> None:
    [plain] = fine_print(model, ANSWER_ALONE)
    box = next(citation.bbox for run in plain for citation in run.record.citations if citation.bbox is not None)
    [unweighted] = fine_print(model, ANSWER_ALONE, box)
    assert [run.reward.total for run in unweighted] == [run.reward.total for run in plain] == [1.0, 0.0, 0.0, 0.0]

    [graded] = fine_print(model, GRADES_CITATIONS, box)
    # The first is right and cites the box, two are wrong and cite it, the last is wrong and cites nothing.
    assert [run.reward.grounding for run in graded] == [1.0, 1.0, 1.0, 0.0]
    assert [run.reward.total for run in graded] == pytest.approx([1.0, 0.3, 0.3, 0.0])
    assert [run.reward.success for run in graded] == [True, False, False, False]
    algorithm = recipe("ggpo_cited")
    assert rollout_metrics([graded], Collectives(), algorithm)["reward/grounding"] == 0.75

    groups = sampled([graded], model)
    write_trajectories(tmp_path / "step.parquet", groups[0])
    assert list(read_trajectories(tmp_path / "step.parquet")) == list(groups[0])
    samples = taught(groups, algorithm)
    # Of the totals 1, .3, .3 and 0: their distances from .4 over the unbiased deviation, the root of .18.
    assert sorted({round(sample.advantage, 4) for sample in samples}) == [-0.9428, -0.2357, 1.4142]
    school = School.open(model)
    before = {name: value.clone() for name, value in school.scorer.model.state_dict().items()}
    [update], _ = school.update([samples], algorithm)
    assert update.grad_norm > 0
    after = school.scorer.model.state_dict()
    assert all(torch.isfinite(value).all() for value in after.values())
    assert any(not torch.equal(value, before[name]) for name, value in after.items())
