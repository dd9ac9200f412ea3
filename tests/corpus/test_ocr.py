import itertools
import zlib
from collections.abc import Sequence

import numpy as np
import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from tests.support.documents import picture_of, spaced_picture
from vrag_ray.corpus import ocr
from vrag_ray.corpus.model import clean
from vrag_ray.corpus.ocr import (
    OcrEngine,
    OcrLine,
    OcrText,
    Quad,
    Reading,
    assemble,
    glyph_quads,
    picture_key,
    turned_line,
)

WIDTH, HEIGHT = 1600, 900
RECORDED = {
    "APSARA 云栖大会 2023 年发布云企业网 CEN 产品": (
        (54, 409, 952, 460),
        "58-82 82-102 102-126 126-151 151-175 175-203 212-244 253-285 294-326 335-366 384-408 408-429 429-453 453-481 "
        "498-531 532-563 572-604 613-645 654-686 695-727 736-767 776-804 804-828 828-856 873-905 914-946",
    ),
    "阿里云APSARA Stack专有云，支持ECS、RDS和OSS。": (  # noqa: RUF001 - as it was read
        (55, 481, 992, 530),
        "69-97 109-137 143-169 174-201 201-225 225-250 250-274 274-298 298-324 329-355 355-376 376-392 392-408 408-431 "
        "436-462 476-503 517-545 558-586 599-626 632-659 664-690 690-714 714-738 738-765 778-804 804-828 828-853 "
        "859-886 891-919 924-946 946-967 967-991",
    ),
    "云企业网是阿里云提供的全球网络": (
        (59, 343, 662, 389),
        "59-97 97-135 142-181 181-219 219-257 257-295 303-341 341-379 379-417 417-455 455-494 501-539 539-578 578-616 "
        "616-654",
    ),
}
"""What RapidOCR 3.10 gave for lines of a slide of 1,600 x 900 pixels set in WenQuanYi Zen Hei: the line, its box and
the left and right edge of each character."""


@pytest.fixture(scope="module")
def engine() -> OcrEngine:
    return OcrEngine()


def rectangle(x0: float, y0: float, x1: float, y1: float) -> Quad:
    return ((x0, y0), (x1, y0), (x1, y1), (x0, y1))


def line(text: str, x: float, y: float) -> OcrLine:
    return OcrLine(text, rectangle(x, y, x + 10 * len(text), y + 20))


def recorded(text: str) -> list[tuple[str, float, Quad]]:
    """The characters of a recorded line as RapidOCR hands them over."""
    (_, top, _, bottom), edges = RECORDED[text]
    letters = "".join(text.split())
    spans = [tuple(map(int, edge.split("-"))) for edge in edges.split()]
    return [
        (letter, 0.99, rectangle(left, top, right, bottom))
        for letter, (left, right) in zip(letters, spans, strict=True)
    ]


def spells_its_text(seen: OcrText) -> bool:
    """Blanks are at line ends too, and halves of a word lose the hyphen between them."""
    words = "".join(word.text for word in seen.words)
    return words.replace("-", "") == "".join(seen.text.split()).replace("-", "")


def test_lines_are_read_from_top_to_bottom_and_a_row_from_left_to_right():
    seen = assemble(
        [line("total", 300, 52), line("below", 10, 90), line("head", 10, 10), line("sum", 10, 48)], 400, 200
    )
    assert seen.text == "head\nsum total\nbelow"
    assert [word.text for word in seen.words] == ["head", "sum", "total", "below"]


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_rows_of_a_table_are_read_across_whichever_way_its_picture_lies(turn: int) -> None:
    rows = [
        ("Crane", "Load", "Reach"),
        ("Odin", "73", "41.5"),
        ("Thor", "120", "38.0"),
        ("Loki", "55", "29.5"),
        ("Freya", "88", "44.2"),
    ]
    lines = [
        OcrLine(cell, rectangle(x, 100 + 60 * number, x + 14 * len(cell), 128 + 60 * number))
        for number, row in enumerate(rows)
        for x, cell in zip((100, 400, 700), row, strict=True)
    ]
    width, height = (900, 500) if turn in (0, 180) else (500, 900)
    lying = [turned_line(line, turn, width, height) if turn else line for line in lines]
    assert assemble(lying, width, height, turn).text.splitlines() == [" ".join(row) for row in rows]


