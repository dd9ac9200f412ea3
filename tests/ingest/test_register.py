"""What one file becomes: a document, and one more for each file that is attached to it. No Ray."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import closing
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pymupdf
import pytest

from tests.support.documents import image_bytes, picture_of, text_pdf
from tests.support.ingest_material import settings_for
from tests.support.office import compound, docx, pptx, stand_in, xlsx
from vrag_ray.config import OfficeUse, Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.verify import verify
from vrag_ray.ingest import ingest
from vrag_ray.ingest.plan import Committed, DocumentPlan, task_from_json
from vrag_ray.ingest.progress import INGEST_STAGES, MovingBoard
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import file_source, list_sources
from vrag_ray.library.library import Library
from vrag_ray.types import PAGES, DocumentKind, DocumentStatus, Locator

NOTHING = Committed(finished=frozenset(), units={}, counted={})


def plans(root: Path, file: Path, committed: Committed = NOTHING) -> list[DocumentPlan]:
    """What registering ``file`` plans, in its order."""
    register = Register(str(root), settings_for(root), committed, MovingBoard(INGEST_STAGES, by_file=True))
    with closing(register):
        tasks = [
            task
            for made in register({"sources": [group_json([file_source(file)], {"year": 2024})]})
            for task in made["task"]
        ]
    return [planned.plan for task in tasks for planned in task_from_json(task)]


def mail(subject: str, *attached: tuple[str, bytes] | EmailMessage) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"] = subject, "ida@example.org"
    message.set_content(f"The words of {subject}.")
    for attachment in attached:
        if isinstance(attachment, EmailMessage):
            message.add_attachment(attachment)
        else:
            message.add_attachment(
                attachment[1], maintype="application", subtype="octet-stream", filename=attachment[0]
            )
    return message


@pytest.fixture
def portfolio() -> bytes:
    document = pymupdf.open()
    document.new_page().insert_text((72, 100), "Cover")
    document.embfile_add("tariff.txt", b"Herring: 6 percent.", filename="tariff.txt")
    return document.tobytes()


def test_what_is_attached_becomes_documents_named_after_what_holds_them(tmp_path: Path, portfolio: bytes) -> None:
    file = tmp_path / "mail.eml"
    file.write_bytes(
        mail("Late", ("a b.pdf", portfolio), ("n.txt", b"one"), ("n.txt", b"two"), ("x.exe", b"MZ\0")).as_bytes()
    )
    outer, pdf, first, second, inner = plans(tmp_path / "c", file)
    assert (outer.kind, outer.title, outer.meta["attachments"]) == (DocumentKind.TEXT, "Late", 3)
    assert outer.notices == ["attachments left out: x.exe (is of no supported kind)"]
    assert (pdf.kind, pdf.title) == (DocumentKind.PDF, "a b.pdf (attached to mail.eml)")
    assert pdf.meta == {"year": 2024, "attached_to": "mail.eml", "attachments": 1}
    uri = file.as_uri()
    assert [plan.uri for plan in (pdf, first, second, inner)] == [
        f"{uri}#attachment=a%20b.pdf",
        f"{uri}#attachment=n.txt",
        f"{uri}#attachment=n.txt&2",
        f"{uri}#attachment=a%20b.pdf/attachment=tariff.txt",
    ]
    assert (inner.title, inner.name) == ("tariff.txt (attached to a b.pdf)", "tariff.txt")
    assert (
        CollectionFiles(str(tmp_path / "c")).local_path(f"blobs/{inner.doc_id}").read_bytes() == b"Herring: 6 percent."
    )


def test_messages_in_messages_end_with_a_notice(tmp_path: Path) -> None:
    message = mail("number 0", ("deep.txt", b"too deep"))
    for number in range(1, 5):
        message = mail(f"number {number}", message)
    file = tmp_path / "mail.eml"
    file.write_bytes(message.as_bytes())
    made = plans(tmp_path / "c", file)
    assert [plan.title for plan in made[:2]] == ["number 4", "number 3.eml (attached to mail.eml)"]
    assert len(made) == 4
    assert [plan.notices for plan in made[:3]] == [[], [], []]
    assert made[3].notices == ["its attachments are left out: it is nested too deeply"]


def test_attachments_that_an_ended_run_left_are_planned_again_although_their_mail_is_known(tmp_path: Path) -> None:
    file = tmp_path / "mail.eml"
    file.write_bytes(mail("Late", ("n.txt", b"words")).as_bytes())
    outer, inner = plans(tmp_path / "c", file)
    known = replace(NOTHING, finished=frozenset([outer.doc_id]))
    assert [plan.skipped for plan in plans(tmp_path / "c", file, known)] == [True]
    again = plans(tmp_path / "c", file, replace(known, containers=frozenset([outer.doc_id])))
    assert [(plan.doc_id, plan.skipped) for plan in again] == [(outer.doc_id, True), (inner.doc_id, False)]


def use_office(monkeypatch: pytest.MonkeyPatch, folder: Path, made: bytes, script: str = "") -> None:
    """Let LibreOffice's program on the search path make ``made`` of any file."""
    folder.mkdir()
    (folder / "made").write_bytes(made)
    stand_in(folder, script or f'cp {folder}/made "$out"')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_an_office_file_is_read_and_drawn_from_what_libreoffice_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_office(monkeypatch, tmp_path / "bin", text_pdf(["Odin lifts 73 tonnes", "Locks"], title="Cranes"))
    file = tmp_path / "cranes.doc"
    file.write_bytes(compound("WordDocument"))
    root = tmp_path / "c"
    ingest([file], settings_for(root), meta={PAGES: "0" * 64, "year": 2024})
    collection = Collection.open(root)
    [document] = collection.documents()
    assert (document.title, document.units, document.status) == ("Cranes", 2, DocumentStatus.READY)
    made = hashlib.sha256((tmp_path / "bin" / "made").read_bytes()).hexdigest()
    assert document.meta == {"format": "DOC", "read_by": "LibreOffice", "year": 2024, PAGES: made}
    assert document.notices == ("its pages are those of LibreOffice",)
    assert [passage.text for passage in collection.first_windows()] == ["Odin lifts 73 tonnes", "Locks"]
    assert collection.blob_path(document.doc_id).read_bytes() == file.read_bytes()
    assert collection.pages_path(document.doc_id).read_bytes() == (tmp_path / "bin" / "made").read_bytes()
    assert verify(root).is_sound
    collection.pages_path(document.doc_id).unlink()
    assert verify(root).missing == (f"blobs/{made}",)


