"""LibreOffice as a converter: what it is started with, what ends it, and, where it is installed, what it makes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pymupdf
import pytest

from tests.support.office import compound, open_document, stand_in
from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.formats.office.slides import shown_slides
from vrag_ray.corpus.formats.office.workbook import strings_of
from vrag_ray.corpus.model import DecodeError, KilledError, KillReason
from vrag_ray.corpus.sandbox.office import OfficeConverter, installed_office
from vrag_ray.corpus.sniff import Format, sniff_bytes

LIMITS = DecodeLimits(office_seconds=60, office_wall_seconds=120.0)
_PROGRAM = installed_office()
with_office = pytest.mark.skipif(_PROGRAM is None, reason="LibreOffice is not installed")


@pytest.fixture(scope="module")
def office() -> Iterator[OfficeConverter]:
    assert _PROGRAM is not None
    with closing(OfficeConverter(_PROGRAM, LIMITS)) as converter:
        yield converter


def converter(program: Path, **limits: float) -> OfficeConverter:
    return OfficeConverter(program, DecodeLimits.model_validate({"office_wall_seconds": 60.0} | limits))


def file_of(tmp_path: Path, data: bytes) -> Path:
    (path := tmp_path / "blob").write_bytes(data)
    return path


def test_the_program_gets_a_copy_of_the_file_and_a_profile_in_which_no_macro_runs(tmp_path: Path) -> None:
    script = 'cp "$in" "$out"; echo "$@" > words; cp "${1#-env:UserInstallation=file://}"/user/*.xcu . && cp * '
    program = stand_in(tmp_path / "bin", f"{script} {tmp_path}")
    with closing(converter(program)) as made, made.converted(file_of(tmp_path, b"old"), Format.DOC) as converted:
        assert converted.pages.read_bytes() == b"old"
        assert converted.slides is None
    assert not converted.pages.exists()
    words = (tmp_path / "words").read_text().split()
    assert words[0].startswith("-env:UserInstallation=file:///")
    assert words[words.index("--convert-to") + 1].startswith("pdf:writer_pdf_Export")
    assert words[-1].endswith("/original.doc")
    settings = (tmp_path / "registrymodifications.xcu").read_text()
    assert '"DisableMacrosExecution" oor:op="fuse"><value>true<' in settings
    assert '"BlockUntrustedRefererLinks" oor:op="fuse"><value>true<' in settings


def test_a_converter_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "bin", f"sleep 600 & echo $! > {tmp_path}/pid; wait")
    with (
        closing(converter(program, office_wall_seconds=3.0)) as made,
        pytest.raises(KilledError, match="not converted by LibreOffice within 3 s") as raised,
        made.converted(file_of(tmp_path, b"x"), Format.RTF),
    ):
        pass
    assert raised.value.reason is KillReason.WALL
    sleeping = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    deadline = time.monotonic() + 20
    while sleeping.exists() and ") Z" not in sleeping.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_converter_that_works_without_end_is_ended_by_its_limit_of_cpu(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "bin", "while :; do :; done")
    with (
        closing(converter(program, office_seconds=1)) as made,
        pytest.raises(KilledError, match="more than 1 s of CPU") as raised,
        made.converted(file_of(tmp_path, b"x"), Format.RTF),
    ):
        pass
    assert raised.value.reason is KillReason.CPU


def test_a_file_of_which_nothing_is_made_is_an_error_with_a_remedy_and_the_next_gets_a_new_profile(
    tmp_path: Path,
) -> None:
    program = stand_in(tmp_path / "bin", f'echo "$1" >> {tmp_path}/profiles; [ "$target" = broken ] && cp "$in" "$out"')
    with closing(converter(program)) as made:
        for _ in range(2):
            with (
                pytest.raises(DecodeError, match=r"damaged or locked by a password; .* export it as PDF"),
                made.converted(file_of(tmp_path, b"x"), Format.ODS),
            ):
                pass
    assert len(set((tmp_path / "profiles").read_text().splitlines())) == 2


def test_a_program_is_started_without_a_network_where_the_system_allows_it() -> None:
    try_it = "import sys; from vrag_ray.corpus.sandbox.confined import leave_network; sys.exit(not leave_network())"
    if subprocess.run([sys.executable, "-c", try_it], check=False).returncode:
        pytest.skip("this system does not let a process leave its network")
    module = [sys.executable, "-m", "vrag_ray.corpus.sandbox.confined", str(1 << 32), "10", "1000"]
    seen = subprocess.run([*module, "/bin/cat", "/proc/net/dev"], check=True, capture_output=True, text=True).stdout
    assert [line.partition(":")[0].strip() for line in seen.splitlines()[2:]] == ["lo"]
    assert subprocess.run([*module, "/usr/bin/id", "-u"], check=True, capture_output=True, text=True).stdout == (
        f"{os.geteuid()}\n"
    )


@pytest.mark.parametrize(
    ("name", "data", "format_"),
    [
        ("a.doc", compound("WordDocument", inside=["Workbook", "__properties_version1.0"]), Format.DOC),
        ("a.xls", compound("Workbook", inside=["WordDocument"]), Format.XLS),
        ("a.xls", compound("Book"), Format.XLS),
        ("a.ppt", compound("Current User", "PowerPoint Document", inside=["Workbook"]), Format.PPT),
        ("a.msg", compound("__properties_version1.0", inside=["WordDocument"]), Format.MSG),
        ("a.rtf", rb"{\rtf1 words}", Format.RTF),
        ("a.doc", rb"{\rtf1 words}", Format.RTF),
        ("a.odt", open_document("text", ""), Format.ODT),
        ("a.odp", open_document("presentation", ""), Format.ODP),
        ("a.ots", open_document("spreadsheet", ""), Format.ODS),
    ],
)
def test_an_office_file_is_what_its_outermost_folder_holds(name: str, data: bytes, format_: Format) -> None:
    assert sniff_bytes(data, name).format is format_


@with_office
def test_a_text_has_pages_with_its_headings_as_their_outline(office: OfficeConverter, tmp_path: Path) -> None:
    body = '<text:h text:outline-level="1">Quays</text:h><text:p>Crane Odin lifts 73 tonnes.</text:p>'
    path = file_of(tmp_path, open_document("text", body))
    with office.converted(path, Format.ODT) as made, pymupdf.open(made.pages) as pdf:
        assert pdf[0].get_text().split("\n")[:2] == ["Quays", "Crane Odin lifts 73 tonnes."]
        assert pdf.get_toc() == [[1, "Quays", 1]]


@with_office
def test_slides_have_pages_and_notes(office: OfficeConverter, tmp_path: Path) -> None:
    def slide(words: str, notes: str) -> str:
        place = 'svg:x="2cm" svg:y="2cm" svg:width="20cm" svg:height="3cm"'
        box = f"<draw:frame {place}><draw:text-box><text:p>{words}</text:p></draw:text-box></draw:frame>"
        notes_frame = (
            f"<draw:frame {place} presentation:class='notes'><draw:text-box><text:p>{notes}</text:p></draw:text-box>"
        )
        return f"<draw:page>{box}<presentation:notes>{notes_frame}</draw:frame></presentation:notes></draw:page>"

    path = file_of(tmp_path, open_document("presentation", slide("Cranes lift", "Odin is old") + slide("Locks", "")))
    with office.converted(path, Format.ODP) as made, pymupdf.open(made.pages) as pdf:
        assert [page.get_text().strip() for page in pdf] == ["Cranes lift", "Locks"]
        assert made.slides is not None
        assert [slide.notes for slide in shown_slides(made.slides)[0]] == ["Odin is old", ""]


@with_office
def test_a_workbook_becomes_one_whose_cells_can_be_read(office: OfficeConverter, tmp_path: Path) -> None:
    import zipfile
    from xml.etree import ElementTree

    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    sheet = (
        f'<table:table table:name="Fees 2024"><table:table-row>{cell.format("Herring")}</table:table-row></table:table>'
    )
    with office.converted(file_of(tmp_path, open_document("spreadsheet", sheet)), Format.ODS) as made:
        assert sniff_bytes(made.pages.read_bytes(), "").format is Format.XLSX
        with zipfile.ZipFile(made.pages) as archive:
            assert 'name="Fees 2024"' in archive.read("xl/workbook.xml").decode()
            assert strings_of(ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))) == ["Herring"]


@with_office
def test_what_a_file_links_to_is_not_fetched(office: OfficeConverter, tmp_path: Path) -> None:
    requests: list[str] = []

    class Listener(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(404)
            self.end_headers()

    (tmp_path / "secret.txt").write_text("the secret of the mole")
    server = HTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        image = f'<draw:image xlink:href="http://127.0.0.1:{server.server_port}/seen.png" xlink:type="simple"/>'
        frame = f'<draw:frame svg:width="2cm" svg:height="2cm" text:anchor-type="as-char">{image}</draw:frame>'
        link = f'<text:section-source xlink:href="file://{tmp_path}/secret.txt" xlink:type="simple"/>'
        body = f'<text:p>Before {frame}</text:p><text:section text:name="s">{link}<text:p>own</text:p></text:section>'
        path = file_of(tmp_path, open_document("text", body))
        with office.converted(path, Format.ODT) as made, pymupdf.open(made.pages) as pdf:
            words = pdf[0].get_text()
    finally:
        server.shutdown()
        server.server_close()
    assert "Before" in words
    assert "secret" not in words
    assert requests == []
