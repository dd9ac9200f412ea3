import re
from dataclasses import replace

import numpy as np
import pymupdf
import pytest
from PIL import Image

from tests.support.documents import decoded, image_bytes, ink_box, open_png, picture_of, scanned_pdf, text_pdf
from tests.support.hostile_files import pdf_of, stream_of
from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.model import DecodeError, OutlineEntry, WorkItem
from vrag_ray.corpus.passages import passages_of
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.types import Box, DocumentKind, Locator

PDF = DocumentKind.PDF
LOTS = 10_000_000


def item(start: int, stop: int, name: str = "report.pdf") -> WorkItem:
    return WorkItem("doc", PDF, start, stop, name)


def test_pages_come_back_in_order_with_text_title_and_outline(sandbox, put, options):
    path = put("report.pdf", text_pdf([f"Page number {n}" for n in range(5)], title="Annual report"))
    probe = sandbox.probe(path, "report.pdf")
    assert (probe.kind, probe.units, probe.title) == (PDF, 5, "Annual report")
    assert probe.outline[4] == OutlineEntry(1, "Part 5", 5)
    units = decoded(sandbox, path, item(1, 4), options)
    assert [(unit.unit, unit.locator.page, unit.text.strip()) for unit in units] == [
        (n, n + 1, f"Page number {n}") for n in (1, 2, 3)
    ]
    assert not any(unit.ocr or unit.words or unit.error for unit in units)


def test_a_pdf_is_recognised_by_content_even_without_a_suffix(sandbox, put):
    assert sandbox.probe(put("x", text_pdf(["Hi"])), "scan-of_monday").title == "scan of monday"


def test_a_page_without_stated_title_is_titled_by_its_largest_type(sandbox, put):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((50, 50), "small print", fontsize=8)
    page.insert_text((50, 90), "Grand Title", fontsize=30)
    document.set_metadata({"title": "Microsoft Word - draft3.doc"})
    assert sandbox.probe(put("x", document.tobytes()), "x.pdf").title == "Grand Title"


def test_a_title_has_the_accented_letters_that_old_fonts_of_tex_draw_in_two(sandbox, put):
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 300), "The harbour was built in 1911, and the keeper writes its log.", fontsize=10)
    page.insert_text((72, 100), "x", fontname="tiro")
    title = b"BT /tiro 24 Tf 72 700 Td [(Die Br) 28 (\xa8) 416 (ucke von K) -83 (\xa8) 416 (oln)] TJ ET"
    document.update_stream(page.get_contents()[-1], title)
    assert sandbox.probe(put("bridge.pdf", document.tobytes()), "bridge.pdf").title == "Die Brücke von Köln"


def test_a_title_with_a_shadow_is_read_once_and_what_reportlab_states_for_nothing_is_left_out(sandbox, put):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((51.5, 91.5), "Grand Title", fontsize=30, color=(0.7, 0.7, 0.7))
    page.insert_text((50, 90), "Grand Title", fontsize=30)
    page.insert_text((50, 150), "The boats went out on each day of the week.", fontsize=11)
    document.set_metadata({"title": "(anonymous)", "author": "(anonymous)", "subject": "unspecified"})
    probe = sandbox.probe(put("x", document.tobytes()), "x.pdf")
    assert (probe.title, dict(probe.meta)) == ("Grand Title", {})


def test_a_title_that_is_set_letter_by_letter_has_words(sandbox, put):
    import pymupdf

    for line, title in (("H A R B O U R   R E P O R T", "HARBOUR REPORT"), ("Ranks A B C D E", "Ranks A B C D E")):
        document = pymupdf.open()
        page = document.new_page()
        page.insert_text((50, 60), line, fontsize=24)
        for row in range(8):
            page.insert_text((50, 100 + 14 * row), "The boats went out on each day of the week.", fontsize=11)
        assert sandbox.probe(put("a.pdf", document.tobytes()), "a.pdf").title == title


def test_a_title_in_a_language_whose_small_words_are_not_known_is_one(sandbox, put):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((50, 60), "Hanes y goleudy", fontsize=30)
    for row in range(12):
        page.insert_text((50, 100 + 14 * row), "Mae ceidwad goleudy byw ynys hon ers deng mlynedd hugain", fontsize=11)
    assert sandbox.probe(put("x", document.tobytes()), "x.pdf").title == "Hanes y goleudy"


