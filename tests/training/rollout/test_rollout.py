"""Many runs at once: their order and outcome are those of their names and seeds, never of who was faster."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.mosaic.world.agent import mosaic_agent
from tests.support.mosaic_runs import (
    Album,
    Groups,
    Speaker,
    context,
    expert,
    pixels_of,
    played,
    processor_of,
    recipe,
    tasks,
)
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.agent.record import RunRecord
from vrag_ray.policies.llm.chat_model import ChatRequest, Sampling, TokenRequest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.training.algorithms.credit_assignment import train_samples
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import OverlongConfig
from vrag_ray.training.rewards.reward import UNGRADED, Reward
from vrag_ray.training.rollout.rollout import RolloutContext, Task, chosen, expert_runs, order, rollouts, with_repeats
from vrag_ray.types import VragError

GRPO = recipe("grpo", kl=0.0)


def spoken(
    speaker: Speaker,
    model: Path,
    *,
    questions: int = 3,
    group: int = 4,
    seed: str = "0/1",
    setting: RolloutContext | None = None,
    pool: Sequence[Task] = (),
) -> Groups:
    async def run() -> Groups:
        async with asyncio.timeout(HANGS_AFTER_S):
            return await rollouts(
                setting or context(),
                speaker,
                ChatFormat(str(model)),
                pool or tasks(questions),
                group=group,
                sampling=Sampling(64, 1.0),
                seed=seed,
            )

    return asyncio.run(run())


def content_of(groups: Groups) -> list[object]:
    """Everything of the runs but how long they took."""
    return [
        (run.uid, run.sample, run.calls, run.nodes, run.record.graph, run.record.answer, run.reward, run.found)
        for group in groups
        for run in group
    ]


def test_runs_come_in_order_of_questions_and_samples(model: Path):
    groups = spoken(Speaker(model), model)
    assert [[(run.uid, run.sample) for run in group] for group in groups] == [
        [(task.example.uid, sample) for sample in range(4)] for task in tasks(3)
    ]
    assert {len(run.calls) for group in groups for run in group} == {3}


def test_who_is_faster_decides_nothing(model: Path):
    def uneven(request: TokenRequest) -> int:
        return (request.sampling.seed or 0) % 23

    def the_other_way_round(request: TokenRequest) -> int:
        return 23 - uneven(request)

    even = content_of(spoken(Speaker(model, searches=2), model))
    for turns in (uneven, the_other_way_round):
        assert content_of(spoken(Speaker(model, searches=2, turns=turns), model)) == even
    alone = context()
    assert content_of(spoken(Speaker(model, searches=2), model, setting=replace(alone, concurrency=1))) == even


def test_the_same_seed_gives_the_same_runs_and_another_one_others(model: Path):
    first = content_of(spoken(Speaker(model), model, seed="0/1"))
    assert content_of(spoken(Speaker(model), model, seed="0/1")) == first
    other = content_of(spoken(Speaker(model), model, seed="0/2"))
    assert all(mine != theirs for mine, theirs in zip(first, other, strict=True))


def test_the_runs_of_a_group_differ(model: Path):
    for group in spoken(Speaker(model), model, group=6):
        assert len({run.calls for run in group}) == 6


def test_the_model_never_samples_a_picture_token(model: Path):
    speaker = Speaker(model)
    spoken(speaker, model)
    processor = processor_of(model)
    banned_token_ids = (processor.image_token_id, processor.video_token_id)
    assert {request.sampling.banned_token_ids for request in speaker.heard} == {banned_token_ids}


def test_runs_that_read_the_same_prompt_have_it_tokenised_once(model: Path, monkeypatch: pytest.MonkeyPatch):
    tokenised: list[ChatRequest] = []
    tokens = ChatFormat.tokens

    def counted(form: ChatFormat, request: ChatRequest) -> tuple[tuple[int, ...], str]:
        tokenised.append(request)
        return tokens(form, request)

    monkeypatch.setattr(ChatFormat, "tokens", counted)
    speaker = Speaker(model)
    spoken(speaker, model, group=6)
    assert len(speaker.heard) == 3 * 6 * 3
    assert len(set(tokenised)) == len(tokenised) < len(speaker.heard)
    form = ChatFormat(str(model))
    assert {tokens(form, request)[0] for request in tokenised} == {request.prompt_ids for request in speaker.heard}


class Gate(Speaker):
    """Lets no reply out before as many as ``needed`` prompts wait for one."""

    needed = 12

    async def wait(self, request: TokenRequest) -> None:
        while len(self.heard) < self.needed:  # noqa: ASYNC110  turns of the loop are what is counted here
            await asyncio.sleep(0)


def test_all_runs_ask_at_once(model: Path):
    speaker = Gate(model)
    spoken(speaker, model)
    assert speaker.most == 12


class OneIsSlow(Speaker):
    """The first question's first reply comes only when every other run is over."""

    def __init__(self, model: Path, others: int) -> None:
        super().__init__(model, searches=3)
        self.slow = tasks(1)[0].example.question
        self.others = others
        self.held = False

    async def wait(self, request: TokenRequest) -> None:
        if self.slow not in self.read(request) or self.held:
            return
        self.held = True
        while len(self.heard) <= self.others:  # noqa: ASYNC110  turns of the loop are what is counted here
            await asyncio.sleep(0)


