"""A DOCX as a web page: what mammoth would pass over is in it, and its tables keep their rows."""

from __future__ import annotations

import base64
import re
import tempfile
from pathlib import Path

import pytest

from tests.support.documents import decoded, image_bytes, open_png, picture_of
from tests.support.office import WORD_SPACES, archive, chart, docx, docx_of, paragraph, relations
from vrag_ray.corpus.formats.laid_out import laid_out
from vrag_ray.corpus.formats.office import parts
from vrag_ray.corpus.formats.office.word import document_page
from vrag_ray.corpus.model import DecodeError, WorkItem
from vrag_ray.corpus.sniff import Format, sniff
from vrag_ray.types import DocumentKind, Locator

BREAK = "<hr"


def body_of(docx: bytes) -> str:
    with tempfile.NamedTemporaryFile() as original:
        original.write(docx)
        original.flush()
        return document_page(Path(original.name))[0].partition("<body>")[2].partition("</body>")[0]


def words_of(docx: bytes) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", body_of(docx)).split())


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(text if text.startswith('<') else cell(text) for text in cells)}</w:tr>"


def test_the_rows_of_a_table_are_read_as_rows_with_their_heads(sandbox, put, no_ocr):
    wide = cell("tonnes lifted", '<w:gridSpan w:val="2"/>')
    table = f"<w:tbl>{row('crane', wide)}{row('Odin', '73', '12')}{row('Alma of the mole', '70', '14')}</w:tbl>"
    path = put("report.docx", docx_of(paragraph("Before.") + table + paragraph("After.")))
    page = sandbox.page_text(path, DocumentKind.PDF, Locator(page=1), no_ocr)
    rows = [line for line in page.text.splitlines() if line.startswith("|")]
    assert rows[0] == "| crane | tonnes lifted | tonnes lifted |"
    assert rows[2:] == ["| Odin | 73 | 12 |", "| Alma of the mole | 70 | 14 |"]
    assert page.text.startswith("Before.")
    assert page.text.endswith("After.")


def test_short_cells_and_merged_cells_stand_in_the_rows_of_their_values(sandbox, put, no_ocr):
    heads = cell("Limits", '<w:gridSpan w:val="2"/>')
    first, again = cell("Quay A", '<w:vMerge w:val="restart"/>'), cell("", "<w:vMerge/>")
    zone, below = cell("Berth", '<w:vMerge w:val="restart"/>'), cell("", "<w:vMerge/>")
    table = (
        row(zone, cell("Side", '<w:vMerge w:val="restart"/>'), heads)
        + row(below, below, "Height limit", "Weight limit")
        + row(first, "North side", "3.2", "7")
        + row(again, "South side", "4.5", "12")
    )
    path = put("limits.docx", docx_of(f"<w:tbl>{table}</w:tbl>" + paragraph("After.")))
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "limits.docx"), no_ocr)
    assert unit.text.splitlines()[-3:] == ["Quay A North side 3.2 7", "Quay A South side 4.5 12", "After."]
    text = sandbox.page_text(path, DocumentKind.PDF, Locator(page=1), no_ocr).text
    assert "| Berth | Side | Limits Height limit | Limits Weight limit |" in text
    assert "| Quay A | South side | 4.5 | 12 |" in text


def test_a_notice_counts_the_comments_that_are_left_out(sandbox, put):
    comments = "".join(f'<w:comment w:id="{id_}">{paragraph("Is this so?")}</w:comment>' for id_ in (0, 1))
    parts_ = {"word/comments.xml": f"<w:comments {WORD_SPACES}>{comments}</w:comments>"}
    path = put("report.docx", docx_of(paragraph("The pier is long."), parts_))
    assert "2 comments in it are left out" in sandbox.probe(path, "report.docx").notices


def with_chunk(name: str, data: bytes) -> bytes:
    """A DOCX with a chunk between two paragraphs."""
    body = paragraph("Before.") + '<w:altChunk r:id="a1"/>' + paragraph("After.")
    return docx_of(body, {f"word/{name}": data}, a1=name)


