"""The elements of drawn pages: what each is, where it stands, and that no word is lost or counted twice."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

import pymupdf
import pytest
from hypothesis import given, settings

from tests.support.agent_pages import scattered
from tests.support.documents import first_page
from vrag_ray.corpus.elements import elements
from vrag_ray.types import Box, PageText, Word
from vrag_ray.types.elements import Element, ElementKind

LEFT, WIDTH = 72, 450
PARAGRAPH = (
    "The northern basin was dredged in the spring of 1911 by the firm of Lund and Sons. The work took nine weeks and "
    "was paid for by the harbour alone, because the city had refused its share in the year before."
)


def write(page: pymupdf.Page, y: float, text: str, *, size: float = 10, x: float = LEFT) -> float:
    """Lines of ``text`` from (x, y) downwards; where the next one would stand."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if pymupdf.get_text_length(longer, fontsize=size) > WIDTH:
            page.insert_text((x, y), line, fontsize=size)
            line, y = word, y + 1.2 * size
        else:
            line = longer
    page.insert_text((x, y), line, fontsize=size)
    return y + 1.2 * size


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> PageText:
    document = pymupdf.open()
    sheet = document.new_page(width=595, height=842)
    write(sheet, 40, "Northmere Harbour 1911", size=8)
    write(sheet, 110, "The yearbook of the harbour", size=22)
    y = write(sheet, 150, "Dredging", size=13)
    y = write(sheet, y + 4, PARAGRAPH)
    y = write(sheet, y + 8, PARAGRAPH.replace("northern", "southern"))
    for number, item in enumerate(("Fees of berths", "Fees of cranes", "Fees of pilots")):
        write(sheet, y + 10 + 14 * number, f"· {item}")
    y = write(sheet, y + 70, "Table 1 Fees in thousand crowns")
    for number, (name, *figures) in enumerate((("Fee", "1910", "1911"), ("Berths", "12", "15"), ("Cranes", "7", "9"))):
        for column, text in enumerate((name, *figures)):
            sheet.insert_text((LEFT + 150 * column, y + 8 + 14 * number), text, fontsize=10)
    pixmap = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 60, 40), False)
    pixmap.set_rect(pixmap.irect, (40, 90, 160))
    sheet.insert_image(pymupdf.Rect(72, 560, 272, 690), pixmap=pixmap)
    write(sheet, 710, "Figure 1 The dredger at work")
    write(sheet, 815, "17", x=300)
    path = tmp_path_factory.mktemp("elements") / "yearbook.pdf"
    document.save(path)
    return first_page(path)


def test_each_part_of_a_page_is_what_a_reader_would_call_it(page: PageText):
    shown = [(element.kind, element.text) for element in page.elements if element.kind is not ElementKind.TABLE_CELL]
    kinds = [kind for kind, _ in shown]
    assert kinds == [
        ElementKind.HEADER,
        ElementKind.TITLE,
        ElementKind.SECTION,
        ElementKind.PARAGRAPH,
        ElementKind.PARAGRAPH,
        ElementKind.LIST_ITEM,
        ElementKind.LIST_ITEM,
        ElementKind.LIST_ITEM,
        ElementKind.CAPTION,
        ElementKind.TABLE,
        ElementKind.PICTURE,
        ElementKind.CAPTION,
        ElementKind.FOOTER,
    ]
    texts = dict(enumerate(text for _, text in shown))
    assert " ".join(texts[3].split()) == PARAGRAPH
    assert "| Berths | 12 | 15 |" in texts[9]


def test_elements_are_numbered_in_reading_order_and_say_under_which_heading_they_stand(page: PageText):
    assert [element.number for element in page.elements] == list(range(1, len(page.elements) + 1))
    by_text = {element.text: element for element in page.elements}
    assert by_text["· Fees of cranes"].section == "Dredging"
    cell = by_text["15"]
    table = page.elements[(cell.table or 0) - 1]
    assert (cell.kind, table.kind) == (ElementKind.TABLE_CELL, ElementKind.TABLE)
    assert table.box.union(cell.box) == table.box


