"""The app's one way to the gateway: what all sessions share of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from ui.pictures import Pictures
from vrag_ray.client.blocking import Client
from vrag_ray.client.http import ServerError, UnreachableError
from vrag_ray.client.schemas import DocumentInfo

URL_VARIABLE, KEY_VARIABLE = "VRAG_URL", "VRAG_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8000"
AGENTS = ("extractive", "vimrag", "vrag")
FRESH_S = 2.0
"""How old what is known of the gateway may be."""
LISTED = 1000
"""Documents that filters and the library show at most."""


@dataclass(frozen=True, slots=True)
class GatewayState:
    """Whether the gateway answers and is ready; if not, ``problem`` says why in words for the banner. ``warning`` says
    what is amiss where it can be used all the same.

    ``collections`` by name, the main one first. ``heatmaps``: one of them has vectors that tell where on a page a query
    is seen. ``version`` changes with every change of one of them.
    """

    problem: str = ""
    warning: str = ""
    agents: tuple[str, ...] = ()
    default_agent: str = ""
    collections: tuple[str, ...] = ()
    version: int = 0
    heatmaps: bool = False

    @property
    def usable(self) -> bool:
        return not self.problem


def url() -> str:
    return os.environ.get(URL_VARIABLE) or DEFAULT_URL


def client() -> Client:
    return _client_of(url())


def state() -> GatewayState:
    """At most ``FRESH_S`` old."""
    return _state(url())


def forget_state() -> None:
    """After something showed that it is out of date."""
    _state.clear()


@st.cache_resource(max_entries=4)
def _client_of(base_url: str) -> Client:
    return Client(base_url, api_key=os.environ.get(KEY_VARIABLE) or None)


@st.cache_data(ttl=FRESH_S, max_entries=4, show_spinner=False)
def _state(base_url: str) -> GatewayState:
    try:
        ready = _client_of(base_url).ready()
        waiting = [f"{name}: {part.why or 'not ready'}" for name, part in ready.parts.items() if not part.ready]
        # What one of several collections lacks does not keep the others from answering.
        is_partial = {name for name, part in ready.parts.items() if not part.ready} <= {"retriever", "library"} and any(
            collection.ready for collection in ready.collections
        )
        if waiting and all(part.ready or part.busy for part in ready.parts.values()) and _last_known(base_url):
            # A machine with much to do, as after an upload, must not take the page away from who is at work on it.
            return replace(_last_known(base_url)[0], warning=f"The server is slow: {'; '.join(waiting)}")
        if waiting and not is_partial:
            return GatewayState(problem=f"The server at {base_url} is not ready yet: {'; '.join(waiting)}")
        models = _client_of(base_url).models()
    except UnreachableError:
        return GatewayState(problem=f"No server answers at {base_url}. Start one with: vrag serve")
    except ServerError as error:
        return GatewayState(problem=f"The server at {base_url} refused this app: {error}")
    state = GatewayState(
        warning="; ".join(waiting),
        agents=tuple(name for name in AGENTS if name in models.names),
        default_agent=models.default_agent,
        collections=tuple(collection.name for collection in ready.collections),
        # Versions only grow.
        version=sum(collection.version for collection in ready.collections),
        heatmaps=any(collection.heatmaps for collection in ready.collections),
    )
    _last_known(base_url)[:] = [state]
    return state


@st.cache_resource(max_entries=4)
def _last_known(base_url: str) -> list[GatewayState]:
    """The last state in which every part answered; empty before the first."""
    del base_url
    return []


@st.cache_data(ttl=10.0, max_entries=16, show_spinner=False)
def _documents(base_url: str, collection: str) -> tuple[list[DocumentInfo], int, int]:
    page = _client_of(base_url).documents(limit=LISTED, collection=collection)
    return page.documents, page.total, page.collection_version


def documents(collection: str = "") -> tuple[Sequence[DocumentInfo], int, int]:
    """The first ``LISTED`` documents, how many there are, and the collection's version; by default the main one's."""
    return _documents(url(), collection)


def forget_documents() -> None:
    """After a change of the library."""
    _documents.clear()


@st.cache_resource(max_entries=4)
def _pictures(base_url: str) -> Pictures:
    return Pictures(_client_of(base_url))


def pictures() -> Pictures:
    """Pages and frames, shared by all sessions."""
    return _pictures(url())


@st.cache_data(ttl=600.0, max_entries=4, show_spinner=False)
def _original(base_url: str, doc_id: str) -> bytes:
    return _client_of(base_url).original(doc_id)


def original(doc_id: str) -> bytes:
    """The document as it was ingested. Raises VragError."""
    return _original(url(), doc_id)