def test_a_slow_reply_holds_no_other_run_up(model: Path):
    turns_of_a_run = 7
    speaker = OneIsSlow(model, others=2 * turns_of_a_run)
    groups = spoken(speaker, model, group=1)
    assert [len(run.calls) for [run] in groups] == [turns_of_a_run] * 3
    last = speaker.heard[-(turns_of_a_run - 1) :]
    assert all(speaker.slow in speaker.read(request) for request in last)


@pytest.mark.parametrize("room", [1, 2, 5])
def test_no_more_runs_are_under_way_than_there_is_room_for(model: Path, room: int):
    speaker = Speaker(model, turns=lambda request: 3)
    spoken(speaker, model, setting=replace(context(), concurrency=room))
    assert speaker.most == room


def test_a_reward_is_what_the_stage_grades(model: Path):
    seen: list[tuple[str, str, Sequence[GoldPlace]]] = []

    async def grade(record: RunRecord, example: Example, gold: Sequence[GoldPlace]) -> Reward:
        seen.append((record.run_id, example.uid, gold))
        return Reward(0.25, 0.5, 0.75, 1.0, success=True)

    groups = spoken(Speaker(model), model, questions=1, group=2, setting=replace(context(), grade=grade))
    [task] = tasks(1)
    assert sorted(seen) == [(f"{task.example.uid}-{sample}", task.example.uid, task.gold) for sample in range(2)]
    assert {run.reward for [*group] in groups for run in group} == {Reward(0.25, 0.5, 0.75, 1.0, success=True)}


def test_what_a_runs_length_costs_is_in_its_reward(model: Path):
    async def grade(record: RunRecord, example: Example, gold: Sequence[GoldPlace]) -> Reward:
        return Reward(0.25, 0.5, 0.75, 1.0, success=True)

    def penalties(**limits: dict[str, int]) -> list[tuple[list[int], float]]:
        overlong = OverlongConfig.model_validate({"weight": 0.5, **limits})
        setting = replace(context(), grade=grade, overlong=overlong)
        [group] = spoken(Speaker(model), model, questions=1, group=3, setting=setting)
        assert {run.reward.total - run.reward.overlong for run in group} == {0.25}
        assert {run.reward.success for run in group} == {True}
        return [([len(call.completion_ids) for call in run.calls], run.reward.overlong) for run in group]

    for lengths, penalty in penalties(reply={"max_tokens": 1000, "cache": 1000}):
        assert penalty == pytest.approx(-0.5 * max(lengths) / 1000)
    for lengths, penalty in penalties(run={"max_tokens": 1000, "cache": 1000}):
        assert penalty == pytest.approx(-0.5 * sum(lengths) / 1000)
    both = penalties(reply={"max_tokens": 1000, "cache": 1000}, run={"max_tokens": 2, "cache": 1})
    for lengths, penalty in both:
        assert penalty == pytest.approx(-0.5 * max(lengths) / 1000 - 0.5)


