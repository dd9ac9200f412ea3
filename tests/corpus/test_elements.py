"""The elements of drawn pages: what each is, where it stands, and that no word is lost or counted twice."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pymupdf
import pytest
from hypothesis import given, settings

from tests.support.agent_pages import scattered
from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.elements import elements
from vrag_ray.corpus.formats.registry import open_source
from vrag_ray.corpus.formats.source import Opening
from vrag_ray.corpus.model import DecodeOptions
from vrag_ray.types import DocumentKind, Locator, PageText, Word
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
    options = DecodeOptions.from_config(CorpusConfig(ocr=False))
    opening = Opening(path, path.name, options, DecodeLimits(), lambda _: pytest.fail("no picture is read"))
    source = open_source(DocumentKind.PDF, opening)
    try:
        return source.page_text(Locator(page=1))
    finally:
        source.close()


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


def test_a_picture_has_the_box_in_which_it_is_drawn(page: PageText):
    [picture] = [element for element in page.elements if element.kind is ElementKind.PICTURE]
    expected = (72 / 595, 560 / 842, 272 / 595, 690 / 842)
    # It keeps its own proportions within the rectangle.
    assert picture.box.y0 >= expected[1] - 0.01 and picture.box.y1 <= expected[3] + 0.01
    assert picture.text == ""


@settings(max_examples=40)
@given(scattered("North", "2022", "12", "mast", "the", "·", "Table", "1.", most=16))
def test_every_word_of_any_page_stands_in_one_element_and_in_its_box(words: list[Word]):
    found = elements(words, 0.75)
    tokens = sorted(token for element in found if element.table is None for token in _tokens(element))
    assert tokens == sorted(word.text for word in words)
    assert all(later.number == earlier.number + 1 for earlier, later in pairwise(found))
    for element in found:
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
