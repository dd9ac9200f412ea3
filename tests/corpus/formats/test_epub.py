import io
import zipfile

import pymupdf
import pytest
from PIL import Image

from tests.support.books import chapter, epub
from tests.support.documents import decoded, image_bytes
from tests.support.office import archive
from vrag_ray.corpus.formats.epub import readable_book
from vrag_ray.corpus.model import DecodeError, WorkItem
from vrag_ray.types import DocumentKind

MAST = chapter("<p>The mast is of spruce.</p>")
NOISE = bytes(range(256)) * 20


def encryption(*names: str) -> dict[str, str | bytes]:
    data = "".join(
        f"<EncryptedData xmlns='http://www.w3.org/2001/04/xmlenc#'><CipherData><CipherReference URI='OEBPS/{name}'/>"
        "</CipherData></EncryptedData>"
        for name in names
    )
    root = "urn:oasis:names:tc:opendocument:xmlns:container"
    return {"META-INF/encryption.xml": f"<encryption xmlns='{root}'>{data}</encryption>"}


@pytest.mark.parametrize(
    ("locked", "others", "reason"),
    [(None, {}, "missing or damaged"), (NOISE, encryption("b c.xhtml"), "locked by copy protection (DRM)")],
)
def test_chapters_that_cannot_be_read_have_no_page_and_are_named_in_a_notice(
    sandbox, put, options, locked, others, reason
):
    path = put("a.epub", epub({"gone.xhtml": None, "a.xhtml": MAST, "b c.xhtml": locked}, others))
    probe = sandbox.probe(path, "a.epub")
    assert probe.units == 1
    assert probe.notices[0] == f"chapters left out: OEBPS/gone.xhtml, OEBPS/b c.xhtml ({reason})"
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.epub"), options)
    assert unit.text.strip() == "The mast is of spruce."


@pytest.mark.parametrize(
    ("content", "others", "cause"),
    [
        (NOISE, encryption("a.xhtml"), r"locked by copy protection \(DRM\): get an edition without it"),
        (NOISE, {"META-INF/rights.xml": "<rights/>"}, r"locked by copy protection \(DRM\): get an edition without it"),
        (None, {}, r"missing or damaged: get the whole file again"),
    ],
)
def test_a_book_without_a_readable_chapter_is_an_error_that_names_the_cause(sandbox, put, content, others, cause):
    path = put("a.epub", epub({"a.xhtml": content}, others))
    with pytest.raises(DecodeError, match=cause):
        sandbox.probe(path, "a.epub")


def test_a_book_of_which_the_fonts_alone_are_encrypted_is_read(sandbox, put):
    path = put("a.epub", epub({"a.xhtml": MAST}, encryption("f.otf")))
    assert [notice.partition(":")[0] for notice in sandbox.probe(path, "a.epub").notices] == ["reflowed"]


def test_formulas_of_a_book_are_read_as_text(sandbox, put, options):
    half = (
        "<m:math xmlns:m='http://www.w3.org/1998/Math/MathML'><m:mfrac><m:mn>1</m:mn><m:mn>2</m:mn></m:mfrac></m:math>"
    )
    path = put("a.epub", epub({"a.xhtml": chapter(f"<p>Take 2 {half} cups.</p>"), "b.xhtml": MAST}, {}))
    units = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 2, "a.epub"), options)
    assert [unit.text.strip() for unit in units] == ["Take 2 1/2 cups.", "The mast is of spruce."]


HIDDEN = "<p>The mast is of spruce.</p><p class='b'>Gone</p>"
PAGE = "<html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='x.js'/>{}</head><body>{}</body></html>"


@pytest.mark.parametrize(
    ("page", "sheets"),
    [
        (PAGE.format("<style><![CDATA[ body &gt; .b{display:none} ]]></style>", HIDDEN), {}),
        (PAGE.format("<link rel='stylesheet' href='../Styles/m%20a.css'/>", HIDDEN),
         {"Styles/m a.css": "@charset 'utf-8';@import url('in/b.css') screen;",
          "Styles/in/b.css": ".b{display:none}"}),
        (PAGE.format("<link rel='stylesheet' href='../a.css'/>", HIDDEN),
         {"a.css": "@import 'a.css';@import 'b.css';" * 60, "b.css": "@import 'a.css';" * 60 + ".b{display:none}"}),
        (PAGE.format("<style>.b{display:none}</style>", "<p class='b'/><p>The mast<a id='b'/> is of spruce.</p>"), {}),
        ("<!DOCTYPE html [<!ENTITY tree 'spruce'>]>" + PAGE.format("", "<p>The <![CDATA[mast]]> is of &tree;.</p>"),
         {}),
        ("<h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:head><h:style>.b{display:none}</h:style></h:head><h:body>"
         "<h:p class='b'>Gone</h:p><h:p>The mast is of spruce.</h:p></h:body></h:html>", {}),
    ],
)  # fmt: skip
def test_chapters_are_xhtml_and_their_style_sheets_are_found(sandbox, put, options, page, sheets):
    path = put("a.epub", epub({"a.xml": page}, sheets))
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.epub"), options)
    assert unit.text.strip() == "The mast is of spruce."