PAGE = """<!DOCTYPE html><html><head><title>no</title><style>
<!-- .n, p.x, .s {display:none} body p{color:#111} --></style></head>
<body style="color:black"><p>The kiln <b>burns</b><p class="n">unseen</p>
<table><tr><td>jars</td><td>630</td></tr></table><script>no()</script><!-- no --><del>old</del>"""
MHT = (
    'MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary="b"; type="text/html"\r\n\r\n--b\r\n'
    'Content-Type: text/html; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'
    "<html><body><p>The k=\r\niln burns</p></body></html>\r\n--b--\r\n"
)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.html", PAGE.encode(), "The kiln burns\njars 630"),
        ("a.htm", PAGE.replace("kiln", "K\u00f6hler").encode("cp1252"), "The K\u00f6hler burns\njars 630"),
        ("a.dat", "<p>The kiln burns".encode("utf-16"), "The kiln burns"),
        ("a.mht", MHT.encode(), "The kiln burns"),
        ("a.txt", b"The kiln burns\r\n<630> jars", "The kiln burns\n<630> jars"),
        ("a.docx", docx("The kiln", "burns"), "The kiln\nburns"),
        ("b.docx", with_chunk("a.html", PAGE.encode()), "Before.\nThe kiln burns\njars 630\nAfter."),
    ],
)
def test_a_document_in_a_docx_is_read_at_its_place(sandbox, put, no_ocr, name, data, text):
    path = put("a.docx", with_chunk(name, data))
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.docx"), no_ocr)
    assert unit.text == f"Before.\n{text}\nAfter."


def test_the_styles_of_a_web_page_in_a_docx_hide_nothing_outside_of_it(sandbox, put, no_ocr):
    pages = {f"word/{name}.html": f"<style>{rule}</style><p>{name}</p>" for name, rule in PAGES.items()}
    chunks = "".join(f'<w:altChunk r:id="a{name}"/>' for name in PAGES)
    path = put(
        "a.docx", docx_of(paragraph("Before.") + chunks, pages, **{f"a{name}": f"{name}.html" for name in PAGES})
    )
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.docx"), no_ocr)
    assert unit.text == "Before.\nlast"


PAGES = {
    "first": "p {display: none}",
    "second": "html > body p, x {display: none}",
    "third": "@font-face {src: x} @media screen { b, body {display: none} }",
    "last": "b {display: none}",
}


def test_a_document_in_a_docx_that_is_not_read_is_named(sandbox, put):
    notice = "a document in it is left out: {} ({})"
    for name, data, reason in (
        ("a.rtf", b"{\\rtf1 The kiln}", "RTF is not read there"),
        ("b.docx", docx_of("<w:p>"), "it is damaged"),
    ):
        path = put("report.docx", with_chunk(name, data))
        assert notice.format(name, reason) in sandbox.probe(path, "report.docx").notices
    missing = docx_of(paragraph("Before.") + '<w:altChunk r:id="a1"/>', a1="gone.html")
    notices = sandbox.probe(put("report.docx", missing), "report.docx").notices
    assert notice.format("gone.html", "not in the file, or too large") in notices
    nested = b"<p>innermost</p>"
    for number in range(5):
        nested = with_chunk("a.docx" if number else "a.html", nested)
    notices = sandbox.probe(put("report.docx", nested), "report.docx").notices
    assert notice.format("a.docx", "DOCX is not read there") in notices
    pictures = with_chunk("a.html", b'<p>See <img src="a.png"></p>')
    notices = sandbox.probe(put("report.docx", pictures), "report.docx").notices
    assert "1 picture of a web page in it is left out" in notices


def test_the_struck_words_of_a_web_page_in_a_docx_are_counted(sandbox, put):
    path = put("a.docx", with_chunk("a.html", PAGE.encode()))
    assert "1 words that are struck out in it are left out" in sandbox.probe(path, "a.docx").notices


def test_a_table_in_a_cell_follows_the_table_and_keeps_its_rows():
    innermost = f"<w:tbl>{row('x', 'y')}</w:tbl>"
    with_innermost = f"<w:tc>{paragraph('f')}{innermost}</w:tc>"
    inner = f"<w:tbl>{row('e', with_innermost)}{row('g', 'h')}</w:tbl>"
    with_inner = f"<w:tc>{inner}{paragraph('b')}</w:tc>"
    table = f"<w:tbl>{row('a', with_inner, 'c')}</w:tbl>"
    tables = re.findall(r"<table>.*?</table>", body_of(docx_of(table + paragraph("After."))))
    assert [re.sub(r"<[^>]*>", " ", text).split() for text in tables] == [list("abc"), list("efgh"), list("xy")]


def test_titles_headings_and_breaks_of_pages_are_those_of_the_document():
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{id_}"><w:name w:val="{name}"/></w:style>'
        for id_, name in (("a", "Title"), ("b", "heading 1"))
    )
    body = (
        paragraph("Harbour", '<w:pStyle w:val="a"/>')
        + paragraph("Cranes", '<w:pStyle w:val="b"/>')
        + paragraph("first", "<w:sectPr/>")
        + paragraph("second", '<w:sectPr><w:type w:val="continuous"/></w:sectPr>')
        + paragraph("third", "<w:pageBreakBefore/>")
    )
    html = body_of(docx_of(body, {"word/styles.xml": f"<w:styles {WORD_SPACES}>{styles}</w:styles>"}))
    assert '<h1 class="title">Harbour</h1><h1>Cranes</h1>' in html
    assert [len(part.split(BREAK)) - 1 for part in re.split("second|third", html)] == [1, 1, 0]