def test_what_is_filled_into_a_form_is_no_title(sandbox, put):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), "Request for a berth", fontsize=16)
    page.insert_text((72, 150), "Name of the boat:")
    field = pymupdf.Widget()
    field.field_type, field.field_name, field.field_value = pymupdf.PDF_WIDGET_TYPE_TEXT, "boat", "Havfrue Nine"
    field.rect, field.text_fontsize = pymupdf.Rect(200, 130, 500, 170), 30
    page.add_widget(field)
    page.add_freetext_annot(pymupdf.Rect(72, 300, 500, 350), "Checked twice", fontsize=32)
    assert sandbox.probe(put("x", document.tobytes()), "x.pdf").title == "Request for a berth"


@pytest.mark.parametrize(
    ("heading", "label", "title"),
    [
        ("Request for a berth", "Name of the boat:", "Request for a berth"),
        ("Request for a berth", "Name of the boat", "Havfrue Nine"),
        ("", "Report:", "Havfrue Nine"),
    ],
)
def test_a_large_line_behind_a_label_is_a_title_only_where_no_other_is(sandbox, put, heading, label, title):
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), heading, fontsize=16)
    page.insert_text((72, 150), label, fontsize=11)
    page.insert_text((250, 150), "Havfrue Nine", fontsize=24)
    for row in range(4):
        page.insert_text((72, 200 + 14 * row), "The boats go out on each day of the week.", fontsize=11)
    assert sandbox.probe(put("x", document.tobytes()), "x.pdf").title == title


def test_a_note_of_a_reader_is_read_with_its_author(sandbox, put, options):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 100), "The rail is 1.15 m high.")
    note = page.add_text_annot((400, 90), "The rail is too low.")
    note.set_info(title="Ida Berg")
    note.update()
    hidden = page.add_text_annot((400, 190), "Nobody sees this.")
    hidden.set_flags(pymupdf.PDF_ANNOT_IS_HIDDEN)
    path = put("x", document.tobytes())
    [unit] = decoded(sandbox, path, item(0, 1), options)
    assert unit.text == "The rail is 1.15 m high.\nNotes: Ida Berg: The rail is too low."


def test_a_stamp_along_the_margin_is_no_title_and_the_next_largest_line_is(sandbox, put):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((30, 600), "arXiv:2401.00017v1 [cs.IR] 5 Jan 2024", fontsize=20, rotate=90)
    page.insert_text((100, 80), "Page 1 of 12", fontsize=18)
    page.insert_text((100, 120), "Finding Ferries", fontsize=15)
    page.insert_text((100, 160), "We find ferries by their timetables.\nThey leave at nine.", fontsize=9)
    assert sandbox.probe(put("x", document.tobytes()), "x.pdf").title == "Finding Ferries"


@pytest.mark.parametrize("look", [{"render_mode": 3}, {"color": (1, 1, 1)}, {"fill_opacity": 0}])
def test_a_line_that_is_not_seen_is_no_title_and_white_type_on_a_dark_bar_is(sandbox, put, look):
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((60, 60), "Praise the author", fontsize=24, **look)
    page.insert_text((60, 160), "The silt was measured by Ada Lund in nine basins.", fontsize=11)
    assert sandbox.probe(put("x", document.tobytes()), "x.pdf").title == "x"
    page.draw_rect((50, 90, 500, 130), fill=(0, 0, 0.4))
    page.insert_text((60, 120), "Silt of the basins", fontsize=18, color=(1, 1, 1))
    assert sandbox.probe(put("x", document.tobytes()), "x.pdf").title == "Silt of the basins"


def test_pages_are_called_what_the_document_calls_them_and_stand_in_its_sections(sandbox, put, options):
    import pymupdf

    document = pymupdf.open()
    for number in range(5):
        document.new_page().insert_text((72, 72), f"words of page {number}")
    document.set_toc([[1, "Preface", 1], [1, "Tides", 3], [2, "Neap", 3], [2, "Spring", 5], [1, "Index", 5]])
    document.set_page_labels(
        [
            {"startpage": 0, "prefix": "", "style": "r", "firstpagenum": 1},
            {"startpage": 2, "prefix": "", "style": "D", "firstpagenum": 3},
            {"startpage": 4, "prefix": "A-", "style": "D", "firstpagenum": 1},
        ]
    )
    units = decoded(sandbox, put("x", document.tobytes()), item(0, 5), options)
    assert [(unit.meta.get("page_label"), unit.meta.get("page_count")) for unit in units] == [
        ("i", 5),
        ("ii", 5),
        (None, None),
        (None, None),
        ("A-1", 5),
    ]
    assert [unit.meta["section"] for unit in units] == [
        "Preface",
        "Preface",
        "Tides > Neap",
        "Tides > Neap",
        "Tides > Spring",
    ]


