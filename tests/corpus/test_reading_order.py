"""Words of generated pages come in the order in which a person reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.corpus.reading_order import arranged, regions, text_of
from vrag_ray.types import Box, Word, joined, undivided, upright

ASPECT = 0.75
LINE, HEIGHT, LETTER = 0.016, 0.011, 0.006
"""Shares of the page's height: from line to line, of a word, and of the width of a letter."""


def laid(text: str, x: float, y: float) -> list[Word]:
    """The words of a line that begins at ``x`` (page widths) and ``y`` (page heights)."""
    words = []
    for word in text.split():
        width = len(word) * LETTER / ASPECT
        words.append(Word(word, Box(x, y, x + width, y + HEIGHT)))
        x += width + 0.6 * LETTER / ASPECT
    return words


def prose(name: str, lines: int, width: float) -> list[str]:
    """Lines of different words that fill a column of ``width`` page widths, the last one short."""
    paragraphs, number = [], 0
    for line in range(lines):
        words: list[str] = []
        room = width * (0.6 if line == lines - 1 else 1.0)
        while sum(len(word) + 0.6 for word in words) * LETTER / ASPECT + 10 * LETTER / ASPECT < room:
            words.append(f"{name}{'abcdefgh'[number % 8] * (number % 4)}{number}q")
            number += 1
        paragraphs.append(" ".join(words))
    return paragraphs


def interleaved(columns: list[list[list[Word]]]) -> list[Word]:
    """The words of columns as a file that was written row by row gives them."""
    lines = [line for column in columns for line in column]
    return [
        word for line in sorted(lines, key=lambda line: (round(line[0].box.y0, 3), line[0].box.x0)) for word in line
    ]


def texts(words: list[Word]) -> list[str]:
    return [word.text for word in words]


@given(
    count=st.integers(1, 4),
    lengths=st.lists(st.integers(4, 12), min_size=4, max_size=4),
    shift=st.sampled_from([0.0, 0.3, 0.5, 0.9]),
    heading=st.booleans(),
    below=st.booleans(),
)
def test_columns_are_read_one_after_the_other(
    count: int, lengths: list[int], shift: float, heading: bool, below: bool
) -> None:
    width, gutter = (0.84 - 0.03 * (count - 1)) / count, 0.03
    columns = []
    for number in range(count):
        x, y = 0.08 + number * (width + gutter), 0.2 + number % 2 * shift * LINE
        lines = prose("wxyz"[number], lengths[number], width)
        columns.append([laid(text, x, y + row * LINE) for row, text in enumerate(lines)])
    across = "stands across the whole width of all of the columns that are read in their order"
    above = laid(f"A heading {across} below it", 0.1, 0.1) if heading else []
    after = laid(f"What follows {across} above it", 0.1, 0.8) if below else []
    page = [*above, *interleaved(columns), *after]
    ordered, _ = arranged(page, ASPECT)
    assert texts(ordered) == texts([*above, *(word for column in columns for line in column for word in line), *after])
    # What was arranged once keeps its order.
    assert texts(arranged(ordered, ASPECT)[0]) == texts(ordered)


@given(rows=st.integers(3, 10), count=st.integers(2, 5), seed=st.integers(0, 9))
def test_a_table_is_read_by_its_rows(rows: int, count: int, seed: int) -> None:
    page = []
    for row in range(rows):
        page += laid(f"Harbour{row}", 0.1, 0.2 + row * LINE)
        for column in range(count):
            page += laid(str(1000 * row + column + seed), 0.35 + 0.1 * column, 0.2 + row * LINE)
    ordered, blocks = arranged(list(reversed(page)), ASPECT)
    assert len(blocks) == 1
    assert texts(ordered) == texts(page)


SHEET = (
    ("Part of it", "What was found", "Action"),
    ("Hoist rope, long", "worn at both ends", "replaced"),
    ("Slewing ring grease", "dry on the sea side", "greased again"),
    ("Anemometer", "reads far too low", ""),
    ("Limit switch seven", "contact was corroded", "cleaned"),
)


@pytest.mark.parametrize("pitch", [2 * LINE, LINE])
def test_a_table_of_phrases_is_read_by_its_rows_where_they_stand_apart(pitch: float) -> None:
    words = [
        word
        for number, row in enumerate(SHEET)
        for x, cell in zip((0.1, 0.4, 0.7), row, strict=True)
        for word in laid(cell, x, 0.1 + pitch * number)
    ]
    lines = [" ".join(cell for cell in row if cell) for row in SHEET]
    assert (text_of(arranged(words, ASPECT)[1]).splitlines() == lines) == (pitch > 1.5 * LINE)


