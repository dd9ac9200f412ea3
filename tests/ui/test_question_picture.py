"""A picture beside the question: added, shown, removed, sent once, and named in the conversation."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.pictures import grey_png
from tests.support.ui_gateway import ServedGateway
from tests.support.ui_pages import RUN, opened_page, pictures_on, texts
from ui.question_picture import chosen
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import MAX_PICTURE_BYTES, RunRequest, data_url

PNG = grey_png(40)
NOT_KEPT = "which is not kept"


def added(data: bytes = PNG, name: str = "ship.png") -> AppTest:
    app = opened_page()
    app.file_uploader[0].upload(name, data, "image/png").run()
    assert not app.exception
    return app


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


def test_a_picture_is_looked_at_before_it_is_sent(served: ServedGateway):
    app = added()
    assert pictures_on(app) == ["The picture to ask with: ship.png"]
    assert "Remove the picture" in labels(app)
    assert "ship.png" in texts(app)
    assert served.backend.started == []


def test_it_is_sent_with_the_question_and_with_no_later_one(served: ServedGateway):
    app = added()
    app.chat_input[0].set_value("Which ship is this?").run()
    [picture] = served.backend.pictures
    assert picture is not None and picture.size == len(PNG)
    assert "The picture of the question" in pictures_on(app)
    assert "The picture to ask with: ship.png" not in pictures_on(app)
    app.chat_input[0].set_value("And when?").run()
    assert served.backend.pictures[1] is None


def test_it_can_be_taken_away_again(served: ServedGateway):
    app = added()
    next(button for button in app.button if button.label == "Remove the picture").click().run()
    assert pictures_on(app) == []
    app.chat_input[0].set_value("How many?").run()
    assert served.backend.pictures == [None]


def test_a_file_that_is_no_picture_is_reported_and_not_sent(served: ServedGateway):
    app = added(b"<svg onload='alert(1)'/>", "evil.png")
    assert any("evil.png is no PNG, JPEG or WebP" in element.value.replace("\\", "") for element in app.error)
    assert app.chat_input[0].disabled and pictures_on(app) == []
    next(button for button in app.button if button.label == "Remove the picture").click().run()
    assert not app.chat_input[0].disabled


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (PNG, ""),
        (b"\xff\xd8\xff\xe0" + b"0" * 20, ""),
        (b"RIFF\0\0\0\0WEBPVP8 ", ""),
        (b"GIF89a", "no PNG, JPEG or WebP"),
        (PNG + b"\0" * MAX_PICTURE_BYTES, "more than 8 MiB"),
    ],
)
def test_which_files_can_accompany_a_question(data: bytes, problem: str):
    picture = chosen("it", data)
    assert problem in picture.problem and bool(problem) == bool(picture.problem)
    assert picture.url == ("" if problem else data_url(data))


def test_a_retry_asks_with_the_same_picture(served: ServedGateway):
    app = added()
    app.chat_input[0].set_value("Which ship is this?").run()
    app.button(key="retry").click().run()
    assert [picture.size for picture in served.backend.pictures if picture is not None] == [len(PNG), len(PNG)]


def test_another_session_shows_the_picture_and_sends_no_question_without_it(served: ServedGateway):
    with Client(served.url) as client:
        list(client.events(RunRequest(question="Which ship is this?", run_id=RUN, picture=data_url(PNG))))
    app = opened_page(run=RUN)
    assert f"Asked with a picture (1 kB), {NOT_KEPT}" in texts(app)
    assert "add its picture again" in texts(app)
    assert not {"Retry", "Ask again"} & set(labels(app))
    assert "The picture of the question" not in pictures_on(app)


def test_a_question_in_words_alone_tells_of_no_picture(served: ServedGateway):
    with Client(served.url) as client:
        list(client.events(RunRequest(question="How many?", run_id=RUN)))
    app = opened_page(run=RUN)
    assert NOT_KEPT not in texts(app) and "Retry" in labels(app)
