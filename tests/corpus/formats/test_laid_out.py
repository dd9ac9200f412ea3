import re
from xml.etree import ElementTree

import pytest

from tests.support.documents import decoded, image_bytes, open_png, picture_of
from tests.support.office import archive, compound, docx, docx_of, pptx, xlsx
from vrag_ray.corpus.formats.office.workbook import sheet_page, strings_of, styles_of
from vrag_ray.corpus.model import DecodeError, WorkItem
from vrag_ray.types import DocumentKind, Locator

PDF = DocumentKind.PDF


def units(sandbox, path, name, options, stop):
    return decoded(sandbox, path, WorkItem("d", PDF, 0, stop, name), options)


def test_a_text_document_has_pages_with_words_that_can_be_drawn_and_says_that_they_are_not_its_own(
    sandbox, put, no_ocr
):
    path = put("report.docx", docx("The pier is nine metres wide.", "It was built in 1911."))
    probe = sandbox.probe(path, "report.docx")
    assert (probe.kind, probe.units, probe.title) == (PDF, 1, "report")
    assert probe.meta == {"format": "DOCX", "reflowed": True}
    assert probe.notices == ("reflowed: its pages are laid out anew, not as a program for DOCX shows them",)
    (unit,) = units(sandbox, path, "report.docx", no_ocr, 1)
    assert unit.text.split() == ["The", "pier", "is", "nine", "metres", "wide.", "It", "was", "built", "in", "1911."]
    page = sandbox.page_text(path, PDF, Locator(page=1), no_ocr)
    box = next(word.box for word in page.words if word.text == "1911.")
    image = open_png(sandbox.render(path, PDF, Locator(page=1), dpi=100, box=box, max_pixels=10**7))
    assert image.convert("L").getextrema()[0] < 100


def test_each_slide_is_a_page_with_its_number_and_its_notes(sandbox, put, no_ocr):
    path = put("talk.pptx", pptx("Cranes lift", "Barges float", "Locks open", notes="Say that Odin is old."))
    probe = sandbox.probe(path, "talk.pptx")
    assert probe.units == 3
    assert [(entry.title, entry.page) for entry in probe.outline] == [("slide 1", 1), ("slide 2", 2), ("slide 3", 3)]
    first, second, third = units(sandbox, path, "talk.pptx", no_ocr, 3)
    assert first.text.split("\n") == ["Cranes lift", "Notes: Say that Odin is old."]
    assert (second.text.strip(), second.meta["slide"]) == ("Barges float", "slide 2")
    assert sandbox.page_text(path, PDF, third.locator, no_ocr).text.strip() == "Locks open"


def test_the_words_and_elements_of_every_sheet_are_read(sandbox, put, no_ocr):
    rows = [["crane", "tonnes", "lifts"], *([f"Odin {number}", str(70 + number), "12"] for number in range(4))]
    path = put("book.xlsx", xlsx(Cranes=rows, Spares=rows))
    for page in (1, 2, 1):
        read = sandbox.page_text(path, PDF, Locator(page=page), no_ocr)
        assert "| Odin 3 | 73 | 12 |" in read.text
        assert read.elements


def test_each_sheet_begins_a_page_and_has_its_name(sandbox, put, no_ocr):
    path = put("book.xlsx", xlsx(Cranes=[["crane", "tonnes"], ["Odin", "73"]], Barges=[["barge"], ["Alma"]]))
    assert [(entry.title, entry.page) for entry in sandbox.probe(path, "book.xlsx").outline] == [
        ("Cranes", 1),
        ("Barges", 2),
    ]
    cranes, barges = units(sandbox, path, "book.xlsx", no_ocr, 2)
    assert (cranes.meta["sheet"], cranes.text.split()) == ("Cranes", ["Cranes", "crane", "tonnes", "Odin", "73"])
    assert (barges.meta["sheet"], barges.text.split()) == ("Barges", ["Barges", "barge", "Alma"])


