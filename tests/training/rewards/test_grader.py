"""Rewards of real runs, scorers of one's own, and gold pages found in a collection."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import pytest

from tests.support.agent_pages import library
from tests.support.judge_stub import case_of, compares, endpoint, judge_stub
from tests.support.scripted_agent import Watcher, run_to_end
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import AgentConfig
from vrag_ray.questions.answer_scores import own_answer
from vrag_ray.questions.examples import Example, GoldPage
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.questions.judge import Judge
from vrag_ray.training.rewards.grader import VRAG_RL_WEIGHTS, Grader, gold_by_search, resolve_gold
from vrag_ray.training.rewards.reward import Page, Reward, RewardWeights
from vrag_ray.types import Document, DocumentKind, DocumentStatus, VragError, document_id

REPORT = GoldPlace("Annual report#p1", document_id(b"Annual report"), page=1)
CHART = GoldPlace("Visitors chart#p1", document_id(b"Visitors chart"), page=1)
ELSEWHERE = GoldPlace("elsewhere#p1", "elsewhere", page=1)
SALES = AddSearchNode(id="sales", parent_ids=("root",), query="units sold by region")
MUSEUM = AddSearchNode(id="museum", parent_ids=("root",), query="visitors of the boat museum")
KEEP = SummarizeAndMemorize(
    summarize="", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=3),)
)
EXAMPLE = Example(uid="u1", question="What was North in 2022?", answers=("15", "fifteen"))


def record_of(*actions: Action | str, config: AgentConfig | None = None) -> RunRecord:
    run, _ = run_to_end(Watcher(*actions), library(), EXAMPLE.question, config)
    return run.record()


def answered(text: str, *citations: str) -> RunRecord:
    return record_of(SALES, KEEP, AddAnswerNode(parent_ids=("sales",), answer=text, citations=citations))


def reward(record: RunRecord, scorer: str = "exact_match", gold: Sequence[GoldPlace] = ()) -> Reward:
    return asyncio.run(Grader(scorer)(record, EXAMPLE, gold))


def test_the_parts_come_from_what_the_run_did_and_the_mix_is_vrag_rls() -> None:
    record = record_of(MUSEUM, KEEP, SALES, KEEP, AddAnswerNode(parent_ids=("sales",), answer="15"))
    graded = reward(record, gold=[REPORT])
    assert (graded.answer, graded.format, graded.success) == (1.0, 1.0, True)
    assert 0 < graded.retrieval < 1
    assert graded.total == pytest.approx(0.7 + 0.2 * graded.retrieval + 0.1)
    assert RewardWeights() == VRAG_RL_WEIGHTS


def test_another_mix_is_taken() -> None:
    grader = Grader("exact_match", weights=RewardWeights(answer=1.0, retrieval=0.0, format=0.0))
    assert asyncio.run(grader(answered("15"), EXAMPLE, [REPORT])).total == 1.0
    assert asyncio.run(grader(answered("16"), EXAMPLE, [REPORT])).total == 0.0


@pytest.mark.parametrize(
    ("scorer", "answer", "score"),
    [
        ("exact_match", "Fifteen.", 1.0),
        ("exact_match", "fifteen boats", 0.0),
        ("f1", "fifteen boats", 2 / 3),
        ("anls", "fiften", 1 - 1 / 7),
        ("anls", "16", 0.5),
    ],
)
def test_words_are_compared_as_configured(scorer: str, answer: str, score: float) -> None:
    assert reward(answered(answer), scorer).answer == pytest.approx(score)


def test_citation_marks_are_not_part_of_the_answer() -> None:
    assert own_answer(answered("15 [1]", "sales#1")) == "15"
    assert reward(answered("15 [1]", "sales#1")).answer == 1.0
    assert own_answer(answered("15 [1] of [2022]", "sales#1")) == "15 of [2022]"
    assert own_answer(answered("[1]", "sales#1")) == "[1]"


def test_what_a_run_says_in_the_policys_place_is_no_answer() -> None:
    record = record_of(SALES, KEEP, MUSEUM, config=AgentConfig(max_steps=2))
    assert record.status is RunStatus.MAX_STEPS and record.answer
    assert own_answer(record) == ""
    with judge_stub(lambda _, __: "<judge>True</judge>") as stub:
        graded = judge_of(stub.base_url, record)
        assert (graded.total, graded.success, stub.requests) == (0.0, False, [])


def judge_of(base_url: str, record: RunRecord) -> Reward:
    async def grade() -> Reward:
        async with aclosing(Judge(endpoint(base_url))) as judge:
            return await Grader("judge", judge=judge)(record, EXAMPLE, [REPORT])

    return asyncio.run(grade())


def test_a_judge_decides_where_configured() -> None:
    with judge_stub(compares) as stub:
        assert judge_of(stub.base_url, answered("fifteen [1]", "sales#1")).success
        assert not judge_of(stub.base_url, answered("16")).success
        assert [case_of(body)["answer"] for body in stub.requests] == ["fifteen", "16"]
        assert case_of(stub.requests[0])["references"] == ["15", "fifteen"]


def test_an_answer_without_a_search_earns_nothing_and_may_still_be_right() -> None:
    graded = reward(record_of(AddAnswerNode(parent_ids=("root",), answer="15")))
    assert (graded.total, graded.format, graded.success) == (0.0, 0.0, True)


def test_a_judge_must_be_given() -> None:
    with pytest.raises(VragError, match="scorer judge needs a judge"):
        Grader("judge")


def shortest(record: RunRecord, example: Example, gold: Sequence[Page]) -> float:
    return 1.0 if len(record.answer) <= len(example.answers[0]) and gold == (REPORT.page_key,) else 0.25


async def whole(record: RunRecord, example: Example, gold: Sequence[Page]) -> Reward:
    await asyncio.sleep(0)
    return Reward(-3.0, 0.0, 0.0, 1.0, success=False)


def silent(record: RunRecord, example: Example, gold: Sequence[Page]) -> None:
    return None


def wild(record: RunRecord, example: Example, gold: Sequence[Page]) -> float:
    return 7.5


def undefined(record: RunRecord, example: Example, gold: Sequence[Page]) -> Reward:
    return Reward(math.nan, 0.0, 0.0, 0.0, success=False)


def ungrounded(record: RunRecord, example: Example, gold: Sequence[Page]) -> Reward:
    return Reward(0.0, 0.0, 0.0, 0.0, success=False, grounding=math.nan, grounded=True)


def broken(record: RunRecord, example: Example, gold: Sequence[Page]) -> float:
    return 1 / len(gold)


NOT_A_FUNCTION = 3
HERE = "tests.training.rewards.test_grader"


def test_a_function_of_ones_own_scores_the_answer() -> None:
    graded = reward(answered("15"), f"{HERE}:shortest", [REPORT])
    assert (graded.answer, graded.retrieval, graded.success) == (1.0, 1.0, True)
    assert reward(answered("15"), f"{HERE}:shortest", []).answer == 0.25


def test_a_function_of_ones_own_may_give_the_whole_reward() -> None:
    assert reward(answered("15"), f"{HERE}:whole", [REPORT]).total == -3.0


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("silent", r"returned None: return a Reward"),
        ("wild", r"returned 7\.5: return a Reward"),
        ("undefined", r"not finite"),
        ("ungrounded", r"not finite"),
        ("broken", r"failed: ZeroDivisionError"),
    ],
)
def test_a_function_that_gives_no_reward_is_named_with_the_run(function: str, problem: str) -> None:
    with pytest.raises(VragError, match=rf"{HERE}:{function}' on run r1 of example 'u1' .*{problem}"):
        reward(answered("15"), f"{HERE}:{function}")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("accuracy", "use exact_match, f1, anls, judge or package.module:function"),
        ("no.such.module:f", "no.such.module does not import"),
        (f"{HERE}:nothing", "has no nothing"),
        (f"{HERE}:NOT_A_FUNCTION", "cannot be called"),
        (f"{HERE}:", "use exact_match"),
    ],
)
def test_a_path_that_leads_to_no_function_is_refused_before_any_run(path: str, problem: str) -> None:
    with pytest.raises(VragError, match=problem):
        Grader(path)


def test_valuable_are_the_searches_that_found_a_gold_page() -> None:
    record = record_of(MUSEUM, KEEP, SALES, KEEP, AddAnswerNode(parent_ids=("sales",), answer="15"))
    assert gold_by_search(record, [ELSEWHERE, REPORT])["sales"] == {1}
    assert gold_by_search(record, [ELSEWHERE]) == {}
    assert gold_by_search(record, []) == {}
    only = record_of(MUSEUM, KEEP, AddAnswerNode(parent_ids=("museum",), answer="15"))
    assert gold_by_search(only, [CHART]) == {"museum": {0}}


def document(
    uri: str,
    *more: str,
    kind: DocumentKind = DocumentKind.PDF,
    units: int = 3,
    status: DocumentStatus = DocumentStatus.READY,
) -> Document:
    return Document(document_id(uri.encode()), (uri, *more), uri, kind, status, units, 1, "", "2026-01-01T00:00:00Z")


def asks(file_name: str, page: int = 1, uid: str = "u7") -> Example:
    return Example(uid=uid, question="q", answers=("a",), gold=(GoldPage(file_name=file_name, page=page),))


def asks_moment(file_name: str, start: float, end: float) -> Example:
    return Example(
        uid="u7", question="q", answers=("a",), gold=(GoldPage(file_name=file_name, t_start=start, t_end=end),)
    )


def test_gold_may_be_seconds_of_a_film_or_a_text_as_a_whole() -> None:
    film = document("file:///x/film.mp4", kind=DocumentKind.VIDEO)
    notes = document("file:///x/notes.txt", kind=DocumentKind.TEXT)
    [moment] = resolve_gold([asks_moment("film.mp4", 12, 24.5)], [film, notes])["u7"]
    assert (moment.doc_id, moment.seconds, moment.page_key) == (
        film.doc_id,
        (12, 24.5),
        (film.doc_id, "t12.000-24.500"),
    )
    for whole in (film, notes):
        [place] = resolve_gold([asks(whole.uri)], [film, notes])["u7"]
        assert (place.seconds, place.page_key) == (None, (whole.doc_id, ""))


def test_a_clip_that_shares_seconds_with_a_gold_moment_finds_it() -> None:
    """The library has one film, whose one clip is of its seconds 0 to 30, and one text."""
    film, notes = document_id(b"Launch film"), document_id(b"Care notes")
    within, later = (GoldPlace("", film, seconds=seconds) for seconds in ((10.0, 19.5), (40.0, 50.0)))
    text = GoldPlace("", notes)

    def found(*gold: GoldPlace) -> tuple[float, dict[str, frozenset[int]]]:
        graded = reward(record, gold=gold)
        return graded.retrieval, gold_by_search(record, gold)

    crane = AddSearchNode(id="crane", parent_ids=("root",), query="A crane lifts the keel")
    record = record_of(
        crane,
        SummarizeAndMemorize(summarize=""),
        AddAnswerNode(parent_ids=("crane",), answer="15"),
        config=AgentConfig(search_top_k=1),
    )
    assert found(within) == (1.0, {"crane": {0}})
    assert found(later) == (0.0, {})
    # One clip that both share finds both, and earns what finding one of two does.
    both = GoldPlace("", film, seconds=(5.0, 12.0))
    assert found(within, both) == (pytest.approx(1 / (1 + 1 / math.log2(3))), {"crane": {0, 1}})
    oil = AddSearchNode(id="oil", parent_ids=("root",), query="Oak hulls are oiled every spring")
    record = record_of(oil, AddAnswerNode(parent_ids=("oil",), answer="15"), config=AgentConfig(search_top_k=1))
    assert found(text) == (1.0, {"oil": {0}})


def test_gold_pages_are_found_by_the_names_of_files() -> None:
    plan = document("file:///data/My%20plan.pdf", "upload:ab-0/copy.pdf")
    chart = document("s3://bucket/100%25.png", kind=DocumentKind.IMAGE, units=1)
    places = resolve_gold(
        [asks("My plan.pdf", 3, "a"), asks("old/copy.pdf", 1, "b"), asks("100%25.png", 1, "c")], [plan, chart]
    )
    assert keys(places) == {"a": [(plan.doc_id, "p3")], "b": [(plan.doc_id, "p1")], "c": [(chart.doc_id, "p1")]}


def keys(gold: Mapping[str, Sequence[GoldPlace]]) -> dict[str, list[Page]]:
    return {uid: [place.page_key for place in places] for uid, places in gold.items()}


def test_gold_pages_keep_their_order_and_may_be_missing() -> None:
    first, second = document("file:///x/one.pdf"), document("file:///x/two.pdf")
    gold = (GoldPage(file_name="two.pdf", page=2), GoldPage(file_name="one.pdf"))
    both = Example(uid="a", question="q", answers=("a",), gold=gold)
    none = Example(uid="b", question="q", answers=("a",))
    places = resolve_gold([both, none], [first, second])
    assert keys(places) == {"a": [(second.doc_id, "p2"), (first.doc_id, "p1")], "b": []}


def test_the_boxes_of_gold_pages_travel_with_them() -> None:
    box = (0.1, 0.2, 0.3, 0.4)
    gold = (GoldPage(file_name="plan.pdf", page=2, box=box), GoldPage(file_name="plan.pdf", page=3))
    plan = document("file:///x/plan.pdf")
    [places] = resolve_gold([Example(uid="a", question="q", answers=("a",), gold=gold)], [plan]).values()
    assert places == (
        GoldPlace("plan.pdf#p2", plan.doc_id, page=2, box=box),
        GoldPlace("plan.pdf#p3", plan.doc_id, page=3),
    )


@pytest.mark.parametrize(
    ("example", "problem"),
    [
        (asks("none.pdf"), "'none.pdf' is not in the collection"),
        (asks("twice.pdf"), "'twice.pdf' is the name of 2 documents"),
        (asks("plan.pdf", 4), "'plan.pdf' has 3 pages, so none is page 4"),
        (asks_moment("plan.pdf", 1, 2), "'plan.pdf' is of the kind pdf, which has no seconds"),
        (asks("torn.pdf"), "'torn.pdf' could not be read by ingest"),
    ],
)
def test_a_gold_page_that_is_not_there_is_an_error_that_names_example_and_file(example: Example, problem: str) -> None:
    documents = [
        document("file:///x/plan.pdf"),
        document("file:///x/twice.pdf"),
        document("file:///y/twice.pdf"),
        document("file:///x/film.mp4", kind=DocumentKind.VIDEO),
        document("file:///x/torn.pdf", status=DocumentStatus.ERROR),
    ]
    with pytest.raises(VragError, match=f"example 'u7': gold file {problem}"):
        resolve_gold([example], documents)


def test_two_examples_of_one_uid_are_refused() -> None:
    with pytest.raises(VragError, match="two examples have the uid 'u7'"):
        resolve_gold([asks("a.pdf"), asks("a.pdf")], [document("file:///x/a.pdf")])
