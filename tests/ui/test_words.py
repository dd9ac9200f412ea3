"""Places, times and steps in words."""

from __future__ import annotations

import pytest

from tests.support.ui_stories import citation, found_item, item, story
from ui.words import clock, step_title, where, where_item
from vrag_ray.agent.events import AnswerEvent, RunStatus
from vrag_ray.types import Locator, PassageKind
from vrag_ray.views.run_view import view_of


@pytest.mark.parametrize(("seconds", "expected"), [(0, "0:00.0"), (62.5, "1:02.5"), (-1, "0:00.0"), (3600, "60:00.0")])
def test_a_time_is_minutes_and_seconds(seconds: float, expected: str):
    assert clock(seconds) == expected


def test_a_place_is_a_page_a_moment_or_a_range():
    assert where(found_item(4)) == "page 4"
    moment = citation(1, "n1").model_copy(update={"page": None, "t_start": 60.0, "t_end": 72.5})
    assert where(moment) == "1:00.0 to 1:12.5"
    assert where(moment.model_copy(update={"t_end": None})) == "1:00.0"
    assert where(moment.model_copy(update={"t_start": None, "t_end": None})) == "text"


def test_a_remembered_frame_is_named_by_its_own_time():
    clip = item(1).model_copy(
        update={"kind": PassageKind.CLIP, "locator": Locator(t_start=0.0, t_end=60.0), "t_frame": 31.0}
    )
    assert where_item(clip) == "0:31.0 to 1:00.0"
    assert where_item(item(3)) == "page 3"


def test_a_step_is_named_by_what_it_did():
    titles = [step_title(step.events) for step in view_of(story(1)).steps]
    assert titles == ["Search: query 1", "Remember", "Think", "Prune memory"]


@pytest.mark.parametrize(
    ("status", "title"),
    [(RunStatus.ANSWERED, "Answer"), (RunStatus.ABSTAINED, "Abstain"), (RunStatus.MAX_STEPS, "End")],
)
def test_only_who_chose_not_to_answer_abstains(status: RunStatus, title: str):
    event = AnswerEvent(step=3, answer="…", abstained=status is not RunStatus.ANSWERED, status=status, citations=())
    assert step_title((event,)) == title
