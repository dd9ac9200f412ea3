"""Cited elements against gold boxes: rewards worked out by hand, and what a question without gold boxes earns."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.recorded_runs import ANSWER, CLOSER, KEEP, MUSEUM, SALES, record_of
from vrag_ray.agent.actions import Action, AddAnswerNode
from vrag_ray.agent.citations import Citation, CitedElement
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import AgentConfig
from vrag_ray.questions.examples import Corners, Example
from vrag_ray.questions.gold_places import GoldPlace, region_measures
from vrag_ray.questions.grounding import GroundingMeasure, cited_places, gold_cited, grounding
from vrag_ray.training.rewards.grader import Grader
from vrag_ray.training.rewards.reward import Reward, RewardWeights, mixed
from vrag_ray.types import PassageKind, document_id
from vrag_ray.types.elements import ElementKind

REPORT = document_id(b"Annual report")
FIRST, SECOND = (0.1, 0.1, 0.5, 0.3), (0.1, 0.5, 0.5, 0.7)
GOLD = (GoldPlace("r#p1", REPORT, page=1, box=FIRST), GoldPlace("r#p1", REPORT, page=1, box=SECOND))
PAGE_ALONE = (GoldPlace("r#p1", REPORT, page=1),)
EXAMPLE = Example(uid="u1", question="What was North in 2022?", answers=("15",))
WEIGHTS = RewardWeights(answer=0.5, retrieval=0.1, format=0.1, grounding=0.3)
DONE = (SALES, KEEP, AddAnswerNode(parent_ids=("sales",), answer="15"))


def cites(box: Corners | None, *, page: int = 1, element: Corners | None = None, doc: str = REPORT) -> Citation:
    around = CitedElement(number=0, last=0, kind=ElementKind.PARAGRAPH, bbox=element) if element is not None else None
    return Citation(
        number=1,
        doc_id=doc,
        title="Annual report",
        uri="file:Annual report",
        kind=PassageKind.PAGE,
        page=page,
        bbox=box,
        element=around,
        node_id="sales",
    )


MEETS_FIRST = cites((0.1, 0.1, 0.5, 0.25))
"""Three quarters of the first gold box, and nothing beside it."""
MEETS_SECOND = cites((0.1, 0.5, 0.2, 0.55), element=(0.1, 0.5, 0.5, 0.7))
"""A figure much smaller than the second gold box, in an element that is the gold box."""
MEETS_NONE = cites((0.6, 0.6, 0.9, 0.9))
OTHER_PAGE = cites(FIRST, page=2)
WHOLE_PAGE = cites(None)


def run_citing(*citations: Citation, lines: tuple[Action | str, ...] = DONE) -> RunRecord:
    return record_of(*lines).model_copy(update={"citations": citations})


def reward_of(
    record: RunRecord,
    gold: tuple[GoldPlace, ...] = GOLD,
    *,
    weights: RewardWeights = WEIGHTS,
    measure: GroundingMeasure = GroundingMeasure.F1,
    answers: tuple[str, ...] = ("15",),
) -> Reward:
    example = EXAMPLE.model_copy(update={"answers": answers})
    return asyncio.run(Grader("exact_match", weights=weights, measure=measure)(record, example, gold))


@pytest.mark.parametrize(
    ("citations", "recall", "precision", "f1"),
    [
        ((MEETS_FIRST,), 0.5, 1.0, 2 / 3),
        ((MEETS_FIRST, MEETS_NONE), 0.5, 0.5, 0.5),
        ((MEETS_FIRST, MEETS_SECOND, MEETS_NONE), 1.0, 2 / 3, 0.8),
        ((MEETS_FIRST, MEETS_SECOND, OTHER_PAGE, MEETS_NONE), 1.0, 0.5, 2 / 3),
        # Without a box there is nothing to grade: it is no miss either.
        ((MEETS_FIRST, WHOLE_PAGE), 0.5, 1.0, 2 / 3),
        ((WHOLE_PAGE,), 0.0, 0.0, 0.0),
        ((OTHER_PAGE, cites(FIRST, doc="elsewhere")), 0.0, 0.0, 0.0),
        ((), 0.0, 0.0, 0.0),
        # The same place cited twice is cited once.
        ((MEETS_FIRST, MEETS_NONE, MEETS_NONE), 0.5, 0.5, 0.5),
    ],
)
def test_what_is_graded_is_recall_precision_or_f1_of_the_boxes_cited(
    citations: tuple[Citation, ...], recall: float, precision: float, f1: float
) -> None:
    record = run_citing(*citations)
    assert [grounding(record, GOLD, measure) for measure in GroundingMeasure] == pytest.approx([recall, precision, f1])


@pytest.mark.parametrize(
    ("measure", "right", "wrong"),
    [
        # Right: 0.5 for the answer, 0.1 for the page found first, 0.1 for the form, and 0.3 times 1, 2/3 or 0.8.
        (GroundingMeasure.RECALL, 1.0, 0.5),
        (GroundingMeasure.PRECISION, 0.9, 0.4),
        (GroundingMeasure.F1, 0.94, 0.44),
    ],
)
def test_the_total_of_a_run_worked_out_by_hand(measure: GroundingMeasure, right: float, wrong: float) -> None:
    record = run_citing(MEETS_FIRST, MEETS_SECOND, MEETS_NONE)
    paid, unpaid = reward_of(record, measure=measure), reward_of(record, measure=measure, answers=("16",))
    assert (paid.total, unpaid.total) == pytest.approx((right, wrong))
    assert (paid.answer, paid.retrieval, paid.format, paid.grounded) == (1.0, 1.0, 1.0, True)
    assert paid.grounding == unpaid.grounding
    assert (paid.success, unpaid.success) == (True, False), "the verdict is on the answer alone"


def test_without_a_gold_box_the_weight_is_the_answers() -> None:
    record = run_citing(MEETS_FIRST)
    for gold, page_found in ((PAGE_ALONE, 0.1), ((), 0.0)):
        paid, unpaid = reward_of(record, gold), reward_of(record, gold, answers=("16",))
        assert (paid.total, unpaid.total) == pytest.approx((0.9 + page_found, 0.1 + page_found))
        assert (paid.grounding, paid.grounded) == (0.0, False)
    only = RewardWeights(answer=0.0, retrieval=0.0, format=0.0, grounding=1.0)
    assert (reward_of(record, PAGE_ALONE, weights=only).total, reward_of(record, weights=only).total) == pytest.approx(
        (1.0, 2 / 3)
    )


def test_citations_that_are_not_of_an_answer_of_the_policy_earn_nothing() -> None:
    at_the_end = record_of(SALES, KEEP, MUSEUM, config=AgentConfig(max_steps=2))
    assert at_the_end.status is RunStatus.MAX_STEPS
    abstained = run_citing(
        MEETS_FIRST, lines=(SALES, KEEP, AddAnswerNode(parent_ids=("sales",), answer="unclear", abstain=True))
    )
    assert abstained.status is RunStatus.ABSTAINED
    for record in (at_the_end.model_copy(update={"citations": (MEETS_FIRST,)}), abstained):
        reward = reward_of(record)
        assert (reward.grounding, reward.grounded) == (0.0, True)


def test_the_searches_that_gold_elements_are_cited_from_are_known_with_their_boxes() -> None:
    from_museum = MEETS_SECOND.model_copy(update={"node_id": "museum"})
    record = run_citing(MEETS_FIRST, MEETS_NONE, from_museum, MEETS_SECOND, WHOLE_PAGE)
    assert gold_cited(record, GOLD) == {"sales": {0, 1}, "museum": {1}}
    assert gold_cited(run_citing(MEETS_NONE), GOLD) == gold_cited(record, PAGE_ALONE) == gold_cited(record, ()) == {}
    assert gold_cited(record.model_copy(update={"status": RunStatus.MAX_STEPS}), GOLD) == {}


def test_a_broken_form_earns_nothing_whatever_is_cited() -> None:
    talked = run_citing(MEETS_FIRST, MEETS_SECOND, lines=(AddAnswerNode(parent_ids=("root",), answer="15"),))
    reward = reward_of(talked)
    assert (reward.total, reward.grounding, reward.success) == (0.0, 1.0, True)


def test_reward_and_evaluation_say_the_same_of_a_run() -> None:
    record = record_of(SALES, CLOSER, ANSWER)
    boxes = [box for place in cited_places(record) for box in place.boxes]
    assert boxes, "the run cites a box"
    gold = (GoldPlace("r#p1", REPORT, page=1, box=boxes[0]), GOLD[0])
    measures = region_measures(gold, cited_places(record))
    assert [grounding(record, gold, measure) for measure in GroundingMeasure] == [
        measures["evidence recall"],
        measures["evidence precision"],
        measures["evidence F1"],
    ]
    assert measures["evidence recall"] > 0


parts = st.floats(0, 1)


@st.composite
def weights_without_grounding(draw: st.DrawFn) -> RewardWeights:
    answer = draw(parts)
    retrieval = draw(st.floats(0, 1 - answer))
    return RewardWeights(answer, retrieval, 1 - answer - retrieval)


@settings(deadline=None)
@given(parts, parts, st.booleans(), weights_without_grounding(), st.none() | parts)
def test_without_a_weight_the_reward_is_that_of_before_to_the_last_bit(
    answer: float, retrieval: float, well_formed: bool, weights: RewardWeights, cited: float | None
) -> None:
    form = 1.0 if well_formed else 0.0
    # The formula as it was before cited elements were graded.
    before = weights.answer * answer + weights.retrieval * retrieval + weights.format * form
    reward = mixed(answer, retrieval, well_formed, weights, cited)
    assert reward.total.hex() == (before if well_formed else 0.0).hex()
    assert (reward.answer, reward.retrieval, reward.format, reward.success) == (answer, retrieval, form, answer >= 0.5)


@settings(deadline=None)
@given(parts, parts, st.none() | parts, parts)
def test_a_total_is_from_0_to_1_and_grows_with_what_is_cited(
    answer: float, retrieval: float, cited: float | None, share: float
) -> None:
    weights = RewardWeights(0.7 * (1 - share), 0.2 * (1 - share), 0.1 * (1 - share), share)
    reward = mixed(answer, retrieval, True, weights, cited)
    assert 0 <= reward.total <= 1 + 1e-12
    if cited is not None:
        assert mixed(answer, retrieval, True, weights, 1.0).total >= reward.total
    assert mixed(1.0, 1.0, True, weights, cited and 1.0).total <= 1 + 1e-12


def test_graders_of_the_default_weights_pay_the_same_with_boxes_and_without() -> None:
    record = run_citing(MEETS_FIRST, MEETS_NONE)
    grader = Grader("exact_match")
    with_boxes, without = (asyncio.run(grader(record, EXAMPLE, gold)) for gold in (GOLD, PAGE_ALONE))
    assert with_boxes.total.hex() == without.total.hex()
    assert (with_boxes.grounding, with_boxes.grounded) == (0.5, True), "graded for the log all the same"
