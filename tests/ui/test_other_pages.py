"""The library and runs pages in Streamlit's own harness, in front of a real HTTP gateway."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.patience import HANGS_AFTER_S
from tests.support.ui_gateway import ServedGateway
from tests.support.ui_pages import finished, texts
from tests.support.ui_stories import DOC
from ui import gateway
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import Feedback, FileProblem, IngestJob, JobState, Rating


def page(name: str) -> AppTest:
    app = AppTest.from_string(f"from ui import {name}\n{name}.page()", default_timeout=HANGS_AFTER_S)
    app.run()
    assert not app.exception
    return app


def test_the_library_lists_documents_with_their_state_and_adds_them_up(served: ServedGateway):
    app = page("library")
    shown = texts(app)
    assert "**report**" in shown and "ready" in shown and "3 pages" in shown
    assert {metric.label: metric.value for metric in app.metric}["Documents"] == "1"


def test_files_are_sent_with_their_names_and_followed(served: ServedGateway):
    app = page("library")
    app.file_uploader(key="files").set_value([("a.pdf", b"%PDF-1.4", "application/pdf"), ("b.txt", b"x", "text/plain")])
    app.button[0].click().run()
    assert not app.exception
    [(files, _)] = served.backend.submitted
    assert [file.name for file in files] == ["a.pdf", "b.txt"]
    assert "lost from sight" in texts(app)  # the stand-in forgets its jobs


def test_the_result_of_a_click_outlives_the_next_drawing_of_the_page(served: ServedGateway):
    app = page("library")
    app.button[0].click().run()
    # The page is drawn anew by itself whenever the server's state or a job changes.
    app.run()
    assert "Choose at least one file first." in texts(app)
    app.file_uploader(key="files").set_value([("a.pdf", b"%PDF-1.4", "application/pdf")])
    app.button[0].click().run()
    assert "Choose at least one file first." not in texts(app)
    assert len(served.backend.submitted) == 1


def test_the_library_shows_fills_and_empties_the_collection_that_is_chosen(served: ServedGateway):
    served.backend.beside = ("slides",)
    gateway.forget_state()
    app = page("library")
    app.selectbox(key="collection").set_value("slides").run()
    app.file_uploader(key="files").set_value([("a.pdf", b"%PDF-1.4", "application/pdf")])
    app.button[0].click().run()
    assert len(served.backend.submitted) == 1
    assert served.backend.collections == [("papers",), ("slides",), ("slides",)]
    script = "from ui import gateway, library\nlibrary._confirm(gateway.documents('slides')[0][0], 'slides')"
    dialog = AppTest.from_string(script, default_timeout=HANGS_AFTER_S).run()
    dialog.button(key="confirm-delete").click().run()
    assert not dialog.exception
    # Emptied, and listed anew.
    assert served.backend.collections[3:] == [("slides",)] * 2


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (IngestJob(job_id="j", state=JobState.QUEUED, url="/"), ""),
        (IngestJob(job_id="j", state=JobState.FAILED, url="/", error="the disk is full"), "the disk is full"),
        (
            IngestJob(job_id="j", state=JobState.DONE, url="/", errors=[FileProblem(name="b.pdf", error="not a PDF")]),
            "b.pdf: not a PDF",
        ),
    ],
)
def test_the_state_of_an_upload_is_shown_with_every_problem(served: ServedGateway, job: IngestJob, expected: str):
    script = "from ui import library\nfrom vrag_ray.client.schemas import IngestJob\n"
    script += f"library._job(IngestJob.model_validate_json({job.model_dump_json()!r}), ['a.pdf', 'b.pdf'])"
    app = AppTest.from_string(script, default_timeout=HANGS_AFTER_S).run()
    assert not app.exception
    assert expected in texts(app)


def test_a_document_is_not_deleted_before_it_was_confirmed(served: ServedGateway, monkeypatch: pytest.MonkeyPatch):
    deleted = []
    monkeypatch.setattr(served.backend, "delete_document", lambda *named: deleted.append(named))
    app = page("library")
    app.button(key=f"delete-{DOC}").click().run()
    # The question stays where the page is drawn anew at once.
    app.run()
    assert app.button(key="confirm-delete").label == "Delete it"
    assert deleted == []


def test_past_runs_are_listed_with_what_was_thought_of_them(served: ServedGateway):
    finished(served)
    finished(served, "run-0002", "How few?")
    with Client(served.url) as client:
        client.rate("run-0002", Feedback(rating=Rating.UP))
    app = page("runs")
    questions = [element.value for element in app.markdown]
    assert questions == ["**How few?**", "**How many?**"]
    assert any("rated up" in element.value for element in app.caption)
    assert "1 rated: 1 liked, 0 not" in texts(app)
    assert not app.get("download_button")[0].disabled


def test_without_rated_runs_there_is_nothing_to_export(served: ServedGateway):
    app = page("runs")
    assert "No questions yet" in texts(app)
    assert app.get("download_button")[0].disabled
