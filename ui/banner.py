"""Says that the gateway is down or not ready, and brings the page back when it is there again."""

from __future__ import annotations

import streamlit as st

from ui import gateway
from ui.inert import plain

LOOK_EVERY_S = 3.0


@st.fragment(run_every=LOOK_EVERY_S)
def banner(was_usable: bool) -> None:
    """Looks again by itself; where the state has changed since the page was drawn, the page is drawn anew."""
    state = gateway.state()
    if state.usable != was_usable:
        st.rerun(scope="app")
    if state.warning:
        st.warning(plain(state.warning), icon=":material/warning:")
    if state.problem:
        st.error(plain(state.problem), icon=":material/cloud_off:")
        st.caption("This page goes on by itself when the server is back.")
