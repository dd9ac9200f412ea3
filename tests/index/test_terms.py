"""The words of a page and of a query that the index compares."""

import pytest

from vrag_ray.index.storage.terms import index_terms


@pytest.mark.parametrize(
    ("page", "query"),
    [("340² herds", "340"), ("the drummer² played", "drummer"), ("in 1926,³ then", "1926"), ("77 m² of land", "m2")],
)
def test_a_word_with_a_raised_mark_is_found_without_it(page: str, query: str) -> None:
    assert set(index_terms(query)) <= set(index_terms(page))


def test_a_raised_mark_is_no_digit_of_the_figure_before_it() -> None:
    assert "3402" not in index_terms("340² herds")
