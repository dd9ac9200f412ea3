"""The memory graph on screen: live while a run goes on; afterwards with replay, nodes to open, and export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from ui import gateway
from ui.inert import inert, plain
from ui.pictures import PAGE_DPI, shot_of_item
from ui.words import clock, where_item
from vrag_ray.agent.events import Event
from vrag_ray.agent.memory.graph import MemoryGraph, NodeKind
from vrag_ray.types import VragError
from vrag_ray.views.graph_picture import DARK, LIGHT, Palette, described, megapixels, node_energy, svg
from vrag_ray.views.run_view import RunView, moments, view_of
from vrag_ray.views.words import counted

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

ITEM_PX = 180


def draw(place: DeltaGenerator, view: RunView, selected: str = "") -> None:
    """The picture alone."""
    place.image(svg(view, palette(), selected=selected), alt=described(view))


def palette() -> Palette:
    return DARK if st.context.theme.type == "dark" else LIGHT


def explorer(run_id: str, events: Sequence[Event], graph: MemoryGraph) -> None:
    """A finished run's graph at any moment of it. ``graph`` is the run's own at its end."""
    stops = moments(events)
    stop = stops[-1]
    if len(stops) > 1:
        stop = st.select_slider(
            "Replay",
            stops,
            value=stops[-1],
            format_func=lambda count: clock(events[count - 1].t),
            key=f"moment-{run_id}",
            help="Any moment of the run: what it remembered by then.",
        )
    view = view_of(events[:stop])
    if stop == stops[-1]:
        # Only the record knows what the answer rests on beyond its citations.
        view = replace(view, graph=graph)
    names = [node.id for node in view.graph.nodes]
    # The picture stands above the buttons that choose what it marks.
    place = st.empty()
    chosen = st.pills("Nodes", names, format_func=plain, key=f"node-{run_id}-{stop}")
    draw(place, view, chosen or "")
    if view.budget is not None:
        budget = megapixels(view.budget.total_pixels)
        st.caption(f"{counted(len(view.remembered), 'picture')} kept, {len(view.dropped)} dropped, within {budget}")
    if chosen is not None:
        with st.container(border=True):
            _node(view, chosen)
    first, second = st.columns(2)
    first.download_button(
        "SVG", svg(view), f"run-{run_id[:8]}.svg", "image/svg+xml", key=f"svg-{run_id}", on_click="ignore"
    )
    second.download_button(
        "JSON",
        view.graph.model_dump_json(indent=1),
        f"run-{run_id[:8]}.json",
        "application/json",
        key=f"json-{run_id}",
        on_click="ignore",
    )


def _node(view: RunView, node_id: str) -> None:
    """The query of a node, what it learnt, and its pictures with energy and pixels."""
    node = view.graph.node(node_id)
    st.markdown(f"**{plain(node.id)}** from {plain(', '.join(node.parents))}" if node.parents else "**The question**")
    if node.query:
        st.markdown(f"Asked: {plain(node.query)}")
    if node.summary:
        st.markdown(("Answer: " if node.kind is NodeKind.ANSWER else "Learnt: ") + inert(node.summary))
    if node.items:
        st.caption(f"energy {node_energy(view, node.id):.3f}")
    row = st.container(horizontal=True)
    for index, item in enumerate(node.items):
        cell = row.container(width=ITEM_PX + 20)
        name = f"{item.title}, {where_item(item)}"
        shot = shot_of_item(item, PAGE_DPI)
        if shot is not None:
            try:
                cell.image(gateway.pictures().get(shot), width=ITEM_PX, alt=f"Remembered: {name}")
            except VragError as error:
                cell.caption(f"No picture: {plain(str(error))}")
        allotted = view.remembered.get((node_id, index))
        if allotted is not None:
            cell.caption(f"kept · energy {allotted.energy:.3f} · {megapixels(allotted.pixels)}")
        elif (node_id, index) in view.dropped:
            cell.caption("dropped from the context")
        cell.caption(f"{plain(name)} · priority {item.priority} of 5")
        if item.quote:
            cell.caption(plain(item.quote[:200]))