def test_cells_are_shown_as_an_office_program_shows_them():
    styles = styles_of(
        ElementTree.fromstring(
            '<s xmlns="x"><numFmts><numFmt numFmtId="170" formatCode="0.0%"/><numFmt numFmtId="171" '
            'formatCode="&quot;days&quot; 0"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
            '<xf numFmtId="170"/><xf numFmtId="22"/><xf numFmtId="171"/></cellXfs></s>'
        ),
        from_1904=False,
    )
    strings = strings_of(ElementTree.fromstring("<s><si><r><t>Od</t></r><r><t>in</t></r><rPh><t>no</t></rPh></si></s>"))
    cells = (
        '<c t="s"><v>0</v></c><c><v>0.30000000000000004</v></c><c s="1"><v>44927</v></c><c s="2"><v>0.125</v></c>'
        '<c s="3"><v>44927.5</v></c><c t="b"><v>1</v></c><c r="J1" t="str"><v>a &lt; b</v></c><c s="4"><v>7</v></c>'
    )
    page = sheet_page(f'<w xmlns="x"><row r="1">{cells}</row><row r="2"/></w>'.encode(), "S", strings, styles)
    shown = ["Odin", "0.3", "2023-01-01", "12.5%", "2023-01-01 12:00:00", "TRUE", "a &lt; b", "days 7"]
    assert page.is_whole
    assert re.findall(r"<td[^>]*>(.*?)</td>", page.markup) == shown


def test_pictures_of_an_office_file_are_attachments_because_its_pages_do_not_show_them(sandbox, put):
    picture = image_bytes(picture_of(["Odin"]), "PNG")
    path = put("a.docx", docx("words", image1=picture))
    assert sandbox.probe(path, "a.docx").meta["attachments"] == 1
    assert list(sandbox.attachments(path, "a.docx")) == [("image1.png", picture)]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_a_web_page_is_read_in_its_encoding_whatever_it_says(sandbox, put, no_ocr, encoding):
    html = '<html><head><meta charset="ascii"><title>Brücke</title></head><body><p>Größe: <b>9</b> m</p></body></html>'
    path = put("a.html", html.encode(encoding))
    probe = sandbox.probe(path, "a.html")
    assert (probe.title, probe.meta["format"]) == ("Brücke", "web page")
    (unit,) = units(sandbox, path, "a.html", no_ocr, 1)
    assert unit.text.strip() == "Größe: 9 m"


def test_the_encoding_that_a_page_states_is_believed_where_the_bytes_fit_it(sandbox, put, no_ocr):
    html = '<html><head><meta charset="koi8-r"></head><body><p>№ 7 склад</p></body></html>'
    path = put("a.html", html.replace("№", "N").encode("koi8-r"))
    assert sandbox.probe(path, "a.html").notices[0].startswith("reflowed")
    assert units(sandbox, path, "a.html", no_ocr, 1)[0].text.strip() == "N 7 склад"
    book = "<FictionBook><body><section><p>Кран</p></section></body></FictionBook>"
    path = put("b.fb2", f'<?xml version="1.0" encoding="windows-1251"?>{book}'.encode("cp1251"))
    assert "Кран" in units(sandbox, path, "b.fb2", no_ocr, 1)[0].text


def test_the_cells_of_a_table_in_a_book_of_fb2_are_words_of_their_own(sandbox, put, no_ocr):
    rows = (("Fish", "Catch", "Price"), ("Whitefish", "512", "3.20"))
    table = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    path = put("b.fb2", f"<FictionBook><body><section><table>{table}</table></section></body></FictionBook>".encode())
    text = units(sandbox, path, "b.fb2", no_ocr, 1)[0].text
    assert text.split() == [cell for row in rows for cell in row]