def test_lists_with_marks_beside_each_other_are_columns_although_their_lines_stand_apart() -> None:
    sides = [[f"• Boats of the {name} {n}" for n in range(4)] for name in ("north", "south")]
    columns = zip((0.1, 0.6), sides, strict=True)
    words = interleaved([[laid(line, x, 0.1 + 2 * LINE * n) for n, line in enumerate(side)] for x, side in columns])
    assert text_of(arranged(words, ASPECT)[1]).splitlines() == [*sides[0], *sides[1]]


def test_a_side_note_is_read_apart_from_the_text_beside_it() -> None:
    body = [laid(text, 0.08, 0.2 + row * LINE) for row, text in enumerate(prose("t", 9, 0.55))]
    note = [
        laid(text, 0.75, 0.2375 + row * LINE) for row, text in enumerate(("See also the", "older plans of", "the mole"))
    ]
    ordered, _ = arranged(interleaved([body, note]), ASPECT)
    assert texts(ordered) == texts([word for line in [*body, *note] for word in line])


def test_sides_that_the_file_holds_apart_stay_apart() -> None:
    """Two boxes of a slide with short lines of one height: only the file's order tells them from a table."""
    left = [word for row, text in enumerate(("Cranes", "Odin", "Thor")) for word in laid(text, 0.1, 0.3 + row * LINE)]
    right = [
        word for row, text in enumerate(("Ferries", "Senja", "Lofoten")) for word in laid(text, 0.6, 0.3 + row * LINE)
    ]
    assert texts(arranged([*left, *right], ASPECT)[0]) == texts([*left, *right])


def test_the_line_over_a_list_that_is_set_in_belongs_to_its_column() -> None:
    """Two boxes of a slide: the heads of both stand level, and only the lists under them share an edge."""
    left = laid("What happens now", 0.1, 0.3) + laid("with one", 0.1, 0.3 + LINE)
    for row, text in enumerate(("Cranes", "Odin", "Thor"), 2):
        left += laid(text, 0.115, 0.3 + row * LINE)
    right = laid("What happens then", 0.6, 0.3)
    for row, text in enumerate(("Ferries", "Senja", "Lofoten"), 1):
        right += laid(text, 0.615, 0.3 + row * LINE)
    assert texts(arranged([*left, *right], ASPECT)[0]) == texts([*left, *right])