def test_words_without_boxes_share_their_line_by_characters():
    seen = assemble([line("ab cd", 100, 0)], 200, 20)
    assert [word.text for word in seen.words] == ["ab", "cd"]
    assert seen.words[0].box.as_tuple() == pytest.approx((0.5, 0.0, 0.6, 1.0))
    assert seen.words[1].box.as_tuple() == pytest.approx((0.65, 0.0, 0.75, 1.0))


def test_a_line_that_the_recogniser_turned_is_shared_from_top_to_bottom():
    seen = assemble([OcrLine("ab cd", rectangle(0, 0, 20, 100))], 20, 100)
    assert [word.box.as_tuple() for word in seen.words] == [
        pytest.approx((0.0, 0.0, 1.0, 0.4)),
        pytest.approx((0.0, 0.6, 1.0, 1.0)),
    ]


def test_boxes_are_clamped_to_the_picture_and_lines_outside_it_are_left_out():
    seen = assemble([line("edge", 180, 10), line("out", 500, 60)], 200, 100)
    assert [(word.text, word.box.x1) for word in seen.words] == [("edge", 1.0)]
    assert seen.text == "edge"


def test_words_of_a_chinese_line_with_latin_letters_are_cut_at_its_spaces():
    text = "APSARA 云栖大会 2023 年发布云企业网 CEN 产品"
    seen = assemble([OcrLine(text, rectangle(*RECORDED[text][0]), glyph_quads(text, recorded(text)))], WIDTH, HEIGHT)
    assert [word.text for word in seen.words] == ["APSARA", "云栖大会", "2023", "年发布云企业网", "CEN", "产品"]
    edges = [(round(word.box.x0 * WIDTH), round(word.box.x1 * WIDTH)) for word in seen.words]
    assert edges == [(58, 203), (212, 366), (384, 481), (498, 767), (776, 856), (873, 946)]


@pytest.mark.parametrize("text", RECORDED)
def test_a_run_without_spaces_is_one_word(text: str):
    seen = assemble([OcrLine(text, rectangle(*RECORDED[text][0]), glyph_quads(text, recorded(text)))], WIDTH, HEIGHT)
    assert [word.text for word in seen.words] == text.split()


def test_characters_that_do_not_spell_the_line_are_not_used():
    text = "云企业网是阿里云提供的全球网络"
    assert glyph_quads(text, recorded(text)[1:]) == ()
    assert glyph_quads(text, recorded("APSARA 云栖大会 2023 年发布云企业网 CEN 产品")) == ()
    assert glyph_quads(text, ((list("云企"), [3, 7], "cn"), 1.0)) == ()


LETTERS = st.sampled_from("aZ9.%-云企業。、のカ각é\u0301ß")
RUNS = st.text(LETTERS, min_size=1, max_size=6)
BLANKS = st.sampled_from([" ", "  ", "\u3000", "\u00a0"])


@st.composite
def glyphed_lines(draw: st.DrawFn) -> OcrLine:
    """A Latin, Chinese or mixed line anywhere about the picture; glyphs in order, of the wrong number, or none."""
    runs = draw(st.lists(RUNS, max_size=5))
    text = clean(draw(BLANKS).join(runs))
    x, y = draw(st.integers(-50, 450)), draw(st.integers(-50, 350))
    width = draw(st.integers(0, 300))
    # A line that is higher than broad is turned before it is read: its glyphs go down.
    height = draw(st.integers(0, min(60, width)))
    letters = "".join(text.split())
    count = draw(st.sampled_from([len(letters), 0, max(0, len(letters) - 1)]))
    step = width / max(1, len(letters))
    glyphs = [
        (letter, 0.9, rectangle(int(x + place * step), y, int(x + (place + 1) * step), y + height))
        for place, letter in enumerate(letters[:count])
    ]
    return OcrLine(text, rectangle(x, y, x + width, y + height), glyph_quads(text, glyphs))


def around(quads: Sequence[Quad], width: int, height: int) -> tuple[float, float, float, float]:
    xs = [min(max(x / width, 0.0), 1.0) for quad in quads for x, _ in quad]
    ys = [min(max(y / height, 0.0), 1.0) for quad in quads for _, y in quad]
    return min(xs), min(ys), max(xs), max(ys)


