"""What one file becomes: a document, and one more for each file that is attached to it. No Ray."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pymupdf
import pytest

from tests.support.ingest_material import settings_for
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.ingest.plan import Committed, DocumentPlan, task_from_json
from vrag_ray.ingest.progress import INGEST_STAGES, MovingBoard
from vrag_ray.ingest.register import Register, group_json
from vrag_ray.ingest.sources import file_source
from vrag_ray.types import DocumentKind

NOTHING = Committed(finished={}, units={}, counted={})


def plans(root: Path, file: Path, committed: Committed = NOTHING) -> list[DocumentPlan]:
    """What registering ``file`` plans, in its order."""
    register = Register(str(root), settings_for(root), "e", committed, MovingBoard(INGEST_STAGES, by_file=True))
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
    for one in attached:
        if isinstance(one, EmailMessage):
            message.add_attachment(one)
        else:
            message.add_attachment(one[1], maintype="application", subtype="octet-stream", filename=one[0])
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
    known = replace(NOTHING, finished={outer.doc_id: "e"})
    assert [plan.skipped for plan in plans(tmp_path / "c", file, known)] == [True]
    again = plans(tmp_path / "c", file, replace(known, containers=frozenset([outer.doc_id])))
    assert [(plan.doc_id, plan.skipped) for plan in again] == [(outer.doc_id, True), (inner.doc_id, False)]
