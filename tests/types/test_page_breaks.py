"""Paragraphs that begin on one page and end on the next."""

from __future__ import annotations

import pytest

from vrag_ray.types import Box
from vrag_ray.types.elements import Element, ElementKind
from vrag_ray.types.page_breaks import LONGEST_CONTINUATION, continuation, continued, open_paragraph

BOX = Box(0.1, 0.1, 0.6, 0.2)
OPEN = "The board agreed that from the first of May\nthe yearly fee for a mooring rises to"
WHOLE = "The board agreed that the fee\nstays as it is."


def page(*parts: tuple[ElementKind, str]) -> list[Element]:
    return [Element(number, kind, BOX, text) for number, (kind, text) in enumerate(parts, 1)]


def test_what_stands_below_an_open_paragraph_does_not_hide_it() -> None:
    elements = page(
        (ElementKind.PARAGRAPH, OPEN),
        (ElementKind.TABLE, "| a | b |"),
        (ElementKind.NOTE, "1 Per boat."),
        (ElementKind.FOOTER, "12"),
    )
    paragraph = open_paragraph(elements)
    assert paragraph is not None
    assert paragraph.text == OPEN


@pytest.mark.parametrize(
    "parts",
    [
        [(ElementKind.PARAGRAPH, WHOLE)],
        [(ElementKind.PARAGRAPH, "She said: “It stays as it is.”")],
        [(ElementKind.PARAGRAPH, "码头的年费是四千克朗。")],
        [(ElementKind.PARAGRAPH, "The new fees are as follows:")],
        [(ElementKind.PARAGRAPH, OPEN), (ElementKind.SECTION, "3 Fees")],
        [(ElementKind.PARAGRAPH, "Page of fees")],
        [(ElementKind.TABLE, "| a | b |")],
        [],
    ],
    ids=["whole", "in quotes", "Chinese", "before a list", "before a heading", "a label", "table alone", "empty page"],
)
def test_a_page_that_ends_where_a_paragraph_ends_has_no_open_one(parts: list[tuple[ElementKind, str]]) -> None:
    assert open_paragraph(page(*parts)) is None


@pytest.mark.parametrize("text", ["4,210 kroner a year.", "that of last year. All agreed.", "Kroner 4,210 a year."])
def test_the_first_paragraph_goes_on_below_headers_and_pictures(text: str) -> None:
    before = page((ElementKind.PARAGRAPH, OPEN))
    following = page(
        (ElementKind.HEADER, "Minutes"), (ElementKind.PICTURE, ""), (ElementKind.CAPTION, "Figure 2. The quay."),
        (ElementKind.PARAGRAPH, text),
    )  # fmt: skip
    assert continuation(before, following) == text


def test_the_last_line_of_a_paragraph_is_no_header() -> None:
    before = page((ElementKind.PARAGRAPH, OPEN))
    following = page((ElementKind.HEADER, "4,210 kroner a year."), (ElementKind.PARAGRAPH, "The meeting closed."))
    assert continuation(before, following) == "4,210 kroner a year."


@pytest.mark.parametrize(
    ("last", "following"),
    [
        (OPEN, [(ElementKind.SECTION, "4 Dues"), (ElementKind.PARAGRAPH, "They rise.")]),
        (OPEN, [(ElementKind.LIST_ITEM, "• Boats below eight metres")]),
        ("Signed for the board by its chair and treasurer,\nAda Berg", [(ElementKind.PARAGRAPH, "The quay is new.")]),
        ("Thanks to all who helped", [(ElementKind.PARAGRAPH, "The quay is new.")]),
        ("% Change\n2022 2021 2022-2021", [(ElementKind.PARAGRAPH, "% Change in sales")]),
        (OPEN, []),
    ],
    ids=["a heading", "a list", "after a short line", "after a single line", "after a row", "an empty page"],
)
def test_something_new_is_no_continuation(last: str, following: list[tuple[ElementKind, str]]) -> None:
    before = page((ElementKind.PARAGRAPH, last))
    assert continuation(before, page(*following)) == ""


def test_a_small_letter_goes_on_below_a_header_that_stands_close_to_the_text() -> None:
    before = page((ElementKind.PARAGRAPH, OPEN))
    following = page((ElementKind.SECTION, "Harbour board"), (ElementKind.PARAGRAPH, "that of last year."))
    assert continuation(before, following) == "that of last year."


def test_a_header_is_left_out_whose_line_belongs_to_the_paragraph_below() -> None:
    before = page((ElementKind.PARAGRAPH, "2 Opinion of the board 21-13"), (ElementKind.PARAGRAPH, OPEN))
    following = page((ElementKind.PARAGRAPH, "21-13 Opinion of the board 3\nKroner 4,210 a year."))
    assert continuation(before, following) == "Kroner 4,210 a year."


def test_what_stands_on_both_pages_goes_on_with_nothing() -> None:
    stamp = (ElementKind.PARAGRAPH, "Downloaded by a guest on 23 May")
    assert continuation(page(stamp), page((ElementKind.PARAGRAPH, "that of last year."), stamp)) == ""


def test_labels_of_a_chart_are_passed_over() -> None:
    before = page((ElementKind.PARAGRAPH, OPEN))
    following = page((ElementKind.PARAGRAPH, "100 80 60 40 20 0 shots"), (ElementKind.PARAGRAPH, "that of last year."))
    assert continuation(before, following) == "that of last year."


def test_a_small_letter_goes_on_with_a_single_line() -> None:
    before = page((ElementKind.PARAGRAPH, "Thanks to all who helped"))
    assert continuation(before, page((ElementKind.PARAGRAPH, "with the quay."))) == "with the quay."


def test_a_long_paragraph_is_cut() -> None:
    before = page((ElementKind.PARAGRAPH, OPEN))
    rest = continuation(before, page((ElementKind.PARAGRAPH, "kroner " * 500)))
    assert len(rest.split()) == LONGEST_CONTINUATION


@pytest.mark.parametrize(
    ("text", "rest", "whole"),
    [
        ("the fee\nrises to", "4,210 kroner.", "the fee\nrises to 4,210 kroner."),
        ("paid by the har-", "bour fund.", "paid by the harbour fund."),
        ("a well-", "known yard.", "a well-known yard."),
        ("ends here.", "", "ends here."),
    ],
)
def test_the_halves_are_read_as_one_text(text: str, rest: str, whole: str) -> None:
    assert continued(text, rest) == whole