def test_hyphens_at_line_ends_are_joined_and_ligatures_come_apart(sandbox, put, options):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    writer = pymupdf.TextWriter(page.rect)
    writer.append((50, 80), "the e\ufb03cient work\ufb02ow needs a docu-", font=pymupdf.Font("cjk"))
    writer.append((50, 94), "ment store", font=pymupdf.Font("cjk"))
    writer.write_text(page)
    (unit,) = decoded(sandbox, put("x", document.tobytes()), item(0, 1), options)
    assert " ".join(unit.text.split()) == "the efficient workflow needs a document store"


@pytest.mark.parametrize("crop", [False, True])
@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_word_boxes_cover_the_ink_of_the_upright_page(sandbox, put, options, rotation, crop):
    path = put("r.pdf", text_pdf(["Turnaround"], rotation=rotation, crop=crop))
    page = sandbox.page_text(path, PDF, Locator(page=1), options)
    (word,) = page.words
    assert word.text == page.text.strip() == "Turnaround"
    image = open_png(sandbox.render(path, PDF, Locator(page=1), dpi=72, box=None, max_pixels=LOTS))
    assert image.size == (round(page.width), round(page.height))
    x0, y0, x1, y1 = ink_box(image)
    assert word.box.x0 * image.width - 1 <= x0 < x1 <= word.box.x1 * image.width + 1
    assert word.box.y0 * image.height - 1 <= y0 < y1 <= word.box.y1 * image.height + 1
    crop_image = open_png(sandbox.render(path, PDF, Locator(page=1), dpi=72, box=word.box, max_pixels=LOTS))
    ink = np.asarray(crop_image.convert("L")) < 128
    whole_ink = np.asarray(image.convert("L")) < 128
    assert ink.sum() == pytest.approx(whole_ink.sum(), rel=0.2)


@pytest.mark.parametrize("rotation", [0, 90])
def test_the_box_of_each_window_covers_the_ink_of_its_own_lines(sandbox, put, options, rotation):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page(width=612, height=792)
    for number in range(30):
        page.insert_text((72, 60 + 20 * number), f"Line {number} of the page holds docu-" * (number < 29) or "end")
    page.set_rotation(rotation)
    path = put("r.pdf", document.tobytes())
    (unit,) = decoded(sandbox, path, item(0, 1), options)
    first, second = passages_of("d" * 64, unit, CorpusConfig(window_words=120), {})
    image = open_png(sandbox.render(path, PDF, Locator(page=1), dpi=72, box=None, max_pixels=LOTS))
    ink = ink_box(image)
    whole = first.box.union(second.box)
    edges = (whole.x0 * image.width, whole.y0 * image.height, whole.x1 * image.width, whole.y1 * image.height)
    assert edges[0] - 1 <= ink[0] and edges[1] - 1 <= ink[1] and ink[2] <= edges[2] + 1 and ink[3] <= edges[3] + 1
    along = "y" if rotation == 0 else "x"
    first_end, second_start = (first.box.y1, second.box.y0) if along == "y" else (first.box.x0, second.box.x1)
    assert abs(first_end - second_start) * 792 < 25


