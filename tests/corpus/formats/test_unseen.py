"""What office files and web pages hold and do not show is not read."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.office import WORD_SPACES, archive, docx, docx_of, paragraph, pptx, xlsx
from vrag_ray.corpus.formats.laid_out import laid_out
from vrag_ray.corpus.formats.references import hidden_spans
from vrag_ray.corpus.formats.unseen import hides
from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.sniff import Format

SEEN = "The tannery employs many people."
SECRET = "Its master is Oddvar Lie."
Change = Callable[[str], str]


def read(path: Path, data: bytes | str, format_: Format) -> tuple[str, list[str]]:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    parts, notices = laid_out(path, format_)
    text: list[str] = []
    for part in parts:
        with part.open() as document:
            text += (word[4] for page in document for word in page.get_text("words"))
    return " ".join(text), notices


def changed(data: bytes, **changes: Change) -> bytes:
    """The archive with changes to the files whose names begin so."""
    files: dict[str, str | bytes] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        for name in old.namelist():
            content = old.read(name).decode()
            for start, change in changes.items():
                content = change(content) if name.rpartition("/")[2].startswith(start) else content
            files[name] = content
    return archive(files)


def run(properties: str) -> bytes:
    """A document of which the second paragraph has those properties."""
    put = f"<w:r><w:rPr>{properties}</w:rPr><w:t>{SECRET}"
    return changed(docx(SEEN, SECRET), document=lambda xml: xml.replace(f"<w:r><w:t>{SECRET}", put))


@pytest.mark.parametrize(
    "properties",
    ["<w:vanish/>", '<w:vanish w:val="1"/>', "<w:b/><w:vanish/>", '<w:color w:val="FFFFFF"/>', '<w:sz w:val="2"/>'],
)
def test_hidden_text_of_a_document_is_left_out_and_counted(tmp_path: Path, properties: str) -> None:
    assert read(tmp_path / "a", run(properties), Format.DOCX) == (
        SEEN,
        ["5 words that are hidden in it are left out"],
    )


@pytest.mark.parametrize("properties", ['<w:vanish w:val="0"/>', '<w:color w:val="FF0000"/>', '<w:sz w:val="12"/>'])
def test_text_that_is_shown_stays(tmp_path: Path, properties: str) -> None:
    assert read(tmp_path / "a", run(properties), Format.DOCX) == (f"{SEEN} {SECRET}", [])


def test_white_text_on_a_dark_cell_stays(tmp_path: Path) -> None:
    white = run('<w:color w:val="FFFFFF"/><w:shd w:val="clear" w:fill="1F3864"/>')
    assert read(tmp_path / "a", white, Format.DOCX)[0] == f"{SEEN} {SECRET}"


DARK_CELL = f'<w:tcPr><w:shd w:val="clear" w:fill="1F3864"/></w:tcPr>{paragraph("Fees")}'
DARK_STYLES = '<w:style w:type="{kind}" w:styleId="{name}"><w:tcPr><w:shd w:fill="1F3864"/></w:tcPr></w:style>'


@pytest.mark.parametrize(
    ("before", "styles", "is_seen"),
    [
        (f"<w:tbl><w:tr><w:tc>{DARK_CELL}</w:tc></w:tr></w:tbl>", "", False),
        (f"<w:tbl><w:tblPr><w:tblStyle w:val=\"Dark\"/></w:tblPr><w:tr><w:tc>{paragraph('Fees')}</w:tc></w:tr></w:tbl>",
         DARK_STYLES.format(kind="table", name="Dark"), False),
        (f"<w:tbl><w:tr><w:tc>{paragraph('Fees')}</w:tc></w:tr></w:tbl>",
         DARK_STYLES.format(kind="table", name="Unused"), False),
        (paragraph("Fees", '<w:pStyle w:val="Dark"/>'), DARK_STYLES.format(kind="paragraph", name="Dark"), True),
    ],
    ids=["cell", "style", "unused style", "paragraph"],
)  # fmt: skip
def test_white_text_is_hidden_but_where_its_surroundings_have_a_ground(
    tmp_path: Path, before: str, styles: str, is_seen: bool
) -> None:
    white = f'<w:p><w:r><w:rPr><w:color w:val="FFFFFF"/></w:rPr><w:t>{SECRET}</w:t></w:r></w:p>'
    sheet = {"word/styles.xml": f"<w:styles {WORD_SPACES}>{styles}</w:styles>"}
    shown = read(tmp_path / "a", docx_of(before + white, sheet), Format.DOCX)[0]
    assert shown == (f"Fees {SECRET}" if is_seen else "Fees")


@pytest.mark.parametrize(
    ("look", "own", "is_seen"),
    [
        ("<w:vanish/>", "", False),
        ('<w:color w:val="FFFFFF"/>', "", False),
        ('<w:sz w:val="2"/>', "", False),
        ('<w:color w:val="333333"/>', "", True),
        ('<w:color w:val="FFFFFF"/>', '<w:color w:val="333333"/>', True),
    ],
)
@pytest.mark.parametrize("kind", ["paragraph", "character"])
def test_text_that_its_style_hides_is_left_out(tmp_path: Path, kind: str, look: str, own: str, is_seen: bool) -> None:
    """The style is based on the one that hides, and may show its text again."""
    styles = "".join(
        f'<w:style w:type="{kind}" w:styleId="{name}">{base}<w:rPr>{properties}</w:rPr></w:style>'
        for name, base, properties in (("base", "", look), ("used", '<w:basedOn w:val="base"/>', own))
    )
    if kind == "paragraph":
        body = paragraph(SEEN) + paragraph(SECRET, '<w:pStyle w:val="used"/>')
    else:
        body = f'{paragraph(SEEN)}<w:p><w:r><w:rPr><w:rStyle w:val="used"/></w:rPr><w:t>{SECRET}</w:t></w:r></w:p>'
    data = docx_of(body, {"word/styles.xml": f"<w:styles {WORD_SPACES}>{styles}</w:styles>"})
    seen, hidden = (f"{SEEN} {SECRET}", []), (SEEN, ["5 words that are hidden in it are left out"])
    assert read(tmp_path / "a", data, Format.DOCX) == (seen if is_seen else hidden)


@pytest.mark.parametrize("tag", ["w:delText", "w:t"])
def test_deleted_text_is_left_out_and_inserted_text_read(tmp_path: Path, tag: str) -> None:
    tracked = (
        f'<w:del w:id="1" w:author="a"><w:r><{tag}>{SECRET}</{tag}></w:r></w:del>'
        '<w:ins w:id="2" w:author="a"><w:r><w:t>until eight</w:t></w:r></w:ins>'
    )
    data = changed(docx(SEEN, SECRET), document=lambda xml: xml.replace(f"<w:r><w:t>{SECRET}</w:t></w:r>", tracked))
    assert read(tmp_path / "a", data, Format.DOCX) == (f"{SEEN} until eight", [])


def test_text_that_was_moved_stands_where_it_is_now_and_a_text_box_once(tmp_path: Path) -> None:
    def moved(xml: str) -> str:
        paragraph = f"<w:r><w:t>{SECRET}</w:t></w:r>"
        twice = f"<w:r><mc:AlternateContent><mc:Choice>{paragraph}</mc:Choice><mc:Fallback>{paragraph}</mc:Fallback>"
        return xml.replace(paragraph, f"<w:moveFrom>{paragraph}</w:moveFrom>{twice}</mc:AlternateContent></w:r>")

    assert read(tmp_path / "a", changed(docx(SEEN, SECRET), document=moved), Format.DOCX)[0] == f"{SEEN} {SECRET}"


def test_a_document_without_a_list_of_relations_opens(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(docx(SEEN))) as whole:
        bare = {name: whole.read(name) for name in whole.namelist() if not name.endswith("document.xml.rels")}
    assert read(tmp_path / "a", archive(bare), Format.DOCX)[0] == SEEN


def test_a_hidden_slide_and_a_hidden_shape_are_left_out_and_named(tmp_path: Path) -> None:
    hidden = changed(pptx(SEEN, SECRET), slide2=lambda xml: xml.replace("<p:sld ", '<p:sld show="0" '))
    assert read(tmp_path / "a", hidden, Format.PPTX) == (SEEN, ["slide 2 is left out: it is hidden"])
    head = '<p:sp><p:nvSpPr><p:cNvPr id="2" name="x" hidden="1"/></p:nvSpPr>'
    shape = changed(pptx(SEEN, SECRET), slide2=lambda xml: xml.replace("<p:sp>", head))
    assert read(tmp_path / "b", shape, Format.PPTX) == (SEEN, ["of slide 2 5 words are left out: they are hidden"])


def test_a_presentation_of_which_every_slide_is_hidden_is_refused(tmp_path: Path) -> None:
    hidden = changed(pptx(SECRET), slide1=lambda xml: xml.replace("<p:sld ", '<p:sld show="0" '))
    with pytest.raises(DecodeError, match="every slide of it is hidden"):
        read(tmp_path / "a", hidden, Format.PPTX)


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        (lambda xml: xml.replace('<row r="2"', '<row r="2" hidden="1"'), "1 cells are left out: they are hidden"),
        (lambda xml: xml.replace('<row r="2"', '<row r="2" ht="0"'), "1 cells are left out: they are hidden"),
        (
            lambda xml: xml.replace("<sheetData>", '<cols><col min="1" max="1" hidden="1"/></cols><sheetData>').replace(
                'r="A1"', 'r="B1"'
            ),
            "1 cells are left out: they are hidden",
        ),
    ],
)
def test_hidden_rows_and_columns_are_left_out_and_counted(tmp_path: Path, change: Change, notice: str) -> None:
    book = changed(xlsx(Open=[[SEEN], [SECRET]]), sheet1=change)
    text, notices = read(tmp_path / "a", book, Format.XLSX)
    assert (text, notices) == (f"Open {SEEN}", [f"of the sheet Open {notice}"])


WHITE = '<color rgb="FFFFFFFF"/>'
STYLED = (
    '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts>'
    '<numFmt numFmtId="170" formatCode="{code}"/></numFmts><fonts><font/><font>{colour}</font></fonts><fills><fill>'
    '<patternFill patternType="none"/></fill><fill>{fill}</fill></fills><cellXfs><xf/><xf numFmtId="170" fontId="1" '
    'fillId="1"/></cellXfs></styleSheet>'
)
DARK = '<patternFill patternType="solid"><fgColor rgb="FF102040"/></patternFill>'
PLAIN = '<patternFill patternType="none"/>'


@pytest.mark.parametrize(
    ("code", "colour", "fill", "more", "is_seen"),
    [
        ("0", WHITE, PLAIN, "", False),
        ("0", '<color theme="0"/>', '<patternFill patternType="solid"><fgColor theme="0"/></patternFill>', "", False),
        (";;;", "", PLAIN, "", False),
        ("0", WHITE, DARK, "", True),
        ("0", '<color theme="1"/>', PLAIN, "", True),
        ("0", WHITE, PLAIN, '<tableParts count="1"><tablePart/></tableParts>', True),
    ],
)
def test_cells_that_show_nothing_are_left_out_and_counted(
    tmp_path: Path, code: str, colour: str, fill: str, more: str, is_seen: bool
) -> None:
    book = changed(
        xlsx(Open=[[SEEN], [SECRET]]),
        sheet1=lambda xml: xml.replace('r="A2"', 'r="A2" s="1"').replace("</sheetData>", f"</sheetData>{more}"),
    )
    files = {
        name: zipfile.ZipFile(io.BytesIO(book)).read(name) for name in zipfile.ZipFile(io.BytesIO(book)).namelist()
    }
    files["xl/styles.xml"] = STYLED.format(code=code, colour=colour, fill=fill).encode()
    text, notices = read(tmp_path / "a", archive(files), Format.XLSX)
    assert text == (f"Open {SEEN} {SECRET}" if is_seen else f"Open {SEEN}")
    assert notices == ([] if is_seen else ["of the sheet Open 1 cells are left out: they are hidden"])


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_a_hidden_sheet_is_left_out_and_named(tmp_path: Path, state: str) -> None:
    book = changed(
        xlsx(Open=[[SEEN]], Closed=[[SECRET]]),
        workbook=lambda xml: xml.replace('name="Closed"', f'name="Closed" state="{state}"'),
    )
    assert read(tmp_path / "a", book, Format.XLSX) == (f"Open {SEEN}", ["the sheet Closed is left out: it is hidden"])


SIDE_BY_SIDE = f"<table><tr {{row}}><td {{cell}}>{2 * f'<p>{SECRET}</p>'}<td {{cell}}>{3 * f'<p>{SECRET}</p>'}</table>"
"""A table that lays out a page."""


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", f'<p style="DISPLAY : NONE !important">{SECRET}</p>'),
        ("", f'<div class=x style="opacity:0"><p>{SECRET}</p></div>'),
        ("", f'<p style="font-size:0">{SECRET}</p>'),
        ("", f'<p style="font: 0/0 a">{SECRET}</p>'),
        ("", f'<div style="visibility:hidden">{SECRET}</div>'),
        ("", f"<table><tr hidden><td>{SECRET}</td></tr></table>"),
        ("", f'<table style="font-size:0">{2 * f"<tr><td>{SECRET}</td><td>{SECRET}</td></tr>"}</table>'),
        (
            "",
            f"<table>{2 * ('<tr>' + 2 * f'<td style=font-size:0>{SECRET}</td>' + '</tr>')}</table>".replace(
                "font-size:0", "'font-size:0'"
            ),
        ),
        ("", f'<p style="position:absolute;left:-9999px">{SECRET}</p>'),
        ("", f'<p style="position:absolute;left:-999em">{SECRET}</p>'),
        ("", f'<p style="position:absolute;width:1px;height:1px;padding:0;overflow:hidden">{SECRET}</p>'),
        ("", f'<div style="position:fixed;width:0;overflow-x:hidden">{SECRET}</div>'),
        ("", f'<p style="text-indent:100%;white-space:nowrap;overflow:hidden">{SECRET}</p>'),
        *(
            ("", f'<p style="{style}">{SECRET}</p>')
            for style in (
                "clip-path:inset(50%)",
                "clip-path: inset(0 100% 0 0 round 4px)",
                "clip-path:circle(0 at 50% 50%)",
                "clip-path:polygon(0 0, 0 0, 0px 0)",
                "transform:scale(0)",
                "transform: rotate(3deg) scaleY(0)",
                "transform:scale(1, 0)",
                "scale:0",
                "filter:blur(2px) opacity(0%)",
                "content-visibility:hidden",
                "position:fixed;transform:translateX(-9999px)",
                "opacity:.001",
                "opacity: 1%",
            )
        ),
        ("<style>.x { clip-path: inset(100%) }</style>", f'<p class="x">{SECRET}</p>'),
        ("", f"<noscript>{SECRET}</noscript>"),
        ("", f"<video><p>{SECRET}</p></video><canvas>{SECRET}</canvas><meter value=3 max=5>{SECRET}</meter>"),
        ("", f"<datalist><option>{SECRET}</datalist>"),
        ("", f"<dialog id=open><p>{SECRET}</p></dialog>"),
        ("", f"<div popover id=menu><p>{SECRET}</p></div>"),
        ("", f'<div style="overflow:hidden; max-height: 0px">{SECRET}</div>'),
        ("", SIDE_BY_SIDE.format(cell='style="font-size:0"', row="")),
        ("", SIDE_BY_SIDE.format(cell='style="visibility:hidden"', row="")),
        ("", SIDE_BY_SIDE.format(cell="", row="hidden")),
        ("<style>.x { height:0; overflow-y:hidden }</style>", f'<div class="x">{SECRET}</div>'),
        ("<style>.x { opacity: 0 }</style>", f'<p class="x">{SECRET}</p>'),
        ("<style>@media screen { .x {display:none} p {color:red} }</style>", f'<p class="x">{SECRET}</p>'),
    ],
)
def test_what_styles_hide_of_a_web_page_is_left_out(tmp_path: Path, head: str, body: str) -> None:
    page = f"<html><head>{head}</head><body><p style='font-size:1.5em;opacity:0.9'>{SEEN}</p>{body}</body></html>"
    assert read(tmp_path / "a", page, Format.HTML)[0] == SEEN


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", '<div style="font-size:0"><p style="font-size:14px">{}</p></div>'),
        ("", '<div class="a hidden b">{}</div>'),
        ("", '<button popovertarget="menu">{}</button>'),
        ("", '<div style="font-size: 1px; line-height:0"><span style="font:14px/2 serif">{}</span></div>'),
        ("<style>.row{font-size:0}.col{font-size:1rem}</style>", '<div class="row"><p class="col">{}</p></div>'),
        ("<style>body{visibility:hidden}.a{visibility:visible}</style>", '<p class="a">{}</p>'),
        ("", '<div style="visibility:hidden"><p style="visibility:visible">{}</p></div>'),
        ("<style>.a{opacity:0;animation:in 1s forwards}</style>", '<p class="a">{}</p>'),
    ],
)
def test_what_shows_itself_in_what_is_hidden_is_read(tmp_path: Path, head: str, body: str) -> None:
    page = f"<html><head>{head}</head><body>{body.format(SEEN)}</body></html>"
    assert read(tmp_path / "a", page, Format.HTML)[0] == SEEN


@pytest.mark.parametrize(
    "style",
    [
        "font-size:0.8em",
        "opacity:0.05",
        "opacity:.3",
        "opacity:20%",
        "font-size:10px",
        "left:-5px",
        "display:flex",
        "transform:scale(0.5)",
        "transform:scale(1)",
        "scale:0.9",
        "clip-path:inset(0)",
        "clip-path:inset(0 50% 0 0)",
        "clip-path:circle(50%)",
        "clip-path:polygon(0 0, 100% 0, 100% 100%)",
        "filter:opacity(.5)",
        "transform:translateX(-50%)",
        "transform:scale(0);animation:grow 1s forwards",
        "content-visibility:auto",
    ],
)
def test_small_and_faint_type_is_not_hidden(style: str) -> None:
    assert not hides(style)


@pytest.mark.parametrize(
    "style",
    [
        "height:0",
        "overflow:hidden",
        "min-height:0; overflow:hidden",
        "line-height:0; overflow:hidden",
        "height:0.5em; overflow:hidden",
        "height:0; overflow:visible",
        "height:0; padding-bottom:56%; overflow:hidden",
        "height:1px",
        "margin-left:-99em",
        "width:0; flex:1; overflow:hidden",
        "text-indent:100%",
    ],
)
def test_what_has_a_height_or_is_not_clipped_is_not_hidden(style: str) -> None:
    assert not hides(style)


def test_an_open_dialog_is_seen(tmp_path: Path) -> None:
    page = f'<html><body><p>{SEEN}</p><dialog class="x" open><p>{SECRET}</p></dialog></body></html>'
    assert read(tmp_path / "a", page, Format.HTML)[0] == f"{SEEN} {SECRET}"


STRUCK_NOTICE = ["1 words that are struck out in it are left out"]
BLOCKS = "<p>The ticket costs {} 55 crowns.</p>"


@pytest.mark.parametrize(
    ("head", "struck"),
    [
        ("", "<del>40</del>"),
        ("", "<s>40</s>"),
        ("", "<strike>40</strike>"),
        ("", '<span style="color:red; text-decoration: line-through red">40</span>'),
        ("", '<span style="text-decoration-line:line-through">40</span>'),
        ("<style>.old{text-decoration:line-through}</style>", '<span class="old">40</span>'),
        ("<style>@media screen{p .old{text-decoration:line-through}}</style>", "<b class=old>40</b>"),
    ],
)
def test_what_is_struck_out_on_a_web_page_is_left_out_and_counted(tmp_path: Path, head: str, struck: str) -> None:
    page = f"<html><head>{head}</head><body>{BLOCKS.format(struck)}</body></html>"
    assert read(tmp_path / "a", page, Format.HTML) == ("The ticket costs 55 crowns.", STRUCK_NOTICE)


@pytest.mark.parametrize(
    ("head", "shown"),
    [
        ("", "<ins>40</ins>"),
        ("", '<u style="text-decoration:underline">40</u>'),
        ("<style>del{text-decoration:none}</style>", "<del>40</del>"),
        ("<style>.old{text-decoration:line-through}</style>", '<span class="older">40</span>'),
    ],
)
def test_what_is_not_struck_out_on_a_web_page_stays(tmp_path: Path, head: str, shown: str) -> None:
    page = f"<html><head>{head}</head><body>{BLOCKS.format(shown)}</body></html>"
    assert read(tmp_path / "a", page, Format.HTML) == ("The ticket costs 40 55 crowns.", [])


@pytest.mark.parametrize("look", ['style="text-decoration:line-through"', 'class="old"'])
def test_a_struck_cell_leaves_the_cells_behind_it_below_their_heads(tmp_path: Path, look: str) -> None:
    sheet = "<style>.old{text-decoration:line-through}</style>"
    rows = f"<tr><td>Hall</td><td>2019</td><td>2020</td></tr><tr><td>Sand</td><td {look}>40</td><td>55</td></tr>"
    (tmp_path / "a").write_text(f"<html><head>{sheet}</head><body><table>{rows}</table></body></html>")
    (part,), notices = laid_out(tmp_path / "a", Format.HTML)
    with part.open() as document:
        places = {word[4]: word[0] for word in document[0].get_text("words")}
    assert notices == STRUCK_NOTICE
    assert "40" not in places
    assert places["55"] == places["2020"]


def epub(body: str, **sheets: str) -> bytes:
    """An e-book of one page with style sheets by their names."""
    links = "".join(f"<link rel='stylesheet' href='{name}.css'/>" for name in sheets)
    page = f"<html xmlns='http://www.w3.org/1999/xhtml'><head>{links}</head><body>{body}</body></html>"
    items = "".join(f"<item id='{name}' href='{name}.css' media-type='text/css'/>" for name in sheets)
    package = (
        "<package xmlns='http://www.idpf.org/2007/opf' version='2.0' unique-identifier='i'><metadata "
        "xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>Book</dc:title></metadata><manifest><item id='a' "
        f"href='a.xhtml' media-type='application/xhtml+xml'/>{items}</manifest><spine><itemref idref='a'/></spine>"
        "</package>"
    )
    container = (
        "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container' version='1.0'><rootfiles><rootfile "
        "full-path='p.opf' media-type='application/oebps-package+xml'/></rootfiles></container>"
    )
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "p.opf": package,
        "a.xhtml": page,
        **{f"{name}.css": sheet for name, sheet in sheets.items()},
    }
    return archive(files)


def test_what_is_struck_out_in_an_e_book_is_left_out_and_counted(tmp_path: Path) -> None:
    book = epub(BLOCKS.format("<del>40</del>"))
    assert read(tmp_path / "a", book, Format.EPUB) == ("The ticket costs 55 crowns.", STRUCK_NOTICE)
    changed_book = epub(BLOCKS.format("<del>40</del>"), s="body{color:rgba(0,0,0,.9)}")
    assert read(tmp_path / "b", changed_book, Format.EPUB) == ("The ticket costs 55 crowns.", STRUCK_NOTICE)


@pytest.mark.parametrize(
    ("body", "sheet"),
    [
        (f"<p>{SEEN}</p>", "body{color:rgba(0,0,0,.87)}"),
        (f"<p style='color:rgba(0,0,0,.87)'>{SEEN}</p>", ""),
        (f"<p>{SEEN}</p><p class='a'>{SECRET}</p>", ".a{opacity:0}"),
        (f"<p>{SEEN}</p><p style='left:-9999px'>{SECRET}</p>", ""),
        (f"<p class='a b'>{SEEN}</p>", ".a{display:none}@media (min-width:500px){.b{display:block}}"),
        (f"<p class='a'>{SEEN}</p><p>{SECRET}</p>", "p:not(.a){display:none}"),
        (f"<p>{SEEN}</p><p class='a'>{SECRET}</p>", "body{--out:none;:is(.a,.b){display:var(--out)}}"),
        (
            f"<h1 class='a g'>{SEEN}</h1>",
            ".a{background-clip:text;color:transparent}.g{background:linear-gradient(red,blue)}",
        ),
        (
            f"<p class='a'>employs many people.</p><p>{SECRET}</p>",
            "p{display:none}.a{display:block}.a::before{content:'The tannery '}",
        ),
    ],
)
def test_an_e_book_is_read_as_its_styles_show_it(tmp_path: Path, body: str, sheet: str) -> None:
    assert read(tmp_path / "a", epub(body, s=sheet), Format.EPUB)[0] == SEEN


@pytest.mark.parametrize(
    "properties", ["<w:strike/>", "<w:dstrike/>", '<w:b/><w:strike w:val="1"/>', '<w:strike w:val="true"/>']
)
def test_text_that_is_struck_out_in_a_document_is_left_out_and_counted(tmp_path: Path, properties: str) -> None:
    notice = "5 words that are struck out in it are left out"
    assert read(tmp_path / "a", run(properties), Format.DOCX) == (SEEN, [notice])


def test_a_line_that_is_taken_back_strikes_nothing_out(tmp_path: Path) -> None:
    assert read(tmp_path / "a", run('<w:strike w:val="0"/>'), Format.DOCX) == (f"{SEEN} {SECRET}", [])


@pytest.mark.parametrize("kind", ["paragraph", "character"])
def test_text_that_its_style_strikes_out_is_left_out(tmp_path: Path, kind: str) -> None:
    styles = f'<w:style w:type="{kind}" w:styleId="old"><w:rPr><w:strike/></w:rPr></w:style>'
    if kind == "paragraph":
        body = paragraph(SEEN) + paragraph(SECRET, '<w:pStyle w:val="old"/>')
    else:
        body = f'{paragraph(SEEN)}<w:p><w:r><w:rPr><w:rStyle w:val="old"/></w:rPr><w:t>{SECRET}</w:t></w:r></w:p>'
    data = docx_of(body, {"word/styles.xml": f"<w:styles {WORD_SPACES}>{styles}</w:styles>"})
    assert read(tmp_path / "a", data, Format.DOCX) == (SEEN, ["5 words that are struck out in it are left out"])


def test_text_that_is_struck_out_on_a_slide_is_left_out_and_counted(tmp_path: Path) -> None:
    struck = changed(
        pptx(SEEN, SECRET),
        slide2=lambda xml: xml.replace(f"<a:t>{SECRET}", f'<a:rPr lang="en" strike="sngStrike"/><a:t>{SECRET}'),
    )
    assert read(tmp_path / "a", struck, Format.PPTX) == (SEEN, ["of slide 2 5 words are left out: they are struck out"])


@pytest.mark.parametrize(
    ("sheet", "is_seen"),
    [
        (".d-none{display:none!important}@media (min-width:768px){.d-md-block{display:block!important}}", True),
        (r".hidden{display:none}@media (min-width:48rem){.md\:block{display:block}}", True),
        (r"@media (max-width:600px){.hidden{display:none}}", True),
        (r"@media (min-width:600px){.md\:block{display:none}}", False),
    ],
)
def test_what_a_desktop_shows_of_a_responsive_page_is_read(tmp_path: Path, sheet: str, is_seen: bool) -> None:
    body = f'<p>{SEEN}</p><div class="d-none d-md-block hidden md:block">{SECRET}</div>'
    page = f"<html><head><style>{sheet}</style></head><body>{body}</body></html>"
    assert read(tmp_path / "a", page, Format.HTML)[0] == (f"{SEEN} {SECRET}" if is_seen else SEEN)


@pytest.mark.parametrize(
    ("style", "is_unseen"),
    [("visibility:hidden", True), ("font-size:0", True), ("display:none", True), ("font-size:9px", False)],
)
def test_an_element_of_markdown_is_left_out_whose_style_shows_nothing_of_it(style: str, is_unseen: bool) -> None:
    markup = f"{SEEN} <p style='{style}'>{SECRET}</p>"
    assert [markup[start:end] for start, end in hidden_spans(markup)[0]] == (
        [f"<p style='{style}'>{SECRET}</p>"] if is_unseen else []
    )


def test_the_look_that_text_had_before_a_change_hides_nothing(tmp_path: Path) -> None:
    def changed_look(name: str, before: str) -> str:
        held = f'<w:{name}Change w:id="1" w:author="x"><w:{name}>{before}</w:{name}></w:{name}Change>'
        return f"<w:{name}><w:b/>{held}</w:{name}>"

    words = "".join(
        f"<w:r>{changed_look('rPr', look)}<w:t>{SEEN} </w:t></w:r>" for look in ("<w:strike/>", "<w:vanish/>")
    )
    document = docx_of(f"<w:p>{changed_look('pPr', '<w:rPr><w:vanish/></w:rPr>')}{words}</w:p>")
    assert read(tmp_path / "a", document, Format.DOCX) == (f"{SEEN} {SEEN}", [])


def test_hidden_rows_of_a_document_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = "".join(
        f"<w:tr><w:trPr>{look}</w:trPr><w:tc><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc></w:tr>"
        for look, text in (("<w:hidden/>", SECRET), ('<w:hidden w:val="0"/>', SEEN))
    )
    assert read(tmp_path / "a", docx_of(f"<w:tbl>{rows}</w:tbl>"), Format.DOCX) == (
        SEEN,
        ["1 rows of tables in it are left out: they are hidden"],
    )


def test_comments_of_a_presentation_are_counted(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(pptx("Berths in use: 14"))) as whole:
        files: dict[str, str | bytes] = {name: whole.read(name) for name in whole.namelist()}
    comment = '<p:cm xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"><p:text>15</p:text></p:cm>'
    files["ppt/comments/comment1.xml"] = f"<cmLst>{2 * comment}</cmLst>"
    (tmp_path / "a.pptx").write_bytes(archive(files))
    assert laid_out(tmp_path / "a.pptx", Format.PPTX)[1] == ["2 comments in it are left out"]
