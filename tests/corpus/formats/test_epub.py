import io
import zipfile

import pytest
from PIL import Image

from tests.support.books import chapter, epub
from tests.support.documents import decoded, image_bytes
from tests.support.office import archive
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
