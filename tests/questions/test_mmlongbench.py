"""MMLongBench-Doc's rule, on cases of its published scorer."""

from __future__ import annotations

import pytest

from vrag_ray.questions.examples import AnswerFormat
from vrag_ray.questions.mmlongbench import f1_of, score

INT, FLOAT, TEXT, LIST = AnswerFormat.INTEGER, AnswerFormat.FLOAT, AnswerFormat.STRING, AnswerFormat.LIST


@pytest.mark.parametrize(
    ("answer", "reference", "form", "expected"),
    [
        ("15", "15", INT, 1.0),
        ("15.0", "15", INT, 1.0),
        ("fifteen", "15", INT, 0.0),
        ("0.295", "29.5%", FLOAT, 1.0),
        ("29.7", "29.5", FLOAT, 1.0),
        ("30.5", "29.5", FLOAT, 0.0),
        ("$4.2 million", "4.2", FLOAT, 1.0),
        ("about 4.2", "4.2", FLOAT, 0.0),
        ("The Harbour Office (north)", "the harbour office", TEXT, 1.0),
        ("harbor office", "harbour office", TEXT, 1 - 1 / 14),
        ("something else", "harbour office", TEXT, 0.0),
        # A reference that is a page, a number or an address is met letter by letter.
        ("page 14", "page 15", TEXT, 0.0),
        ("2024-03", "2024-04", TEXT, 0.0),
        ("['b', 'a']", "['a', 'b']", LIST, 1.0),
        ("['a']", "['a', 'b']", LIST, 0.0),
        ("['3', '12']", "[12, 3]", LIST, 1.0),
        ("['white bridge', 'red gate']", "['red gates', 'white bridge']", LIST, 8 / 9),
        ("[broken", "['a']", LIST, 0.0),
    ],
)
def test_an_answer_is_scored_by_the_format_that_it_is_to_have(
    answer: str, reference: str, form: AnswerFormat, expected: float
) -> None:
    assert score(answer, reference, form) == pytest.approx(expected)


def test_f1_takes_recall_over_the_answerable_and_precision_over_the_answered() -> None:
    # Two answerable, one of them answered right; of two without answer one was answered.
    scores, answerable, abstained = [1.0, 0.0, 1.0, 0.0], [True, True, False, False], [False, True, True, False]
    assert f1_of(scores, answerable, abstained) == pytest.approx(0.5)
    assert f1_of([0.0], [True], [True]) == 0.0
