"""The ask page in Streamlit's own harness, in front of a real HTTP gateway."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.support.ui_gateway import ServedGateway, Stage
from tests.support.ui_pages import RUN, finished, opened_page, texts
from tests.support.ui_stories import DOC, story
from ui import gateway
from vrag_ray.agent.events import RunStatus
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest
from vrag_ray.types import VragError
from vrag_ray.views.words import EXTRACTIVE_NOTES

opened = opened_page


def answered_page(question: str = "How many?") -> AppTest:
    app = opened()
    app.chat_input[0].set_value(question).run()
    assert not app.exception
    return app


def runs_of(app: AppTest) -> list[str]:
    """The runs that the address names."""
    named = app.query_params["run"]
    return [named] if isinstance(named, str) else list(named)


def test_a_question_is_answered_with_its_steps_its_source_and_its_graph(served: ServedGateway):
    app = answered_page()
    assert [element.label.replace("\\", "") for element in app.status][:2] == [
        "Search: query 1 · 0.5 s · 110 tokens",
        "Remember · 0.3 s",
    ]
    assert app.status[4].state == "error"
    assert "42" in texts(app) and "Refused" in texts(app)
    assert "How many?" in app.chat_message[0].markdown[0].value
    assert runs_of(app) == [served.backend.started[0].run_id]


def test_a_sentence_that_its_source_does_not_bear_out_is_marked_and_a_computed_figure_explained(
    served: ServedGateway, stage: Stage
):
    stage.events = story(answer="2 were not sold [1]. Ola Hansen took 77 [1].")
    app = answered_page()
    unsupported = 'Not in its source: "Ola Hansen", "77" (Ola Hansen took 77 [1].)'
    assert unsupported in [element.value.replace("\\", "") for element in app.warning]
    assert any("Computed: 2 = 42 - 40" in element.value.replace("\\", "") for element in app.caption)


def test_the_question_is_sent_with_the_settings_of_the_sidebar(served: ServedGateway):
    app = opened()
    assert "thinking" not in {box.key for box in app.selectbox}, "no model, no thinking phase"
    app.selectbox(key="agent").set_value("vimrag").run()
    app.number_input(key="max_steps").set_value(7)
    app.number_input(key="top_k").set_value(5)
    app.selectbox(key="thinking").set_value("Off")
    app.multiselect(key="documents").set_value([DOC])
    app.chat_input[0].set_value("Which one?").run()
    request = served.backend.started[0]
    assert (request.agent, request.max_steps, request.top_k, request.thinking) == ("vimrag", 7, 5, False)
    assert request.filter is not None and request.filter.doc_ids == [DOC]
    assert request.question == "Which one?"


def test_the_question_goes_to_the_chosen_collections(served: ServedGateway):
    assert "Collections" not in [element.label for element in opened().multiselect]
    served.backend.beside = ("slides", "notes *2024*")
    gateway.forget_state()
    app = opened()
    chosen = app.multiselect(key="collections")
    assert (chosen.value, chosen.options) == (["papers"], ["papers", "slides", "notes \\*2024\\*"])
    chosen.set_value(["papers", "slides"]).run()
    app.chat_input[0].set_value("Which one?").run()
    assert served.backend.started[0].collection == ["papers", "slides"]
    assert {("papers",), ("slides",)} <= set(served.backend.collections)


def test_a_collection_that_is_not_ready_keeps_nobody_from_asking_another(served: ServedGateway):
    served.backend.beside, served.backend.starting = ("slides",), {"slides"}
    gateway.forget_state()
    assert not gateway.state().problem
    assert gateway.state().warning == "retriever: slides: starting"
    app = opened()
    app.chat_input[0].set_value("Which one?").run()
    assert served.backend.started[0].question == "Which one?"
    served.backend.retriever_ready = False
    gateway.forget_state()
    assert "not ready yet" in gateway.state().problem


def test_a_server_that_is_slow_to_answer_takes_no_page_away(served: ServedGateway):
    gateway.forget_state()
    known = gateway.state()
    served.backend.retriever_is_busy = True
    gateway.forget_state()
    assert gateway.state().usable and gateway.state().collections == known.collections
    assert gateway.state().warning == "The server is slow: retriever: the retriever did not answer within 1.5 s"
    app = opened()
    app.chat_input[0].set_value("Which one?").run()
    assert served.backend.started[0].question == "Which one?"


@pytest.mark.parametrize("note", EXTRACTIVE_NOTES)
def test_an_answer_of_rules_says_that_no_model_made_it(served: ServedGateway, stage: Stage, note: str):
    ending = stage.events[-1].model_copy(update={"answer": f"42 [1]\n{note}"})
    stage.events = [*stage.events[:-1], ending]
    shown = texts(answered_page())
    assert "Answered without a language model" in shown
    assert note not in shown


def test_the_page_begins_with_the_agent_that_the_service_begins_with(served: ServedGateway):
    served.backend.default_agent = "vimrag"
    gateway.forget_state()
    app = opened()
    assert app.selectbox(key="agent").value == "vimrag"
    app.chat_input[0].set_value("Which one?").run()
    assert served.backend.started[0].agent == "vimrag"


def test_the_thinking_phase_is_left_to_the_server_until_somebody_sets_it(served: ServedGateway):
    served.backend.default_agent = "vimrag"
    gateway.forget_state()
    app = opened()
    app.chat_input[0].set_value("Which one?").run()
    assert served.backend.started[0].thinking is None
    for choice, thinking in (("On", True), ("Off", False)):
        app = opened()
        app.selectbox(key="thinking").set_value(choice).run()
        app.chat_input[0].set_value(f"Thinking {choice}?").run()
        assert served.backend.started[-1].thinking is thinking


def test_an_abstention_looks_like_one_and_notices_are_shown(served: ServedGateway, stage: Stage):
    ending = stage.events[-1].model_copy(
        update={
            "answer": "The documents do not say.",
            "abstained": True,
            "status": RunStatus.ABSTAINED,
            "citations": (),
            "notices": ("1 of 2 shards did not answer",),
        }
    )
    stage.events = [*stage.events[:-1], ending]
    app = answered_page()
    warnings = [str(element.value) for element in app.warning]
    assert any("evidence is too weak" in warning for warning in warnings)
    assert any("1 of 2 shards" in warning for warning in warnings)


def test_a_run_that_used_up_its_steps_is_not_reported_as_weak_evidence(served: ServedGateway, stage: Stage):
    ending = stage.events[-1].model_copy(
        update={"answer": "No answer within 3 steps.", "abstained": True, "status": RunStatus.MAX_STEPS}
    )
    stage.events = [*stage.events[:-1], ending]
    app = answered_page()
    assert [str(element.value) for element in app.warning][-1] == "No answer: out of steps"


def test_limits_that_nobody_sets_are_the_server_s(served: ServedGateway):
    answered_page()
    request = served.backend.started[0]
    assert (request.max_steps, request.top_k) == (None, None)


@pytest.mark.parametrize("evil", ["<script>alert(1)</script>", "![x](http://evil/p.png)", "[a](javascript:x)"])
def test_what_models_and_documents_say_is_never_markup(served: ServedGateway, stage: Stage, evil: str):
    stage.events = story(2, title=evil, answer=f"{evil} [1]")
    app = answered_page(evil)
    for element in [*app.markdown, *app.caption]:
        assert evil not in str(element.value)
    assert not any(element.allow_html for element in app.markdown)


def test_an_address_with_a_run_shows_that_run_again(served: ServedGateway):
    finished(served)
    app = opened(run=RUN)
    assert "42" in texts(app)
    assert len(served.backend.started) == 1


def test_an_address_of_a_run_that_is_gone_says_so(served: ServedGateway):
    assert "cannot be shown" in texts(opened(run="run-gone"))


def test_a_reload_in_mid_run_goes_on_with_the_same_run(served: ServedGateway, stage: Stage):
    stage.pause = 5
    with Client(served.url) as client:
        following = client.events(RunRequest(question="How many?", run_id=RUN))
        next(following)
        stage.go.set()
        app = opened(run=RUN)
    assert "42" in texts(app)
    assert len(served.backend.started) == 1


def test_retry_asks_the_same_again_in_the_place_of_the_first(served: ServedGateway):
    app = answered_page()
    app.button(key="retry").click().run()
    assert [request.question for request in served.backend.started] == ["How many?", "How many?"]
    assert runs_of(app) == [served.backend.started[1].run_id]


def test_an_edited_question_takes_the_place_of_the_first(served: ServedGateway):
    app = answered_page()
    first = served.backend.started[0].run_id
    app.text_area(key=f"edit-{first}").set_value("How few?").run()
    app.button(key=f"ask-edited-{first}").click().run()
    assert served.backend.started[1].question == "How few?"
    assert runs_of(app) == [served.backend.started[1].run_id]


def test_a_second_question_stands_below_the_first(served: ServedGateway):
    app = answered_page()
    app.chat_input[0].set_value("And then?").run()
    questions = [message.markdown[0].value for message in app.chat_message if message.name == "user"]
    assert questions == ["How many?", "And then?"]
    assert runs_of(app) == [request.run_id for request in served.backend.started]


def test_the_slider_replays_the_graph_to_any_moment(served: ServedGateway):
    app = answered_page()
    run_id = served.backend.started[0].run_id
    slider = app.select_slider(key=f"moment-{run_id}")
    slider.set_value(1).run()
    assert not app.exception
    nodes = next(group for group in app.button_group if str(group.key).startswith(f"node-{run_id}"))
    assert [str(option) for option in nodes.options] == ["root"]


def test_a_thumb_is_kept_with_its_comment(served: ServedGateway):
    app = answered_page()
    run_id = served.backend.started[0].run_id
    app.feedback(key=f"thumb-{run_id}").set_value(0).run()
    app.text_input(key=f"right-{run_id}").set_value("43").run()
    with Client(served.url) as client:
        [rated] = client.rated_runs()
    assert (rated.rating, rated.right_answer) == ("down", "43")


def test_a_source_opens_a_card_with_the_page_and_a_closer_look(served: ServedGateway):
    answered_page()
    boxes = [drawn[3] for drawn in served.backend.drawn if len(drawn) == 4 and drawn[3] is not None]
    assert boxes and boxes[-1].x0 < 0.1 and boxes[-1].x1 > 0.4


def test_without_a_gateway_there_is_a_banner_and_no_trace(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VRAG_URL", "http://127.0.0.1:9")
    app = opened()
    [banner] = [element.value.replace("\\", "").replace("\N{WORD JOINER}", "") for element in app.error]
    assert banner == "No server answers at http://127.0.0.1:9. Start one with: vrag serve"
    assert app.chat_input[0].disabled


def test_a_gateway_that_breaks_while_the_page_is_drawn_is_reported_without_a_trace(
    served: ServedGateway, monkeypatch: pytest.MonkeyPatch
):
    async def broken(*_: object) -> object:
        raise VragError("the library is being restarted")

    monkeypatch.setattr(served.backend, "list_documents", broken)
    app = opened()
    assert any("the library is being restarted" in element.value.replace("\\", "") for element in app.error)
