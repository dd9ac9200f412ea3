"""Which runs a page shows: their ids are in the address, so that a reload or another person sees the same."""

from __future__ import annotations

import streamlit as st

from ui import gateway
from ui.watch import Watched
from vrag_ray.client.http import ServerError
from vrag_ray.client.schemas import RunRequest
from vrag_ray.views.run_view import view_of

PARAMETER = "run"
LONGEST = 20
_RUNNING = "running"


def run_ids() -> list[str]:
    """Oldest first; the last one is open."""
    return list(dict.fromkeys(value for value in st.query_params.get_all(PARAMETER) if value))[-LONGEST:]


def set_run_ids(ids: list[str]) -> None:
    st.query_params[PARAMETER] = ids[-LONGEST:]


def begin(request: RunRequest, *, instead_of: str = "") -> None:
    """Ask below the earlier questions, or in the place of an earlier run."""
    run_id = request.run_id or ""
    _known()[run_id] = Watched(run_id, request)
    set_run_ids([*(known for known in run_ids() if known not in (instead_of, run_id)), run_id])


def open_run(run_id: str) -> None:
    """Show it last, which opens it."""
    set_run_ids([*(known for known in run_ids() if known != run_id), run_id])


def open_in_ask(run_id: str) -> None:
    """From another page: show the run on the ask page."""
    st.switch_page(st.session_state.ask_page, query_params={PARAMETER: run_id})


def watched(run_id: str) -> Watched:
    """The run as far as it is known here; one that has ended is fetched. Raises ServerError for one that is gone."""
    known = _known()
    run = known.get(run_id)
    if run is None:
        run = known[run_id] = Watched(run_id)
    if run.record is None and (run.request is None or run.view.over):
        fetch(run)
    return run


def fetch(run: Watched) -> None:
    """Take the record of a run that is over; one that goes on stays as it is."""
    try:
        record = gateway.client().run(run.run_id)
    except ServerError as error:
        if error.code == _RUNNING:
            return
        _known().pop(run.run_id, None)
        raise
    run.record = record
    run.events = list(record.events)
    run.view = view_of(record.events)


def _known() -> dict[str, Watched]:
    if "watched" not in st.session_state:
        st.session_state.watched = {}
    known: dict[str, Watched] = st.session_state.watched
    return known
