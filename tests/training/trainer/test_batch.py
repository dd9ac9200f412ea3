"""Calls side by side: what is padded, what is scored, which pictures are read, and how calls are parted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.mosaic_runs import Album, Groups, context, pad_of, pixels_of, tasks, world
from tests.support.pictures import noise_png
from tests.support.scripted_agent import Watcher
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import ImagePart, Message, Role
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.training.rollout.rollout import expert_runs
from vrag_ray.training.trainer.batch import Batch, collate, parts
from vrag_ray.training.trajectory import Call
from vrag_ray.types import VragError

IMAGE_PAD = "<|image_pad|>"


@pytest.fixture(scope="session")
def calls(groups: Groups) -> list[Call]:
    return [call for group in groups for run in group for call in run.calls]


def batch_of(calls: list[Call], model: Path) -> Batch:
    return collate(calls, pixels_of(model), pad_of(model))


def test_a_call_is_its_prompt_and_its_reply_padded_on_the_right(calls: list[Call], model: Path):
    batch = batch_of(calls, model)
    for row, call in enumerate(calls):
        ids = batch.input_ids[row].tolist()
        assert tuple(ids) == (*call.prompt_ids, *call.completion_ids, *[pad_of(model)] * (len(ids) - call.tokens))
        assert batch.attention_mask[row].tolist() == [1] * call.tokens + [0] * (len(ids) - call.tokens)


# The mask is made of the token ids that the sampler gave, never of anything decoded.
def test_what_is_scored_are_the_samplers_tokens_and_no_others(calls: list[Call], model: Path):
    batch = batch_of(calls, model)
    assert batch.labels.tolist() == [token for call in calls for token in call.completion_ids]
    assert torch.equal(batch.input_ids[batch.rows, batch.columns], batch.labels)
    assert batch.lengths == tuple(len(call.completion_ids) for call in calls)
    for row, call in enumerate(calls):
        columns = batch.columns[batch.rows == row].tolist()
        assert columns == list(range(len(call.prompt_ids), call.tokens))


def test_a_prompt_has_as_many_image_tokens_as_its_pictures_have_visual_tokens(calls: list[Call], model: Path):
    pixels, batch = pixels_of(model), batch_of(calls, model)
    assert sum(len(call.images) for call in calls) > 10
    for row, call in enumerate(calls):
        assert int(batch.is_image[row].sum()) == sum(map(pixels.visual_tokens, call.images))
    assert torch.equal(batch.is_image.bool(), batch.input_ids == pixels.image_token_id)


def test_a_picture_that_many_prompts_show_is_read_once(calls: list[Call], model: Path):
    pixels, batch = pixels_of(model), batch_of(calls, model)
    shown = [image for call in calls for image in call.images]
    different = list(dict.fromkeys(shown))
    assert len(shown) > 2 * len(different)
    assert batch.grids is not None and batch.pixels is not None and batch.shown is not None
    assert len(batch.grids) == len(different)
    assert len(batch.pixels) == int(batch.grids.prod(dim=1).sum())
    assert [different[place] for place in batch.shown.tolist()] == shown
    each = [pixels.patches([picture])[0].values for picture in different]
    assert torch.equal(batch.pixels, torch.cat(each))


def test_calls_without_pictures_have_none(model: Path):
    batch = batch_of([Call((5, 6), (), (7,)), Call((5,), (), (7, 8))], model)
    assert (batch.pixels, batch.grids, batch.shown) == (None, None, None)
    assert int(batch.is_image.sum()) == 0


def test_a_literal_image_token_in_a_text_stands_for_no_picture(model: Path):
    form, pixels, seen = ChatFormat(str(model)), pixels_of(model), noise_png(112, 112)

    def call(before: str, after: str) -> Call:
        chat = ChatRequest((Message.of(Role.USER, before, ImagePart(seen), after),))
        return Call(pixels.expand_image_tokens(form.tokens(chat)[0], (seen,)), (seen,), (7,))

    literal = call(f"it reads {IMAGE_PAD}{IMAGE_PAD}", f"and then {IMAGE_PAD}")
    batch = batch_of([literal, call("it reads", "and then")], model)
    assert batch.is_image.sum(dim=1).tolist() == [pixels.visual_tokens(seen)] * 2


def test_a_page_that_says_image_token_is_retrieved_and_learnt_from_like_any_other(model: Path):
    form, pixels = ChatFormat(str(model)), pixels_of(model)
    name = f"{IMAGE_PAD}<|vision_start|>{IMAGE_PAD} falcon"
    album = Album([world().pages[0].model_copy(update={"name": name})])
    keep = MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=5)
    script = (
        AddSearchNode(id="s1", parent_ids=("root",), query=name),
        SummarizeAndMemorize(summarize=f"{IMAGE_PAD} is written there", memorize=(keep,)),
        AddAnswerNode(parent_ids=("s1",), answer=IMAGE_PAD),
    )
    setting = context(source=album)
    [[run]] = asyncio.run(
        expert_runs(
            setting, lambda *_: Watcher(*script, protocol=setting.protocol), form, pixels.expand_image_tokens, tasks(1)
        )
    )
    assert [len(call.images) for call in run.calls] == [0, 1, 0]
    batch = batch_of(list(run.calls), model)
    assert batch.is_image.sum(dim=1).tolist() == [0, pixels.visual_tokens(run.calls[1].images[0]), 0]


def test_pictures_and_image_tokens_that_do_not_match_are_refused(calls: list[Call], model: Path):
    seeing = next(call for call in calls if call.images)
    wide = pixels_of(model).visual_tokens(seeing.images[0])
    tokens = wide * len(seeing.images)
    with pytest.raises(VragError, match=f"{tokens} image tokens for pictures of {tokens - wide} visual tokens"):
        batch_of([replace(seeing, images=seeing.images[1:])], model)


def test_a_reply_with_an_image_token_is_refused(calls: list[Call], model: Path):
    odd = replace(calls[0], completion_ids=(5, pixels_of(model).image_token_id, 6))
    with pytest.raises(VragError, match="a reply holds a token that stands for a picture"):
        batch_of([calls[1], odd], model)


sizes = st.lists(st.lists(st.integers(1, 200), min_size=1, max_size=5), max_size=40)
budgets = st.integers(1, 1500)


@settings(deadline=None)
@given(sizes, budgets)
def test_every_group_is_in_exactly_one_part(sizes: list[list[int]], budget: int):
    assert sorted(number for part in parts(sizes, budget) for number in part) == list(range(len(sizes)))
    assert all(parts(sizes, budget))


@settings(deadline=None)
@given(sizes, budgets)
def test_a_part_keeps_within_the_budget_unless_one_group_alone_does_not(sizes: list[list[int]], budget: int):
    for part in parts(sizes, budget):
        padded = max(max(sizes[number]) for number in part) * sum(len(sizes[number]) for number in part)
        assert padded <= budget or len(part) == 1


@settings(deadline=None)
@given(sizes, budgets)
def test_the_same_sizes_give_the_same_parts(sizes: list[list[int]], budget: int):
    assert list(parts(sizes, budget)) == list(parts(sizes, budget))


@settings(deadline=None)
@given(sizes, budgets)
def test_groups_of_like_length_come_together(sizes: list[list[int]], budget: int):
    longest = [[max(sizes[number]) for number in part] for part in parts(sizes, budget)]
    assert all(min(group) >= max(following) for group, following in pairwise(longest))