def test_a_crop_is_drawn_from_the_vectors_and_shows_what_enlarging_cannot(sandbox, put):
    import pymupdf

    document = pymupdf.open()
    page = document.new_page(width=600, height=800)
    for line in range(60):
        page.draw_line((100 + line * 0.5, 100), (100 + line * 0.5, 130), width=0.2)
    path = put("fine.pdf", document.tobytes())
    box = Box(100 / 600, 100 / 800, 130 / 600, 130 / 800)
    crop = open_png(sandbox.render(path, PDF, Locator(page=1), dpi=1440, box=box, max_pixels=LOTS)).convert("L")
    whole = open_png(sandbox.render(path, PDF, Locator(page=1), dpi=72, box=None, max_pixels=LOTS)).convert("L")
    enlarged = whole.crop((100, 100, 130, 130)).resize(crop.size)
    real, blown_up = (np.asarray(image, dtype=float)[crop.height // 2] for image in (crop, enlarged))
    assert np.sum(np.abs(np.diff(real)) > 100) >= 2 * 55
    assert np.sum(np.abs(np.diff(blown_up)) > 100) == 0


def test_a_rendering_never_has_more_pixels_than_allowed(sandbox, put):
    path = put("r.pdf", text_pdf(["Hello"]))
    for limit in (1_000, 54_321, 1_000_000):
        image = open_png(sandbox.render(path, PDF, Locator(page=1), dpi=1200, box=None, max_pixels=limit))
        assert 0.9 * limit <= image.width * image.height <= limit


def test_a_scanned_page_is_read_by_ocr_with_a_box_for_each_word(sandbox, put, options, no_ocr):
    path = put("scan.pdf", scanned_pdf(["Invoice number 4711", "Total amount due 93.50"]))
    (unit,) = decoded(sandbox, path, item(0, 1, "scan.pdf"), options)
    assert unit.ocr
    assert unit.text.splitlines() == ["Invoice number 4711", "Total amount due 93.50"]
    assert [word.text for word in unit.words] == unit.text.split()
    total = next(word.box for word in unit.words if word.text == "93.50")
    first = unit.words[0].box
    assert first.y1 < total.y0
    assert first.x0 < total.x0
    assert sandbox.page_text(path, PDF, Locator(page=1), options).words == unit.words
    (unread,) = decoded(sandbox, path, item(0, 1, "scan.pdf"), no_ocr)
    assert (unread.text, unread.ocr, unread.words) == ("", False, ())


@pytest.mark.parametrize("kind", ["DCTDecode", "JBIG2Decode", "JPXDecode", "UnknownDecode"])
@pytest.mark.parametrize("label", ["", "Plate of the harbour master"])
def test_a_picture_that_cannot_be_decoded_is_no_text_and_not_blank(sandbox, put, options, kind, label):
    document = pymupdf.open()
    page = document.new_page()
    if label:
        page.insert_text((72, 700), label)
    plate = image_bytes(picture_of(["Plate"]), "PNG")
    picture = page.insert_image(pymupdf.Rect(0, 0, 595, 600), stream=plate, keep_proportion=False)
    document.xref_set_key(picture, "Filter", "null")
    document.update_stream(picture, b"no picture at all " * 9, compress=False)
    document.xref_set_key(picture, "Filter", f"/{kind}")
    (unit,) = decoded(sandbox, put("plate.pdf", document.tobytes()), item(0, 1), options)
    if label:
        assert unit.text == label and not unit.error
        # Nothing states how much of the page it fills.
        assert kind == "JPXDecode" or unit.notices[0].startswith("a picture on it cannot be decoded")
    else:
        assert unit.text == "" and "cannot be decoded" in unit.error


def test_a_blank_page_is_empty_and_costs_no_ocr(sandbox, put, options):
    (unit,) = decoded(sandbox, put("b.pdf", text_pdf([""])), item(0, 1), options)
    assert (unit.text, unit.ocr, unit.error) == ("", False, "")


def test_a_page_that_is_not_there_is_an_error(sandbox, put, options):
    path = put("r.pdf", text_pdf(["Hello"]))
    with pytest.raises(DecodeError, match="has 1 pages and no page 2"):
        sandbox.render(path, PDF, Locator(page=2), dpi=72, box=None, max_pixels=LOTS)
    (unit,) = decoded(sandbox, path, item(1, 2), options)
    assert unit.error.startswith("report.pdf: page 2 is damaged")


def test_a_damaged_page_is_an_error_of_its_own_and_the_others_go_on(sandbox, put, options):
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 6 0 R/Resources<</Font<</F 7 0 R>>>>>>"
    data = pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R]/Count 3>>",
            page,
            b"42",
            page,
            stream_of(b"BT /F 12 Tf 20 100 Td (still readable) Tj ET"),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        ]
    )
    units = decoded(sandbox, put("d.pdf", data), item(0, 3), options)
    assert [unit.text.strip() for unit in units] == ["still readable", "", "still readable"]
    assert [unit.locator.page for unit in units] == [1, 2, 3]
    assert units[1].error.startswith("report.pdf: page 2 is damaged")
    assert (units[0].error, units[2].error) == ("", "")