@given(st.lists(glyphed_lines(), max_size=4))
@settings(deadline=None)
def test_the_text_is_made_of_the_words_in_their_order(lines: list[OcrLine]):
    assert spells_its_text(assemble(lines, 400, 300))


@given(glyphed_lines())
@settings(deadline=None)
def test_the_box_of_a_word_is_around_its_glyphs(seen: OcrLine):
    whole, glyphs = around([seen.quad], 400, 300), list(seen.glyphs)
    for word in assemble([seen], 400, 300).words:
        own, glyphs = glyphs[: len(word.text)], glyphs[len(word.text) :]
        if own:
            x0, y0, x1, y1 = around(own, 400, 300)
            assert word.box.as_tuple() == ((x0, y0, x1, y1) if x0 < x1 and y0 < y1 else whole)


def test_wide_set_capitals_are_cut_at_the_spaces_that_were_read(engine: OcrEngine):
    text = "WHILE DOMESTIC TRAVEL GROWS BY 12 MILLION TRIPS"
    picture = spaced_picture(text)
    seen = engine.read(np.asarray(picture))
    assert seen.text == text
    assert [word.text for word in seen.words] == text.split()
    inked = np.flatnonzero((np.asarray(picture.convert("L")) < 128).any(axis=0))
    drawn = np.split(inked, np.flatnonzero(np.diff(inked) > 25) + 1)
    assert len(drawn) == len(seen.words)
    for word, columns in zip(seen.words, drawn, strict=True):
        assert word.box.x0 * picture.width == pytest.approx(columns[0], abs=15), word
        assert word.box.x1 * picture.width == pytest.approx(columns[-1], abs=15), word


@pytest.mark.parametrize("size", [(6000, 40), (6000, 2), (40, 6000)])
def test_a_picture_that_is_thinner_than_the_detector_sees_is_no_error(engine: OcrEngine, size: tuple[int, int]) -> None:
    picture = Image.linear_gradient("L").resize(size).convert("RGB")
    assert engine.reading(np.asarray(picture)) == Reading(*size)


def test_each_line_of_a_long_picture_is_read_once(engine: OcrEngine) -> None:
    picture = Image.new("RGB", (1280, 5000), "white")
    draw = ImageDraw.Draw(picture)
    for number, y in enumerate(range(40, 4900, 130)):
        draw.text((40, y), f"Entry {number} costs {7 * number + 11} crowns", "black", ImageFont.load_default(16))
    seen = engine.read(np.asarray(picture))
    assert seen.text.splitlines() == [f"Entry {number} costs {7 * number + 11} crowns" for number in range(38)]
    last = seen.words[-1]
    assert 4850 < last.box.y0 * 5000 < last.box.y1 * 5000 < 4880


def test_words_of_a_broad_picture_are_read_once_and_whole(engine: OcrEngine) -> None:
    picture = Image.new("RGB", (6000, 300), "white")
    text = " ".join(f"pier {number} harbour" for number in range(14))
    ImageDraw.Draw(picture).text((30, 120), text, "black", ImageFont.load_default(40))
    assert engine.read(np.asarray(picture)).text == text


@pytest.mark.parametrize(
    ("size", "count"),
    [((2380, 1680), 1), ((1680, 2380), 1), ((6000, 60), 1), ((1280, 5000), 4), ((5000, 1280), 4)],
)
def test_only_long_pictures_of_several_lines_are_read_in_strips(size: tuple[int, int], count: int) -> None:
    strips = ocr.strips_of(np.zeros((size[1], size[0], 3), np.uint8))
    assert len(strips) == count
    assert strips[0][0] == 0 and strips[-1][1] == max(size)
    assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(strips))


def test_a_long_picture_keeps_its_pixels_and_a_page_is_scaled_down() -> None:
    assert ocr.ocr_pixels(1280, 16_000) > 1280 * 16_000
    assert ocr.ocr_pixels(5000, 7000) == ocr.OCR_PIXELS


@pytest.mark.parametrize(("begin", "end", "text"), [(0, 100, "one two"), (100, 400, "three"), (400, 500, None)])
def test_a_line_across_a_seam_is_parted_between_its_words(begin: int, end: int, text: str | None) -> None:
    part = ocr.part_of(line("one two three", 10, 40), 0, begin, end)
    assert (part.text if part else None) == text