def test_searches_that_met_a_gold_page_are_valuable(model: Path):
    [[run]] = played(model, questions=1, group=1, noise=0.0)
    assert run.reward.success
    assert run.valuable == {"s1"}
    without = [replace(task, gold=()) for task in tasks(1)]
    form, expand_image_tokens = ChatFormat(str(model)), pixels_of(model).expand_image_tokens
    [[blind]] = asyncio.run(expert_runs(context(), expert(0.0), form, expand_image_tokens, without))
    assert blind.valuable == frozenset()
    assert blind.calls == run.calls


def test_a_run_whose_time_is_up_is_a_failure_of_the_policy_and_not_of_the_system(model: Path):
    hurried = context(agent=mosaic_agent().model_copy(update={"deadline_s": 1e-9}))
    [[run]] = spoken(Speaker(model), model, questions=1, group=1, setting=hurried)
    assert (run.record.status, run.reward.total, run.calls, run.nodes) == ("deadline", 0.0, (), ())


def faulty(speaker: Speaker, model: Path, setting: RolloutContext | None = None) -> str:
    with pytest.raises(VragError) as caught:
        spoken(speaker, model, setting=setting)
    return str(caught.value)


def test_a_source_that_cannot_be_searched_stops_the_rollout_and_names_the_example(model: Path):
    message = faulty(Speaker(model), model, context(source=Album(broken="the shards are gone")))
    assert "the run of train-0" in message
    assert "the shards are gone" in message


class Narrow(Speaker):
    """Takes no prompt with pictures when the seed is odd."""

    async def wait(self, request: TokenRequest) -> None:
        if request.images and (request.sampling.seed or 0) % 2:
            raise PromptRefusedError("the prompt has too many pictures")


def test_a_run_that_the_engine_cut_short_is_not_graded_and_teaches_nothing(model: Path):
    seen: list[str] = []

    async def grade(record: RunRecord, example: Example, gold: Sequence[GoldPlace]) -> Reward:
        seen.append(record.run_id)
        return Reward(float(len(seen) % 2), 1.0, 1.0, 1.0, success=len(seen) % 2 == 1)

    groups = spoken(Narrow(model), model, questions=4, setting=replace(context(), grade=grade))
    runs = [run for group in groups for run in group]
    cut = [run for run in runs if run.record.engine_limited]
    assert 0 < len(cut) < len(runs)
    assert sorted(seen) == sorted(run.record.run_id for run in runs if run not in cut)
    assert all(math.isnan(run.reward.total) for run in cut)
    for name in ("grpo", "ggpo", "progress"):
        taught = train_samples(groups, recipe(name, kl=0.0), Collectives())
        assert [bool(samples) for samples in taught] == [run not in cut for run in runs]
        assert all(math.isfinite(sample.advantage) for samples in taught for sample in samples)
    # What is left of a group is compared with itself alone.
    left = [[run for run in group if run not in cut] for group in groups]
    alone = [train_samples([group], GRPO, Collectives()) for group in left if group]
    assert [sample for group in alone for sample in group] == [
        samples for samples in train_samples(groups, GRPO, Collectives()) if samples
    ]
    nothing = [[replace(run, reward=UNGRADED, record=cut[0].record) for run in group] for group in groups]
    assert (
        train_samples(nothing, GRPO, Collectives())
        == train_samples(nothing, recipe("progress"), Collectives())
        == [[]] * len(runs)
    )


