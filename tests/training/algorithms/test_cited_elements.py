"""GGPO's masks where the answer cites elements that meet gold boxes: each case worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.mosaic_runs import recipe
from tests.support.recorded_runs import KEEP, MUSEUM, SALES, record_of
from vrag_ray.agent.actions import Action, AddAnswerNode
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.algorithms.ggpo import mask
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.rewards.reward import Reward
from vrag_ray.training.rollout.rollout_metrics import rollout_metrics
from vrag_ray.training.trajectory import Call, Trajectory, nodes_of_calls

GGPO, CITED = ALGORITHMS["ggpo"], ALGORITHMS["ggpo_cited"]
BELOW_SALES = MUSEUM.model_copy(update={"parent_ids": ("sales",)})
FLEET = SALES.model_copy(update={"id": "fleet", "query": "wooden boats of the workshop"})
BESIDE = (SALES, KEEP, MUSEUM, KEEP, AddAnswerNode(parent_ids=("museum",), answer="15"))
"""Two searches side by side; the answer names the second as its parent."""
GoldByNode = Mapping[str, frozenset[int]]
FIRST, SECOND = frozenset({0}), frozenset({1})


def run_of(
    *lines: Action | str, success: bool, finds: GoldByNode | None = None, cited: GoldByNode | None = None
) -> Trajectory:
    record = record_of(*lines)
    nodes = nodes_of_calls(record.events, record.steps)
    verdict = float(success)
    reward = Reward(verdict, verdict, 0.0, 1.0, success=success)
    calls = (Call((1,), (), (2,)),) * record.steps
    return Trajectory("u", 0, calls, nodes, record, reward, finds or {}, 2, cited=cited or {})


def learnt(run: Trajectory, algorithm: Algorithm) -> list[str]:
    nodes = [segment.node or "refused" for segment in run.segments]
    return [node for node, keep in zip(nodes, mask(run, algorithm), strict=True) if keep]


def test_in_a_success_a_search_whose_gold_element_is_cited_is_no_dead_end() -> None:
    run = run_of(*BESIDE, success=True, cited={"sales": FIRST})
    assert learnt(run, GGPO) == ["museum", "answer"], "the published mask goes by declared parents alone"
    assert learnt(run, CITED) == ["sales", "museum", "answer"]


def test_an_answer_may_cite_a_search_that_it_does_not_name_as_a_parent() -> None:
    answer = AddAnswerNode(parent_ids=("museum",), answer="15 [1]", citations=("sales#1",))
    record = record_of(SALES, KEEP, MUSEUM, KEEP, answer)
    assert [citation.node_id for citation in record.citations] == ["sales"]
    assert "sales" not in record.graph.ancestors("answer")


def test_what_led_to_the_cited_search_is_no_dead_end_either() -> None:
    lines = (SALES, KEEP, BELOW_SALES, KEEP, FLEET, KEEP, AddAnswerNode(parent_ids=("fleet",), answer="15"))
    run = run_of(*lines, success=True, cited={"museum": FIRST})
    assert learnt(run, GGPO) == ["fleet", "answer"]
    assert learnt(run, CITED) == ["sales", "museum", "fleet", "answer"]


def test_in_a_success_gold_pages_that_nothing_is_cited_from_stay_a_dead_end() -> None:
    run = run_of(*BESIDE, success=True, finds={"sales": FIRST})
    assert learnt(run, CITED) == learnt(run, GGPO) == ["museum", "answer"]


@pytest.mark.parametrize(
    ("finds", "cited", "published", "with_cited"),
    [
        # Nothing gold: all of a failure is learnt from.
        ({}, {}, ["sales", "museum", "answer"], ["sales", "museum", "answer"]),
        # The page was among the results: spared by its key already.
        ({"sales": FIRST}, {"sales": FIRST}, ["museum", "answer"], ["museum", "answer"]),
        # No page key matched, but what the answer cites meets a gold box.
        ({}, {"sales": FIRST}, ["sales", "museum", "answer"], ["museum", "answer"]),
        # Both sets together are R_val.
        ({"museum": FIRST}, {"sales": SECOND}, ["sales", "answer"], ["answer"]),
    ],
)
def test_in_a_failure_such_a_search_is_spared_beside_those_that_found_gold_pages(
    finds: GoldByNode, cited: GoldByNode, published: Sequence[str], with_cited: Sequence[str]
) -> None:
    run = run_of(*BESIDE, success=False, finds=finds, cited=cited)
    assert learnt(run, GGPO) == published
    assert learnt(run, CITED) == with_cited


def test_a_refused_reply_is_masked_and_learnt_as_before() -> None:
    lines = (SALES, "what?", KEEP, MUSEUM, KEEP, AddAnswerNode(parent_ids=("museum",), answer="15"))
    paid = run_of(*lines, success=True, cited={"sales": FIRST})
    unpaid = run_of(*lines, success=False, cited={"sales": FIRST})
    assert learnt(paid, CITED) == ["sales", "museum", "answer"]
    assert learnt(unpaid, CITED) == ["refused", "museum", "answer"]


def test_each_half_of_the_mask_takes_cited_elements_by_itself() -> None:
    paid, unpaid = (run_of(*BESIDE, success=success, cited={"sales": FIRST}) for success in (True, False))
    everything = ["sales", "museum", "answer"]
    positive = recipe("ggpo_cited", credit="ggpo_positive")
    negative = recipe("ggpo_cited", credit="ggpo_negative")
    assert (learnt(paid, positive), learnt(unpaid, positive)) == (everything, everything)
    assert (learnt(paid, negative), learnt(unpaid, negative)) == (everything, ["museum", "answer"])


def test_a_first_find_is_that_of_pages_and_cited_boxes_together() -> None:
    first_find = recipe("ggpo_cited", credit="ggpo_first_find")
    again = run_of(*BESIDE, success=False, finds={"sales": FIRST, "museum": FIRST}, cited={"museum": FIRST})
    assert learnt(again, first_find) == ["museum", "answer"], "searching again for what is there keeps its price"
    new = run_of(*BESIDE, success=False, finds={"sales": FIRST, "museum": FIRST}, cited={"museum": SECOND})
    assert learnt(new, first_find) == ["answer"]


def test_the_published_mask_is_logged_whatever_the_algorithm_spares() -> None:
    run = run_of(*BESIDE, success=True, cited={"sales": FIRST})
    logged = rollout_metrics([[run]], Collectives(), CITED)
    assert (logged["masked/positive"], logged["kept/positive"]) == pytest.approx((1 / 3, 1.0))


nodes = st.sampled_from(["sales", "museum"])
gold_by_node = st.dictionaries(nodes, st.sampled_from([FIRST, SECOND, FIRST | SECOND]))
PAID, UNPAID = (run_of(*BESIDE, success=success) for success in (True, False))


@settings(deadline=None)
@given(gold_by_node, gold_by_node)
def test_cited_elements_only_keep_more_of_a_success_and_spare_more_of_a_failure(
    finds: GoldByNode, cited: GoldByNode
) -> None:
    paid, unpaid = (_with(run, finds, cited) for run in (PAID, UNPAID))
    assert set(learnt(paid, GGPO)) <= set(learnt(paid, CITED))
    assert set(learnt(unpaid, CITED)) <= set(learnt(unpaid, GGPO))
    assert {"answer"} <= set(learnt(paid, CITED)) & set(learnt(unpaid, CITED))
    for run in (_with(PAID, finds, {}), _with(UNPAID, finds, {})):
        assert mask(run, CITED) == mask(run, GGPO)


def _with(run: Trajectory, finds: GoldByNode, cited: GoldByNode) -> Trajectory:
    return replace(run, found=finds, cited=cited)
