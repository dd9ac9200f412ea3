"""Each sentence of an answer is held against its sources, and what stands in none of them is named."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.agent_pages import library
from tests.support.recorded_runs import SALES
from tests.support.scripted_agent import Watcher, run_to_end
from vrag_ray.agent.actions import AddAnswerNode
from vrag_ray.agent.support import MARK, Source, Support, checked, holding, sentences
from vrag_ray.views.words import unsupported_lines

REPORT = (
    "Harbour report. In thousands of kroner. Berth fees 4,200 3,100. Waste heat 287 MWh, inspected by Kari Nordmann."
)
NOTES = "Saturday. The spare key hangs in the blue cabinet behind the tide tables."
SOURCES = {1: Source(REPORT, "Berth fees 4,200 3,100"), 2: Source(NOTES)}


def parts(answer: str) -> list[str]:
    return [answer[start:end] for start, end in sentences(answer)]


def test_an_answer_is_cut_into_sentences_with_the_marks_behind_them() -> None:
    answer = (
        "Fees rose [1]. Dr. Hansen of No. 4 agreed. [1][2] “Why?” asked Kari.\n- 4.2 million kroner [2]\n\n"
        "费用为287。是的[2]。"
    )
    assert parts(answer) == [
        "Fees rose [1].",
        "Dr. Hansen of No. 4 agreed. [1][2]",
        "“Why?” asked Kari.",
        "- 4.2 million kroner [2]",
        "费用为287。",
        "是的[2]。",
    ]


def test_the_number_of_a_list_item_is_neither_a_sentence_nor_a_figure_to_be_found_in_a_source() -> None:
    answer = "1. Fees rose [1].\n2. Ola took 40 [1]. They fell.\n\n> 3. Costs were 40 [1]"
    assert parts(answer) == ["1. Fees rose [1].", "2. Ola took 40 [1].", "They fell.", "> 3. Costs were 40 [1]"]
    assert not any(
        sentence.missing for sentence in checked(answer, {1: Source("fees rose, Ola took 40, costs were 40")})
    )
    assert parts("42.") == ["42."]


@given(st.text(alphabet="aB4 .!?\n[1]。,", max_size=60))
def test_sentences_come_in_order_and_leave_out_no_word(answer: str) -> None:
    places = list(sentences(answer))
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    rest = answer
    for start, end in reversed(places):
        rest = rest[:start] + rest[end:]
    assert not any(map(str.isalnum, MARK.sub("", rest)))


@pytest.mark.parametrize(
    ("answer", "support", "citations", "missing"),
    [
        ("Waste heat was 287 MWh [1].", Support.CITED, (1,), ()),
        ("Waste heat was 288 MWh [1].", Support.UNSUPPORTED, (1,), ("288",)),
        ("Waste heat was 287 MWh [2].", Support.UNSUPPORTED, (2,), ("287",)),
        ("Waste heat was 287 MWh.", Support.ALIGNED, (1,), ()),
        ("Waste heat was 287 MWh [7].", Support.ALIGNED, (1,), ()),
        ("Fees were 4.2 million kroner, seen by Kari Nordmann [1, 2].", Support.CITED, (1, 2), ()),
        ("Ola Hansen saw it [1].", Support.UNSUPPORTED, (1,), ("Ola Hansen",)),
        ("The key hangs behind the tide tables, in the cabinet.", Support.ALIGNED, (2,), ()),
        ("It paid 912 kroner.", Support.UNSUPPORTED, (), ("912",)),
        ("That is hard to say.", Support.UNCHECKED, (), ()),
    ],
)
def test_a_sentence_is_supported_where_its_sources_say_its_facts(
    answer: str, support: Support, citations: tuple[int, ...], missing: tuple[str, ...]
) -> None:
    [sentence] = checked(answer, SOURCES)
    assert (sentence.support, sentence.citations, sentence.missing) == (support, citations, missing)


@pytest.mark.parametrize(
    ("answer", "computed"),
    [
        ("Fees rose by 1,100 thousand kroner [1].", "1,100 thousand = 4,200 - 3,100"),
        ("Fees rose by 35.5 % [1].", "35.5 % = 100 * (4,200 - 3,100) / 3,100"),
        ("Both years brought 7.3 million [1].", "7.3 million = 4,200 + 3,100"),
        ("Of 4,200 they were 73.8 % [1].", "73.8 % = 100 * 3,100 / 4,200"),
        ("The ratio is 1.35 [1].", "1.35 = 4,200 / 3,100"),
    ],
)
def test_a_figure_that_follows_from_cited_ones_is_shown_as_computed(answer: str, computed: str) -> None:
    [sentence] = checked(answer, SOURCES)
    assert (sentence.support, sentence.computed) == (Support.CITED, (computed,))


@pytest.mark.parametrize(
    ("answer", "computed"),
    [
        ("Saved 11 = 2 + 5 + 4: “oak 2, elm 5, ash 4, yew 30” [1]", ("11 = 2 + 5 + 4",)),
        ("Saved 11 trees = 2 + 5 + 4 [1]", ("11 = 2 + 5 + 4",)),
        ("Saved 97 = 2 + 5 + 4 [1]", ()),
        ("Saved 13 = 2 + 5 + 6 [1]", ()),
        ("Saved 3 (oak; elm; ash) [1]", ("3 = the number of oak; elm; ash",)),
        ("Saved 3 kinds (oak; elm; ash) [1]", ("3 = the number of oak; elm; ash",)),
        ("Saved 6 (oak; elm; ash) [1]", ()),
        ("Saved 3 (oak; elm; larch) [1]", ()),
    ],
)
def test_a_sum_or_a_count_that_says_of_what_it_is_made_is_computed(answer: str, computed: tuple[str, ...]) -> None:
    (sentence,) = checked(answer, {1: Source("Trees that were saved: oak 2, elm 5, ash 4, yew 30.")})
    assert sentence.computed == computed


def test_a_small_figure_is_not_explained_by_a_ratio() -> None:
    [sentence] = checked("There were 3 of them [1].", {1: Source("We counted 12 and 4.", "12 and 4")})
    assert (sentence.support, sentence.missing) == (Support.UNSUPPORTED, ("3",))


def test_what_the_question_says_needs_no_source_and_unread_pages_say_nothing_against_a_sentence() -> None:
    [restated] = checked(
        "In 2019 waste heat was 287 MWh [1].", SOURCES, question="How much waste heat was there in 2019?"
    )
    assert restated.support is Support.CITED
    [unread] = checked("It cost 912 kroner [1].", {1: Source("")})
    assert (unread.support, unread.citations, unread.missing) == (Support.UNCHECKED, (1,), ())
    assert checked("It cost 912 kroner.", {})[0].support is Support.UNCHECKED


def test_a_run_says_which_of_its_figures_stand_nowhere() -> None:
    answer = AddAnswerNode(
        parent_ids=("sales",), answer="North sold 15 units [1]. Ten years ago it were 77.", citations=("Picture 1",)
    )
    run, events = run_to_end(Watcher(SALES, answer), library())
    record = run.record()
    assert record.sentences == events[-1].sentences
    first, second = record.sentences
    assert second.missing[-1] == "77"
    [line] = unsupported_lines(record.answer, record.sentences)
    assert line == 'not in any source: "Ten", "77" (Ten years ago it were 77.)'
    assert type(record).from_json(record.to_json()) == record
    assert first.citations == (1,)


def test_a_run_that_abstains_is_not_checked() -> None:
    run, _ = run_to_end(
        Watcher(SALES, AddAnswerNode(parent_ids=("sales",), answer="Not in 2031.", abstain=True)), library()
    )
    assert run.record().sentences == ()


def test_what_holds_the_facts_of_a_text_is_found_with_as_few_parts_as_hold_them() -> None:
    parts = {
        1: "Waste heat recovered in 2024",
        2: "Ice factory: 287 MWh",
        3: "Fish hall: 412 MWh, of 2023",
        4: "Inspected by Kari Nordmann",
    }
    assert holding("The ice factory recovered 287 MWh of waste heat in 2024.", parts) == (2, 1)
    assert holding("Kari Nordmann found 412 MWh.", parts) in ((3, 4), (4, 3))
    assert holding("Waste heat was recovered.", parts) == holding("It was 288 MWh.", parts) == ()
    assert holding("287", {}) == ()