def turned(word: Word, turn: int) -> Word:
    """``word`` on the page that is turned clockwise by ``turn`` quarters."""
    box = word.box
    for _ in range(turn // 90):
        box = Box(1 - box.y1, box.x0, 1 - box.y0, box.x1)
    return Word(word.text, box, turn)


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_lines_are_read_along_their_own_direction(turn: int) -> None:
    columns = [
        [laid(text, x, 0.3 + row * LINE) for row, text in enumerate(prose(name, 6, 0.4))]
        for name, x in (("l", 0.08), ("r", 0.52))
    ]
    page = [turned(word, turn) for word in interleaved(columns)]
    ordered, _ = arranged(page, ASPECT if turn == 180 else 1 / ASPECT)
    assert texts(ordered) == texts([word for column in columns for line in column for word in line])


def test_columns_of_vertical_characters_are_read_from_right_to_left() -> None:
    page = [Word(text, Box(x, 0.1, x + 0.05, 0.8), 90) for text, x in (("三", 0.2), ("一", 0.6), ("二", 0.4))]
    assert texts(arranged(page, ASPECT)[0]) == ["一", "二", "三"]


def test_rows_of_a_right_to_left_script_are_read_from_the_right() -> None:
    page = [Word(text, Box(x, 0.1, x + 0.08, 0.12)) for text, x in (("הנמל", 0.1), ("את", 0.3), ("עזבה", 0.5))]
    assert texts(arranged(page, ASPECT)[0]) == ["עזבה", "את", "הנמל"]


@given(
    turn=st.integers(0, 359).filter(lambda turn: abs(turn % 90 - 45) > 10),
    length=st.floats(0.05, 0.2),
    height=st.floats(0.01, 0.04),
)
def test_a_turned_word_has_its_own_length_and_height(turn: int, length: float, height: float) -> None:
    angle = math.radians(turn)
    wide = length * abs(math.cos(angle)) + height * abs(math.sin(angle))
    high = length * abs(math.sin(angle)) + height * abs(math.cos(angle))
    word = Word("x", Box(0.5 - wide / 2, 0.5 - high / 2, 0.5 + wide / 2, 0.5 + high / 2), turn)
    u0, v0, u1, v1 = upright(word, 1.0)
    assert (u1 - u0, v1 - v0) == pytest.approx((length, height), abs=1e-9)


@pytest.mark.parametrize("box", ["Unchecked:", "☐", "[X]", "[]", "[ ]", "[ x ]"])
def test_boxes_to_tick_are_read_with_what_they_are_about(box: str) -> None:
    questions = ["Are you covered under an employee health plan?", "Do you have any other health insurance cover?"]
    boxes = [laid(f"{box} Yes {box} No", 0.05, 0.2 + 2 * row * LINE) for row in range(3)]
    abouts = [laid(questions[row % 2], 0.4, 0.2 + 2 * row * LINE) for row in range(3)]
    words = [word for line in [*boxes, *abouts] for word in line]
    _, blocks = arranged(words, ASPECT)
    lines = [" ".join(texts(row)) for region in blocks for row in region]
    assert lines == [f"{box} Yes {box} No {questions[row % 2]}" for row in range(3)]


def test_halves_of_a_divided_word_are_joined_over_a_line_end_only() -> None:
    lines = [*laid("340 mil-", 0.1, 0.1), *laid("ligrams of well- known salt", 0.1, 0.12)]
    assert joined(lines) == "340 milligrams of well- known salt"
    assert joined(lines, "\n") == "340 milligrams of well- known salt"
    assert joined([*laid("the North-", 0.1, 0.1), *laid("South line", 0.1, 0.12)], "\n") == "the North-\nSouth line"


@pytest.mark.parametrize(
    ("above", "below", "text"),
    [
        ("the well-", "known painter", "the well-known painter"),
        ("her well-", "ness and self-", "her wellness and self-"),
        ("aged Twenty-", "four years", "aged Twenty-four years"),
        ("twenty-", "odd boats", "twentyodd boats"),
        ("state-of-the-", "art pumps", "state-of-the-art pumps"),
        ("a long-estab-", "lished firm", "a long-established firm"),
        ("mail post@sund-", "havn.no", "mail post@sund-havn.no"),
        ("(www.sund-", "havn.no)", "(www.sund-havn.no)"),
        ("well\u00ad", "being", "wellbeing"),
        ("an anti-", "submarine net", "an anti-submarine net"),
        ("the anti-", "body", "the antibody"),
        ("Non-", "governmental bodies", "Non-governmental bodies"),
        ("utter non-", "sense", "utter nonsense"),
        ("the long-", "term lease", "the long-term lease"),
        ("at long-", "itude 5", "at longitude 5"),
        ("a six-", "year plan", "a six-year plan"),
        ("aged six-", "teen", "aged sixteen"),
        ("two-", "thirds of", "two-thirds of"),
        ("an e-", "mail", "an e-mail"),
        ("a NATO-", "led force", "a NATO-led force"),
        ("from end-", "to-end tests", "from end-to-end tests"),
        ("the water-", "based paint", "the water-based paint"),
        ("in pre-", "and post-war years", "in pre- and post-war years"),
    ],
)
def test_a_compound_keeps_its_hyphen_at_the_end_of_a_line(above: str, below: str, text: str) -> None:
    assert joined([*laid(above, 0.1, 0.1), *laid(below, 0.1, 0.12)]) == text


def test_a_compound_keeps_its_hyphen_at_the_end_of_a_column() -> None:
    columns = [[laid("the well-", 0.1, 0.1)], [laid("known painter", 0.6, 0.1)]]
    assert text_of(columns) == "the well-known painter"


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ({"antiwar"}, "antiwar"),
        ({"sea-borne", "anti-war"}, "anti-war"),
        ({"anti-war", "antiwar"}, "anti-war"),
    ],
)
def test_the_form_that_a_document_writes_elsewhere_decides(written: set[str], whole: str) -> None:
    assert undivided("anti-", "war", written) == whole


def test_halves_that_a_document_writes_as_words_are_a_compound() -> None:
    assert undivided("sea-", "bird,", {"sea", "bird"}) == "sea-bird,"
    assert undivided("sea-", "bird,", {"sea"}) == "seabird,"