def tree_of(tree: bytes, *others: bytes, pages: bytes = b"2 0 R") -> bytes:
    """A PDF of one page that inherits its size; its page tree is ``tree``, object 2; ``others`` follow object 5."""
    return pdf_of(
        [
            b"<</Type/Catalog/Pages %s>>" % pages,
            tree,
            b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
            stream_of(b"BT /F 12 Tf 20 100 Td (still readable) Tj ET"),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            *others,
        ]
    )


SIZE = b"/MediaBox[0 0 200 200]"
AGAIN = b"<</Type/Pages/Parent 2 0 R/Count 9/Kids[7 0 R]>>", b"<</Type/Page/Contents 4 0 R/Parent 6 0 R>>"


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (tree_of(b"<</Type/Pages%s/Kids[3 0 R]/Count 17>>" % SIZE), ["still readable"]),
        (tree_of(b"<</Type/Pages%s/Kids[3 0 R]/Count 3>>" % SIZE), ["still readable"]),
        (tree_of(b"<</Type/Pages%s/Kids[3 0 R]/Count 0>>" % SIZE), ["still readable"]),
        (tree_of(b"<</Type/Pages%s/Kids[3 0 R]>>" % SIZE), ["still readable"]),
        (tree_of(b"<</Type/Pages%s/Kids 3 0 R/Count 1>>" % SIZE), ["still readable"]),
        (tree_of(b"<</Type/Pages%s/Kids[3 0 R 6 0 R 2 0 R]/Count 1>>" % SIZE, *AGAIN), ["still readable"] * 2),
        (tree_of(b"<</Type/Pages%s/Kids[null 3 0 R 99 0 R]/Count 3>>" % SIZE), ["", "still readable", ""]),
        (
            tree_of(b"<</Type/Pages%s/Kids[3 0 R]/Count 1>>" % SIZE).replace(b"xref\n0 6", b"xref\n1 6"),
            ["still readable"],
        ),
    ],
    ids=["many more", "more", "none", "not stated", "no array", "fewer, and a loop", "null", "table from 1"],
)
def test_the_pages_of_a_wrong_page_tree_are_read(sandbox, put, options, data, texts):
    path = put("d.pdf", data)
    assert sandbox.probe(path, "d.pdf").units == len(texts)
    assert list(sandbox.attachments(path, "d.pdf", options)) == []
    units = decoded(sandbox, path, item(0, len(texts)), options)
    assert [unit.text.strip() for unit in units] == texts


@pytest.mark.parametrize(("rendering", "count"), [(b"/NeedsRendering true", 1), (b"", 0)])
def test_a_form_whose_pages_are_made_of_its_data_has_a_notice(sandbox, put, rendering, count):
    data = tree_of(b"<</Type/Pages%s/Kids[3 0 R]/Count 1>>" % SIZE, stream_of(b"<xdp/>"))
    data = data.replace(b"/Type/Catalog", b"/Type/Catalog/AcroForm<</Fields[]/XFA 6 0 R>>%s" % rendering)
    notices = sandbox.probe(put("d.pdf", data), "d.pdf").notices
    assert sum("XFA" in notice for notice in notices) == count


@pytest.mark.parametrize(
    ("layers", "policy", "texts"),
    [
        (b"/BaseState/OFF/ON[6 0 R]", b"/AllOn", ""),
        (b"/OFF[7 0 R]", b"/AllOn", ""),
        (b"", b"/AllOn", "of both layers"),
        (b"/OFF[7 0 R]", b"/AnyOn", "of both layers"),
    ],
)
def test_what_needs_all_of_several_layers_is_read_where_all_are_shown(sandbox, put, options, layers, policy, texts):
    both = b"<</Type/OCMD/OCGs[6 0 R 7 0 R]/P%s>>" % policy
    data = pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R/OCProperties<</OCGs[6 0 R 7 0 R]/D<<%s>>>>>>" % layers,
            b"<</Type/Pages%s/Kids[3 0 R]/Count 1>>" % SIZE,
            b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/Properties<</M 8 0 R>>>>>>",
            stream_of(b"/OC /M BDC BT /F 12 Tf 20 100 Td (of both layers) Tj ET EMC"),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Type/OCG/Name(Walls)>>",
            b"<</Type/OCG/Name(Pipes)>>",
            both,
        ]
    )
    (unit,) = decoded(sandbox, put("d.pdf", data), item(0, 1), options)
    assert unit.text.strip() == texts


