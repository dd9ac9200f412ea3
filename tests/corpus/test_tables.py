"""Tables of drawn PDF pages come out as cells under their heads, and what is no table does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pymupdf
import pytest

from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.formats.registry import open_source
from vrag_ray.corpus.formats.source import Opening
from vrag_ray.corpus.model import DecodeOptions
from vrag_ray.corpus.tables import tables
from vrag_ray.policies.extractive.cut_page import cut_page
from vrag_ray.policies.extractive.grid import crossings
from vrag_ray.policies.extractive.lexicon import terms
from vrag_ray.types import Box, DocumentKind, Locator, PageText, PassageKind, Word

STUB, FIRST, STEP, RIGHT = 60, 260, 90, 50


def put(page: pymupdf.Page, x: float, y: float, text: str, *, right: bool = False, size: float = 9) -> None:
    if right:
        x -= pymupdf.get_text_length(text, fontsize=size)
    page.insert_text((x, y), text, fontsize=size)


def statement(page: pymupdf.Page, rows: Sequence[Sequence[str]], y: float = 150) -> float:
    """Rows of a label and figures; a "$" stands apart from its figure, at the left edge of the column."""
    for label, *figures in rows:
        put(page, STUB, y, label)
        for number, figure in enumerate(figures):
            left = FIRST + number * STEP
            if figure.startswith("$"):
                put(page, left, y, "$")
            put(page, left + RIGHT, y, figure.removeprefix("$"), right=True)
        y += 14
    return y


def read(path: Path, page: int = 1) -> PageText:
    options = DecodeOptions.from_config(CorpusConfig(ocr=False))
    source = open_source(
        DocumentKind.PDF, Opening(path, path.name, options, DecodeLimits(), lambda _: pytest.fail("OCR is off"))
    )
    try:
        return source.page_text(Locator(page=page))
    finally:
        source.close()


def values(sheet: PageText, question: str) -> list[str]:
    """The values on which all words of the question meet."""
    parts, sought = cut_page(sheet, PassageKind.PAGE, sheet.text), terms(question)
    return [crossing.value for crossing in crossings(parts.rows, sought) if len(crossing.aligned) == len(sought)]


@pytest.fixture
def document(tmp_path: Path) -> tuple[pymupdf.Document, Path]:
    return pymupdf.open(), tmp_path / "drawn.pdf"


def test_the_unit_of_a_column_is_none_of_the_others(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    for y, row in enumerate(
        [["Course", "Weeks (all)", "Fee (euros)"], ["Rowing", "8", "110"], ["Sailing", "10", "95"]]
    ):
        for x, cell in enumerate(row):
            place = pymupdf.Rect(60 + 120 * x, 100 + 20 * y, 180 + 120 * x, 120 + 20 * y)
            page.draw_rect(place)
            put(page, place.x0 + 4, place.y1 - 6, cell)
    drawn.save(path)
    text = read(path)
    [table] = tables(text.words, text.aspect)
    assert (table.heads, table.unit) == (("Course", "Weeks (all)", "Fee (euros)"), "")


def test_a_statement_has_its_figures_under_their_years_and_its_unit(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    put(page, STUB, 100, "Statement of the harbour company")
    put(page, STUB, 114, "(in thousands of euros)")
    statement(page, [["", "2024", "2023"]], 136)
    statement(
        page,
        [
            ["Berth fees", "$4,310", "$3,907"],
            ["Income:"],
            ["Ferry tickets and other"],
            ["passenger income", "812", "-"],
            ["Cost of dredging the", "(96)", "(1,204)"],
            ["northern basin"],
            ["Total", "$5,026", "$2,703"],
        ],
    )
    drawn.save(path)
    text = read(path)
    [table] = tables(text.words, text.aspect)
    assert table.unit == "in thousands of euros"
    assert table.heads == ("", "2024", "2023")
    assert [[cell.text for cell in row] for row in table.body] == [
        ["Berth fees", "$ 4,310", "$ 3,907"],
        ["Income:"],
        ["Ferry tickets and other passenger income", "812", "-"],
        ["Cost of dredging the northern basin", "(96)", "(1,204)"],
        ["Total", "$ 5,026", "$ 2,703"],
    ]
    assert "| Cost of dredging the northern basin | (96) | (1,204) |" in text.text
    box = next(cell for row in table.body for cell in row if cell.text == "(1,204)").box
    assert box.x0 * 595 > FIRST + STEP and box.x1 * 595 < FIRST + STEP + RIGHT + 2


def test_a_long_table_in_sections_is_one() -> None:
    """Each section was compared with the whole table once: 1,400 words took 40 s."""
    words = []
    for row in range(200):
        y = 0.05 + row * 0.0045
        figures = [(f"{row + column}00", 0.2 + column / 11) for column in range(8)]
        cells = [("Section", 0.05)] if row % 4 == 3 else [(f"Row{row}", 0.05), *figures]
        words += [Word(text, Box(x, y, x + 0.03, y + 0.003)) for text, x in cells]
    [table] = tables(words, 0.75)
    assert (len(table.rows), table.rows[-1][0].text, len(table.heads)) == (199, "Row198", 9)


def test_a_value_that_is_missing_leaves_its_column_empty(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    statement(
        drawn.new_page(),
        [["Quay", "Depth", "Cranes", "Length"], ["North", "9.1", "", "240"], ["South", "7.4", "3", ""]],
    )
    drawn.save(path)
    assert read(path).text.splitlines()[2:] == ["| North | 9.1 |  | 240 |", "| South | 7.4 | 3 |  |"]


def test_a_table_under_another_is_one_of_its_own(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    y = statement(page, [["Boat", "June", "July"], ["Canoes", "20", "25"], ["Barges wider", "140", "130"]])
    y = statement(page, [["than the old lock"], ["Rafts", "60", "70"]], y)
    statement(
        page, [["Inn", "Beds", "Camp", "Beds"], ["Vik", "31", "Nord", "52"], ["Eid", "18", "Fjell", "44"]], y + 25
    )
    drawn.save(path)
    text = read(path)
    fees, beds = tables(text.words, text.aspect)
    assert fees.heads == ("Boat", "June", "July") and beds.heads == ("Inn", "Beds", "Camp", "Beds")
    assert [[cell.text for cell in row] for row in fees.body] == [
        ["Canoes", "20", "25"],
        ["Barges wider than the old lock", "140", "130"],
        ["Rafts", "60", "70"],
    ]


def test_letters_that_mark_the_rows_of_a_group_begin_them(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    rows = [["", "2024", "2023"], ["Crew"], ["a Deck", "39", "25"], ["b Engine", "52", "29"], ["Guests"]]
    statement(drawn.new_page(), [*rows, ["a 18-29", "54", "40"], ["b 30-49", "42", "29"]])
    drawn.save(path)
    text = read(path)
    [table] = tables(text.words, text.aspect)
    assert [row[0].text for row in table.body] == ["Crew", "a Deck", "b Engine", "Guests", "a 18-29", "b 30-49"]


def test_a_head_over_two_columns_belongs_to_both(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    put(page, FIRST + 20, 122, "Three months to June")
    statement(page, [["", "2024", "2023"]], 136)
    statement(page, [["Arrivals", "412", "398"], ["Departures", "409", "401"]])
    drawn.save(path)
    text = read(path)
    [table] = tables(text.words, text.aspect)
    assert "2024" in table.heads[1] and "2023" in table.heads[2]


def test_a_table_that_goes_on_over_the_page_keeps_its_heads(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    statement(drawn.new_page(), [["", "2024", "2023"], ["Berth fees", "4,310", "3,907"], ["Rents", "90", "88"]], 740)
    statement(drawn.new_page(), [["Pilotage", "77", "61"], ["Towage", "12", "14"]], 60)
    drawn.save(path)
    sheet = read(path, 2)
    assert sheet.text.splitlines() == [
        "|  | 2024 | 2023 |",
        "| --- | --- | --- |",
        "| Pilotage | 77 | 61 |",
        "| Towage | 12 | 14 |",
    ]
    assert values(sheet, "What was the towage in 2023?") == ["14"]
    parts = cut_page(sheet, PassageKind.PAGE, sheet.text)
    assert [row.text for row in parts.rows] == ["", "Pilotage 77 61", "Towage 12 14"], (
        "heads of another page are no quote"
    )


def test_heads_with_bars_go_on_over_the_page(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    statement(drawn.new_page(), [["", "wet|dry", "up\\down"], ["Berth", "4,310", "3,907"], ["Rents", "90", "88"]], 740)
    statement(drawn.new_page(), [["Pilotage", "77", "61"], ["Towage", "12", "14"]], 60)
    drawn.save(path)
    sheet = read(path, 2)
    [table] = tables(sheet.words, sheet.aspect)
    assert (table.heads, table.with_heads_in(sheet.text).heads) == (("", "", ""), ("", "wet|dry", "up\\down"))


def test_cells_between_lines_hold_their_wrapped_words_together(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    xs, ys = (60, 150, 330, 520), (100, 124, 176, 240)
    for x in xs:
        page.draw_line((x, ys[0]), (x, ys[-1]))
    for y in ys:
        page.draw_line((xs[0], y), (xs[-1], y))
    cells = [
        ["Gate", "Opens when", "Keeper's duty"],
        [
            "North",
            "the tide is two metres above the sill and falls",
            "sound the horn twice, then wait for a reply",
        ],
        [
            "South",
            "both ferries are at their berths and the bridge is shut",
            "note the hour in the log",
        ],
    ]
    for row, texts in enumerate(cells):
        for column, text in enumerate(texts):
            page.insert_textbox((xs[column] + 4, ys[row] + 4, xs[column + 1] - 4, ys[row + 1] - 2), text, fontsize=10)
    drawn.save(path)
    assert read(path).text.splitlines() == [
        "| Gate | Opens when | Keeper's duty |",
        "| --- | --- | --- |",
        *(f"| {' | '.join(texts)} |" for texts in cells[1:]),
    ]


def test_rows_without_lines_between_them_stay_rows(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    xs, ys = (60, 150, 300, 450), (100, 130, 190)
    for x in xs:
        page.draw_line((x, ys[0]), (x, ys[-1]))
    for y in ys:
        page.draw_line((xs[0], y), (xs[-1], y))
    rows = [
        ("Year", "Dividend", "Unclaimed"),
        ("1999", "3,216", "3,196"),
        ("2000", "3,417", "3,045"),
        ("2003", "6,432", "699"),
    ]
    for number, texts in enumerate(rows):
        y = 118 if number == 0 else 130 + 17 * number
        for x, text in zip(xs, texts, strict=False):
            put(page, x + 10, y, text)
    drawn.save(path)
    sheet = read(path)
    assert [line.strip("| ").split(" | ") for line in sheet.text.splitlines() if "---" not in line] == [
        list(r) for r in rows
    ]
    cells = {element.text: element.box for element in sheet.elements if element.table is not None}
    assert cells["3,417"].y1 - cells["3,417"].y0 < 20 / page.rect.height


def test_the_first_field_of_a_form_is_no_head(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    fields = [["Consignee:", "Grete Voll"], ["Carrier:", "Havbris"], ["Insured:", "[x] Yes", "[ ] No"]]
    for number, texts in enumerate(fields):
        for x, text in zip((60, 200, 300), texts, strict=False):
            put(page, x, 100 + 24 * number, text)
    statement(
        page, [["Year ended June 30:", "2024", "2023"], ["Fees:"], ["Berths", "310", "307"], ["Lock", "41", "39"]], 400
    )
    drawn.save(path)
    sheet = read(path)
    form, fees = tables(sheet.words, sheet.aspect)
    assert form.head_rows == 0 and not any(form.heads)
    assert sheet.text.splitlines()[0] == "| Consignee: | Grete Voll |  |"
    assert fees.heads == ("Year ended June 30:", "2024", "2023")


@pytest.mark.parametrize(
    "lines",
    [
        [["•", "mend the northern gate before winter"], ["•", "paint the lamp"], ["•", "order two new bells for it"]],
        [["1.", "mend the northern gate in winter"], ["2.", "paint the lamp"], ["3.", "order two new bells for it"]],
        [["Harbour company", "Page 3 of 9"]],
        [
            ["the keeper said that the tide", "would not turn before noon and"],
            ["so they waited on the quay", "until the bell rang twice for"],
            ["the ferry to the island and", "went on board with all that"],
        ],
    ],
    ids=["bullets", "numbers", "a running head", "text in two columns"],
)
def test_what_is_no_table_is_text(document: tuple[pymupdf.Document, Path], lines: list[list[str]]) -> None:
    drawn, path = document
    page = drawn.new_page()
    for row, texts in enumerate(lines):
        for x, text in zip((60, 78 if len(texts[0]) < 3 else 330), texts, strict=True):
            put(page, x, 100 + 14 * row, text)
    drawn.save(path)
    text = read(path)
    assert "|" not in text.text and not tables(text.words, text.aspect)


@pytest.mark.parametrize("turn", [0, 90, 270])
def test_a_value_of_a_table_that_lies_on_its_side_is_found_by_its_row_and_its_head(
    document: tuple[pymupdf.Document, Path], turn: int
) -> None:
    upright = pymupdf.open()
    page = upright.new_page()
    statement(page, [["", "2024", "2023"], ["Berth fees", "4,310", "3,907"], ["Rents", "90", "88"]])
    drawn, path = document
    drawn.new_page().show_pdf_page(pymupdf.Rect(0, 0, 595, 842), upright, 0, rotate=turn)
    drawn.save(path)
    assert values(read(path), "What were the rents in 2023?") == ["88"]


@pytest.mark.parametrize("rotate", [90, 270])
def test_turned_heads_stand_over_their_columns(document: tuple[pymupdf.Document, Path], rotate: int) -> None:
    drawn, path = document
    page = drawn.new_page()
    for x, head in zip((260, 350, 440), ("Long jump", "Diving", "Sailing"), strict=True):
        y = 140 if rotate == 90 else 140 - pymupdf.get_text_length(head, fontsize=9)
        page.insert_text((x + 40, y), head, fontsize=9, rotate=rotate)
    statement(page, [["Crew of Vik", "21", "23", "25"], ["Crew of Eid", "26", "27", "22"]])
    put(page, STUB, 300, "The crews meet again in June.")
    drawn.save(path)
    sheet = read(path)
    assert sheet.text.splitlines() == [
        "|  | Long jump | Diving | Sailing |",
        "| --- | --- | --- | --- |",
        "| Crew of Vik | 21 | 23 | 25 |",
        "| Crew of Eid | 26 | 27 | 22 |",
        "The crews meet again in June.",
    ]
    assert values(sheet, "crew Eid diving") == ["27"]
    [cell] = [part for part in sheet.elements if part.table is not None and part.text == "Long jump"]
    assert (
        cell.box.y1 * page.rect.height < 150
        and 200 < cell.box.x0 * page.rect.width < cell.box.x1 * page.rect.width < 355
    )


def test_rows_of_words_under_turned_heads_are_no_heads(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    for x, head in zip((290, 380), ("Swims", "Rows"), strict=True):
        page.insert_text((x, 140), head, fontsize=9, rotate=90)
    statement(page, [["Otter", "Yes", "No"], ["Heron", "No", "No"], ["Pike", "Yes", "No"]])
    drawn.save(path)
    assert read(path).text.splitlines()[:3] == ["|  | Swims | Rows |", "| --- | --- | --- |", "| Otter | Yes | No |"]


def test_turned_labels_over_a_few_columns_are_no_heads(document: tuple[pymupdf.Document, Path]) -> None:
    drawn, path = document
    page = drawn.new_page()
    for x in (290, 380):
        page.insert_text((x, 140), "Monday", fontsize=9, rotate=90)
    for row in range(3):
        for column in range(6):
            put(page, STUB + 80 * column, 150 + 14 * row, f"{row}{column}5")
    drawn.save(path)
    text = read(path)
    assert [any(table.heads) for table in tables(text.words, text.aspect)] == [False]