def test_a_cell_that_stands_alone_between_ruling_lines_has_the_box_that_they_enclose(tmp_path: Path):
    xs, ys = (72, 232, 332, 432), (100, 122, 144, 166)
    texts = (("", "2023", "2024"), ("Berths", "12", "15"), ("Cranes", "", ""))
    with pymupdf.open() as document:
        drawn = document.new_page(width=595, height=842)
        for y in ys:
            drawn.draw_line((xs[0], y), (xs[-1], y))
        for x in xs:
            drawn.draw_line((x, ys[0]), (x, ys[2]))
        for x in (xs[0], xs[-1]):
            # The last row is one field: its three cells have no lines between them.
            drawn.draw_line((x, ys[2]), (x, ys[-1]))
        for y, row in zip(ys, texts, strict=False):
            for x, text in zip(xs, row, strict=False):
                drawn.insert_text((x + 6, y + 15), text, fontsize=11)
        for x, text in ((240, "4"), (340, "7")):
            drawn.insert_text((x, ys[2] + 15), text, fontsize=11)
        path = tmp_path / "ruled.pdf"
        document.save(path)
    page = first_page(path)
    cells = {element.text: element.box for element in page.elements if element.table is not None}
    [table] = [element for element in page.elements if element.kind is ElementKind.TABLE]
    assert cells["15"].as_tuple() == pytest.approx((332 / 595, 122 / 842, 432 / 595, 144 / 842), abs=1e-3)
    assert cells["Berths"].as_tuple() == pytest.approx((72 / 595, 122 / 842, 232 / 595, 144 / 842), abs=1e-3)
    assert cells["4"].x1 == pytest.approx(cells["7"].x0), "cells between the same lines share what these enclose"
    assert table.box.union(cells["15"]) == table.box


def test_without_ruling_lines_a_cell_reaches_half_way_to_its_neighbours(page: PageText):
    cells = {element.text: element.box for element in page.elements if element.table is not None}
    words = {word.text: word.box for word in page.words if word.text in ("12", "15")}
    assert words["12"].x1 < cells["12"].x1 < words["15"].x0
    assert cells["12"].x1 == pytest.approx(cells["15"].x0)
    assert all(cells[text].union(words[text]) == cells[text] for text in words)
    assert not any(
        box.shared(following) > 1e-9 for box, following in pairwise(sorted(cells.values(), key=Box.as_tuple))
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Figure 2, indicating that cranes are few, was drawn anew.", ElementKind.PARAGRAPH),
        ("Table 1 shows how the fees rose after the war was over.", ElementKind.PARAGRAPH),
        ("Figure 2: Cranes of the northern basin", ElementKind.CAPTION),
        ("Table B.1 Fees of berths", ElementKind.CAPTION),
        ("Figure 3. (a) The crane. (b) Its hook", ElementKind.CAPTION),
        ("FIGURE 4 - The dredger", ElementKind.CAPTION),
    ],
)
def test_a_line_that_speaks_of_a_figure_is_no_caption(tmp_path: Path, line: str, kind: ElementKind):
    with pymupdf.open() as document:
        sheet = document.new_page(width=595, height=842)
        y = write(sheet, 110, PARAGRAPH)
        write(sheet, y + 20, line)
        write(sheet, y + 60, PARAGRAPH)
        document.save(tmp_path / "page.pdf")
    kinds = {" ".join(element.text.split()): element.kind for element in first_page(tmp_path / "page.pdf").elements}
    assert kinds[line] is kind


def test_a_picture_has_the_box_in_which_it_is_drawn(page: PageText):
    [picture] = [element for element in page.elements if element.kind is ElementKind.PICTURE]
    expected = (72 / 595, 560 / 842, 272 / 595, 690 / 842)
    # It keeps its own proportions within the rectangle.
    assert picture.box.y0 >= expected[1] - 0.01 and picture.box.y1 <= expected[3] + 0.01
    assert picture.text == ""


@settings(max_examples=40)
@given(scattered("North", "2022", "12", "mast", "the", "·", "Table", "1.", most=16))
def test_every_word_of_any_page_stands_in_one_element_and_in_its_box(words: list[Word]):
    all_elements = elements(words, 0.75)
    tokens = sorted(token for element in all_elements if element.table is None for token in _tokens(element))
    assert tokens == sorted(word.text for word in words)
    assert all(later.number == earlier.number + 1 for earlier, later in pairwise(all_elements))
    for element in all_elements:
        inside = [word for word in words if element.box.union(word.box) == element.box]
        assert inside or element.kind is ElementKind.PICTURE


def _tokens(element: Element) -> list[str]:
    if element.kind is not ElementKind.TABLE:
        return element.text.split()
    lines = (line for line in element.text.splitlines() if not line.startswith("| ---"))
    return [token for line in lines for token in line.replace("|", " ").split()]


def test_an_element_comes_back_from_another_process_as_it_was(page: PageText):
    back = pickle.loads(pickle.dumps(page))
    assert back.elements == page.elements and back == page
