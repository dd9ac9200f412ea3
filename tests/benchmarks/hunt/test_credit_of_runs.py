"""What the study's variants credit: graphs of real rollouts, and the masks on them."""

from __future__ import annotations

from random import Random

import pytest
import torch

from benchmarks.hunt.expert import Expert
from benchmarks.hunt.graphs import ANSWER, ROOT, Run, runs_of
from benchmarks.hunt.learning import seeded
from benchmarks.hunt.policy import TOKENS
from benchmarks.hunt.rollout import play
from benchmarks.hunt.variants import Plan, Variant, plan
from benchmarks.hunt.world import HuntConfig, draw_questions
from vrag_ray.training.advantages import ancestors, ggpo_keep

CONFIG = HuntConfig(hops=(2, 3), miss=0.2, max_steps=7)
GROUP = 8


def runs(expert: Expert, groups: int = 16, config: HuntConfig = CONFIG) -> list[Run]:
    generator = seeded(4)
    return runs_of(play(draw_questions(config, groups, generator).repeat(GROUP), expert, generator))


@pytest.fixture(scope="module")
def mixed() -> list[Run]:
    """Successes and failures, dead ends and repetitions."""
    episodes = runs(Expert(0.15, 0.6))
    assert 0.2 < sum(run.success for run in episodes) / len(episodes) < 0.8
    return episodes


def planned(variant: Variant, episodes: list[Run]) -> Plan:
    return plan(variant, episodes, GROUP, CONFIG.max_steps, Random(0))


def keep_masks(variant: Variant, episodes: list[Run]) -> list[list[bool]]:
    keep = planned(variant, episodes).keep
    return [keep[number, : len(run.segment_nodes)].tolist() for number, run in enumerate(episodes)]


def test_an_oracles_answer_rests_on_every_gold_page_and_nothing_is_masked() -> None:
    episodes = runs(Expert(), config=HuntConfig(hops=(3, 3), miss=0.0))
    for run in episodes:
        assert run.success
        assert run.segment_nodes == ("n0", "n1", "n2", ANSWER)
        assert ancestors(run.parents, ANSWER) >= {ROOT, "n0", "n1", "n2"}
        assert run.found == {f"n{place}": {place} for place in range(3)}
    assert all(all(keep) for keep in keep_masks(Variant.GGPO, episodes))


def test_parents_come_before_their_children(mixed: list[Run]) -> None:
    for run in mixed:
        order = list(run.parents)
        for node, parents in run.parents.items():
            assert all(order.index(parent) < order.index(node) for parent in parents)


def test_the_published_mask_is_the_trainers_own(mixed: list[Run]) -> None:
    for run, keep in zip(mixed, keep_masks(Variant.GGPO, mixed), strict=True):
        assert keep == ggpo_keep(run.parents, run.answer_id, run.success, set(run.found), list(run.segment_nodes))


def test_the_halves_of_the_mask_make_up_the_whole(mixed: list[Run]) -> None:
    whole, positive, negative = (
        keep_masks(variant, mixed) for variant in (Variant.GGPO, Variant.GGPO_POSITIVE, Variant.GGPO_NEGATIVE)
    )
    for run, both, in_success, in_failure in zip(mixed, whole, positive, negative, strict=True):
        assert (in_success if run.success else in_failure) == both
        assert all(in_failure if run.success else in_success)


def test_a_random_mask_takes_as_many_of_each_verdict_and_never_an_answer(mixed: list[Run]) -> None:
    published, random = keep_masks(Variant.GGPO, mixed), keep_masks(Variant.RANDOM_MASK, mixed)
    assert published != random
    for verdict in (True, False):
        ours = [number for number, run in enumerate(mixed) if run.success is verdict]
        assert sum(map(sum, (published[n] for n in ours))) == sum(map(sum, (random[n] for n in ours)))
    for run, keep in zip(mixed, random, strict=True):
        assert all(is_kept for node, is_kept in zip(run.segment_nodes, keep, strict=True) if node == run.answer_id)


def test_masking_the_search_turn_alone_leaves_the_memorise_token_with_its_weight(mixed: list[Run]) -> None:
    ggpo, search_turn = planned(Variant.GGPO, mixed), planned(Variant.GGPO_SEARCH_TURN, mixed)
    masked = ~ggpo.keep
    assert masked.any()
    assert search_turn.keep.all()
    assert not search_turn.tokens[masked][:, : TOKENS - 1].any()
    assert search_turn.tokens[masked][:, TOKENS - 1].all()
    assert torch.allclose(search_turn.advantages[masked], ggpo.advantages[masked] / TOKENS)
    assert torch.equal(search_turn.advantages[~masked], ggpo.advantages[~masked])


def test_segments_and_whole_runs_share_the_advantage_of_the_group(mixed: list[Run]) -> None:
    advantages = planned(Variant.GSPO_SEGMENTS, mixed).advantages
    rewards = torch.tensor([float(run.success) for run in mixed]).view(-1, GROUP)
    assert torch.equal(advantages, planned(Variant.GRPO_TRAJECTORY, mixed).advantages)
    assert (advantages == advantages[:, :1]).all()
    assert ((advantages[:, 0].view(-1, GROUP) > 0) <= (rewards == 1)).all()
    assert torch.allclose(advantages[:, 0].view(-1, GROUP).sum(dim=1), torch.zeros(len(rewards)), atol=1e-4)


def test_gigpo_prefers_the_step_that_led_on_from_the_same_state(mixed: list[Run]) -> None:
    extra = planned(Variant.GIGPO, mixed).advantages - planned(Variant.GSPO_SEGMENTS, mixed).advantages
    for begin in range(0, len(mixed), GROUP):
        first = extra[begin : begin + GROUP, 0]
        success = torch.tensor([run.success for run in mixed[begin : begin + GROUP]])
        if success.any() and not success.all():
            assert first[success].min() > first[~success].max()


def test_every_variant_credits_the_replies(mixed: list[Run]) -> None:
    for variant in Variant:
        credit = planned(variant, mixed)
        assert credit.advantages.shape == credit.keep.shape == (len(mixed), CONFIG.max_steps)
        assert credit.tokens.shape == (len(mixed), CONFIG.max_steps, TOKENS)
        assert credit.advantages.isfinite().all()
        assert credit.advantages.any()