def test_counters_and_rows_of_flex_containers_are_read_in_a_chapter(sandbox, put, options):
    sheet = "h2{counter-increment:s}h2::before{content:counter(s,upper-roman) '. '}.f{display:flex}"
    row = "<div class='f'><b>{}</b><i>{}</i></div>"
    body = f"<h2>Masts</h2><h2>Keels</h2>{row.format('Spruce', 71)}{row.format('Oak', 22)}"
    path = put("a.epub", epub({"a.xhtml": PAGE.format(f"<style>{sheet}</style>", body)}, {}))
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.epub"), options)
    assert [" ".join(line.split()) for line in unit.text.split("\n") if line.strip()] == [
        "I. Masts",
        "II. Keels",
        "Spruce 71",
        "Oak 22",
    ]


def test_a_cover_is_drawn_and_fonts_and_margins_stay_in_the_style_sheets(tmp_path):
    cover = (
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' width='90' height='90' "
        "viewBox='0 0 9 9'><image width='9' height='9' xlink:href='c.png'/></svg>"
    )
    sheet = "p{margin:0}@font-face{font-family:Own;src:url(own.otf)}@page{margin:9px}"
    files = {"OEBPS/c.png": image_bytes(Image.new("RGB", (9, 9), "red"), "PNG"), "OEBPS/s.css": sheet}
    (tmp_path / "a").write_bytes(epub({"a.xhtml": PAGE.format("<link rel='stylesheet' href='s.css'/>", cover)}, files))
    book, _ = readable_book(tmp_path / "a", (595, 842), 11)
    assert isinstance(book, bytes)
    with pymupdf.open(stream=book, filetype="epub") as document:
        assert document[0].get_pixmap().color_topusage()[1] == b"\xff\xff\xff"
        assert b"\xff\0\0" * 80 in document[0].get_pixmap().samples
    with zipfile.ZipFile(io.BytesIO(book)) as archive_:
        left = archive_.read("OEBPS/s.css").decode()
    assert left == "@font-face{font-family:Own;src:url(own.otf)}@page{margin:9px}"


def test_a_book_is_one_without_its_mimetype_too(sandbox, put, options):
    book = zipfile.ZipFile(io.BytesIO(epub({"a.xhtml": MAST}, {})))
    path = put("a.epub", archive({name: book.read(name) for name in book.namelist() if name != "mimetype"}))
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.epub"), options)
    assert unit.text.strip() == "The mast is of spruce."


def test_hidden_files_in_a_comic_are_no_pages_and_a_damaged_picture_is_named(sandbox, put, options):
    picture = image_bytes(Image.new("RGB", (60, 80), "white"), "PNG")
    hidden = {"__MACOSX/b/._1.png": b"\0\5", "b/.thumb.png": b"\0", "Thumbs.db": b"\0"}
    path = put("a.cbz", archive({"b/1.png": picture, "b/2.png": b"\0\0", **hidden}))
    assert sandbox.probe(path, "a.cbz").units == 2
    _, damaged = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 2, "a.cbz"), options)
    assert damaged.error == "a.cbz: page 2 is no picture that can be read: get the whole file again"


def test_what_a_class_strikes_out_in_a_chapter_is_left_out_and_counted(sandbox, put, options):
    style = "@font-face{font-family:Bell;src:url(bell.ttf)}.gone{text-decoration:line-through}"
    body = "<p class='price'>The bell weighs 310 kg.</p><p class='gone'>Or 250 kg.</p>"
    page = f"<html xmlns='http://www.w3.org/1999/xhtml'><head><style>{style}</style></head><body>{body}</body></html>"
    path = put("a.epub", epub({"a.xhtml": page}, {}))
    assert sandbox.probe(path, "a.epub").notices[0] == "3 words that are struck out in it are left out"
    (unit,) = decoded(sandbox, path, WorkItem("d", DocumentKind.PDF, 0, 1, "a.epub"), options)
    assert unit.text.strip() == "The bell weighs 310 kg."
    book, _ = readable_book(path, (595, 842), 11)
    assert isinstance(book, bytes)
    with zipfile.ZipFile(io.BytesIO(book)) as archived:
        assert b"<style>@font-face{font-family:Bell;src:url(bell.ttf)}</style>" in archived.read("OEBPS/a.xhtml")