def test_a_fragment_of_a_web_page_and_a_drawing_are_known_by_name_and_content(sandbox, put, no_ocr):
    fragment = put("c.html", b"<p>The pier is <b>9</b> m wide</p>")
    assert units(sandbox, fragment, "c.html", no_ocr, 1)[0].text.strip() == "The pier is 9 m wide"
    svg = put(
        "d.svg", b'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><text y="50">Odin</text></svg>'
    )
    assert sandbox.probe(svg, "d.svg").meta == {"format": "SVG"}
    assert units(sandbox, svg, "d.svg", no_ocr, 1)[0].text.strip() == "Odin"


@pytest.mark.parametrize(
    ("name", "data", "remedy"),
    [
        ("a.rtf", rb"{\rtf1 words}", "where LibreOffice is installed .* install it, or save it as DOCX or PDF"),
        ("a.odt", archive({"mimetype": "application/vnd.oasis.opendocument.text"}), "save it as DOCX or PDF"),
        ("a.doc", compound("WordDocument"), "install it, or save it as DOCX or PDF in Word"),
        ("a.doc", compound("WordDocument")[:600], "get the whole file again"),
        ("a.xlsx", compound("EncryptedPackage"), "remove it"),
        ("a.zip", archive({"x.txt": "x"}), "unpack it"),
        ("a.docx", b"PK\x03\x04 cut short", "get the whole file again"),
        ("a.pptx", docx("words"), "is a DOCX although it is named .pptx: rename it"),
        ("a.docx", archive({"word/document.xml": "<broken"}), "export it as PDF"),
    ],
)
def test_what_cannot_be_laid_out_is_refused_with_a_remedy(sandbox, put, name, data, remedy):
    with pytest.raises(DecodeError, match=remedy):
        sandbox.probe(put(name, data), name)


def test_a_long_line_of_set_text_is_not_cut_at_the_edge_of_the_page(sandbox, put, no_ocr):
    path = put("pre.html", f"<html><body><pre>{'The crane lifts ' * 20}END\n  next</pre></body></html>".encode())
    (unit,) = units(sandbox, path, "pre.html", no_ocr, 1)
    assert unit.text.split() == ["The", "crane", "lifts"] * 20 + ["END", "next"]


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("<p>Open: <span style='font-family:Wingdings'>o</span> yes</p>", ["Open: ☐ yes"]),
        ("<p>a<button>b</button><button>c</button>d</p>", ["a b c d"]),
        ("<p>a<select><option>b</option><option>c</option></select>d<textarea>e</textarea>f</p>", ["a b c d e f"]),
        ("<details><summary>a</summary>b</details><center>c</center>d", ["a", "b", "c", "d"]),
        ("<head><style>@media screen{.x{color:red}} .f,#g{display: flex}</style></head>"
         "<div class=f><span>a</span><b>c</b></div>", ["a c"]),
        ('<div style="color:red;display:inline-grid"><span>a</span><span>c</span></div>', ["a c"]),
        ("<p><span>a</span><span>c</span></p>", ["ac"]),
        ("<style>.f{display:flex}.b{display:-webkit-box}</style><div class=f><span>a</span><span>b</span></div>"
         "<div class=f><span>c</span></div><p class=b>d</p><p class=b>e</p>f", ["a b", "c", "d", "e", "f"]),
        ("<p style='display:flow-root'>a</p><p style=\"color:red;display: grid\">b</p><p>c</p>", ["a", "b", "c"]),
        ("<p>a<span style='display:inline-flex'>b</span>c</p>", ["abc"]),
    ],
)  # fmt: skip
def test_controls_and_the_children_of_flex_containers_stay_apart(sandbox, put, no_ocr, page, lines):
    path = put("page.html", f"<html>{page}</html>".encode())
    [unit] = units(sandbox, path, "page.html", no_ocr, 1)
    assert [" ".join(line.split()) for line in unit.text.split("\n")] == lines


YEARS = [["Shop", *map(str, range(1990, 2020))], ["Store 1", *(f"{20370 + n},10" for n in range(30))]]


def _lines(rows: list[list[str]], row: str, cell: str) -> str:
    return "".join(row.format("".join(map(cell.format, texts))) for texts in rows)