def test_headers_and_footers_stand_once_around_the_text():
    sections = '<w:sectPr><w:headerReference r:id="h1"/><w:footerReference r:id="f1"/></w:sectPr>'
    around = {
        "word/header1.xml": f"<w:hdr {WORD_SPACES}>{paragraph('Harbour office')}"
        f'<w:p><w:hyperlink r:id="x9"><w:r><w:t>a link</w:t></w:r></w:hyperlink></w:p></w:hdr>',
        "word/footer1.xml": f"<w:ftr {WORD_SPACES}>{paragraph('Confidential')}</w:ftr>",
    }
    body = paragraph("The pier is wide.", sections) + sections
    made = docx_of(body, around, h1="header1.xml", f1="footer1.xml")
    assert words_of(made) == "Harbour office a link The pier is wide. Confidential"


BOX = f"<wps:txbx><w:txbxContent>{paragraph('in the box')}</w:txbxContent></wps:txbx>"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (f"<w:r><mc:AlternateContent><mc:Choice><w:drawing>{BOX}</w:drawing></mc:Choice><mc:Fallback><w:pict/>"
         "</mc:Fallback></mc:AlternateContent></w:r>", "in the box"),
        (f"<w:r><w:drawing>{BOX.replace('</w:p>', f'<w:r><w:drawing>{BOX}</w:drawing></w:r></w:p>')}</w:drawing></w:r>",
         "in the box in the box"),
        ("<w:r><w:t>Table </w:t></w:r><w:fldSimple><w:r><w:t>7</w:t></w:r></w:fldSimple>", "Table 7"),
        ("<w:bdo><w:r><w:t>turned</w:t></w:r></w:bdo>", "turned"),
        ("<w:r><w:t>a</w:t><w:cr/><w:t>b</w:t></w:r>", "a b"),
        ("<w:r><w:ruby><w:rt><w:r><w:t>aid</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>base</w:t></w:r></w:rubyBase></w:ruby>"
         "</w:r>", "base"),
        ("<m:oMath><m:r><m:t>E=m</m:t></m:r><m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r>"
         "</m:sup></m:sSup></m:oMath>", "E=mc²"),
        ("<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>",
         "(a+b)/2"),
    ],
)  # fmt: skip
def test_words_in_elements_that_mammoth_passes_over_are_read(written, read):
    assert words_of(docx_of(f"<w:p>{written}</w:p>")) == read


def test_the_mark_of_a_note_is_raised_once_where_the_file_raises_it_too():
    run = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="1"/></w:r>'
    notes = f'<w:footnotes {WORD_SPACES}><w:footnote w:id="1">{paragraph("a note")}</w:footnote></w:footnotes>'
    html = body_of(docx_of(f"<w:p><w:r><w:t>North</w:t></w:r>{run}</w:p>", {"word/footnotes.xml": notes}))
    assert html.count("<sup>") == 1
    assert "<ol><li" in html, "the notes are numbered by their list"
    assert " ".join(re.sub(r"<[^>]*>", "", html).split()) == "North[1]a note ↑"


