"""Reading a run's stream line by line, over connections that break."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from vrag_ray.agent.events import AnswerEvent, ErrorEvent, Event, RunStatus, ThinkEvent
from vrag_ray.client.event_stream import RunFollower
from vrag_ray.serving.event_stream import HEARTBEAT, LoggedEvent, encode_event
from vrag_ray.types import VragError

ANSWER = AnswerEvent(status=RunStatus.ANSWERED, answer="42", citations=(), notices=(), abstained=False)


def lines_of(*events: Event, first: int = 0) -> Iterator[str]:
    """As the server writes them."""
    for number, event in enumerate(events, start=first):
        yield from encode_event(LoggedEvent(number, event.kind, event.model_dump_json())).decode().split("\n")[:-1]


def fed(follower: RunFollower, lines: Iterator[str]) -> list[Event]:
    return [event for line in lines if (event := follower.feed(line)) is not None]


def test_events_come_as_they_were_and_the_last_one_ends_the_run():
    follower = RunFollower("r")
    thought = ThinkEvent(step=1, content="line\nand \u2028 another")
    assert fed(follower, lines_of(thought)) == [thought]
    assert not follower.finished
    assert fed(follower, lines_of(ANSWER, first=1)) == [ANSWER]
    assert (follower.finished, follower.last_event_id) == (True, 1)


def test_an_error_that_the_run_survives_does_not_end_it():
    follower = RunFollower("r")
    fed(follower, lines_of(ErrorEvent(message="a shard is gone", terminal=False)))
    assert not follower.finished
    fed(follower, lines_of(ErrorEvent(message="all are gone", terminal=True), first=1))
    assert follower.finished


def test_what_a_broken_connection_left_half_sent_is_forgotten_and_what_comes_twice_is_dropped():
    follower = RunFollower("r")
    first, second = ThinkEvent(step=1, content="one"), ThinkEvent(step=1, content="two")
    assert fed(follower, lines_of(first)) == [first]
    for line in list(lines_of(second, first=1))[:-1]:
        assert follower.feed(line) is None
    follower.begin_connection()
    assert fed(follower, lines_of(first, second)) == [second]


def test_heartbeats_and_an_error_without_a_place_are_no_events_of_the_run():
    follower = RunFollower("r")
    assert fed(follower, iter(HEARTBEAT.decode().split("\n")[:-1])) == []
    lost = ErrorEvent(message="the connection was lost", terminal=True).model_dump_json()
    assert fed(follower, iter([f"data: {lost}", ""])) == []
    assert not follower.finished


@pytest.mark.parametrize("lines", [["id: 1", "data: {}", ""], ["id: one", f"data: {ANSWER.model_dump_json()}", ""]])
def test_an_event_that_cannot_be_read_is_named_with_its_run(lines: list[str]):
    with pytest.raises(VragError, match=r"run r: .* of another version"):
        fed(RunFollower("r"), iter(lines))