def test_the_models_come_from_the_wheel_and_nothing_is_downloaded(monkeypatch):
    from rapidocr.utils.download_file import DownloadFile

    def refuse(*_: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr(DownloadFile, "run", refuse)
    engine = OcrEngine()
    assert engine.read(np.asarray(picture_of(["Margin 12.5 %"]))).text == "Margin 12.5 %"
    assert engine.read(np.full((200, 300, 3), 255, np.uint8)).text == ""


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_turned_picture_is_read_in_the_frame_that_its_reader_sees(turn: int) -> None:
    picture = Image.new("RGB", (620, 150), "white")
    font = ImageFont.load_default(34)
    draw = ImageDraw.Draw(picture)
    draw.text((30, 20), "The pilot fee was raised", "black", font)
    draw.text((30, 80), "to 790 crowns in June", "black", font)
    seen = OcrEngine().read(np.rot90(np.asarray(picture), -turn // 90))
    assert " ".join(seen.text.split()) == "The pilot fee was raised to 790 crowns in June"
    assert {word.turn for word in seen.words} == {turn}
    [first] = [word.box for word in seen.words if word.text == "The"]
    expected = {0: (0.05, 0.1), 90: (0.9, 0.05), 180: (0.95, 0.9), 270: (0.1, 0.95)}[turn]
    assert first.x0 - 0.2 < expected[0] < first.x1 + 0.2 and first.y0 - 0.2 < expected[1] < first.y1 + 0.2


@pytest.mark.parametrize("turn", [90, 270])
def test_short_figures_of_a_picture_on_its_side_are_all_read(engine: OcrEngine, turn: int) -> None:
    rows = (
        ("Depot", "Coal", "Coke", "Peat"),
        ("Hamar", "731", "212", "96"),
        ("Lier", "604", "188", "75"),
        ("Voss", "559", "143", "64"),
    )
    picture = Image.new("RGB", (1400, 900), "white")
    draw = ImageDraw.Draw(picture)
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            draw.text((110 + 300 * column, 150 + 90 * row), text, "black", ImageFont.load_default(46))
    seen = engine.read(np.rot90(np.asarray(picture), -turn // 90))
    assert sorted(word.text for word in seen.words) == sorted(text for row in rows for text in row)
    assert {word.turn for word in seen.words} == {turn}


@pytest.mark.parametrize("turn", [0, 90, 270])
@pytest.mark.parametrize(
    ("font", "lines"),
    [
        ("japan", ("市立図書館からの通知", "蔵書は八万六千冊です。", "館長は佐藤健一です。")),
        ("china-s", ("关于渡口的通知", "渡船的票价是三十五元。", "开船时间是早上七点。")),
    ],
)
def test_rows_of_chinese_and_japanese_on_their_side_are_read(
    engine: OcrEngine, font: str, lines: tuple[str, ...], turn: int
) -> None:
    page = pymupdf.open().new_page(width=500, height=350)
    for row, text in enumerate(lines):
        page.insert_text((55, 85 + 35 * row), text, fontname=font, fontsize=22)
    pixels = page.get_pixmap(dpi=144)
    picture = np.frombuffer(pixels.samples, np.uint8).reshape(pixels.height, pixels.width, 3)
    seen = engine.read(np.ascontiguousarray(np.rot90(picture, -turn // 90)))
    assert "".join(seen.text.split()) == "".join(lines)
    assert {word.turn for word in seen.words} == {turn}


def test_a_second_reading_that_has_fewer_letters_does_not_stand_for_the_first(
    engine: OcrEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [OcrLine("港の灯台は千九百十二年に", rectangle(x, 40, x + 40, 560)) for x in (300, 200, 100)]
    readings = iter([columns, [OcrLine("港", rectangle(10, 10, 50, 50), confidence=0.6)]])
    monkeypatch.setattr(engine, "_lines", lambda _: next(readings))
    seen = engine.reading(np.random.default_rng(1).integers(0, 255, (600, 400, 3), dtype=np.uint8))
    assert (list(seen.lines), seen.turn) == (columns, 90)


def test_a_stored_reading_gives_the_text_that_it_gave_before(engine: OcrEngine) -> None:
    reading = engine.reading(np.asarray(picture_of(["Invoice number 4711", "Total 93.50"])))
    assert "4711" in reading.ordered().text
    stored = Reading.from_bytes(reading.to_bytes())
    assert stored is not None
    assert stored.ordered() == reading.ordered()


@pytest.mark.parametrize("damage", [b"", b"no reading", zlib.compress(b"{}"), Reading(1, 1).to_bytes()[:-3]])
def test_what_is_no_reading_is_not_taken_for_one(damage: bytes) -> None:
    assert Reading.from_bytes(damage) is None


def test_a_picture_is_known_by_its_pixels_its_shape_and_what_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = np.zeros((4, 6, 3), np.uint8)
    other = picture.copy()
    other[3, 5, 2] = 1
    keys = [picture_key(pixels) for pixels in (picture, other, picture.reshape(6, 4, 3))]
    assert len({*keys}) == 3
    assert picture_key(picture.copy()) == keys[0]
    monkeypatch.setattr(ocr, "_engine_id", lambda: b"other models")
    assert picture_key(picture) != keys[0]


def test_a_picture_of_one_colour_is_read_without_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        pytest.fail("a model was loaded")

    monkeypatch.setattr(ocr, "_load_engine", fail)
    paper = np.full((300, 200, 3), 250, np.uint8)
    paper[::2] = 253
    assert OcrEngine().read(paper) == OcrText("", ())


def as_read(text: str, confidence: float, aspect: float) -> OcrLine:
    return OcrLine(text, rectangle(20, 20, 20 + 30 * aspect, 50), confidence=confidence)


# What PP-OCRv6 gave for lines of print at 200 dpi: the text, its confidence, and the length of the line in heights.
@pytest.mark.parametrize(
    ("text", "confidence", "aspect"),
    [
        (",       .", 0.9, 39.0),
        ("    48 700 ,   12 3  .", 0.85, 39.0),
        ("λιενι αρχ ααιννει τι η επιευ τυ βρειυ λυ λλρ τν ι.", 0.8, 34.0),  # noqa: RUF001 - as it was read
        ("48,700 012,300 .", 0.9, 20.0),
        ("    .", 0.57, 27.0),
        (" 48,700 ,12,300a", 0.9, 15.0),
        ("NsingalnnanvinanaaaauauavaA", 0.38, 16.0),
        (",YGEREASURE", 0.83, 17.6),
    ],
)
def test_a_line_of_a_script_that_ocr_does_not_know_is_not_read(text: str, confidence: float, aspect: float) -> None:
    strange, latin = as_read(text, confidence, aspect), as_read("The keeper has lived here for years.", 0.99, 16.0)
    alone = Reading(1600, 100, 0, (strange,)).ordered()
    assert alone.text == ""
    assert "could not be read" in alone.notices[0]
    lower = OcrLine(latin.text, rectangle(20, 60, 500, 90), confidence=0.99)
    beside = Reading(1600, 100, 0, (strange, lower, OcrLine(latin.text, rectangle(520, 60, 1500, 90)))).ordered()
    assert set(beside.text.split()) == set(latin.text.split())
    assert beside.notices == ("1 lines in it could not be read (OCR knows Latin, Chinese and Japanese letters)",)


@pytest.mark.parametrize(
    ("text", "confidence", "aspect"),
    [
        ("M E N U O F T H E", 0.95, 14.0),
        ("2018   2019   2020   2021", 0.97, 22.0),
        ("新鲜甘草黄酮养分", 0.95, 8.4),
        ("Φ(z) = 0.975 for z > 1.96", 0.93, 12.0),
        ("5", 0.9, 0.7),
    ],
)
def test_print_that_is_set_wide_figures_and_formulas_are_read(text: str, confidence: float, aspect: float) -> None:
    seen = Reading(1600, 100, 0, (as_read(text, confidence, aspect),)).ordered()
    assert (seen.text.split(), seen.notices) == (text.split(), ())


def test_a_stain_that_looks_like_a_letter_is_no_line() -> None:
    lines = (as_read("Total 93.50", 0.99, 5.0), OcrLine("X", rectangle(900, 20, 930, 50), confidence=0.3))
    seen = Reading(1600, 100, 0, lines).ordered()
    assert (seen.text, seen.notices) == ("Total 93.50", ())