def test_a_pdf_for_the_holder_of_a_certificate_is_not_called_damaged(sandbox, put):
    lock = b"/Encrypt<</Filter/Adobe.PubSec/SubFilter/adbe.pkcs7.s5/V 4>>/ID[<00><00>]>>\nstartxref"
    data = tree_of(b"<</Type/Pages%s/Kids[3 0 R]/Count 1>>" % SIZE).replace(b">>\nstartxref", lock)
    with pytest.raises(DecodeError, match="encrypted for the holders of a certificate"):
        sandbox.probe(put("d.pdf", data), "d.pdf")


def test_text_of_a_page_is_cut_at_the_limit_and_says_so(put, options):
    path = put("long.pdf", text_pdf(["a rather long line of text"]))
    with Sandbox(DecodeLimits(max_text_chars_per_page=10)) as small:
        (unit,) = decoded(small, path, item(0, 1), options)
    assert unit.text == "a rather l"
    assert [notice.partition(" of its")[0] for notice in unit.notices] == ["only the first 10 characters"]


def test_more_pages_than_allowed_are_refused_with_the_setting_to_change(put):
    path = put("long.pdf", text_pdf(["x"] * 4))
    with Sandbox(DecodeLimits(max_pages=3)) as small, pytest.raises(DecodeError, match=r"corpus\.limits\.max_pages"):
        small.probe(path, "long.pdf")


def test_equal_bytes_and_options_give_equal_units(sandbox, put, options):
    path = put("r.pdf", text_pdf(["Same again"]))
    assert decoded(sandbox, path, item(0, 1), options) == decoded(
        sandbox, path, item(0, 1), replace(options, ocr=False)
    )


def test_the_pages_that_ocr_is_going_to_read_are_counted_before(put, sandbox, options, no_ocr) -> None:
    scan = scanned_pdf(["Invoice number 4711"])
    document = pymupdf.open(stream=scan, filetype="pdf")
    for text in ("a page of text", "another", ""):
        document.new_page().insert_text((72, 72), text)
    document.new_page()
    stamped = document.new_page()
    noise = np.random.default_rng(1).integers(0, 255, (1000, 800, 3), np.uint8)
    stamped.insert_image(stamped.rect, stream=image_bytes(Image.fromarray(noise), "PNG"))
    stamped.insert_text((72, 72), "EXHIBIT 12")
    path = put("mixed.pdf", document.tobytes())
    assert sandbox.probe(path, "mixed.pdf", options).scans == 2
    assert sandbox.probe(path, "mixed.pdf", no_ocr).scans == 0
    picture = put("photo.png", image_bytes(picture_of(["Harbour"]), "PNG"))
    assert sandbox.probe(picture, "photo.png", options).scans == 1


def test_files_that_belong_to_the_document_or_to_a_page_are_attachments_once(sandbox, put):
    document = pymupdf.open()
    page = document.new_page()

    def specification(name: str, data: bytes) -> int:
        stream, file = document.get_new_xref(), document.get_new_xref()
        document.update_object(stream, "<<>>")
        document.update_stream(stream, data)
        document.update_object(file, f"<</Type/Filespec/F({name})/EF<</F {stream} 0 R>>>>")
        return file

    of_document, of_page = specification("tariff.txt", b"Herring"), specification("sub/lamp.txt", b"Lamp")
    document.xref_set_key(document.pdf_catalog(), "AF", f"[{of_document} 0 R]")
    listed = document.get_new_xref()
    document.update_object(listed, f"[{of_page} 0 R {of_document} 0 R]")
    document.xref_set_key(page.xref, "AF", f"{listed} 0 R")
    document.embfile_add("tariff", b"Herring", filename="tariff.txt")
    path = put("a.pdf", document.tobytes())
    assert sandbox.probe(path, "a.pdf").meta["attachments"] == 2
    assert list(sandbox.attachments(path, "a.pdf")) == [("tariff.txt", b"Herring"), ("lamp.txt", b"Lamp")]