def test_slides_of_libreoffice_have_their_numbers_titles_notes_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_office(monkeypatch, tmp_path / "bin", text_pdf(["Cranes lift", "Locks open"]))
    file = tmp_path / "talk.pptx"
    file.write_bytes(pptx("Cranes lift", "Locks open", notes="Say that Odin is old."))
    root = tmp_path / "c"
    ingest([file], settings_for(root))
    collection = Collection.open(root)
    first, second = collection.first_windows()
    assert first.text.split("\n") == ["Cranes lift", "Notes: Say that Odin is old."]
    with closing(Library(Settings(collection=str(root)))) as library:
        page = asyncio.run(library.page_text(first.doc_id, Locator(page=1)))
    assert page.text == first.text
    assert (first.meta["slide"], first.meta["section"]) == ("slide 1", "slide 1: Part 1")
    assert (second.text, second.meta["slide"]) == ("Locks open", "slide 2")


def test_an_office_file_that_libreoffice_cannot_read_is_laid_out_anew_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_office(monkeypatch, tmp_path / "bin", b"", "exit 1")
    (tmp_path / "a.docx").write_bytes(docx("The pier is nine metres wide."))
    (tmp_path / "b.doc").write_bytes(compound("WordDocument"))
    [laid_out], [refused] = (plans(tmp_path / "c", tmp_path / name) for name in ("a.docx", "b.doc"))
    assert (laid_out.pages, laid_out.meta["reflowed"], laid_out.error) == ("", True, "")
    assert [notice.partition(":")[0] for notice in laid_out.notices] == [
        "cannot be converted by LibreOffice",
        "reflowed",
    ]
    assert refused.error.startswith("b.doc: cannot be converted by LibreOffice: it is damaged")


