"""The sidebar of the ask page: who answers, how far it may go, and where it looks."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import streamlit as st

from ui.gateway import AGENTS, documents
from ui.inert import plain
from vrag_ray.client.schemas import RunRequest
from vrag_ray.types import PassageKind
from vrag_ray.types.filters import SearchFilter

EXAMPLES = (
    "How much shore power in MWh did the cruise berth take in 2024?",
    "How much waste heat did the ice factory recover?",
    "At what time is turbine T4 released after the blade inspection?",
    "When was crane 2 inspected and how much waste heat did the ice factory recover?",
)
"""Questions of the demo corpus."""
UNSET = "As the server is set"
THINKING = {UNSET: None, "On": True, "Off": False}
KINDS = {
    "PDF pages": PassageKind.PAGE,
    "Pictures": PassageKind.IMAGE,
    "Video clips": PassageKind.CLIP,
    "Text": PassageKind.TEXT,
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the sidebar says."""

    agent: str
    max_steps: int | None
    top_k: int | None
    thinking: bool | None
    doc_ids: tuple[str, ...]
    kinds: tuple[PassageKind, ...]
    collections: tuple[str, ...] = ()
    """None stands for the main one."""

    def request(self, question: str, picture: str | None = None) -> RunRequest:
        """A new run with an id of our own, so that it can be followed again after a reload."""
        narrowed = SearchFilter(doc_ids=list(self.doc_ids) or None, kinds=list(self.kinds) or None)
        return RunRequest(
            question=question,
            picture=picture,
            agent=self.agent,
            max_steps=self.max_steps,
            top_k=self.top_k,
            thinking=self.thinking,
            collection=list(self.collections) or None,
            filter=narrowed if self.doc_ids or self.kinds else None,
            run_id=uuid.uuid4().hex,
        )


def sidebar(agents: tuple[str, ...], first: str, collections: tuple[str, ...]) -> Options:
    """``first`` of ``agents`` is chosen until somebody chooses another."""
    with st.sidebar:
        st.subheader("How to answer")
        known = agents or AGENTS[:1]
        start = known.index(first) if first in known else 0
        agent = st.selectbox(
            "Agent", known, start, key="agent", help="extractive quotes by rules; the others ask a model."
        )
        with_model = agent != AGENTS[0]
        if not any(name in known for name in AGENTS[1:]):
            st.caption("No language model is configured on this server: answers are quotes, chosen by rules.")
        thinking = UNSET
        if with_model:
            thinking = st.selectbox(
                "Thinking",
                list(THINKING),
                key="thinking",
                help="The model's own thinking phase. Not every model can switch it.",
            )
        # Empty is the server's own: an agent that was trained to look at one result is not to be shown three.
        max_steps = st.number_input("Steps at most", 2, 40, None, key="max_steps", placeholder=UNSET)
        top_k = st.number_input("Results of a search", 1, 10, None, key="top_k", placeholder=UNSET)
        st.subheader("Where to look")
        requested = _collections(collections)
        kinds = st.pills("Kinds", list(KINDS), selection_mode="multi", key="kinds")
        chosen = _documents(requested)
    return Options(
        agent=agent,
        max_steps=max_steps,
        top_k=top_k,
        thinking=THINKING[thinking],
        doc_ids=chosen,
        kinds=tuple(KINDS[kind] for kind in kinds),
        collections=requested,
    )


def _collections(served: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are chosen, where there are several to choose from."""
    if len(served) < 2:
        return ()
    chosen = st.multiselect(
        "Collections",
        served,
        default=served[:1],
        format_func=plain,
        key="collections",
        help=f"Several are searched as one. Nothing chosen: {plain(served[0])}.",
    )
    return tuple(chosen)


def _documents(collections: tuple[str, ...]) -> tuple[str, ...]:
    pages = [documents(name) for name in collections or ("",)]
    listed = [document for page, _, _ in pages for document in page]
    total = sum(count for _, count, _ in pages)
    names = {document.doc_id: document.title for document in listed}
    chosen = st.multiselect(
        "Documents",
        list(names),
        format_func=lambda doc_id: plain(names.get(doc_id, doc_id[:12])),
        key="documents",
        placeholder="All",
        help="Empty: all of them.",
    )
    if total > len(listed):
        st.caption(f"The first {len(listed)} of {total} documents are listed.")
    return tuple(chosen)