def _pdf_with(objects: list[str], catalog: dict[str, str], pages: int = 1) -> bytes:
    """A PDF with further ``objects`` and keys of the catalog, in which #0 refers to the first of them. Each that ends
    with "stream" holds "Herring"."""
    document = pymupdf.open()
    for number in range(pages):
        document.new_page().insert_text((72, 72), f"words of page {number}")
    first = document.xref_length()

    def numbered(text: str) -> str:
        return re.sub(r"#(\d)", lambda match: f"{first + int(match[1])} 0 R", text)

    for text in objects:
        xref = document.get_new_xref()
        document.update_object(xref, numbered(text).removesuffix("stream"))
        if text.endswith("stream"):
            document.update_stream(xref, b"Herring", new=True)
    for key, value in catalog.items():
        document.xref_set_key(document.pdf_catalog(), key, numbered(value))
    return bytes(document.tobytes())


def test_files_of_a_name_tree_with_kids_are_attachments_and_a_loop_in_it_ends(sandbox, put):
    objects = [
        "<<>>stream",
        "<</Names[(a)<</F(a.txt)/EF<</F #0>>>>]>>",
        "<</Kids[#1 #3 #2]>>",
        "<</Names[(b)<</F(b.txt)/EF<</F #0>>>>(c)]>>",
    ]
    path = put("x", _pdf_with(objects, {"Names": "<</EmbeddedFiles<</Kids[#2]>>>>"}))
    assert list(sandbox.attachments(path, "a.pdf")) == [("a.txt", b"Herring"), ("b.txt", b"Herring")]


_FILM = "<</Type/Filespec/F(tide.txt)/EF<</F #0>>>>"
_RENDITION = f"<</S/MR/C<</S/MCD/D {_FILM}>>>>"


@pytest.mark.parametrize(
    "note",
    [
        f"/Subtype/RichMedia/RichMediaContent<</Assets<</Names[(tide.txt){_FILM}]>>>>",
        f"/Subtype/Screen/A<</S/Rendition/OP 0/R {_RENDITION}>>",
        f"/Subtype/Screen/AA<</PO<</S/Rendition/OP 0/R<</S/SR/R[{_RENDITION}]>>>>>>",
        f"/Subtype/Widget/FT/Btn/T(play)/A<</S/Rendition/OP 0/R {_RENDITION}>>",
        f"/Subtype/Movie/Movie<</F {_FILM}>>",
    ],
    ids=["rich media", "screen", "screen that opens", "button", "movie"],
)
def test_films_on_the_pages_of_a_pdf_are_attachments(sandbox, put, note):
    document = pymupdf.open(stream=_pdf_with(["<<>>stream"], {}), filetype="pdf")
    annotation = document.get_new_xref()
    numbered = note.replace("#0", f"{annotation - 1} 0 R")
    document.update_object(annotation, f"<</Type/Annot/Rect[99 99 300 200]{numbered}>>")
    document.xref_set_key(document[0].xref, "Annots", f"[{annotation} 0 R]")
    path = put("x", document.tobytes())
    assert list(sandbox.attachments(path, "a.pdf")) == [("tide.txt", b"Herring")]


def test_a_film_beside_a_pdf_is_named_and_one_for_scripts_is_an_attachment(sandbox, put):
    document = pymupdf.open(
        stream=_pdf_with(["<<>>stream", _RENDITION], {"Names": "<</Renditions<</Names[(r)#1]>>>>"}), filetype="pdf"
    )
    annotation = document.get_new_xref()
    document.update_object(annotation, "<</Type/Annot/Rect[99 99 300 200]/Subtype/Movie/Movie<</F(films/tide.mp4)>>>>")
    document.xref_set_key(document[0].xref, "Annots", f"[{annotation} 0 R]")
    path = put("x", document.tobytes())
    probe = sandbox.probe(path, "a.pdf")
    assert probe.meta["attachments"] == 1
    assert probe.notices == ("attachments left out: tide.mp4 (empty, or no file)",)


@pytest.mark.parametrize("key", ["UF", "DOS", "Mac", "Unix"])
@pytest.mark.parametrize(
    "catalog", [{"Names": "<</EmbeddedFiles<</Names[(x)#1]>>>>"}, {"AF": "[#1]"}, {"AF": "#1"}], ids=str
)
def test_a_file_of_another_platform_is_an_attachment(sandbox, put, key, catalog):
    objects = ["<<>>stream", f"<</Type/Filespec/{key}(tariff.txt)/EF<</{key} #0>>>>"]
    path = put("x", _pdf_with(objects, catalog))
    assert list(sandbox.attachments(path, "a.pdf")) == [("tariff.txt", b"Herring")]