def _web_table(rows: list[list[str]]) -> bytes:
    return f"<html><table>{_lines(rows, '<tr>{}</tr>', '<td>{}</td>')}</table></html>".encode()


def _word_table(rows: list[list[str]]) -> bytes:
    lines = _lines(rows, "<w:tr>{}</w:tr>", "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>")
    return docx_of(f"<w:tbl>{lines}</w:tbl>")


def _slide_table(rows: list[list[str]]) -> bytes:
    cell = "<a:tc><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    return pptx(f"<p:graphicFrame><a:tbl>{_lines(rows, '<a:tr>{}</a:tr>', cell)}</a:tbl></p:graphicFrame>")


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("a.html", _web_table),
        ("a.docx", _word_table),
        ("a.pptx", _slide_table),
        ("a.xlsx", lambda rows: xlsx(S=rows)),
    ],
)
def test_a_broad_table_is_whole_and_has_a_line_a_row(sandbox, put, no_ocr, name, made):
    path = put(name, made(YEARS))
    (unit,) = units(sandbox, path, name, no_ocr, 1)
    assert unit.text.split("\n")[-2:] == [" ".join(row) for row in YEARS]
    assert len(sandbox.probe(path, name).notices) == 1


@pytest.mark.parametrize(
    "markup",
    [
        '<div style="width:1170px">{}</div>',
        '<div style="width:120%">{}</div>',
        '<p style="margin-left:900px">{}</p>',
        '<p style="white-space:nowrap">{}</p>',
        f'<p style="white-space:nowrap">{"more " * 2000} {{}}</p>',
        f"<p>{'ab12' * 3000} {{}}</p>",
        f"<table><tr><td>Key</td><td>Data</td></tr><tr><td>K1</td><td>{'ab12' * 3000}</td><td>{{}}</td></tr></table>",
    ],
)
def test_no_word_runs_off_the_page(sandbox, put, no_ocr, markup):
    words = " ".join(f"pump{number}" for number in range(60))
    path = put("page.html", f"<html>{markup.format(words)}</html>".encode())
    read = [unit.text for unit in units(sandbox, path, "page.html", no_ocr, sandbox.probe(path, "page.html").units)]
    assert set(words.split()) <= set(" ".join(read).split())


def test_words_too_far_out_for_any_page_are_counted_and_the_others_are_read(sandbox, put, no_ocr):
    path = put("page.html", b'<html><p>seen</p><p style="margin-left:9999px">far out</p></html>')
    assert "2 words are cut at the right edge of a page: they stand too far out for any" in (
        sandbox.probe(path, "page.html").notices
    )
    (unit,) = units(sandbox, path, "page.html", no_ocr, 1)
    assert unit.text.strip() == "seen"


def test_a_sheet_of_many_columns_becomes_several_tables_behind_its_first_column(sandbox, put, no_ocr):
    rows = [["Store", *(f"Day {n}" for n in range(150))], ["North", *(str(5000 + n) for n in range(150))]]
    path = put("book.xlsx", xlsx(S=rows))
    assert sandbox.probe(path, "book.xlsx").units == 2
    lines = [line for unit in units(sandbox, path, "book.xlsx", no_ocr, 2) for line in unit.text.split("\n")]
    north = [line.split()[1:] for line in lines if line.startswith("North")]
    assert sum(line.startswith("Store Day") for line in lines) == 2
    assert [figure for line in north for figure in line] == rows[1][1:]


def test_a_long_name_of_a_row_stands_on_the_line_of_its_figures(sandbox, put, no_ocr):
    name = "Net income attributable to Trawl Group shareholders"
    path = put("book.xlsx", xlsx(S=[["Item", "2023"], [name, "1435"], ["Rope", "7"]]))
    (unit,) = units(sandbox, path, "book.xlsx", no_ocr, 1)
    assert f"{name} 1435" in unit.text.split("\n")
