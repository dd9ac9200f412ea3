"""Following a run from a page that may be left at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ui_gateway import Stage, scripted_gateway
from tests.support.ui_stories import story
from ui.watch import Watched, watch
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest
from vrag_ray.types import VragError
from vrag_ray.views.run_view import RunView

RUN = "run-0001"


class LeftError(Exception):
    """What Streamlit does to a script whose page is drawn anew."""


def request() -> RunRequest:
    return RunRequest(question="How many?", run_id=RUN)


def test_a_page_that_was_left_goes_on_where_it_was_and_misses_nothing(tmp_path: Path):
    stage = Stage(events=story(3), pause=12)
    with scripted_gateway(tmp_path, stage) as served, Client(served.url) as client:
        run = Watched(RUN, request())

        def leave(view: RunView) -> None:
            if len(run.events) >= 12:
                raise LeftError

        with pytest.raises(LeftError):
            watch(client, run, leave, lambda: None)
        assert [event.seq for event in run.events] == list(range(12))
        stage.go.set()
        shown: list[RunView] = []
        watch(client, run, shown.append, lambda: None)
        assert [event.seq for event in run.events] == list(range(len(stage.events)))
        assert shown[-1].answer is not None
        assert len(served.backend.started) == 1


def test_a_run_that_somebody_else_began_is_followed_from_its_beginning(tmp_path: Path):
    with scripted_gateway(tmp_path, Stage()) as served, Client(served.url) as client:
        list(client.events(request()))
        run = Watched(RUN)
        watch(client, run, lambda _: None, lambda: None)
        assert len(run.events) == len(served.stage.events)
        assert run.view.over


def test_an_idle_page_is_polled_again_and_again(tmp_path: Path):
    stage = Stage(pause=3)
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 3:
            stage.go.set()

    with scripted_gateway(tmp_path, stage) as served, Client(served.url) as client:
        watch(client, Watched(RUN, request()), lambda _: None, tick)
    assert ticks >= 3


def test_a_refused_question_is_an_error_in_the_pages_own_thread(tmp_path: Path):
    with scripted_gateway(tmp_path, Stage()) as served, Client(served.url) as client:
        list(client.events(request()))
        other = Watched(RUN, RunRequest(question="Another one?", run_id=RUN))
        with pytest.raises(VragError, match="exists with another question"):
            watch(client, other, lambda _: None, lambda: None)
