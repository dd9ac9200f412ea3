"""Thumbs up or down for an answer, with a comment and, where it was wrong, what would have been right."""

from __future__ import annotations

import streamlit as st

from ui import gateway
from ui.inert import plain
from vrag_ray.client.schemas import Feedback, Rating
from vrag_ray.types import VragError

_BY_THUMB = {1: Rating.UP, 0: Rating.DOWN}


def feedback(run_id: str) -> None:
    """A verdict is sent at once; a comment when it is entered."""
    thumb = st.feedback("thumbs", key=f"thumb-{run_id}")
    if thumb is None:
        return
    rating = _BY_THUMB[thumb]
    comment = st.text_input("Comment", key=f"comment-{run_id}", max_chars=4000, placeholder="Why? (optional)")
    answer = ""
    if rating is Rating.DOWN:
        answer = st.text_input(
            "Right answer", key=f"right-{run_id}", max_chars=4000, placeholder="What would have been right? (optional)"
        )
    verdict = Feedback(rating=rating, comment=comment or "", answer=answer or "")
    sent: dict[str, Feedback] = st.session_state.setdefault("sent_feedback", {})
    if sent.get(run_id) == verdict:
        st.caption("Kept. Thank you.")
        return
    try:
        gateway.client().rate(run_id, verdict)
    except VragError as error:
        st.warning(f"Your verdict could not be kept: {plain(str(error))}")
        return
    sent[run_id] = verdict
    st.caption("Kept. Thank you.")
