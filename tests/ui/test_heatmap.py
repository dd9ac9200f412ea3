"""Where the question was seen: offered, drawn and cached where the server can, explained in words where it
cannot."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.ui_gateway import DOC_ID, ServedGateway, Stage
from tests.support.ui_pages import opened_page, pictures_on, texts
from tests.support.ui_stories import story
from ui import gateway
from vrag_ray.agent.events import AnswerEvent, Event
from vrag_ray.types import PassageKind

LABEL = "Show where the question was seen"


@pytest.fixture
def stage() -> Stage:
    """The one page cited is the one whose heat the stand-in knows."""
    return Stage(events=story(1))


@pytest.fixture(autouse=True)
def _forget() -> None:
    gateway.forget_state()


def citing(stage: Stage, **changes: object) -> None:
    *before, ending = stage.events
    assert isinstance(ending, AnswerEvent)
    events: list[Event] = [*before]
    cited = tuple(citation.model_copy(update=changes) for citation in ending.citations)
    stage.events = [*events, ending.model_copy(update={"citations": cited})]


def answered_page() -> AppTest:
    app = opened_page()
    app.chat_input[0].set_value("How many?").run()
    assert not app.exception
    return app


def toggles(app: AppTest) -> list[str]:
    return [toggle.label for toggle in app.toggle if toggle.label == LABEL]


def test_the_toggle_tints_the_page_by_the_search_that_found_it(served: ServedGateway):
    app = answered_page()
    assert not served.backend.heated
    [heat] = [toggle for toggle in app.toggle if toggle.label == LABEL]
    assert heat.value is False
    heat.set_value(True).run()
    assert served.backend.heated == [("query 1", DOC_ID, 1)]
    assert "tinted where “query 1” was seen, with a box around what is cited" in " ".join(pictures_on(app))
    assert "The redder a part, the closer it is to the search “query 1”" in texts(app)
    app.run()
    assert len(served.backend.heated) == 1, "it is fetched once"
    next(toggle for toggle in app.toggle if toggle.label == LABEL).set_value(False).run()
    assert "tinted" not in " ".join(pictures_on(app))


def test_it_is_not_offered_where_no_leg_can_tell(served: ServedGateway):
    served.backend.heatmaps = False
    assert toggles(answered_page()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": PassageKind.TEXT, "page": None, "bbox": None, "span_start": 0, "span_end": 9},
        {"kind": PassageKind.CLIP, "page": None, "bbox": None, "t_start": 0.0, "t_end": 9.0},
    ],
)
def test_it_is_not_offered_for_what_is_no_page(served: ServedGateway, stage: Stage, changes: dict[str, object]):
    citing(stage, **changes)
    assert toggles(answered_page()) == []


def test_a_page_without_a_heat_map_is_shown_with_one_sentence_of_explanation(served: ServedGateway, stage: Stage):
    citing(stage, page=2)
    app = answered_page()
    next(toggle for toggle in app.toggle if toggle.label == LABEL).set_value(True).run()
    assert served.backend.heated == [("query 1", DOC_ID, 2)]
    assert "Nothing tells where the question was seen on this page" in texts(app)
    assert "report, page 2, with a box around what is cited" in pictures_on(app)
    assert not app.exception and not app.error


def test_a_box_of_the_search_is_not_listed_as_looked_at(served: ServedGateway, stage: Stage):
    citing(stage, seen_by_search=True, quote="")
    app = answered_page()
    assert "report, page 1, with a box where the search saw the question" in pictures_on(app)
    assert "The agent did not look closer." in texts(app)
