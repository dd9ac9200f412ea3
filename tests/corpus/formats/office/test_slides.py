"""Slides as web pages: titles first, lists with their levels and numbers, tables, charts and diagrams."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest

from tests.support.office import archive, chart, pptx, relations, text_shape
from vrag_ray.corpus.formats.office.slides import shown_slides, slide_page
from vrag_ray.types import DocumentKind, Locator


def cell(text: str, attributes: str = "") -> str:
    return f"<a:tc{attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"


def page_of(tmp_path: Path, shapes: str, parts: dict[str, str] | None = None, related: str = "") -> str:
    with zipfile.ZipFile(io.BytesIO(pptx(shapes))) as whole:
        files: dict[str, str | bytes] = {name: whole.read(name) for name in whole.namelist()}
    path = tmp_path / "talk.pptx"
    path.write_bytes(archive({**files, **(parts or {}), "ppt/slides/_rels/slide1.xml.rels": related or relations()}))
    ([slide], notices) = shown_slides(path)
    assert notices == []
    with zipfile.ZipFile(path) as opened:
        return slide_page(opened, slide, "")[0].partition("<body>")[2].partition("</body>")[0]


def test_the_rows_of_a_table_are_read_as_rows_with_their_heads(sandbox, put, no_ocr):
    rows = [["crane", "tonnes", "lifts"], ["Odin", "73", "12"], ["Alma", "70", "14"]]
    table = "".join(f"<a:tr>{''.join(map(cell, row))}</a:tr>" for row in rows)
    frame = (
        f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{table}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    )
    path = put("talk.pptx", pptx(text_shape("Cranes", "title") + frame))
    page = sandbox.page_text(path, DocumentKind.PDF, Locator(page=1), no_ocr)
    assert [line for line in page.text.splitlines() if line.startswith("|")] == [
        "| crane | tonnes | lifts |",
        "| --- | --- | --- |",
        "| Odin | 73 | 12 |",
        "| Alma | 70 | 14 |",
    ]


def test_merged_cells_span_their_columns_and_rows(tmp_path):
    rows = [
        cell("both", ' gridSpan="2"') + cell("", ' hMerge="1"'),
        cell("tall", ' rowSpan="2"') + cell("x"),
        cell("", ' vMerge="1"') + cell("y"),
    ]
    frame = f"<p:graphicFrame><a:tbl>{''.join(f'<a:tr>{row}</a:tr>' for row in rows)}</a:tbl></p:graphicFrame>"
    assert page_of(tmp_path, frame) == (
        '<table><tr><td colspan="2">both</td></tr><tr><td rowspan="2">tall</td><td>x</td></tr>'
        "<tr><td>y</td></tr></table>"
    )


def test_the_title_stands_first_the_footer_last_and_the_slides_number_nowhere(tmp_path):
    shapes = (
        text_shape("Harbour office", "ftr")
        + text_shape("7", "sldNum")
        + f"<p:grpSp><p:grpSp>{text_shape('in a group')}</p:grpSp></p:grpSp>"
        + text_shape("Cranes &amp; barges", "title")
    )
    assert page_of(tmp_path, shapes) == "<h2>Cranes &amp; barges</h2><p>in a group</p><p>Harbour office</p>"


def shape(text: str, x: int, y: int, look: str = "", run: str = "", turned: str = "") -> str:
    """A shape of 10 by 10 on a slide of 100 by 100."""
    place = f'<a:xfrm{turned}><a:off x="{x}" y="{y}"/><a:ext cx="10" cy="10"/></a:xfrm><a:prstGeom prst="rect"/>{look}'
    words = f"<p:txBody><a:p><a:r><a:rPr>{run}</a:rPr><a:t>{text}</a:t></a:r></a:p></p:txBody>" if text else ""
    return f"<p:sp><p:spPr>{place}</p:spPr>{words}</p:sp>"


def words_and_hidden(tmp_path: Path, shapes: str, parts: dict[str, str | bytes] | None = None) -> tuple[str, int]:
    """The paragraphs of a slide of 100 by 100, and how many of its words are left out."""
    with zipfile.ZipFile(io.BytesIO(pptx(shapes))) as whole:
        files: dict[str, str | bytes] = {name: whole.read(name) for name in whole.namelist()}
    main = files["ppt/presentation.xml"]
    assert isinstance(main, bytes)
    files["ppt/presentation.xml"] = main.replace(b"<p:sldIdLst>", b'<p:sldSz cx="100" cy="100"/><p:sldIdLst>')
    path = tmp_path / "talk.pptx"
    path.write_bytes(archive({**files, **(parts or {})}))
    with zipfile.ZipFile(path) as opened:
        page, hidden, _ = slide_page(opened, shown_slides(path)[0][0], "")
    return " ".join(re.findall(r"<p>(.*?)</p>", page)), hidden


GREY = '<a:solidFill><a:srgbClr val="CCCCCC"/></a:solidFill>'
GLASS = '<a:solidFill><a:srgbClr val="CCCCCC"><a:alpha val="0"/></a:srgbClr></a:solidFill>'
TURNED = ' rot="2700000"'
MOVED = '<p:timing><p:animMotion><p:spTgt spid="3"/></p:animMotion></p:timing>'


def group(shapes: str, x: int, attributes: str = "") -> str:
    """A group of 10 by 10 at (``x``, 0), whose shapes count in tenths."""
    place = f'<a:off x="{x}" y="0"/><a:ext cx="10" cy="10"/><a:chOff x="0" y="0"/><a:chExt cx="100" cy="100"/>'
    return f"<p:grpSp><p:grpSpPr><a:xfrm{attributes}>{place}</a:xfrm></p:grpSpPr>{shapes}</p:grpSp>"


@pytest.mark.parametrize(
    ("shapes", "hidden"),
    [
        (shape("two words", -10, 0), 2),
        (shape("two words", 100, 50), 2),
        (shape("two words", 50, 100), 2),
        (shape("two words", 95, -9), 0),
        (shape("two words", 101, 50, turned=TURNED), 0),
        (shape("two words", 200, 50, turned=TURNED), 2),
        (group(shape("two words", 40, 0), 95), 0),
        (group(shape("two words", 0, 0), 120), 2),
        (group(shape("two words", 0, 0), 120, TURNED), 0),
        (shape("two words", 200, 50) + MOVED, 0),
        (text_shape("two words"), 0),
    ],
)
def test_text_beside_a_slide_is_left_out(tmp_path, shapes, hidden):
    assert words_and_hidden(tmp_path, shapes) == ("" if hidden else "two words", hidden)


@pytest.mark.parametrize(
    ("run", "hidden"),
    [
        (GLASS, 2),
        ("<a:noFill/>", 2),
        (f"<a:ln><a:noFill/></a:ln>{GREY}", 0),
        (f"<a:ln>{GREY}</a:ln><a:noFill/>", 0),
        (f"{GREY}<a:effectLst><a:outerShdw>{GLASS}</a:outerShdw></a:effectLst>".replace(GLASS, GLASS[13:-14]), 0),
        (GLASS.replace('val="0"', 'val="40000"'), 0),
    ],
)
def test_transparent_text_of_a_slide_is_left_out(tmp_path, run, hidden):
    assert words_and_hidden(tmp_path, shape("two words", 0, 0, run=run)) == ("" if hidden else "two words", hidden)


def photograph(kind: str) -> str:
    place = '<a:xfrm><a:off x="0" y="0"/><a:ext cx="90" cy="90"/></a:xfrm><a:prstGeom prst="rect"/>'
    return f'<p:pic><p:blipFill><a:blip r:embed="{kind}"/></p:blipFill><p:spPr>{place}</p:spPr></p:pic>'


@pytest.mark.parametrize(
    ("above", "hidden"),
    [
        (shape("", 20, 20, GREY), 2),
        (photograph("p1"), 2),
        (photograph("p2"), 0),
        (shape("", 20, 20, GLASS), 0),
        (shape("", 20, 20), 0),
        (shape("", 21, 20, GREY), 0),
        (shape("", 20, 20, GREY, turned=TURNED), 0),
        (shape("", 20, 20, GREY) + '<p:timing><p:spTgt spid="3"/></p:timing>', 0),
    ],
)
def test_text_below_an_opaque_shape_of_a_slide_is_left_out(tmp_path, above, hidden):
    related = {"ppt/slides/_rels/slide1.xml.rels": relations(p1="../media/a.jpg", p2="../media/a.png")}
    below = shape("two words", 20, 20, GREY)
    assert words_and_hidden(tmp_path, below + above, related) == ("" if hidden else "two words", hidden)
    assert words_and_hidden(tmp_path, above + below, related)[1] == 0


@pytest.mark.parametrize(
    ("run", "text", "read"),
    [
        ('<a:sym typeface="Wingdings"/>', "Level 3 \uf0e0 Level 4", "Level 3 → Level 4"),
        ('<a:latin typeface="Wingdings"/>', "ü", "✓"),
        ('<a:latin typeface="Arial"/><a:sym typeface="Symbol"/>', "5 \uf06dm", "5 μm"),
        ('<a:latin typeface="Arial"/>', "ü", "ü"),
    ],
)
def test_runs_in_a_font_of_signs_are_read_as_signs(tmp_path, run, text, read):
    assert words_and_hidden(tmp_path, shape(text, 0, 0, run=run)) == (read, 0)


def test_paragraphs_keep_their_level_and_their_number(tmp_path):
    number = '<a:buAutoNum type="arabicPeriod"/>'
    steps = ((0, number, "dredge"), (1, "", "slowly"), (0, number, "pave"), (1, number, "the quay"))
    paragraphs = "".join(
        f'<a:p><a:pPr lvl="{level}">{mark}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>' for level, mark, text in steps
    )
    html = page_of(tmp_path, f"<p:sp><p:txBody>{paragraphs}</p:txBody></p:sp>")
    assert re.findall(r"<p([^>]*)>(.*?)</p>", html) == [
        ("", "1. dredge"),
        (' style="margin-left:24px"', "slowly"),
        ("", "2. pave"),
        (' style="margin-left:24px"', "1. the quay"),
    ]


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("alphaLcParenBoth", ["(c)", "(d)"]), ("romanUcPeriod", ["III.", "IV."]), ("arabicParenR", ["3)", "4)"]),
        ("arabicPlain", ["3", "4"]), ("circleNumWdWhitePlain", ["③", "④"]),
    ],
)  # fmt: skip
def test_paragraphs_of_a_slide_are_numbered_in_letters_and_by_other_figures(tmp_path, kind, numbers):
    number = f'<a:pPr><a:buAutoNum type="{kind}" startAt="3"/></a:pPr>'
    paragraphs = f"<a:p>{number}<a:r><a:t>step</a:t></a:r></a:p>" * 2
    html = page_of(tmp_path, f"<p:sp><p:txBody>{paragraphs}</p:txBody></p:sp>")
    assert re.findall(r"<p>(.*?) step</p>", html) == numbers


@pytest.mark.parametrize("holder", ["shape", "layout", "master"])
def test_a_number_is_inherited_from_the_style_of_the_shape_its_layout_or_master(tmp_path, holder):
    style = '<a:lstStyle><a:lvl1pPr><a:buAutoNum type="arabicPeriod"/></a:lvl1pPr></a:lstStyle>'
    own = style if holder == "shape" else "<a:lstStyle/>"
    steps = "".join(
        f"<a:p><a:pPr>{mark}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>"
        for mark, text in (("", "dredge"), ("", "pave"), ("<a:buNone/>", "rest"))
    )
    place = '<p:nvSpPr><p:nvPr><p:ph idx="1"/></p:nvPr></p:nvSpPr>'
    shape = f"<p:sp>{place}<p:txBody>{own}{steps}</p:txBody></p:sp>"

    def part(root: str, ph: str, styled: str) -> str:
        held = f"<p:nvSpPr><p:nvPr><p:ph {ph}/></p:nvPr></p:nvSpPr><p:txBody>{styled}</p:txBody>"
        return f'<p:{root} xmlns:p="p" xmlns:a="a"><p:cSld><p:spTree><p:sp>{held}</p:sp></p:spTree></p:cSld></p:{root}>'

    parts = {
        "ppt/slideLayouts/slideLayout1.xml": part("sldLayout", 'idx="1"', style if holder == "layout" else ""),
        "ppt/slideLayouts/_rels/slideLayout1.xml.rels": relations(r1="../slideMasters/slideMaster1.xml"),
        "ppt/slideMasters/slideMaster1.xml": part("sldMaster", 'type="body"', style if holder == "master" else ""),
    }
    html = page_of(tmp_path, shape, parts, relations(r1="../slideLayouts/slideLayout1.xml"))
    assert re.findall(r"<p>(.*?)</p>", html) == ["1. dredge", "2. pave", "rest"]


def test_charts_and_diagrams_are_read_from_their_parts(tmp_path):
    space = "http://schemas.openxmlformats.org/drawingml/2006"
    frames = (
        f'<p:graphicFrame><c:chart xmlns:c="{space}/chart" r:id="c8"/></p:graphicFrame>'
        f'<p:graphicFrame><d:relIds xmlns:d="{space}/diagram" r:dm="d9"/></p:graphicFrame>'
    )
    points = "".join(
        f'<d:pt{kind}><d:t xmlns:a="{space}/main"><a:p><a:r><a:t>{text}</a:t></a:r></a:p></d:t></d:pt>'
        for kind, text in (("", "Dredge"), (' type="parTrans"', "no"), ("", "Pave"))
    )
    parts = {
        "ppt/charts/chart1.xml": chart("Lifts", "tonnes", ["Odin", "Alma"], lifts=[12, 14]),
        "ppt/diagrams/data1.xml": f'<d:dataModel xmlns:d="{space}/diagram"><d:ptLst>{points}</d:ptLst></d:dataModel>',
    }
    html = page_of(tmp_path, frames, parts, relations(c8="../charts/chart1.xml", d9="../diagrams/data1.xml"))
    assert html.endswith(
        "<tr><td>Odin</td><td>12</td></tr><tr><td>Alma</td><td>14</td></tr></table><p>Dredge</p><p>Pave</p>"
    )


def test_a_slide_that_the_file_does_not_hold_is_named(tmp_path):
    with zipfile.ZipFile(io.BytesIO(pptx("Cranes lift", "Barges float"))) as whole:
        files: dict[str, str | bytes] = {
            name: whole.read(name) for name in whole.namelist() if "slide1.xml" not in name
        }
    path = tmp_path / "talk.pptx"
    path.write_bytes(archive(files))
    slides, notices = shown_slides(path)
    assert [slide.number for slide in slides] == [2]
    assert notices == ["slide 1 is left out: the file does not hold it"]


def test_the_pictures_of_a_slide_are_drawn_beside_each_other_below_its_texts(tmp_path):
    def picture(part: str) -> str:
        extent = '<a:ext cx="12700000" cy="6350000"/>'
        return f'<p:pic><a:blip r:embed="{part}"/><p:spPr><a:xfrm>{extent}</a:xfrm></p:spPr></p:pic>'

    shapes = picture("p1") + picture("p2") + picture("p3") + text_shape("Cranes", "title")
    media = {"ppt/media/1.png": "one", "ppt/media/2.jpeg": "two", "ppt/media/3.wmf": "three"}
    related = relations(p1="../media/1.png", p2="../media/2.jpeg", p3="../media/3.wmf")
    html = page_of(tmp_path, shapes, media, related)
    assert html.startswith("<h2>Cranes</h2><p><img")
    kinds = re.findall(r'<img src="data:image/(\w+);base64,[^"]*" style="width:(\d+)pt;height:(\d+)pt"', html)
    assert kinds == [("png", "247", "123"), ("jpeg", "247", "123")]


def test_a_waterfall_is_read_from_the_form_of_newer_charts(tmp_path):
    space = "http://schemas.microsoft.com/office/drawing/2014/chartex"
    frame = f'<p:graphicFrame><cx:chart xmlns:cx="{space}" r:id="c8"/></p:graphicFrame>'

    def level(*values: str) -> str:
        points = "".join(f'<cx:pt idx="{n}">{value}</cx:pt>' for n, value in enumerate(values))
        return f"<cx:lvl>{points}</cx:lvl>"

    data = f"<cx:strDim>{level('dues', 'rent')}</cx:strDim><cx:numDim>{level('12.50', '-3')}</cx:numDim>"
    series = '<cx:series><cx:tx><cx:txData><cx:v>crowns</cx:v></cx:txData></cx:tx><cx:dataId val="0"/></cx:series>'
    part = (
        f'<cx:chartSpace xmlns:cx="{space}"><cx:chartData><cx:data id="0">{data}</cx:data></cx:chartData><cx:chart>'
        f"<cx:plotArea><cx:plotAreaRegion>{series}</cx:plotAreaRegion></cx:plotArea></cx:chart></cx:chartSpace>"
    )
    html = page_of(tmp_path, frame, {"ppt/charts/chartEx1.xml": part}, relations(c8="../charts/chartEx1.xml"))
    assert re.findall(r"<td>(.*?)</td>", html) == ["", "crowns", "dues", "12.5", "rent", "-3"]


def test_a_hidden_group_is_left_out_and_counted(tmp_path):
    inner = f"<p:grpSp>{shape('Old load 19 tonnes', 10, 10)}</p:grpSp>"
    hidden = f'<p:grpSp><p:nvGrpSpPr><p:cNvPr id="4" name="g" hidden="1"/></p:nvGrpSpPr>{inner}</p:grpSp>'
    assert words_and_hidden(tmp_path, hidden + shape("Load 73 tonnes", 20, 20)) == ("Load 73 tonnes", 4)
