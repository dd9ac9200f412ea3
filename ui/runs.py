"""The runs page: earlier questions, how readers rated the answers, and the ratings as training data."""

from __future__ import annotations

import streamlit as st

from ui import conversation, gateway
from ui.inert import plain
from vrag_ray.client.schemas import RatedRun, Rating, RunSummary

SHOWN = 100


def page() -> None:
    st.title("Runs")
    if not gateway.state().usable:
        return
    client = gateway.client()
    past = client.runs(limit=SHOWN)
    rated = client.rated_runs()
    _export(rated)
    by_run = {run.run_id: run for run in rated}
    if not past.runs:
        st.info("No questions yet.")
    for run in past.runs:
        _run(run, by_run.get(run.run_id))
    if past.total > len(past.runs):
        st.caption(f"The last {len(past.runs)} of {past.total} are shown.")


def _export(rated: list[RatedRun]) -> None:
    usable = sum(bool(run.right_answer) for run in rated)
    liked = sum(run.rating is Rating.UP for run in rated)
    st.caption(
        f"{len(rated)} rated: {liked} liked, {len(rated) - liked} not. {usable} have a known right answer and can be "
        "exported for evaluation and training."
    )
    st.download_button(
        "Export rated runs (JSONL)",
        data=gateway.client().feedback_lines,
        file_name="feedback.jsonl",
        mime="application/jsonl",
        disabled=not usable,
        on_click="ignore",
        icon=":material/download:",
    )


def _run(run: RunSummary, rated: RatedRun | None) -> None:
    with st.container(border=True, key=f"run-{run.run_id}"):
        what, button = st.columns([5, 1], vertical_alignment="center")
        what.markdown(f"**{plain(run.question)}**")
        took = f" · {run.seconds:.1f} s" if run.seconds is not None else ""
        verdict = f" · rated {rated.rating.value}" if rated is not None else ""
        what.caption(f"{run.status} · {plain(run.agent)} · {run.started_at[:19].replace('T', ' ')}{took}{verdict}")
        if button.button("Open this run", key=f"reopen-{run.run_id}"):
            conversation.open_in_ask(run.run_id)