@pytest.mark.parametrize(
    ("stated", "choice"), [('<w:result w:val="1"/>', "Swinging"), ('<w:default w:val="1"/>', "Swinging"), ("", "Fore")]
)
def test_the_choice_of_a_drop_down_field_is_read(stated, choice):
    entries = '<w:listEntry w:val="Fore"/><w:listEntry w:val="Swinging"/>'
    field = f"<w:ffData><w:ddList>{stated}{entries}</w:ddList></w:ffData>"
    runs = (
        f'<w:r><w:fldChar w:fldCharType="begin">{field}</w:fldChar></w:r><w:r><w:instrText> FORMDROPDOWN </w:instrText>'
        '</w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
    assert words_of(docx_of(f"<w:p><w:r><w:t>Mooring: </w:t></w:r>{runs}</w:p>")) == f"Mooring: {choice}"


def math(tag: str, properties: str = "", **parts: str) -> str:
    inner = "".join(f"<m:{name}>{part}</m:{name}>" for name, part in parts.items())
    return f"<m:{tag}><m:{tag}Pr>{properties}</m:{tag}Pr>{inner}</m:{tag}>"


def letters(text: str) -> str:
    return f"<m:r><w:rPr><w:i/></w:rPr><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        (letters("4") + letters("2") + math("d", e=letters("a+b")), "42(a+b)"),
        (math("d", '<m:begChr m:val="["/><m:endChr m:val=""/>', e=letters("a")), "[a"),
        (math("nary", '<m:chr m:val="∑"/>', sub=letters("i=1"), sup=letters("n"), e=letters("i")), "∑_(i=1)^n i"),
        (math("nary", sub=letters("0"), sup=letters("1"), e=letters("x")), "∫₀¹ x"),
        (math("sSubSup", e=letters("c"), sub=letters("0"), sup=letters("2")), "c₀²"),
        (letters("2") + math("f", num=letters("1"), den=letters("2")), "2 1/2"),
        (math("f", num=letters("a"), den=letters("b")) + math("nary", '<m:chr m:val="∑"/>', e=letters("i")), "a/b ∑ i"),
        (math("f", '<m:type m:val="noBar"/>', num=letters("n"), den=letters("k")), "(n choose k)"),
        (math("rad", '<m:degHide m:val="1"/>', deg="", e=letters("x+1")), "√(x+1)"),
        (math("func", fName=letters("sin"), e=letters("x")), "sin x"),
        (math("acc", '<m:chr m:val="̅"/>', e=letters("x")), "x\u0304"),
        (f"<m:m><m:mr><m:e>{letters('1')}</m:e><m:e>{letters('2')}</m:e></m:mr><m:mr><m:e>{letters('3')}</m:e></m:mr>"
         "</m:m>", "1 2; 3"),
    ],
)  # fmt: skip
def test_a_formula_is_one_line_with_its_brackets_and_signs(formula, line):
    assert words_of(docx_of(f"<w:p><m:oMath>{formula}</m:oMath></w:p>")) == line


def test_a_chart_becomes_a_table_of_its_values_where_it_stands():
    drawing = '<w:p><w:r><w:t>Above.</w:t><w:drawing><c:chart r:id="c1"/></w:drawing></w:r></w:p>'
    part = chart("Cranes by quay", "tonnes", ["North quay", "Mole"], **{"2023": [12.5, 7], "2024": [14, 9.5]})
    html = body_of(docx_of(drawing + paragraph("Below."), {"word/charts/chart1.xml": part}, c1="charts/chart1.xml"))
    words = " ".join(re.sub(r"<[^>]*>", " ", html).split())
    assert words == "Above. Cranes by quay tonnes 2023 2024 North quay 12.5 14 Mole 7 9.5 Below."
    assert "<tr><td>North quay</td><td>12.5</td><td>14</td></tr>" in html


def test_text_that_looks_like_the_mark_of_a_chart_is_left_as_it_is():
    text = "a \ue0107\ue011 b"
    assert words_of(docx_of(paragraph(text))) == text


def test_a_definition_in_any_part_that_mammoth_reads_is_refused():
    entity = '<!DOCTYPE x [<!ENTITY a "aaaa">]><x/>'
    with pytest.raises(DecodeError, match=r"a definition of its own in word/styles\.xml"):
        body_of(docx_of(paragraph("x"), {"word/styles.xml": entity}))


def picture(part: str, width_pt: int, height_pt: int) -> str:
    size = f'<wp:extent cx="{12_700 * width_pt}" cy="{12_700 * height_pt}"/>'
    drawing = f'<w:drawing>{size}<a:blip r:embed="{part}"/></w:drawing>'
    return f"<w:p><w:r><w:t>Before.</w:t>{drawing}<w:t>After.</w:t></w:r></w:p>"


@pytest.mark.parametrize(("own", "drawn"), [((90, 60), "90 60"), ((1000, 100), "500 50"), ((100, 1280), "50 640")])
def test_a_picture_is_drawn_where_it_stands_in_its_size_or_as_large_as_fits(own, drawn):
    png = image_bytes(picture_of(["Odin"]), "PNG")
    html = body_of(docx_of(picture("p1", *own), {"word/media/image1.png": png}, p1="media/image1.png"))
    [(data, width, height)] = re.findall(r'base64,([^"]*)" style="width:(\d+)pt;height:(\d+)pt"', html)
    assert (base64.b64decode(data), f"{width} {height}") == (png, drawn)
    assert html.index("Before.") < html.index("<img") < html.index("After.")


