"""Progress credit and the study's masks, as pure functions."""

from __future__ import annotations

from random import Random

import pytest
import torch

from benchmarks.hunt.shuffled_mask import shuffled_keep
from vrag_ray.training.advantages import STD_FLOOR, group_advantages
from vrag_ray.training.algorithms.ggpo import first_finds
from vrag_ray.training.algorithms.progress import CreditInput, progress_advantages, state_values
from vrag_ray.types import VragError


def run(reward: float, *finds: int | None, gold: int = 2) -> CreditInput:
    """A segment for each of ``finds``: the gold page that its search brought, or None."""
    nodes = [f"n{number}" for number in range(len(finds))]
    gold_found = {node: {page} for node, page in zip(nodes, finds, strict=True) if page is not None}
    return CreditInput(reward, nodes, gold_found, gold)


SUCCESS = run(1.0, 1, None, 2, None)
FAILURE = run(0.0, 1, None, None, None)
LOST = run(0.0, None, None, None)
GROUPS = [[SUCCESS, FAILURE, LOST, SUCCESS], [FAILURE, LOST, SUCCESS, LOST], [LOST, SUCCESS, FAILURE, SUCCESS]]


def test_missing_counts_distinct_gold_pages() -> None:
    assert run(0.0, 1, 1, None, 2).missing() == [2, 1, 1, 1, 0]


def test_without_annotation_it_is_the_groups_own_advantage() -> None:
    bare = [[run(1.0, None, None, gold=0), run(0.0, None, gold=0)], [run(1.0, None, gold=0), run(1.0, None, gold=0)]]
    expected = group_advantages(torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64))
    for number, group in enumerate(progress_advantages(bare)):
        for place, advantages in enumerate(group):
            assert torch.equal(advantages, expected[number, place].repeat(len(bare[number][place].segment_nodes)))


def test_annotated_groups_do_not_lend_their_credit_to_others() -> None:
    bare = [run(1.0, None, gold=0), run(0.0, None, gold=0)] * 2
    among = progress_advantages([*GROUPS, bare])
    alone = progress_advantages(GROUPS)
    assert all(
        torch.equal(a, b)
        for first, second in zip(among[:3], alone, strict=True)
        for a, b in zip(first, second, strict=True)
    )


def test_with_one_group_and_trace_one_each_segment_gets_the_reward_less_the_others_mean() -> None:
    group = GROUPS[0]
    [advantages] = progress_advantages([group], trace=1.0, recall_weight=0.0, normalize_std=False)
    for episode, credited in zip(group, advantages, strict=True):
        others = (sum(other.reward for other in group) - episode.reward) / 3
        assert torch.allclose(credited, torch.full_like(credited, episode.reward - others))


def test_with_trace_one_an_advantage_is_what_came_less_what_was_to_be_expected() -> None:
    rewards = torch.tensor([[episode.reward for episode in group] for group in GROUPS], dtype=torch.float64)
    values = state_values(GROUPS, rewards)
    credited = progress_advantages(GROUPS, trace=1.0, recall_weight=0.0, normalize_std=False)
    for number, group in enumerate(GROUPS):
        for place, episode in enumerate(group):
            assert torch.allclose(credited[number][place], episode.reward - values[number][place])


def test_values_of_a_group_do_not_know_its_own_rewards_but_through_the_others_mean() -> None:
    rewards = torch.tensor([[episode.reward for episode in group] for group in GROUPS], dtype=torch.float64)
    # The same sum over the others of run 0, dealt differently among them.
    dealt = rewards.clone()
    dealt[0, 1:] = torch.tensor([1.0, 0.0, 0.0])
    assert torch.allclose(state_values(GROUPS, rewards)[0][0], state_values(GROUPS, dealt)[0][0])


def test_a_first_find_is_worth_more_than_the_dead_end_after_it_also_in_a_failure() -> None:
    many = GROUPS * 4
    credited = progress_advantages(many, trace=0.0)
    for number, group in enumerate(many):
        for place, episode in enumerate(group):
            if episode is FAILURE:
                assert credited[number][place][0] > 0
                assert credited[number][place][0] > credited[number][place][1]


def test_the_order_of_groups_and_of_their_runs_changes_nothing() -> None:
    mixed = [list(reversed(group)) for group in reversed(GROUPS)]
    again = [list(reversed(group)) for group in reversed(progress_advantages(mixed))]
    for first, second in zip(progress_advantages(GROUPS), again, strict=True):
        assert all(torch.allclose(a, b) for a, b in zip(first, second, strict=True))


def test_runs_that_never_spoke_have_no_credit_and_spoil_none() -> None:
    silent = [run(0.0), run(0.0), run(0.0), run(0.0)]
    *spoken, none = progress_advantages([*GROUPS, silent], normalize_std=False)
    assert [len(credit) for credit in none] == [0, 0, 0, 0]
    for first, second in zip(progress_advantages(GROUPS, normalize_std=False), spoken, strict=True):
        assert all(torch.allclose(a, b) for a, b in zip(first, second, strict=True))


def test_normalising_divides_by_the_spread_of_the_batch() -> None:
    plain = progress_advantages(GROUPS, recall_weight=0.0, normalize_std=False)
    scaled = progress_advantages(GROUPS, recall_weight=0.0)
    spread = (
        torch.tensor([episode.reward for group in GROUPS for episode in group], dtype=torch.float64).std() + STD_FLOOR
    )
    for first, second in zip(plain, scaled, strict=True):
        assert all(torch.allclose(a / spread, b) for a, b in zip(first, second, strict=True))


def test_equal_rewards_credit_nothing() -> None:
    same = [[FAILURE, LOST], [LOST, LOST], [run(0.0), run(0.0)]]
    assert not any(credit.any() for group in progress_advantages(same, recall_weight=0.0) for credit in group)


@pytest.mark.parametrize(
    ("groups", "trace", "named"),
    [([[SUCCESS], [SUCCESS, LOST]], 0.8, r"\[1, 2\]"), ([], 0.8, "groups of"), (GROUPS, 1.5, "trace is 1.5")],
)
def test_uneven_groups_and_odd_traces_are_refused(groups: list[list[CreditInput]], trace: float, named: str) -> None:
    with pytest.raises(VragError, match=named):
        progress_advantages(groups, trace=trace)


def test_only_the_first_search_that_brings_a_gold_page_is_a_find() -> None:
    finds = {"n0": {1}, "n1": {1}, "n3": {1, 2}}
    assert first_finds(finds, ["n0", "n1", None, "n2", "n3"]) == {"n0", "n3"}


def test_a_shuffled_mask_keeps_its_size_by_verdict_and_spares_answers() -> None:
    keeps = [[True, False, False, True], [False, True], [True, True, False]]
    nodes = [["n0", "n1", "n2", "answer"], ["n0", "n1"], ["n0", None, "answer"]]
    verdicts = [True, False, True]
    seen = set()
    for seed in range(30):
        mixed = shuffled_keep(keeps, nodes, ["answer", None, "answer"], verdicts, Random(seed))
        assert [len(mask) for mask in mixed] == [4, 2, 3]
        assert mixed[0][3] is True
        assert mixed[2][2] is False
        assert sum(mixed[0]) + sum(mixed[2]) == 4
        assert sum(mixed[1]) == 1
        seen.add(str(mixed))
    assert len(seen) > 5