@pytest.mark.parametrize(
    "name",
    [
        "<FEFF004B00F60072002E007400780074>",
        "<EFBBBF4BC3B6722E747874>",
        r"(K\366r.txt)",
        "<FFFE4B00F60072002E00740078007400>",
    ],
)
def test_the_name_of_an_attachment_is_read_in_the_encoding_that_it_is_in(sandbox, put, name):
    objects = ["<<>>stream", f"<</Type/Filespec/F(x)/UF{name}/EF<</F #0>>>>"]
    path = put("x", _pdf_with(objects, {"Names": "<</EmbeddedFiles<</Names[(x)#1]>>>>"}))
    assert list(sandbox.attachments(path, "a.pdf")) == [("K\u00f6r.txt", b"Herring")]


def test_the_name_of_a_file_in_a_note_may_have_any_letters(sandbox, put):
    document = pymupdf.open()
    document.new_page().add_file_annot((50, 50), b"Herring", "x.txt", ufilename="b\u00e4d \u6d74.txt")
    path = put("x", document.tobytes())
    assert list(sandbox.attachments(path, "a.pdf")) == [("b\u00e4d \u6d74.txt", b"Herring")]


@pytest.mark.parametrize(
    ("prefix", "label"),
    [
        ("<FEFF0056006F006C002D>", "Vol-2"),
        (r"(\304nh )", "\u00c4nh 2"),
        (r"(\(s\) )", "(s) 2"),
        ("(A/S )", "A/S 2"),
        ("(C:\\\\)", "C:\\2"),
        ("#0", "Band 2"),
    ],
)
def test_a_page_label_is_text_whatever_its_prefix(sandbox, put, options, prefix, label):
    path = put("x", _pdf_with(["(Band )"], {"PageLabels": f"<</Kids[<</Nums[0<</P {prefix}/S/D>>]>>]>>"}, pages=2))
    units = decoded(sandbox, path, item(1, 2), options)
    assert [unit.meta["page_label"] for unit in units] == [label]


def test_page_labels_of_a_deep_tree_are_read_and_each_range_begins_where_it_says(sandbox, put, options):
    tree = "<</Kids[<</Kids[<</Nums[0<</S/r>>1<</S/A/St 27>>]>><</Nums[2<</P(Cover)>>]>>]>>]>>"
    units = decoded(sandbox, put("x", _pdf_with([], {"PageLabels": tree}, pages=4)), item(0, 4), options)
    assert [unit.meta["page_label"] for unit in units] == ["i", "AA", "Cover", "Cover"]


def test_page_labels_in_letters_repeat_their_letter_after_z(sandbox, put, options):
    path = put("x", _pdf_with([], {"PageLabels": "<</Nums[0<</S/a>>27<</P(A-)/S/A/St 53>>]>>"}, pages=29))
    labels = [unit.meta["page_label"] for unit in decoded(sandbox, path, item(0, 29), options)]
    assert labels[24:] == ["y", "z", "aa", "A-AAA", "A-BBB"]


@pytest.mark.parametrize("encoding", ["/WinAnsiEncoding", "null", "<</Differences[52/a20 56/a24]>>"])
def test_ticks_of_zapf_dingbats_are_no_figures(tmp_path, sandbox, options, encoding):
    drawn = pymupdf.open()
    page = drawn.new_page()
    for y, lodge, ticks in ((100, "Elgli", "48"), (120, "Tyri", "84")):
        page.insert_text((60, y), lodge)
        for x, tick in zip((160, 260), ticks, strict=True):
            page.insert_text((x, y), tick, fontname="zadb")
    page.insert_text((60, 160), "8 boats, 4")
    page.insert_text((60 + pymupdf.get_text_length("8 boats, 4"), 160), "3", fontname="zadb")
    [font] = [xref for xref, _, _, name, *_ in page.get_fonts() if name == "ZapfDingbats"]
    drawn.xref_set_key(font, "Encoding", encoding)
    path = tmp_path / "ticks.pdf"
    drawn.save(path)
    [unit] = decoded(sandbox, path, item(0, 1), options)
    assert unit.text.split() == ["Elgli", "✔", "✘", "Tyri", "✘", "✔", "8", "boats,", "4✓"]