def test_the_page_of_a_document_shows_its_picture(sandbox, put, no_ocr):
    png = image_bytes(picture_of(["Odin"]), "PNG")
    path = put("a.docx", docx_of(picture("p1", 200, 100), {"word/media/image1.png": png}, p1="media/image1.png"))
    drawn = open_png(
        sandbox.render(path, DocumentKind.PDF, Locator(page=1), dpi=72, box=None, max_pixels=10**7)
    ).convert("L")
    blank = put("b.docx", docx("Before.", "After."))
    empty = open_png(
        sandbox.render(blank, DocumentKind.PDF, Locator(page=1), dpi=72, box=None, max_pixels=10**7)
    ).convert("L")
    assert sum(drawn.histogram()[:128]) > sum(empty.histogram()[:128])


def test_pictures_that_cannot_be_drawn_or_are_too_many_are_left_to_their_own_documents(monkeypatch):
    metafile = docx_of(picture("p1", 9, 9), {"word/media/image1.emf": b"x"}, p1="media/image1.emf")
    assert words_of(metafile) == "Before.After." and "<img" not in body_of(metafile)
    monkeypatch.setattr(parts, "MOST_DRAWN_BYTES", 5)
    both = picture("p1", 9, 9) + picture("p2", 9, 9)
    media = {"word/media/1.png": b"four", "word/media/2.png": b"four"}
    assert body_of(docx_of(both, media, p1="media/1.png", p2="media/2.png")).count("<img") == 1


@pytest.mark.parametrize("slash", ["/", "\\"])
def test_a_document_whose_parts_are_elsewhere_is_read_with_its_headers_and_without_its_hidden_text(tmp_path, slash):
    hidden = "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r></w:p>"
    head = '<w:sectPr><w:headerReference r:id="h1"/></w:sectPr>'
    files = {
        "[Content_Types].xml": '<Types><Override PartName="/doc.xml" ContentType="application/'
        'vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": relations(r1="doc.xml"),
        "_rels/doc.xml.rels": relations(h1="Top.xml"),
        "doc.xml": f"<w:document {WORD_SPACES}><w:body>{paragraph('Quay 7')}{hidden}{head}</w:body></w:document>",
        "top.xml": f"<w:hdr {WORD_SPACES}>{paragraph('Port Act')}{hidden}</w:hdr>",
    }
    path = tmp_path / "a.docx"
    path.write_bytes(archive({name.replace("/", slash): part for name, part in files.items()}))
    assert sniff(path, path.name).format is Format.DOCX
    ((part,), notices) = laid_out(path, Format.DOCX)
    with part.open() as document:
        assert document[0].get_text().split() == ["Port", "Act", "Quay", "7"]
    assert any("2 words" in notice for notice in notices)


def test_the_words_of_wordart_are_read_and_those_of_a_watermark_are_not():
    vml = 'xmlns:v="urn:schemas-microsoft-com:vml"'
    kind = f'<v:shapetype {vml}><v:textpath on="t"/></v:shapetype>'
    shapes = "".join(
        f'<w:p><w:r><w:pict>{kind}<v:shape {vml} id="{name}"><v:textpath string="{words}"/></v:shape>'
        "</w:pict></w:r></w:p>"
        for name, words in (("Fair", "Sluice Fair 1998"), ("PowerPlusWaterMarkObject7", "DRAFT"))
    )
    assert words_of(docx_of(paragraph("Before") + shapes + paragraph("After"))) == "Before Sluice Fair 1998 After"


def test_a_row_that_begins_behind_the_first_columns_has_its_cells_below_their_heads(sandbox, put, no_ocr):
    late = f'<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{cell("44 t")}{cell("30 t")}</w:tr>'
    table = f"<w:tbl>{row('crane', 'summer', 'winter')}{row('Odin', '73 t', '61 t')}{late}</w:tbl>"
    page = sandbox.page_text(put("a.docx", docx_of(table)), DocumentKind.PDF, Locator(page=1), no_ocr)
    assert page.text.splitlines()[-1] == "|  | 44 t | 30 t |"


def test_what_a_field_compares_is_not_read():
    def mark(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    def field(instruction: str, result: str) -> str:
        return f"{mark('begin')}{instruction}{mark('separate')}{result}{mark('end')}"

    def words(text: str) -> str:
        return f"<w:r><w:t>{text}</w:t></w:r>"

    condition = "<w:r><w:instrText> IF </w:instrText></w:r>"
    inner = field("<w:r><w:instrText>MERGEFIELD depth</w:instrText></w:r>", words("99"))
    link = field("<w:r><w:instrText>PAGEREF a</w:instrText></w:r>", words("12"))
    paragraph = f"<w:p>{words('Depth ')}{field(condition + inner, words('7 m, page ') + link)}{words('.')}</w:p>"
    assert words_of(docx_of(paragraph)) == "Depth 7 m, page 12."