class Broken(Speaker):
    """Fails at the second question, and leaves the others waiting."""

    fault: Exception = VragError("the engine is lost")

    async def wait(self, request: TokenRequest) -> None:
        if tasks(2)[1].example.question in self.read(request):
            raise self.fault
        await asyncio.Event().wait()


@pytest.mark.parametrize("fault", [VragError("the engine is lost"), RuntimeError("boom")], ids=["known", "bug"])
def test_a_model_that_fails_stops_the_rollout_at_once_and_every_other_run_with_it(model: Path, fault: Exception):
    speaker = Broken(model)
    speaker.fault = fault
    message = faulty(speaker, model)
    assert f"the run of {tasks(2)[1].example.uid} (sample 0) failed" in message
    assert "the engine is lost" in message or "internal error (RuntimeError)" in message
    assert speaker.speaking == 0, "no reply is still being said"


def test_a_grade_that_cannot_be_given_stops_the_rollout(model: Path):
    async def grade(record: RunRecord, example: Example, gold: Sequence[GoldPlace]) -> Reward:
        raise VragError(f"no verdict on {example.uid}")

    assert "no verdict on train-" in faulty(Speaker(model), model, replace(context(), grade=grade))


counts = st.integers(1, 40)


def step_of(step: int, size: int) -> range:
    return range(step * size, (step + 1) * size)


@settings(deadline=None)
@given(counts, st.integers(1, 9), st.integers(0, 99))
def test_every_question_is_drawn_once_before_any_is_drawn_again(count: int, step_size: int, seed: int):
    pool = numbered(count)
    epochs = 3
    drawn = [task for step in range(epochs * count) for task in chosen(pool, step_of(step, step_size), seed=seed)]
    for start in range(0, len(drawn) - count + 1, count):
        assert Counter(drawn[start : start + count]) == Counter(pool)


@settings(deadline=None)
@given(counts, st.integers(1, 9), st.integers(0, 30))
def test_the_questions_of_a_step_depend_on_nothing_but_its_number_and_the_seed(count: int, step_size: int, step: int):
    pool = numbered(count)
    assert chosen(pool, step_of(step, step_size), seed=3) == chosen(pool, step_of(step, step_size), seed=3)
    assert len(chosen(pool, step_of(step, step_size), seed=3)) == step_size


def test_a_question_that_a_step_takes_twice_has_draws_of_its_own_each_time(model: Path):
    [task] = tasks(1)
    twice = with_repeats([task, task])
    assert [(again.example.uid, again.repeat) for again in twice] == [(task.example.uid, 0), (task.example.uid, 1)]
    seeds: list[int | None] = []

    class Heard(Speaker):
        async def wait(self, request: TokenRequest) -> None:
            seeds.append(request.sampling.seed)

    first, again = (spoken(Heard(model), model, group=1, pool=[one]) for one in twice)
    alone = spoken(Heard(model), model, group=1, pool=[task])
    assert content_of(first) == content_of(alone)
    assert len(set(seeds)) == len(first[0][0].calls) + len(again[0][0].calls)


def test_each_epoch_has_an_order_of_its_own_and_each_seed_too():
    pool = numbered(30)
    orders = [tuple(chosen(pool, step_of(step, 30), seed=seed)) for seed in range(3) for step in range(3)]
    assert len({tuple(task.example.uid for task in epoch) for epoch in orders}) == 9


def test_without_questions_there_is_no_training():
    with pytest.raises(VragError, match="no questions to train on"):
        chosen([], range(1), seed=0)


@settings(deadline=None)
@given(st.integers(0, 60), st.text(max_size=5))
def test_an_order_is_of_everything_once(count: int, seed: str):
    assert sorted(order(count, seed)) == list(range(count))


def numbered(count: int) -> list[Task]:
    return [Task(Example(uid=f"q{number}", question="?", answers=("!",)), ()) for number in range(count)]
