"""What a run looks like at any moment: steps, graph, kept and dropped pictures."""

from __future__ import annotations

from tests.support.ui_stories import story
from vrag_ray.agent.events import ErrorEvent, SearchEvent, ThinkEvent, stamped
from vrag_ray.agent.memory.graph import NodeKind
from vrag_ray.views.run_view import RunView, StepState, moments, view_of


def test_a_replay_to_any_moment_is_the_live_view_of_that_moment():
    events = story(3)
    live = RunView()
    for count, event in enumerate(events, start=1):
        live = live.after(event)
        assert live == view_of(events[:count])


def test_the_graph_grows_with_the_searches_and_ends_in_the_answer():
    view = view_of(story(3))
    assert [(node.id, node.parents) for node in view.graph.nodes] == [
        ("root", ()),
        ("n1", ("root",)),
        ("n2", ("n1",)),
        ("n3", ("n2",)),
        ("answer", ("n3",)),
    ]
    assert view.graph.nodes[-1].kind is NodeKind.ANSWER
    assert view.graph.node("n2").items[0].locator.page == 2


def test_thoughts_are_put_together_and_tokens_added_up():
    view = view_of(story(2))
    assert view.steps[0].thoughts == "I should search."
    assert view.usage == {"prompt_tokens": 200, "completion_tokens": 20}
    assert view.over and view.answer is not None


def test_a_dropped_picture_is_not_kept_and_comes_back_when_it_is_kept_again():
    events = story(2)
    view = view_of(events)
    assert set(view.remembered) == {("n2", 0)}
    assert view.dropped == {("n1", 0)}
    back = next(event for event in events if event.kind == "budget")
    assert view.after(back).dropped == frozenset()


def test_steps_are_done_refused_or_failed():
    view = view_of(story(1))
    assert [step.state for step in view.steps] == [
        StepState.DONE,
        StepState.DONE,
        StepState.REFUSED,
        StepState.DONE,
    ]
    broken = view_of(story(1)[:4]).after(ErrorEvent(step=1, message="the model is lost", terminal=True))
    assert (broken.steps[-1].state, broken.failure) == (StepState.FAILED, "the model is lost")


def test_a_reply_that_began_anew_replaces_its_earlier_words():
    thought = ThinkEvent(step=1, content="half a tho")
    again = ErrorEvent(step=1, message="the engine restarts: asking again")
    view = view_of([*story(1)[:1], thought, again, thought])
    assert view.steps[0].thoughts == "half a tho"


def test_an_answer_that_cites_nothing_stands_below_the_question():
    events = story(1)
    bare = events[-1].model_copy(update={"citations": ()})
    assert view_of([*events[:-1], bare]).graph.nodes[-1].parents == ("root",)


def test_a_replay_stops_at_every_change_of_the_graph_and_at_the_end():
    events = story(2)
    stops = moments(events)
    assert stops[0] == 1 and stops[-1] == len(events)
    sizes = [len(view_of(events[:stop]).graph.nodes) for stop in stops]
    assert sizes == sorted(sizes) and set(sizes) == {1, 2, 3, 4}
    assert moments([]) == []


def test_each_step_begins_where_the_one_before_ended():
    view = view_of([stamped(event, seq, float(seq)) for seq, event in enumerate(story(2))])
    assert [step.begun for step in view.steps[1:]] == [step.ended for step in view.steps[:-1]]
    assert view.seconds == len(story(2)) - 1


def test_a_repeated_query_that_the_agent_was_allowed_is_shown_too():
    events = story(1)[:5]
    repeated = SearchEvent(step=2, node_id="n9", parent_ids=("root",), query="query 1")
    assert view_of([*events, repeated]).graph.node("n9").query == "query 1"
