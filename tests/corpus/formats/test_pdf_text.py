"""What of a page's text layer is believed: what a person sees, and what can be read."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pymupdf
import pytest
from PIL import Image

from vrag_ray.agent.citations import _lines_of
from vrag_ray.corpus.formats.pdf_readable import is_plausible
from vrag_ray.corpus.formats.pdf_text import PageRead, read_page
from vrag_ray.corpus.ocr import OcrText
from vrag_ray.policies.extractive.layout import sentences
from vrag_ray.types import Box, Locator, PageText, Word, joined

SEEN = "The library holds 12,400 books."
SECRET = "The vault code is 9182 today."
Draw = Callable[[pymupdf.Page], None]


def page_of(*draw: Draw, size: tuple[float, float] = (595, 842)) -> pymupdf.Page:
    """A page with a line that is seen, and what ``draw`` adds; stored as a file would store it."""
    document = pymupdf.open()
    page = document.new_page(width=size[0], height=size[1])
    page.insert_text((72, 100), SEEN, fontsize=12)
    for drawing in draw:
        drawing(page)
    return pymupdf.open(stream=document.tobytes(), filetype="pdf")[0]


def read(page: pymupdf.Page, ocr: OcrText | None = None, strip: str = "") -> PageRead:
    """``ocr`` is what is read of the page, ``strip`` of a line of it alone."""

    def reads(box: Box | None) -> OcrText:
        assert ocr is not None
        return ocr if box is None else ocr_of(strip, 0.0, 0.5)

    return read_page(page, min_chars=8, ocr=None if ocr is None else reads, believed=set())


def test_the_mark_of_a_list_is_a_word_of_its_own_however_near_it_stands() -> None:
    def list_of_two(page: pymupdf.Page) -> None:
        page.insert_text((72, 200), "\u00b7Cranes lift", fontsize=12)
        page.insert_text((72, 220), "+Barges 5\u00b77", fontsize=12)

    reading = read(page_of(list_of_two))
    assert reading.text.split("\n")[1:] == ["\u00b7 Cranes lift", "+Barges 5\u00b77"]
    mark, cranes = (next(word for word in reading.words if word.text == text) for text in ("\u00b7", "Cranes"))
    assert mark.box.x1 == cranes.box.x0 < cranes.box.x1


def noise(width: int = 300, height: int = 60, seed: int = 1) -> bytes:
    data = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(data, "PNG")
    return data.getvalue()


def secret(**style: object) -> Draw:
    return lambda page: page.insert_text((72, 200), SECRET, **style)  # type: ignore[arg-type]


def painted(operators: str, resources: dict[str, str] | None = None) -> Draw:
    """PDF operators behind what the page has so far; ``resources`` by the path that names them."""

    def draw(page: pymupdf.Page) -> None:
        page.clean_contents()
        document = page.parent
        for name, value in (resources or {}).items():
            document.xref_set_key(page.xref, f"Resources/{name}", value)
        xref = page.get_contents()[0]
        document.update_stream(xref, document.xref_stream(xref) + f"\nq {operators} Q\n".encode())

    return draw


def under(cover: Draw) -> Draw:
    def draw(page: pymupdf.Page) -> None:
        page.insert_text((72, 200), SECRET, fontsize=12)
        cover(page)

    return draw


PLACE = pymupdf.Rect(60, 185, 400, 210)
SHADE = "<</ShadingType 2/ColorSpace/DeviceGray/Coords[{}]/Function<</FunctionType 2/Domain[0 1]/C0[0]/C1[1]/N 1>>>>"
TILES = " ".join(f"{n * 37 % 100 / 100} g {60 + n % 114 * 3} {632 + n // 114 * 3} 3 3 re f" for n in range(1026))


def pin(page: pymupdf.Page) -> None:
    page.add_stamp_annot(pymupdf.Rect(40, 150, 600, 245), pymupdf.Pixmap(noise(360, 60)))


HIDDEN: dict[str, Draw] = {
    "render mode 3": secret(render_mode=3),
    "white": secret(color=(1, 1, 1)),
    "nearly white": secret(color=(0.98, 0.99, 0.98)),
    "no opacity": secret(fill_opacity=0),
    "hardly any opacity": secret(fill_opacity=0.02),
    "half a point": secret(fontsize=0.5),
    "a black bar": under(lambda page: page.draw_rect(PLACE, color=(0, 0, 0), fill=(0, 0, 0))),
    "a grey bar": under(lambda page: page.draw_rect(PLACE, color=(0.5, 0.5, 0.5), fill=(0.5, 0.5, 0.5))),
    "a white sheet": under(lambda page: page.draw_rect(PLACE, color=(1, 1, 1), fill=(1, 1, 1))),
    "a picture": under(lambda page: page.insert_image(PLACE, stream=noise(), keep_proportion=False)),
    "a shading across": under(painted("60 632 340 25 re W n /S sh", {"Shading/S": SHADE.format("60 0 300 0")})),
    "a shading upwards": under(painted("60 632 340 25 re W n /S sh", {"Shading/S": SHADE.format("0 636 0 652")})),
    "many little squares": under(painted(TILES)),
    "an inline picture": under(
        painted(f"340 0 0 25 60 632 cm BI /W 68 /H 5 /CS /G /BPC 8 /F /AHx ID {noise()[99:439].hex()}> EI")
    ),
    "a stamp with a picture": under(pin),
    "white over a line that is seen": lambda page: page.insert_text((90, 100), SECRET, fontsize=12, color=(1, 1, 1)),
    "white between two lines": lambda page: page.insert_text((72, 105), SECRET, fontsize=12, color=(1, 1, 1)),
    "black on black": lambda page: (
        page.draw_rect(PLACE, color=(0, 0, 0), fill=(0, 0, 0)),
        page.insert_text((72, 200), SECRET, fontsize=12),
    )[0],
}


@pytest.mark.parametrize("how", HIDDEN)
def test_what_nobody_sees_is_left_out_and_counted(how: str) -> None:
    reading = read(page_of(HIDDEN[how]))
    assert reading.text == SEEN
    assert reading.notices == ("6 words that are not visible on the page are left out",)


SHOWN: dict[str, Draw] = {
    "light grey": secret(color=(0.7, 0.7, 0.7)),
    "four points": secret(fontsize=4),
    "white on black": lambda page: (
        page.draw_rect(PLACE, color=(0, 0, 0), fill=(0, 0, 0)),
        page.insert_text((72, 200), SECRET, fontsize=12, color=(1, 1, 1)),
    )[0],
    "on a picture": lambda page: (
        page.insert_image(PLACE, stream=noise(), keep_proportion=False),
        page.insert_text((72, 200), SECRET, fontsize=12),
    )[0],
    "outlined": secret(render_mode=1, border_width=0.05),
    "white with a black outline": secret(color=(0, 0, 0), fill=(1, 1, 1), render_mode=2, border_width=0.02),
    "red on a green as dark": lambda page: (
        page.draw_rect(PLACE, color=(0, 0.3, 0.4), fill=(0, 0.3, 0.4)),
        page.insert_text((72, 200), SECRET, fontsize=12, color=(1, 0, 0)),
    )[0],
    "under a marker": under(lambda page: page.draw_rect(PLACE, color=None, fill=(0, 0, 1), fill_opacity=0.3)),
    "drawn twice to be bold": lambda page: (secret()(page), page.insert_text((72.4, 200), SECRET, fontsize=11))[0],
    "over a rule": lambda page: (secret()(page), page.draw_line((72, 202), (300, 202)))[0],
}


@pytest.mark.parametrize("how", SHOWN)
def test_what_a_person_can_see_stays(how: str) -> None:
    reading = read(page_of(SHOWN[how]))
    assert SECRET in reading.text.splitlines()
    assert reading.notices == ()


@pytest.mark.parametrize("ground", [1.0, 0.9])
def test_of_a_word_that_was_written_over_only_the_new_one_is_read(ground: float) -> None:
    def corrected(page: pymupdf.Page) -> None:
        page.insert_text((72, 200), "The rent of the boat house is 4130 crowns a year.", fontsize=12)
        patch = page.search_for("4130")[0]
        page.draw_rect(patch, color=None, fill=(ground, ground, ground))
        page.insert_text((patch.x0, 200), "4180", fontsize=12)

    reading = read(page_of(corrected))
    assert reading.text.splitlines()[1] == "The rent of the boat house is 4180 crowns a year."
    assert reading.notices == ("1 words that are not visible on the page are left out",)


def test_a_line_that_was_written_anew_over_a_white_sheet_stands_there_once() -> None:
    def corrected(page: pymupdf.Page) -> None:
        page.insert_text((72, 200), "The rent of the boat house is 4100 crowns a year.", fontsize=12)
        page.draw_rect(PLACE, color=None, fill=(1, 1, 1))
        page.insert_text((72, 200), "The rent of the boat house is 5250 crowns a year.", fontsize=12)

    assert read(page_of(corrected)).text.splitlines()[1:] == ["The rent of the boat house is 5250 crowns a year."]


def lines_at(x: float, *lines: str, size: float = 10) -> Draw:
    def draw(page: pymupdf.Page) -> None:
        for number, line in enumerate(lines):
            page.insert_text((x, 200 + 1.4 * size * number), line, fontsize=size)

    return draw


def test_letters_that_are_drawn_count_not_what_the_file_puts_in_their_place() -> None:
    given = painted(
        "BT /F 12 Tf 72 642 Td (The keeper is ) Tj /Span <</ActualText (Ragna)>> BDC (Ivar) Tj EMC ( Moe.) Tj ET",
        {"Font/F": "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"},
    )
    assert read(page_of(given)).text.splitlines()[1] == "The keeper is Ivar Moe."


@pytest.mark.parametrize(
    ("font", "letters", "signs"),
    [
        ("Wingdings-Regular", "x", "☒"),
        ("ABCDEF+Wingdings", "o", "☐"),
        ("Wingdings2", "T", "☒"),
        ("Webdings", "a", "✔"),
        ("Helvetica-Bold", "x", "x"),
    ],
)
def test_a_font_of_signs_is_read_as_its_signs(font: str, letters: str, signs: str) -> None:
    box = painted(
        f"BT /F 12 Tf 72 642 Td (The company is large: Yes ) Tj /W 12 Tf ({letters}) Tj ET",
        {
            "Font/F": "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            "Font/W": f"<</Type/Font/Subtype/TrueType/BaseFont/{font}/Encoding/WinAnsiEncoding>>",
        },
    )
    assert read(page_of(box)).text.splitlines()[1] == f"The company is large: Yes {signs}"


def test_an_initial_over_several_lines_begins_its_word() -> None:
    def draw(page: pymupdf.Page) -> None:
        page.insert_text((50, 232), "T", fontsize=40)
        lines_at(78, "he lock was dug by hand between", "two wars by men of the valley,", "whom nobody paid.")(page)

    assert read(page_of(draw)).text.splitlines()[1:] == [
        "The lock was dug by hand between",
        "two wars by men of the valley,",
        "whom nobody paid.",
    ]


def test_a_word_that_the_end_of_a_column_divides_is_one_word() -> None:
    left = lines_at(50, "The flood of that year", "took the lower gate", "away, and the re-")
    right = lines_at(250, "building was paid for", "by farmers of the", "whole long valley.")
    text = read(page_of(lambda page: (left(page), right(page))[0])).text
    assert "away, and the rebuilding was paid for\nby farmers" in text


def test_vertical_type_is_read_in_columns_without_blanks() -> None:
    document = pymupdf.open()
    page = document.new_page()
    for x, text in ((442, "港の倉庫は昭和十一年に建て"), (415, "られた。番人は小林である")):
        page.insert_text((x, 116), text, fontname="japan", fontsize=16)
    [font] = [xref for xref in range(1, document.xref_length()) if "UTF16-H" in document.xref_object(xref)]
    document.xref_set_key(font, "Encoding", "/UniJIS-UTF16-V")
    words = read(pymupdf.open(stream=document.tobytes())[0]).words
    assert joined(words) == "港の倉庫は昭和十一年に建てられた。番人は小林である"
    assert {word.turn for word in words} == {90}


def test_chinese_and_japanese_set_letter_below_letter_is_read_downwards_from_the_right() -> None:
    def draw(page: pymupdf.Page) -> None:
        for column, letters in enumerate(("灯台守の山田は", "三十年間この島", "に住んでいる。")):
            for row, letter in enumerate(letters):
                page.insert_text((400 - 30 * column, 200 + 16 * row), letter, fontname="japan", fontsize=14)

    assert read(page_of(draw)).text.splitlines()[1] == "灯台守の山田は三十年間この島に住んでいる。"


def test_the_text_of_a_scan_stays_where_its_pixels_show_words() -> None:
    drawn = page_of(secret(fontsize=12)).get_pixmap(dpi=100).tobytes("png")
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    page.insert_image(page.rect, stream=drawn)
    page.insert_text((72, 100), SEEN, fontsize=12, render_mode=3)
    page.insert_text((72, 200), SECRET, fontsize=12, render_mode=3)
    page.insert_text((72, 600), "Nothing is drawn here at all", fontsize=12, render_mode=3)
    reading = read(page)
    assert reading.text == f"{SEEN}\n{SECRET}"
    assert reading.notices == ("6 words that are not visible on the page are left out",)


def test_the_text_of_a_scan_that_lies_over_it_several_times_is_read_once() -> None:
    drawn = page_of(secret(fontsize=12)).get_pixmap(dpi=100).tobytes("png")
    page = pymupdf.open().new_page(width=595, height=842)
    page.insert_image(page.rect, stream=drawn)
    for place in range(3):
        page.insert_text((72 + place / 2, 100 - place / 2), SEEN, fontsize=12, render_mode=3)
        page.insert_text((72 + place / 2, 200 - place / 2), SECRET, fontsize=12, render_mode=3)
    assert read(page).text == f"{SEEN}\n{SECRET}"


def test_a_word_of_a_scan_that_its_text_has_a_little_before_its_ink_is_read_once() -> None:
    drawn = page_of(lambda page: page.insert_text((72, 200), "The pay is 912 912", fontsize=20))
    page = pymupdf.open().new_page(width=595, height=842)
    page.insert_image(page.rect, stream=drawn.get_pixmap(dpi=100).tobytes("png"))
    page.insert_text((72, 200), "The pay is 912", fontsize=12, render_mode=3)

    def seen(*places: float) -> OcrText:
        words = zip(("The", "pay", "is", "912", "912"), places, strict=False)
        return OcrText("", tuple(Word(text, Box(x / 595, 0.22, (x + 20) / 595, 0.24)) for text, x in words))

    assert read(page, seen(72, 120, 160, 185)).text == "The pay is 912"
    assert read(page, seen(72, 96, 119, 131, 260)).text == "The pay is 912 912"


def ocr_of(text: str, x: float, y: float) -> OcrText:
    words = []
    for word in text.split():
        width = len(word) * 0.007
        words.append(Word(word, Box(x, y, x + width, y + 0.015)))
        x += width + 0.008
    return OcrText(text, tuple(words))


def test_a_stamp_on_a_scan_does_not_stand_for_its_text() -> None:
    page = page_of(lambda page: page.insert_image(pymupdf.Rect(0, 120, 595, 842), stream=noise(200, 240)))
    reading = read(page, ocr_of("The annual rent is 48,700 euros.", 0.2, 0.5))
    assert reading.text == f"{SEEN}\nThe annual rent is 48,700 euros."
    assert reading.ocr


def diagonal(page: pymupdf.Page) -> None:
    turn = (pymupdf.Point(100, 700), pymupdf.Matrix(45))
    page.insert_text((100, 700), "UNOFFICIAL COPY", fontsize=64, color=(0.8, 0.8, 0.8), morph=turn)


def large(page: pymupdf.Page) -> None:
    page.insert_text((50, 440), "CONFIDENTIAL", fontsize=64, color=(0.8, 0.8, 0.8))


def tiled(page: pymupdf.Page) -> None:
    for place in range(39):
        at = (40 + 190 * (place % 3), 60 + 60 * (place // 3))
        page.insert_text(at, "Licensed to A. Vik", fontsize=12, color=(0.8, 0.8, 0.8))


@pytest.mark.parametrize(
    ("mark", "words"), [(diagonal, "UNOFFICIAL COPY"), (large, "CONFIDENTIAL"), (tiled, "Licensed to A. Vik")]
)
def test_a_watermark_over_a_scan_does_not_stand_for_its_text(mark: Draw, words: str) -> None:
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    data = io.BytesIO()
    Image.new("L", (60, 84), 255).save(data, "PNG")
    page.insert_image(page.rect, stream=data.getvalue())
    mark(page)
    page = pymupdf.open(stream=document.tobytes(), filetype="pdf")[0]
    seen = [word for y in (0.2, 0.5, 0.7) for word in ocr_of("The annual rent is 48,700 euros.", 0.1, y).words]
    # OCR reads the watermark too.
    layer = read(page).words
    reading = read(page, OcrText("", (*seen, *layer)))
    assert reading.ocr
    counts = Counter(word.text for word in reading.words)
    assert counts == Counter(word.text for word in (*seen, *layer))
    assert set(words.split()) < set(counts)


def test_a_picture_beside_a_page_of_text_is_not_read() -> None:
    def fill(page: pymupdf.Page) -> None:
        page.insert_image(pymupdf.Rect(0, 400, 595, 842), stream=noise(200, 160))
        for line in range(20):
            page.insert_text((72, 120 + 13 * line), f"Line {line} of a page that has a good deal of text to it.")

    reading = read(page_of(fill), ocr_of("never read", 0.2, 0.9))
    assert not reading.ocr and "never read" not in reading.text


def shifted(text: str) -> str:
    return "".join(chr(ord(letter) - 29) if letter > " " else letter for letter in text)


def exchanged(text: str) -> str:
    """As vowels with vowels and consonants with consonants: as many of each as in a language."""
    return text.translate(str.maketrans("aeioubcdfghklmnprstvwy", "eiouaghklmnprstvwybcdf"))


PROSE = "the tidal lock was last inspected on a day in may by the inspector of the northern harbour"


@pytest.mark.parametrize("garble", [shifted, exchanged])
def test_letters_that_spell_no_language_are_read_by_ocr_with_a_notice(garble: Callable[[str], str]) -> None:
    def write(page: pymupdf.Page) -> None:
        for line in range(3):
            page.insert_text((72, 300 + 20 * line), garble(PROSE), fontsize=9, fontname="tiro")

    lines = [ocr_of(PROSE, 0.12, 0.345 + line * 20 / 842).words for line in range(3)]
    page = page_of(write)
    reading = read(page, OcrText("", tuple(word for line in lines for word in line)))
    assert reading.text.splitlines() == [SEEN, *[PROSE] * 3]
    assert reading.notices == ("3 lines cannot be read as they stand in the file: OCR read them",)
    # Letters that OCR reads as they stand in the file are believed, and the page is not read.
    assert garble(PROSE) in read(page, OcrText("unasked", ()), strip=garble(PROSE)).text
    # Where OCR reads nothing, what there is stays.
    assert len(read(page, OcrText("", ())).text.splitlines()) == 4


@pytest.mark.parametrize(
    "text",
    [
        "Der Pegel stieg am Donnerstag auf 340 Zentimeter, sagte die Hafenmeisterin Frau Schultz zu den Schiffern.",
        "Szczęście przyszło w czwartek, gdy wszyscy mieszkańcy Gdyni wyszli na nabrzeże, żeby zobaczyć statek.",
        "Paní Dvořáková řekla, že čtvrtý přívoz odplul včera večer a že všichni námořníci už jsou doma.",
        "const fileName = getUserId(request.userId); return fileName.toLowerCase(); // camelCase is everywhere here",
        "MMX-4417 XRF-221 QZT-009 KLM-778 VBN-456 items were counted in the store rooms of the third harbour shed",
    ],
)
def test_languages_and_codes_are_believed(text: str) -> None:
    document = pymupdf.open()
    page = document.new_page(width=900, height=300)
    page.insert_htmlbox(pymupdf.Rect(20, 20, 880, 280), f"<p>{text}</p>")
    reading = read(page, OcrText("unasked", ()), strip=text)
    assert not reading.notices and not reading.ocr


def test_a_page_turned_in_its_file_and_a_line_turned_on_it_are_both_read() -> None:
    page = page_of(lambda page: page.insert_text((300, 400), "upwards we read", rotate=90))
    assert {word.turn for word in read(page).words} == {0, 270}
    page.set_rotation(90)
    assert {word.turn for word in read(page).words} == {90, 0}
    assert "upwards we read" in read(page).text.splitlines()


NOTES = (
    "The weather station was built long ago.",
    "It measures wind, rain and the waves.",
    "The observer is Solveig Brekke of Runde.",
)


def garbled(letters: Callable[[str], str], *lines: str) -> Draw:
    """Lines in a font whose table gives other letters than are drawn."""

    def draw(page: pymupdf.Page) -> None:
        font = pymupdf.Font("helv")
        page.insert_font(fontname="G", fontbuffer=font.buffer)
        for number, line in enumerate(lines):
            page.insert_text((72, 200 + 20 * number), line, fontname="G", fontsize=12)
        drawn = sorted(set("".join(lines)))
        rows = "".join(
            f"<{font.has_glyph(ord(letter)):04x}> <{letters(letter).encode('utf-16-be').hex()}>\n" for letter in drawn
        )
        head = f"begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange {len(drawn)} beginbfchar"
        document = page.parent
        table = document.get_new_xref()
        document.update_object(table, "<<>>")
        document.update_stream(table, f"{head}\n{rows}endbfchar endcmap".encode())
        for xref in range(1, table):
            if document.xref_get_key(xref, "Subtype") == ("name", "/Type0"):
                document.xref_set_key(xref, "ToUnicode", f"{table} 0 R")

    return draw


@pytest.mark.parametrize(
    "letters",
    [
        lambda letter: chr(0x410 + ord(letter) % 80),
        lambda letter: chr(0x4E00 + ord(letter)),
        lambda letter: chr(0x2500 + ord(letter)),
        lambda letter: chr(0x2200 + ord(letter)),
        lambda letter: chr(0x2700 + ord(letter)),
    ],
    ids=["Cyrillic", "Chinese", "box drawing", "mathematics", "ornaments"],
)
def test_letters_of_another_script_that_spell_nothing_are_read_by_ocr(letters: Callable[[str], str]) -> None:
    page = page_of(garbled(lambda letter: letter if letter == " " else letters(letter), *NOTES))
    reading = read(page, ocr_of(" ".join(NOTES), 0.1, 0.25), strip=NOTES[0])
    assert "Solveig Brekke" in reading.text
    assert reading.ocr


@pytest.mark.parametrize(
    "drawing",
    [
        ("┌──────┬─────┬────┐", "│ 12 │ 340 │ 5 │", "├──────┼─────┼────┤", "│ 14 │ 350 │ 7 │", "└──────┴─────┴────┘"),
        ("╔═══╦═══╗╔══╗", "║ 1 ║ 2 ║║ 3║", "╠═══╬═══╣╚══╝", "╚═══╩═══╝", "╒══╕ ╭──╮", "╘══╛ ╰──╯"),
        ("♜♞♝♛♚♝♞♜", "♟♟♟♟♟♟♟♟", "♙♙♙♙♙♙♙♙", "♖♘♗♕♔♗♘♖", "♖♘♗♕♔♗♘♖"),
        ("▁▂▃▅▇█▇▅▃▂▁", "■■■■□□", "★★★☆☆"),
    ],
    ids=["single", "double", "chess", "bars"],
)
def test_what_is_drawn_with_signs_is_believed(drawing: tuple[str, ...]) -> None:
    assert is_plausible(" ".join(drawing))


def test_what_spells_nothing_in_a_script_that_ocr_does_not_know_stays_with_a_notice() -> None:
    page = page_of(garbled(lambda letter: chr(0x410 + ord(letter) % 80) if letter != " " else letter, *NOTES))
    reading = read(page, ocr_of("5 .", 0.13, 0.2345), strip="")
    assert len(reading.text.splitlines()) == 4
    assert reading.notices == ("3 lines spell no language as they stand in the file, and OCR cannot read them",)


@pytest.mark.parametrize("lost", ["\ufffd", "\ue001", "\uf001", "\u0003"])
def test_lines_that_lack_a_ligature_are_read_by_ocr(lost: str) -> None:
    lines = ("Its o#cers con$rmed it in the $rst week.", "The accounts of the $rm are sound.")
    page = page_of(garbled(lambda letter: lost if letter in "#$" else letter, *lines))
    whole = [line.replace("#", "ffi").replace("$", "fi") for line in lines]
    seen = [word for row, line in enumerate(whole) for word in ocr_of(line, 0.12, 0.225 + 0.0237 * row).words]
    reading = read(page, OcrText("", tuple(seen)))
    assert reading.text.splitlines() == [SEEN, *whole]


def test_a_line_of_which_little_can_be_read_is_read_by_ocr() -> None:
    line = "The first harbour of Lier"
    page = page_of(garbled(lambda letter: letter if letter in "T " else "\ufffd", line))
    reading = read(page, ocr_of(line, 0.12, 0.225))
    assert reading.text.splitlines() == [SEEN, line]


@pytest.mark.parametrize(
    "line",
    ["#the fee is due", "The fee # due in May", "the fee #due in May", "Fees ####### 12", "Fees # # # # 12", "x # y"],
)
def test_bullets_signs_and_dotted_lines_of_such_characters_are_no_missing_letters(line: str) -> None:
    page = page_of(garbled(lambda letter: "\uf0b7" if letter == "#" else letter, line))
    reading = read(page, ocr_of("never read", 0.12, 0.6))
    assert not reading.ocr and "never read" not in reading.text


def test_a_page_that_ocr_cannot_read_either_is_reported_as_unread() -> None:
    page = page_of(garbled(lambda letter: "\ufffd", *NOTES))
    reading = read(page, ocr_of("5 .", 0.13, 0.2345))
    assert reading.text == SEEN
    assert reading.notices == ("3 lines cannot be read as they stand in the file, nor by OCR",)


def test_a_name_alone_in_a_garbled_font_is_read_by_ocr() -> None:
    page = page_of(garbled(lambda letter: chr(ord(letter) + 5) if letter != " " else letter, "Solveig Brekke"))
    reading = read(page, ocr_of("Solveig Brekke", 0.12, 0.222), strip="Solveig Brekke")
    assert reading.text.splitlines() == [SEEN, "Solveig Brekke"]


def test_a_word_alone_whose_letters_became_signs_is_read_by_ocr() -> None:
    signs = dict(zip("Phone", '"7+%-', strict=True))
    page = page_of(garbled(signs.__getitem__, "Phone"))
    reading = read(page, ocr_of("Phone", 0.12, 0.222), strip="Phone")
    assert reading.text.splitlines() == [SEEN, "Phone"]


def test_signs_that_ocr_bears_out_and_figures_are_believed() -> None:
    page = page_of(garbled(str, "@{%s}*"), lambda page: page.insert_text((72, 300), "(12.4%) +3,100 $5"))
    assert read(page, OcrText("unread", ()), strip="@{%s}*").text.splitlines()[1:] == ["@{%s}*", "(12.4%) +3,100 $5"]


UNTOLD = "Count of the birds that were ringed on the northern weir in May"


def in_type3(text: str, code_of: Callable[[str], int], name: str) -> pymupdf.Page:
    """A page of one line in a Type 3 font that states no letters: ``code_of`` gives the code of each."""
    letters = sorted(set(text) - {" "})
    codes = {letter: code_of(letter) for letter in letters}
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    names = {letter: name.format(number, codes[letter]) for number, letter in enumerate(letters)}
    glyph = document.get_new_xref()
    document.update_object(glyph, "<<>>")
    document.update_stream(glyph, b"600 0 0 0 600 700 d1 0 0 150 700 re 350 0 150 500 re f")
    font = document.get_new_xref()
    differences = " ".join(f"{code} /{names[letter]}" for letter, code in codes.items())
    procedures = " ".join(f"/{of_letter} {glyph} 0 R" for of_letter in names.values())
    document.update_object(
        font,
        "<</Type/Font/Subtype/Type3/FontBBox[0 0 600 700]/FontMatrix[.001 0 0 .001 0 0]/Resources<<>>"
        f"/CharProcs<<{procedures}>>/Encoding<</Type/Encoding/Differences[{differences}]>>"
        f"/FirstChar 0/LastChar 255/Widths[{'600 ' * 256}]>>",
    )
    document.xref_set_key(page.xref, "Resources", f"<</Font<</F {font} 0 R>>>>")
    shown, x = "", 50.0
    for word in text.split():
        shown += f"BT /F 12 Tf {x} 700 Td <{''.join(f'{codes[letter]:02x}' for letter in word)}> Tj ET\n"
        x += 7.2 * (len(word) + 1)
    contents = document.get_new_xref()
    document.update_object(contents, "<<>>")
    document.update_stream(contents, shown.encode())
    document.xref_set_key(page.xref, "Contents", f"{contents} 0 R")
    return pymupdf.open(stream=document.tobytes(), filetype="pdf")[0]


@pytest.mark.parametrize("first", [33, 48, 65])
@pytest.mark.parametrize("name", ["g{0}", "a{1}"])
def test_the_codes_of_a_font_that_tells_no_letters_are_no_letters(first: int, name: str) -> None:
    letters = sorted(set(UNTOLD) - {" "})
    page = in_type3(UNTOLD, lambda letter: first + letters.index(letter), name)
    reading = read(page, ocr_of(UNTOLD, 0.1, 0.156), strip=UNTOLD)
    assert reading.text == UNTOLD
    assert reading.notices == ("1 lines cannot be read as they stand in the file: OCR read them",)


def test_codes_that_spell_words_are_read_without_ocr_and_others_where_ocr_bears_them_out() -> None:
    assert read(in_type3(UNTOLD, ord, "a{1}"), OcrText("unread", ())).text == UNTOLD
    assert not read(in_type3(UNTOLD, ord, "a{1}")).notices
    figures = "311.20 47.31 1899 2.77%"
    assert read(in_type3(figures, ord, "a{1}"), OcrText("unread", ()), strip=figures).text == figures


BADLY_READ = "tha f*re of ths n»ght fer^y is 4,20 kr and tne s;aff cal£ed it dear ior whom the tid* waits"
WELL_READ = "the fare of the night ferry is 4,20 kr and the staff called it dear for whom the tide waits"


def scan_with(layer: str) -> pymupdf.Page:
    """A page that a picture of words fills, ``layer`` over it as words that are not drawn."""
    drawn = page_of(lambda page: page.insert_text((72, 200), WELL_READ, fontsize=9)).get_pixmap(dpi=100).tobytes("png")
    page = pymupdf.open().new_page(width=595, height=842)
    page.insert_image(page.rect, stream=drawn)
    page.insert_text((72, 100), SEEN, fontsize=12, render_mode=3)
    page.insert_text((72, 200), layer, fontsize=9, render_mode=3)
    return page


@pytest.mark.parametrize(
    ("layer", "ocr", "text"),
    [
        (BADLY_READ, WELL_READ, WELL_READ),
        # Ours is no better, or reads nothing there.
        (BADLY_READ, BADLY_READ.replace("dear", "fear"), BADLY_READ),
        (BADLY_READ, "", BADLY_READ),
        (WELL_READ, "not even looked at", WELL_READ),
    ],
)
def test_the_text_of_a_scan_that_was_read_badly_is_read_anew_where_ocr_reads_better(
    layer: str, ocr: str, text: str
) -> None:
    page = scan_with(layer)
    places = [word.box for word in read(page).words if word.box.y0 > 0.2]
    reading = read(page, OcrText(ocr, tuple(map(Word, ocr.split(), places))))
    assert reading.text.splitlines() == [SEEN, text]
    assert reading.ocr == (text == WELL_READ != layer)


def test_two_f_that_a_printer_named_by_an_arrow_are_letters() -> None:
    page = page_of(garbled(lambda letter: "\u21b5" if letter == "#" else letter, "e#orts of the sta# cut o#"))
    assert read(page).text.splitlines()[1] == "efforts of the staff cut off"


def test_tabs_in_a_filled_field_are_no_letters() -> None:
    def fill(page: pymupdf.Page) -> None:
        field = pymupdf.Widget()
        field.field_name, field.field_type = "remarks", pymupdf.PDF_WIDGET_TYPE_TEXT
        field.field_flags = pymupdf.PDF_TX_FIELD_IS_MULTILINE
        field.rect, field.field_value = pymupdf.Rect(72, 200, 400, 300), "This\n\tis\n\tlate."
        page.add_widget(field)

    assert read(page_of(fill)).text.splitlines()[1:] == ["This", "is", "late."]


def field(kind: int, name: str, rect: pymupdf.Rect, value: str, tooltip: str = "") -> Draw:
    def draw(page: pymupdf.Page) -> None:
        widget = pymupdf.Widget()
        widget.field_type, widget.field_name, widget.rect = kind, name, rect
        widget.field_value, widget.field_label = value, tooltip or None
        if kind == pymupdf.PDF_WIDGET_TYPE_LISTBOX:
            widget.choice_values = ["Diesel", "Sails"]
        page.add_widget(widget)

    return draw


def test_a_value_and_the_tooltip_that_names_it_are_one_sentence() -> None:
    def fill(page: pymupdf.Page) -> None:
        text = pymupdf.PDF_WIDGET_TYPE_TEXT
        field(text, "a", pymupdf.Rect(72, 200, 400, 216), "14.7", "Length of the vessel")(page)
        field(text, "b", pymupdf.Rect(72, 300, 400, 316), "Kabelvag", "Home port")(page)

    reading = read(page_of(fill))
    page = PageText("a.pdf", Locator(page=1), reading.text, reading.words, 612, 792)
    assert [span.text for span in sentences(page)][-2:] == ["Length of the vessel 14.7", "Home port Kabelvag"]


def test_values_of_a_form_stand_at_their_labels() -> None:
    def labels(page: pymupdf.Page) -> None:
        for y, label in (
            (200, "Name of the pilot"),
            (230, "Port of the pilot"),
            (260, "Driven by"),
            (300, "Remarks here"),
        ):
            page.insert_text((72, y), label, fontsize=11)

    text, choice, several = (
        pymupdf.PDF_WIDGET_TYPE_TEXT,
        pymupdf.PDF_WIDGET_TYPE_COMBOBOX,
        pymupdf.PDF_WIDGET_TYPE_LISTBOX,
    )
    page = page_of(
        labels,
        field(text, "a", pymupdf.Rect(260, 188, 460, 206), "Ida Berg"),
        field(choice, "b", pymupdf.Rect(260, 218, 460, 236), "Moss"),
        field(several, "c", pymupdf.Rect(260, 246, 460, 280), "Sails"),
        field(text, "d", pymupdf.Rect(72, 304, 460, 320), "Late again"),
        field(text, "e", pymupdf.Rect(260, 400, 460, 418), "1961", "Year of birth"),
        field(text, "f", pymupdf.Rect(260, 430, 460, 448), "", "Year of death"),
    )
    assert read(page).text.splitlines()[1:] == [
        "Name of the pilot Ida Berg",
        "Port of the pilot Moss",
        "Driven by Sails",
        "Remarks here",
        "Late again",
        "Year of birth 1961",
    ]


def undrawn(objects: Sequence[str], labels: Sequence[str]) -> pymupdf.Page:
    """A page with a field of each of the ``objects`` behind its label, none of which has an appearance in the file."""
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    fields = []
    for number, (body, label) in enumerate(zip(objects, labels, strict=True)):
        page.insert_text((72, 100 + 40 * number), label, fontsize=11)
        field = document.get_new_xref()
        y = 842 - 104 - 40 * number
        document.update_object(
            field, f"<</Type/Annot/Subtype/Widget/F 4/T(f{number})/Rect[260 {y} 460 {y + 18}]{body}>>"
        )
        fields.append(f"{field} 0 R")
    document.xref_set_key(page.xref, "Annots", f"[{' '.join(fields)}]")
    form = f"<</NeedAppearances true/DA(/Helv 0 Tf 0 g)/Fields[{' '.join(fields)}]>>"
    document.xref_set_key(document.pdf_catalog(), "AcroForm", form)
    return pymupdf.open(stream=document.tobytes(), filetype="pdf")[0]


def test_the_cells_of_a_comb_hold_the_words_of_its_value() -> None:
    comb = "/FT/Tx/Ff 16777216"
    page = undrawn([f"{comb}/MaxLen 15/V(NO9386011117947)", f"{comb}/MaxLen 11/V(ANNA KVERNE)"], ["Account", "Name"])
    reading = read(page)
    assert reading.text.splitlines() == ["Account NO9386011117947", "Name ANNA KVERNE"]
    account = next(word for word in reading.words if word.text.startswith("NO"))
    assert account.box.x0 < 275 / 595 and account.box.x1 > 440 / 595


def test_letters_in_a_comb_whose_value_is_written_otherwise_are_one_word() -> None:
    page = undrawn(["/FT/Tx/Ff 16777216/MaxLen 8/V(04071998)"], ["Born"])
    # As where a script of the form formats what is drawn.
    widget = page.first_widget
    page.parent.xref_set_key(page.parent.pdf_catalog(), "AcroForm/NeedAppearances", "false")
    page.parent.xref_set_key(widget.xref, "V", "(4 July)")
    page.parent.xref_set_key(widget.xref, "AP", f"<</N {drawn_apart(page.parent, '04071998')} 0 R>>")
    assert read(pymupdf.open(stream=page.parent.tobytes(), filetype="pdf")[0]).text == "Born 04071998"


def drawn_apart(document: pymupdf.Document, letters: str) -> int:
    """The number of an appearance of 200 by 18 points with each of the letters in a cell of its own."""
    font, appearance = document.get_new_xref(), document.get_new_xref()
    document.update_object(font, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    document.update_object(
        appearance, f"<</Type/XObject/Subtype/Form/BBox[0 0 200 18]/Resources<</Font<</H {font} 0 R>>>>>>"
    )
    cells = " ".join(f"{8 if not number else 20} 0 Td ({letter}) Tj" for number, letter in enumerate(letters))
    document.update_stream(appearance, f"BT /H 11 Tf 0 5 Td {cells} ET".encode())
    return appearance


def test_fields_without_an_appearance_have_the_value_that_a_program_for_pdfs_shows() -> None:
    ports, cargo = "/Opt[[(de1)(Emden)][(nl2)(Delfzijl)]]", "/Opt[[(x1)(Tallow)][(x2)(Hemp)][(x3)(Tar)]]"
    rich = "<body xmlns='http://www.w3.org/1999/xhtml'><p>Rigged anew</p></body>"
    page = undrawn(
        [
            f"/FT/Ch/Ff 131072/V(nl2){ports}",
            f"/FT/Ch/V[(x1)(x3)]{cargo}",
            f"/FT/Ch/I[1]{cargo}",
            f"/FT/Tx/Ff 33554432/V(Rigged anew)/RV({rich})",
            "/FT/Tx",
        ],
        ["Home port", "Cargo", "Spare cargo", "Remarks", "Nothing"],
    )
    assert read(page).text.splitlines() == [
        "Home port Delfzijl",
        "Cargo Tallow Tar",
        "Spare cargo Hemp",
        "Remarks Rigged anew",
        "Nothing",
    ]


def test_what_is_filled_into_a_password_field_is_left_out_and_counted() -> None:
    def password(page: pymupdf.Page) -> None:
        page.insert_text((72, 200), "Name of the pilot", fontsize=11)
        page.insert_text((72, 230), "Word of the pilot", fontsize=11)
        widget = pymupdf.Widget()
        widget.field_type, widget.field_name = pymupdf.PDF_WIDGET_TYPE_TEXT, "secret"
        widget.rect, widget.field_flags = pymupdf.Rect(260, 218, 460, 236), pymupdf.PDF_TX_FIELD_IS_PASSWORD
        widget.field_value = "swordfish 77"
        page.add_widget(widget)

    reading = read(page_of(password, field(pymupdf.PDF_WIDGET_TYPE_TEXT, "a", pymupdf.Rect(260, 188, 460, 206), "Ida")))
    assert reading.text.splitlines()[1:] == ["Name of the pilot Ida", "Word of the pilot"]
    assert reading.notices == ("2 words that are not visible on the page are left out",)


def test_boxes_of_a_form_are_checked_or_unchecked() -> None:
    def labels(page: pymupdf.Page) -> None:
        for x, y, label in (
            (72, 200, "Crane needed"),
            (72, 230, "Power needed"),
            (200, 260, "Guest"),
            (300, 260, "Owner"),
        ):
            page.insert_text((x, y), label, fontsize=11)

    kind = pymupdf.PDF_WIDGET_TYPE_CHECKBOX
    page = page_of(
        labels,
        field(kind, "a", pymupdf.Rect(260, 188, 274, 202), "Off"),
        field(kind, "b", pymupdf.Rect(260, 218, 274, 232), "Yes"),
        field(kind, "c", pymupdf.Rect(182, 248, 196, 262), "Yes"),
        field(kind, "d", pymupdf.Rect(282, 248, 296, 262), "Off"),
        field(kind, "e", pymupdf.Rect(260, 400, 274, 414), "Yes", "Fees are paid"),
    )
    assert read(page).text.splitlines()[1:] == [
        "Crane needed unchecked",
        "Power needed checked",
        "Checked: Guest Unchecked: Owner",
        "Fees are paid checked",
    ]


def test_what_an_annotation_strikes_out_is_left_out_with_a_notice() -> None:
    def strike(page: pymupdf.Page) -> None:
        page.insert_text((72, 200), "The fee is 65 70 crowns.", fontsize=12)
        page.add_strikeout_annot(page.search_for("65"))

    reading = read(page_of(strike))
    assert reading.text.splitlines() == [SEEN, "The fee is 70 crowns."]
    assert reading.notices == ("1 words that are struck out in it are left out",)


def with_raised(*parts: tuple[str, bool], turn: int = 0) -> Draw:
    """A line of which some parts are raised and smaller."""

    def draw(page: pymupdf.Page) -> None:
        along = 0.0
        for text, is_raised in parts:
            size, rise = (7, 5) if is_raised else (12, 0)
            place = (72 + along, 200 - rise) if turn == 0 else (100 - rise, 600 - along)
            page.insert_text(place, text, fontsize=size, rotate=turn)
            along += pymupdf.get_text_length(text, fontsize=size)

    return draw


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([("The county has 340", False), ("2", True), (" herds.", False)], "The county has 340² herds."),
        ([("In 1926,", False), ("13", True), (" it closed.", False)], "In 1926,¹³ it closed."),
        ([("It has 340", False), ("2", True), (",", True), ("3", True), (" herds.", False)], "It has 340²,³ herds."),
        ([("It covers 77 m", False), ("2", True), (" of land.", False)], "It covers 77 m² of land."),
        ([("2", True), ("340 herds were counted.", False)], "²340 herds were counted."),
        ([("On the 1", False), ("st", True), (" of May.", False)], "On the 1st of May."),
        ([("It has 340 ", False), ("[2]", True), (" herds.", False)], "It has 340 [2] herds."),
        ([("2", True), (" An estimate.", False)], "2 An estimate."),
    ],
)
def test_a_raised_digit_stays_apart_from_the_figure_before_it(parts: list[tuple[str, bool]], text: str) -> None:
    assert " ".join(read(page_of(with_raised(*parts))).text.split()) == f"{SEEN} {text}"


def test_a_raised_digit_of_a_turned_line_stays_apart_too() -> None:
    turned = with_raised(("The county has 340", False), ("2", True), (" herds.", False), turn=90)
    assert "340² herds." in read(page_of(turned)).text


def test_the_box_of_a_figure_holds_the_mark_behind_it_as_it_is_drawn() -> None:
    page = page_of(with_raised(("The county has 340", False), ("2", True), (" herds.", False)))
    drawn = next(place for place in page.get_text("words") if place[4] == "3402")
    (word,) = [word for word in read(page).words if word.text == "340²"]
    assert word.box.as_tuple() == pytest.approx(
        (drawn[0] / 595, drawn[1] / 842, drawn[2] / 595, drawn[3] / 842), abs=1e-6
    )
    assert _lines_of("The county has 340² herds.", read(page).words) is not None


def test_the_line_behind_an_initial_is_not_raised() -> None:
    def draw(page: pymupdf.Page) -> None:
        page.insert_text((72, 124), "T", fontsize=40)
        page.insert_text((97, 108), "he choir of 1926 has 26 singers.", fontsize=12)

    assert "1926 has 26" in read(page_of(draw)).text


def set_apart(text: str, spacing: float) -> Draw:
    """``text`` with points between its letters."""
    font = "<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>"
    return painted(f"BT /F 12 Tf {spacing} Tc 72 642 Td ({text}) Tj ET", {"Font/F": font})


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lines_at(72, "H A R B O U R   D A Y S"), "HARBOUR DAYS"),
        (lines_at(72, "The festival is called H A R B O U R   D A Y S"), "The festival is called HARBOUR DAYS"),
        (lines_at(72, "A N N U A L   R E P O R T   2 0 3 1"), "ANNUAL REPORT 2031"),
        (set_apart("The warden of the isle is Ida Moe.", 4), "The warden of the isle is Ida Moe."),
        (set_apart("The warden is Ida.", 13), "The warden is Ida."),
        (lambda page: page.insert_text((72, 700), "H A R B O U R   D A Y S", rotate=90), "HARBOUR DAYS"),
        (lambda page: page.insert_text((72, 200), "H A R B O U R   D A Y S", fontname="cour"), "HARBOUR DAYS"),
    ],
)
def test_words_that_are_set_letter_by_letter_are_whole(draw: Draw, text: str) -> None:
    assert " ".join(read(page_of(draw)).text.splitlines()[1:]) == text


def test_the_box_of_a_word_that_is_set_letter_by_letter_is_around_its_letters() -> None:
    page = page_of(lines_at(72, "H A R B O U R   D A Y S"))
    letters = [word for word in page.get_text("words") if len(word[4]) == 1]
    harbour, days = read(page).words[-2:]
    assert (harbour.text, days.text) == ("HARBOUR", "DAYS")
    for word, of_word in ((harbour, letters[:7]), (days, letters[7:])):
        assert word.box.x0 * 595 == pytest.approx(of_word[0][0], abs=0.01)
        assert word.box.x1 * 595 == pytest.approx(of_word[-1][2], abs=0.01)
        assert word.box.y0 * 842 == pytest.approx(of_word[0][1], abs=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "a b c d e f g",
        "J K L M N P R",
        "B A D C A C E D",
        "T F T T F T F",
        "x y z u v w x",
        "1 2 3 4 5 6 7",
        "J F M A M J J A S O N D",
        "M T W T F S S",
        "A C G T T A G C A U",
    ],
)
def test_letters_that_stand_for_themselves_stay_apart(text: str) -> None:
    assert read(page_of(lines_at(72, text))).text.splitlines()[1:] == [text]


@pytest.mark.parametrize(("font", "rows"), [("helv", ("HARBOUR",)), ("cour", ("HARBOUR", "LANTERN", "GARDENS"))])
def test_letters_in_columns_stay_apart(font: str, rows: tuple[str, ...]) -> None:
    def draw(page: pymupdf.Page) -> None:
        for number, row in enumerate(rows):
            for place, letter in enumerate(row):
                page.insert_text((72 + 15 * place, 200 + 20 * number), letter, fontsize=10, fontname=font)

    words = [word.text for word in read(page_of(draw)).words if len(word.text) == 1]
    assert words == list("".join(rows))


def test_chinese_letters_that_blanks_part_stay_apart() -> None:
    page = page_of(lambda page: page.insert_text((72, 200), "港 口 管 理 员 是", fontname="china-s"))
    assert [word.text for word in read(page).words[-6:]] == list("港口管理员是")


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        (b"(The mayor of K) -83 (\xa8) 416 (oln rests.)", "The mayor of Köln rests."),
        (b"(Ren) -61 (\xb4) 388 (e and Mar) 28 (\xb4) 305 (ia rest.)", "René and María rest."),
        (b"(Pas) 361 (\xb8) 28 (a rests.)", "Paşa rests."),
        (b"(It) -20 (\xb4) -20 (s the mayor\xb4s.)", "It´s the mayor´s."),  # noqa: RUF001
        (b"(The `old' and) -250 (\xb4) -250 (new.)", "The `old' and ´ new."),  # noqa: RUF001
    ],
)
def test_an_accent_that_is_drawn_over_a_letter_makes_one_with_it(drawn: bytes, shown: str) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), "x", fontname="tiro")
    document.update_stream(page.get_contents()[0], b"BT /tiro 12 Tf 72 700 Td [" + drawn + b"] TJ ET")
    page = pymupdf.open(stream=document.tobytes(), filetype="pdf")[0]
    assert read_page(page, min_chars=0, ocr=None, believed=set()).text == shown


@pytest.mark.parametrize(
    "around",
    [
        lambda page: page.draw_rect((60, 189, 300, 204)),
        lambda page: page.draw_line((60, 202), (300, 202)),
        lambda page: page.draw_rect((60, 160, 300, 191), fill=(0.2, 0.2, 0.5)),
        lambda page: [page.draw_line((60 + 40 * n, 186), (60 + 40 * n, 206)) for n in range(6)],
    ],
    ids=["box", "line", "bar above", "cells"],
)
def test_words_without_ink_between_lines_are_not_seen(around: Draw) -> None:
    reading = read(page_of(around, lambda page: page.insert_text((64, 200), SECRET, render_mode=3)))
    assert reading.text == SEEN
    assert reading.notices == ("6 words that are not visible on the page are left out",)


def test_faint_words_of_a_scan_are_read_where_the_others_of_the_page_are() -> None:
    def scan(page: pymupdf.Page) -> None:
        drawn = pymupdf.open()
        picture = drawn.new_page(width=400, height=100)
        picture.insert_text((10, 20), "The mole of Lier is closed until the end of May", fontsize=9)
        picture.draw_line((10, 58), (40, 58))
        page.insert_image((72, 150, 472, 250), pixmap=picture.get_pixmap(dpi=150))
        page.insert_text((82, 170), "The mole of Lier is closed until the end of May", fontsize=9, render_mode=3)
        page.insert_text((82, 208), "Moss", fontsize=9, render_mode=3)

    assert read(page_of(scan)).text == f"{SEEN}\nThe mole of Lier is closed until the end of May\nMoss"
