"""Rows of tables of long texts, which only their ruling lines show, answer questions for their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest

from tests.support.documents import first_page
from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.policies.extractive.matching import Match, matches
from vrag_ray.policies.extractive.questions import parts
from vrag_ray.types import PageText, PassageKind

ROWS = (
    ("Risk", "Cause", "Measure", "Owner"),
    (
        "Fire in the fuel store on the east pier while yachts are fuelled",
        "Sparks from grinding work or careless smoking by visitors",
        "A fence with a locked gate and two foam extinguishers",
        "Leopold Quist",
    ),
    (
        "Ice pressure on the floating pontoons in a hard winter",
        "A broken air bubbler or a power cut of more than six hours",
        "A spare compressor is kept ready in hangar seven",
        "Mathilde Brix",
    ),
)


TERMS = (
    ("Event", "What is covered"),
    ("Theft of a bicycle", "Up to 1,500 euros, if the bicycle was locked with a chain"),
    ("Water damage", "Up to 40,000 euros; frost only where the pipes were drained"),
    ("Broken glass", "All panes of the home, without a limit and without a share of your own"),
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> PageText:
    return drawn(ROWS, tmp_path_factory.mktemp("ruled") / "risks.pdf", 115)


def drawn(rows: Sequence[Sequence[str]], path: Path, width: float) -> PageText:
    document = pymupdf.open()
    sheet = document.new_page(width=595, height=842)
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            left = 60 + width * column
            cell = pymupdf.Rect(left, 80 + 60 * row, left + width, 140 + 60 * row)
            sheet.draw_rect(cell)
            inner = pymupdf.Rect(cell.x0 + 4, cell.y0 + 4, cell.x1 - 4, cell.y1 - 4)
            sheet.insert_textbox(inner, text, fontsize=9)
    document.save(path)
    return first_page(path)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is the owner of the risk of ice pressure on the pontoons?", "Mathilde Brix"),
        ("What is the measure against fire in the fuel store?", ROWS[1][2]),
        ("What is the cause of ice pressure on the pontoons?", ROWS[2][1]),
    ],
)
@pytest.mark.parametrize("boxes_alone", [False, True])
def test_the_cell_under_the_head_that_the_question_names_answers(
    page: PageText, question: str, answer: str, boxes_alone: bool
) -> None:
    if boxes_alone:
        # As the library gives pages to agents: cells of one line are boxes.
        cells = tuple(part.box.as_tuple() for part in page.elements if part.table is not None)
        several = tuple(part for part in page.elements if part.table is None or "\n" in part.text)
        page = replace(page, elements=several, cells=cells)
    best = best_match(page, question)
    assert " ".join(best.answer.split()) == answer
    assert ROWS[2][0].split()[0] in best.quote or ROWS[1][0].split()[0] in best.quote


def test_the_row_of_two_long_cells_answers(tmp_path: Path) -> None:
    best = best_match(drawn(TERMS, tmp_path / "terms.pdf", 170), "What is covered in the case of water damage?")
    assert " ".join(best.quote.split()) == " ".join(TERMS[2])


def best_match(page: PageText, question: str) -> Match:
    (part,) = parts(question, limit=3)
    seen = Sighting("s1", "d", page.locator, PassageKind.PAGE, "", "page.pdf", 1.0, page.text, page)
    return matches(part, Observation("q1", question, (seen,)))[0]