def test_nothing_is_lost_or_doubled() -> None:
    page = [
        Word(str(n), Box(n % 7 / 8, n % 11 / 12, n % 7 / 8 + 0.1, n % 11 / 12 + 0.05), n % 4 * 90) for n in range(77)
    ]
    assert sorted(place for region in regions(page, ASPECT) for row in region.rows for place in row) == list(range(77))


def test_labels_beside_the_first_figures_under_a_title_are_rows_of_its_table() -> None:
    lines = [
        ("CONSOLIDATED BALANCE SHEETS OF MAUD", 0.40, 0.100),
        ("(Amounts in millions, except share data)", 0.40, 0.116),
        ("At December 31, 2019", 0.62, 0.132),
        ("At December 31, 2018", 0.80, 0.132),
        ("Assets", 0.10, 0.148),
        ("Current assets:", 0.10, 0.164),
        ("Cash and cash equivalents", 0.10, 0.180),
        ("$", 0.62, 0.180),
        ("5,794", 0.68, 0.180),
        ("$", 0.80, 0.180),
        ("4,225", 0.86, 0.180),
    ]
    ordered, _ = arranged([word for line in lines for word in laid(*line)], ASPECT)
    texts = [word.text for word in ordered]
    assert texts[-8:] == ["Cash", "and", "cash", "equivalents", "$", "5,794", "$", "4,225"]
    assert texts.index("CONSOLIDATED") < texts.index("Assets")


def test_rows_of_a_table_above_columns_stay_rows_and_the_number_of_the_page_is_none_of_a_column() -> None:
    """As a report of an inspection has them: its ratings stand over the columns of its summary, and above their gap."""
    questions = [
        "Is the service safe and clean?",
        "Is the service effective?",
        "Is the service caring?",
        "Is it well-led?",
    ]
    rated = ["Inadequate", "Inadequate", "Requires improvement", "Good"]
    ratings = [
        [laid(question, 0.08, 0.2 + row * 2.5 * LINE), laid(mark, 0.7, 0.2 + row * 2.5 * LINE)]
        for row, (question, mark) in enumerate(zip(questions, rated, strict=True))
    ]
    columns = [
        [laid(text, x, 0.5 + row * LINE) for row, text in enumerate(prose(name, 12, 0.4))]
        for name, x in (("l", 0.08), ("r", 0.52))
    ]
    number = laid("7 Report on a home, 5 October", 0.08, 0.95)
    page = [*(word for row in ratings for cell in row for word in cell), *interleaved(columns), *number]
    ordered, blocks = arranged(page, ASPECT)
    left, right = ([word for line in column for word in line] for column in columns)
    rows = [word for row in ratings for cell in row for word in cell]
    assert texts(ordered) == texts([*rows, *left, *right, *number])
    assert [len(region) for region in blocks] == [4, 12, 12, 1]


@pytest.mark.parametrize(
    "header",
    [
        [("412", 0.08), ("THE COAST JOURNAL", 0.75)],
        [("Board of the coast", 0.08), ("413", 0.9)],
        [("Harbour act", 0.8)],
    ],
    ids=["number first", "number last", "over one column"],
)
@pytest.mark.parametrize("y", [0.03, 0.95], ids=["header", "footer"])
def test_a_header_or_footer_is_read_outside_of_the_columns(header: list[tuple[str, float]], y: float) -> None:
    columns = [
        [laid(text, x, 0.1 + row * LINE) for row, text in enumerate(prose(name, 12, 0.4))]
        for name, x in (("l", 0.08), ("r", 0.52))
    ]
    edge = [word for text, x in header for word in laid(text, x, y)]
    body = [word for column in columns for line in column for word in line]
    written = interleaved(columns)
    ordered, _ = arranged([*edge, *written] if y < 0.5 else [*written, *edge], ASPECT)
    assert texts(ordered) == texts([*edge, *body] if y < 0.5 else [*body, *edge])


def test_a_heading_at_the_top_of_a_column_is_a_line_of_it() -> None:
    left = [laid(text, 0.08, 0.03 + row * LINE) for row, text in enumerate(prose("l", 12, 0.4))]
    right = [laid(text, 0.52, 0.03 + (row + 2) * LINE) for row, text in enumerate(prose("r", 10, 0.4))]
    heading = laid("Dues of ships", 0.52, 0.03)
    ordered, _ = arranged(interleaved([left, [heading, *right]]), ASPECT)
    assert texts(ordered) == texts([word for line in (*left, heading, *right) for word in line])
