"""Colours, cells and names."""

from __future__ import annotations

import itertools

import pytest
from pydantic import ValidationError

from benchmarks.mosaic.world.colours import COLOURS, FIRST_WORDS, GREY, GREY_NAME, SECOND_WORDS, Colour, page_name
from benchmarks.mosaic.world.page import CELLS, Page, cell_at, cell_box
from vrag_ray.corpus.model import title_from_name
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.types import Box, VragError


def page(**changes: object) -> Page:
    return Page.model_validate({"name": "amber falcon", "cells": COLOURS, **changes})


def test_complements_average_to_the_one_grey_and_any_two_colours_are_far_apart() -> None:
    for colour in COLOURS:
        assert colour.complement.complement is colour
        means = [(a + b) / 2 for a, b in zip(colour.rgb, colour.complement.rgb, strict=True)]
        assert all(abs(mean - grey) <= 0.5 for mean, grey in zip(means, GREY, strict=True))
    for first, second in itertools.combinations([*(colour.rgb for colour in COLOURS), GREY], 2):
        assert max(abs(a - b) for a, b in zip(first, second, strict=True)) >= 127


def test_no_word_stands_for_two_things_even_for_a_retriever_that_stems() -> None:
    words = [*COLOURS, GREY_NAME, *FIRST_WORDS, *SECOND_WORDS]
    stems = [index_terms(word)[-1] for word in words]
    assert len(set(stems)) == len(words) == 16 * 3 + 1


def test_cells_are_counted_by_column_and_row_from_the_upper_left() -> None:
    assert CELLS[:5] == ("a1", "b1", "c1", "d1", "a2")
    assert cell_box("b1") == Box(0.25, 0.0, 0.5, 0.25)
    assert cell_box("a3") == Box(0.0, 0.5, 0.25, 0.75)
    assert [cell_at((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for box in map(cell_box, CELLS)] == list(CELLS)
    assert page().colour("b1") is COLOURS[1]
    with pytest.raises(VragError, match="a1 to d4"):
        page().colour("e1")


def test_the_first_row_names_two_pages_and_the_file_name_gives_the_title_back() -> None:
    assert page().names == (page_name(COLOURS[0], COLOURS[1]), page_name(COLOURS[2], COLOURS[3]))
    assert page_name(Colour.BLACK, Colour.BLACK) == "amber falcon"
    assert page().file_name == "amber-falcon.png"
    assert title_from_name(page().file_name) == page().name


@pytest.mark.parametrize("wrong", [{"cells": COLOURS[:15]}, {"prints": ("a1",)}, {"prints": ("d4",)}])
def test_a_page_that_is_no_mosaic_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((ValidationError, VragError), match=r"15 cells|no fine print"):
        page(**wrong)
