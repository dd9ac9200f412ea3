"""An answer and what it rests on: numbered sources, each with its page, its box, and a closer look."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

import streamlit as st

from ui import gateway
from ui.boxes import inside, outlined, with_context, zoom_dpi
from ui.inert import inert, plain
from ui.pictures import MOST_DPI, PAGE_DPI, THUMBNAIL_DPI, HeatShot, Shot, shot_of
from ui.sentences import answer_html, can_be_pointed_at
from ui.words import OUTCOMES, clock, where
from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import AnswerEvent, RunStatus
from vrag_ray.client.http import ServerError
from vrag_ray.types import Box, PassageKind, VragError
from vrag_ray.views.words import EXTRACTIVE_NOTES, computed_lines, unsupported_lines, without_note

PAGE_PX, CROP_PX = 420, 420
HOVER_DPI = 60.0
"""Of what a sentence cites, as if it were as wide as the page."""
_NOT_FOUND = 404
LARGEST_VIDEO = 64 << 20
"""In bytes. A few are cached in memory, so that looking around does not fetch them again."""


def answer(event: AnswerEvent) -> None:
    """The answer, or plainly that there is none, and everything that was degraded on the way."""
    text = without_note(event.answer)
    if event.status is not RunStatus.ANSWERED or event.abstained:
        status = RunStatus.ABSTAINED if event.status is RunStatus.ANSWERED else event.status
        st.warning(OUTCOMES[status], icon=":material/help:")
    if text and can_be_pointed_at(event, text):
        st.html(answer_html(event, text, _cited_places(event)))
    elif text:
        st.markdown(inert(text))
    if any(note in event.answer for note in EXTRACTIVE_NOTES):
        st.caption(":material/info: Answered without a language model: quotes, chosen by rules.")
    for line in unsupported_lines(event.answer, event.sentences):
        st.warning(plain(line[0].upper() + line[1:]), icon=":material/report:")
    for line in computed_lines(event.sentences):
        st.caption(f":material/calculate: {plain(line[0].upper() + line[1:])}")
    for notice in event.notices:
        st.warning(plain(notice), icon=":material/warning:")


def _cited_places(event: AnswerEvent) -> dict[int, bytes]:
    """The places that sentences cite, with their boxes, as PNG by the numbers of the citations. One that cannot be
    drawn is left out here: its card says why."""
    numbers = {number for sentence in event.sentences for number in sentence.citations}
    places = {cited.number: _place_of(cited) for cited in event.citations if cited.number in numbers}
    drawn = [
        (number, gateway.pictures().later(place[0]), place[1]) for number, place in places.items() if place is not None
    ]
    pictures: dict[int, bytes] = {}
    for number, picture, box in drawn:
        with suppress(VragError):
            pictures[number] = outlined(picture.result(), box) if box is not None else picture.result()
    return pictures


def _place_of(citation: Citation) -> tuple[Shot, Box | None] | None:
    """A closer look at what is cited and the box on it, or the whole page or frame; None for plain text."""
    shot = shot_of(citation, THUMBNAIL_DPI * 2)
    if shot is None or citation.bbox is None:
        return None if shot is None else (shot, None)
    box = Box(*citation.bbox)
    if citation.page is None:
        return shot, box
    part = with_context(box)
    return Shot(citation.doc_id, citation.page, None, zoom_dpi(part, HOVER_DPI, MOST_DPI), part), inside(box, part)


def sources(run_id: str, citations: Sequence[Citation], queries: Mapping[str, str]) -> None:
    """One button a source; the chosen one's card below. ``queries`` has the query of each memory node, by its id."""
    if not citations:
        return
    numbers = [citation.number for citation in citations]
    by_number = {citation.number: citation for citation in citations}
    chosen = st.pills(
        "Sources",
        numbers,
        format_func=lambda number: plain(f"[{number}] {by_number[number].title}, {where(by_number[number])}"),
        default=numbers[0],
        key=f"source-{run_id}",
    )
    if chosen is not None:
        with st.container(border=True, key=f"card-{run_id}"):
            citation = by_number[chosen]
            card(run_id, citation, queries.get(citation.node_id, ""))