def test_libreoffice_is_not_started_where_it_is_turned_off_or_for_what_is_no_office_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_office(monkeypatch, tmp_path / "bin", b"", f"touch {tmp_path}/started")
    (tmp_path / "a.docx").write_bytes(docx("The pier is nine metres wide."))
    (tmp_path / "a.xlsx").write_bytes(xlsx(Fees=[["Herring"]]))
    (tmp_path / "a.txt").write_text("{ rtf")
    off = {"office": OfficeUse.OFF}
    settings = settings_for(tmp_path / "c")
    for name, corpus in (("a.docx", off), ("a.xlsx", {}), ("a.txt", {})):
        chosen = settings.model_copy(update={"corpus": settings.corpus.model_copy(update=corpus)})
        register = Register(str(tmp_path / "c"), chosen, NOTHING, MovingBoard(INGEST_STAGES, by_file=True))
        with closing(register):
            list(register({"sources": [group_json([file_source(tmp_path / name)], {})]}))
    assert not (tmp_path / "started").exists()


def shown_folder(tmp_path: Path) -> Path:
    """Notes with pictures: beside them, further up, missing, linked from elsewhere, and on the web."""
    folder = tmp_path / "in"
    (folder / "notes" / "img").mkdir(parents=True)
    picture = image_bytes(picture_of(["Odin"]), "PNG")
    for place in (folder / "notes" / "img" / "a b.png", folder / "up.png", tmp_path / "secret.png"):
        place.write_bytes(picture + place.name.encode())
    (folder / "notes" / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "notes" / "n.txt").write_text("no picture")
    names = ("img/a%20b.png", "../up.png", "../../secret.png", "link.png", "/etc/x.png", "lost.png", "n.txt")
    shown = "".join(f"![p]({name})\n" for name in names)
    web = '<img src="https://example.org/a.png"> <img src="//example.org/b.png">'
    (folder / "notes" / "notes.md").write_text(f"# Notes\n{shown}{web}\n")
    return folder


def planned_of(root: Path, *given: Path, committed: Committed = NOTHING) -> list[DocumentPlan]:
    register = Register(str(root), settings_for(root), committed, MovingBoard(INGEST_STAGES, by_file=True))
    with closing(register):
        made = register({"sources": [group_json(list_sources(given).sources, {})]})
        return [part.plan for rows in made for task in rows["task"] for part in task_from_json(task)]


def test_the_pictures_beside_a_markdown_file_are_taken_with_it_and_others_are_named(tmp_path: Path) -> None:
    file = shown_folder(tmp_path) / "notes" / "notes.md"
    notes, picture = planned_of(tmp_path / "c", file)
    assert (picture.uri, picture.title) == (
        f"{file.as_uri()}#attachment=img%2Fa%20b.png",
        "a b.png (shown in notes.md)",
    )
    assert (picture.kind, picture.meta["attached_to"], picture.error) == (DocumentKind.IMAGE, "notes.md", "")
    assert (notes.title, notes.meta["attachments"], notes.pictures) == ("Notes", 1, [])
    assert notes.notices == [
        "2 pictures are at web addresses and were not fetched: https://example.org/a.png, //example.org/b.png",
        "1 picture is missing: lost.png",
        "4 pictures are outside of its folder and left out: ../up.png, ../../secret.png, link.png and 1 more",
    ]
    known = replace(NOTHING, finished=frozenset([notes.doc_id]), containers=frozenset([notes.doc_id]))
    again = planned_of(tmp_path / "c", file, committed=known)
    assert [(plan.skipped, plan.doc_id) for plan in again] == [(True, notes.doc_id), (False, picture.doc_id)]


def test_in_a_folder_that_is_ingested_pictures_are_documents_of_their_own_once(tmp_path: Path) -> None:
    folder = shown_folder(tmp_path)
    (folder / "notes" / "link.png").unlink()
    made = planned_of(tmp_path / "c", folder)
    assert sorted(plan.name for plan in made) == ["a b.png", "n.txt", "notes.md", "up.png"]
    [notes] = [plan for plan in made if plan.name == "notes.md"]
    assert notes.notices[1:] == [
        "2 pictures are missing: link.png, lost.png",
        "2 pictures are outside of its folder and left out: ../../secret.png, /etc/x.png",
    ]


def test_nothing_beside_an_upload_is_looked_at(tmp_path: Path) -> None:
    file = shown_folder(tmp_path) / "notes" / "notes.md"
    [notes] = plans(tmp_path / "c", file)
    assert notes.notices[1].startswith("7 pictures are not part of it and left out: img/a b.png, ../up.png")
