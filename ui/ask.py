"""The ask page: a conversation, and of its last run everything."""

from __future__ import annotations

import uuid

import streamlit as st

from ui import conversation, evidence, feedback, gateway, graph_panel, question_picture
from ui.inert import plain
from ui.options import EXAMPLES, Options, sidebar
from ui.steps import Gallery, StepsPanel, run_line
from ui.watch import Watched, watch
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.views.run_view import RunView

MAX_QUESTION = 4096


def page() -> None:
    state = gateway.state()
    if not state.usable:
        # The banner says why; the question is still in the address.
        st.chat_input("The server does not answer", disabled=True)
        return
    options = sidebar(state.agents, state.default_agent, state.collections)
    question = _question_field()
    picture = question_picture.sent()
    if question:
        conversation.begin(options.request(question, picture))
    ids = conversation.run_ids()
    if not ids:
        _welcome(options)
        return
    for run_id in ids[:-1]:
        _earlier(run_id)
    _current(ids[-1], options)


def _question_field() -> str:
    """The question just sent, "" where there is none. A picture can be added to it."""
    with st.bottom:
        # Above the field, not beside it: a phone has no room for both in a row.
        with st.container(horizontal=True, vertical_alignment="center"):
            picture = question_picture.picker()
            if picture is not None:
                question_picture.preview(picture)
        question = st.chat_input(
            "Ask about the documents",
            key="question",
            max_chars=MAX_QUESTION,
            submit_mode="disable",
            disabled=picture is not None and bool(picture.problem),
            on_submit=question_picture.send,
        )
    return (question or "").strip()


def _welcome(options: Options) -> None:
    pages = [gateway.documents(name) for name in options.collections or ("",)]
    listed = [document for page, _, _ in pages for document in page]
    total = sum(count for _, count, _ in pages)
    st.title("What do the documents say?")
    if not listed:
        st.info("The collection is empty: add documents on the Library page first.")
        return
    st.caption(f"{total} documents. Answers come with the page, the box or the moment that they rest on.")
    if any(document.meta.get("corpus") == "demo" for document in listed):
        st.markdown("For example:")
        for example in EXAMPLES:
            st.button(example, key=f"example-{example}", on_click=_ask, args=(options, example))


def _ask(options: Options, question: str, instead_of: str = "", picture: str | None = None) -> None:
    conversation.begin(options.request(question, picture), instead_of=instead_of)


def _again(run: Watched, options: Options) -> None:
    """The same question again: with the request of this session, else as the sidebar says."""
    if run.request is None:
        _ask(options, _question(run), run.run_id)
    else:
        conversation.begin(with_changes(run.request, {"run_id": uuid.uuid4().hex}), instead_of=run.run_id)


def _question_of(run_id: str) -> Watched | None:
    """The run, with its question on the page; None where it is gone, and that is on the page instead."""
    try:
        run = conversation.watched(run_id)
    except VragError as error:
        st.warning(f"Run {run_id[:8]} cannot be shown: {plain(str(error))}")
        return None
    with st.chat_message("user"):
        st.markdown(plain(_question(run)))
        question_picture.shown(_picture(run), run.view.picture)
    return run


def _earlier(run_id: str) -> None:
    """Question and answer of a run further up."""
    run = _question_of(run_id)
    if run is None:
        return
    with st.chat_message("assistant"):
        if run.view.answer is not None:
            evidence.answer(run.view.answer)
        else:
            st.caption(plain(run.view.failure) or "still going on")
        st.button("Open this run", key=f"open-{run_id}", on_click=conversation.open_run, args=(run_id,))


def _current(run_id: str, options: Options) -> None:
    run = _question_of(run_id)
    if run is None:
        return
    left, right = st.columns([3, 2], gap="medium")
    if run.record is None:
        with left, st.chat_message("assistant"):
            _live(run, right, options)
        return
    with left, st.chat_message("assistant"):
        _finished(run, options)
    with right:
        st.subheader("Memory")
        graph_panel.explorer(run_id, run.events, run.record.graph)


def _live(run: Watched, right: st.delta_generator.DeltaGenerator, options: Options) -> None:
    """Follow until the end, then draw the page anew."""
    st.button(
        "Stop this run", key=f"stop-{run.run_id}", icon=":material/stop_circle:", on_click=_stop, args=(run.run_id,)
    )
    gallery = Gallery(gateway.pictures())
    steps = StepsPanel(st.container(), gallery, opened=True)
    line = st.empty()
    right.subheader("Memory")
    picture = right.empty()
    drawn = None

    def show(_: RunView) -> None:
        nonlocal drawn
        steps.show(run.view)
        seen = (run.view.graph, run.view.remembered, run.view.dropped)
        if seen != drawn:
            graph_panel.draw(picture, run.view)
            drawn = seen

    def tick() -> None:
        gallery.fill()
        line.caption(run_line(run.view))

    try:
        if run.events:
            show(run.view)
        watch(gateway.client(), run, show, tick)
        conversation.fetch(run)
    except VragError as error:
        st.error(f"The run was lost from sight: {plain(str(error))}")
        with st.container(horizontal=True):
            st.button("Look again", key=f"again-{run.run_id}", icon=":material/refresh:")
            st.button(
                "Ask again",
                key=f"anew-{run.run_id}",
                on_click=_again,
                args=(run, options),
            )
        return
    st.rerun()


def _stop(run_id: str) -> None:
    try:
        gateway.client().cancel(run_id)
    except VragError as error:
        st.toast(f"The run could not be stopped: {plain(str(error))}")


def _finished(run: Watched, options: Options) -> None:
    view = run.view
    gallery = Gallery(gateway.pictures())
    StepsPanel(st.container(), gallery, opened=False).show(view)
    gallery.finish()
    if view.answer is not None:
        evidence.answer(view.answer)
        queries = {node.id: node.query or _question(run) for node in view.graph.nodes}
        evidence.sources(run.run_id, view.answer.citations, queries)
    else:
        st.error(plain(view.failure) or "The run ended without an answer", icon=":material/error:")
    st.caption(f"{run_line(view)} · {plain(view.agent)}")
    if view.answer is not None:
        feedback.feedback(run.run_id)
    question, picture = _question(run), _picture(run)
    if picture is None and view.picture is not None:
        st.caption("To ask this again, add its picture again: it is not kept.")
        return
    with st.container(horizontal=True):
        st.button(
            "Retry",
            icon=":material/refresh:",
            key="retry",
            on_click=_again,
            args=(run, options),
        )
        with st.popover("Edit", icon=":material/edit:"):
            edited = st.text_area("Question", question, max_chars=MAX_QUESTION, key=f"edit-{run.run_id}")
            st.button(
                "Ask again",
                key=f"ask-edited-{run.run_id}",
                disabled=not edited.strip(),
                on_click=_ask,
                args=(options, edited.strip(), run.run_id, picture),
            )


def _question(run: Watched) -> str:
    if run.record is not None:
        return run.record.question
    return run.request.question if run.request is not None else run.view.question


def _picture(run: Watched) -> str | None:
    """As a data URL, where this session sent one."""
    return run.request.picture if run.request is not None else None