def card(run_id: str, citation: Citation, query: str = "") -> None:
    """Document, place and score; the page with the box on it; the box drawn anew, larger; the original.

    ``query`` matched it, as far as is known: where on the page it was seen can be shown.
    """
    st.markdown(f"**{plain(citation.title)}**, {where(citation)}")
    several = len(gateway.state().collections) > 1
    origin = f"collection {plain(citation.collection)} · " if several and citation.collection else ""
    st.caption(f"{origin}score {citation.score:.3f} · memory node {plain(citation.node_id)}")
    if citation.quote:
        st.markdown("> " + plain(citation.quote))
    try:
        if citation.kind is PassageKind.CLIP:
            _moment(citation)
        elif citation.kind is not PassageKind.TEXT:
            _page(run_id, citation, query)
        _original(run_id, citation)
    except VragError as error:
        st.warning(f"This source cannot be shown: {plain(str(error))}")


def _page(run_id: str, citation: Citation, query: str) -> None:
    shot = shot_of(citation, PAGE_DPI)
    if shot is None:
        return
    name = f"{citation.title}, {where(citation)}"
    heat = _heat(run_id, citation, query)
    whole, closer = st.columns(2)
    png = heat or gateway.pictures().get(shot)
    if heat is not None:
        name += f", tinted where “{query}” was seen"
    if citation.bbox is None:
        whole.image(png, width=PAGE_PX, alt=name)
        return
    box = Box(*citation.bbox)
    what = "where the search saw the question" if citation.seen_by_search else "around what is cited"
    element = Box(*citation.element.bbox) if citation.element is not None else None
    value = Box(*citation.value_bbox) if citation.value_bbox is not None else None
    whole.image(
        outlined(png, box, element, value), width=PAGE_PX, output_format="PNG", alt=f"{name}, with a box {what}"
    )
    part = with_context(box)
    crop = gateway.pictures().get(Shot(citation.doc_id, citation.page, None, zoom_dpi(part, PAGE_DPI, MOST_DPI), part))
    closer.image(crop, width=CROP_PX, alt=f"Closer look at what is cited in {citation.title}, {where(citation)}")
    closer.caption("Drawn anew from the source at a higher resolution")
    if citation.seen_by_search:
        closer.caption("The box is where the search saw the question. The agent did not look closer.")


def _heat(run_id: str, citation: Citation, query: str) -> bytes | None:
    """The page tinted where ``query`` was seen, where the reader chose that and a leg knows it."""
    state = gateway.state()
    if not state.heatmaps or citation.page is None or not query:
        return None
    if not st.toggle("Show where the question was seen", key=f"heat-{run_id}-{citation.number}"):
        return None
    shot = HeatShot(citation.doc_id, citation.page, query, state.version, PAGE_DPI)
    try:
        png = gateway.pictures().get(shot)
    except ServerError as error:
        if error.status != _NOT_FOUND:
            raise
        st.caption("Nothing tells where the question was seen on this page: it has no vectors of its parts.")
        return None
    st.caption(
        f"The redder a part, the closer it is to the search “{plain(query)}”, as the vectors of the index have it."
    )
    return png


def _moment(citation: Citation) -> None:
    start = citation.t_start or 0.0
    video, frame = st.columns(2)
    info = gateway.client().document(citation.doc_id)
    if info.size_bytes > LARGEST_VIDEO:
        video.caption(f"The video has {info.size_bytes >> 20} MB: open the original to play it.")
    else:
        video.video(gateway.original(citation.doc_id), start_time=int(start), alt=f"Video {citation.title}")
        video.caption(f"Plays from {clock(int(start))}")
    shown = citation.moment or start
    png = gateway.pictures().get(Shot(citation.doc_id, None, shown))
    name = f"Frame of {citation.title} at {clock(shown)}"
    if citation.bbox is None:
        frame.image(png, width=CROP_PX, alt=name)
        return
    picture = outlined(png, Box(*citation.bbox))
    frame.image(picture, width=CROP_PX, output_format="PNG", alt=f"{name}, with a box around what is cited")


def _original(run_id: str, citation: Citation) -> None:
    """A link that opens at the page where the browser may talk to the gateway itself, else a download."""
    key = f"original-{run_id}-{citation.number}"
    if os.environ.get(gateway.KEY_VARIABLE):
        st.download_button(
            "Download the original",
            data=lambda: gateway.original(citation.doc_id),
            file_name=citation.uri.rpartition("/")[2] or citation.doc_id,
            key=key,
            on_click="ignore",
        )
        return
    place = f"#page={citation.page}" if citation.page is not None else f"#t={citation.t_start or 0:g}"
    link = f"{gateway.url()}/v1/documents/{citation.doc_id}/original?disposition=inline{place}"
    st.link_button("Open the original here", link, key=key, icon=":material/open_in_new:")
