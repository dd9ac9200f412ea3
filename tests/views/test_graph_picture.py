"""The memory graph as SVG: well formed, inert, and true to the view."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.support.ui_stories import story
from vrag_ray.agent.events import SearchEvent
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.views.graph_picture import (
    DARK,
    GAP,
    LIGHT,
    WIDTH,
    described,
    layers,
    megapixels,
    node_energy,
    places,
    svg,
)
from vrag_ray.views.run_view import RunView, view_of

NS = {"svg": "http://www.w3.org/2000/svg"}


def branching() -> MemoryGraph:
    graph = MemoryGraph.start("q")
    graph = graph.add_search("a", ("root",), "one").add_search("b", ("root",), "two")
    graph = graph.add_search("c", ("b",), "three").add_search("d", ("a", "c"), "four")
    return graph.add_answer(("d",), "done")


def test_a_node_stands_below_all_of_its_parents():
    assert layers(branching()) == (("root",), ("a", "b"), ("c",), ("d",), ("answer",))


def test_nodes_do_not_overlap_and_lie_within_the_whole():
    graph = branching()
    heights = {node.id: 40.0 for node in graph.nodes}
    corners, (width, height) = places(graph, WIDTH, heights, GAP)
    assert corners["b"][0] - corners["a"][0] == WIDTH + GAP[0]
    assert all(0 <= x <= width - WIDTH and 0 <= y <= height - 40 for x, y in corners.values())
    assert len({corner[1] for corner in corners.values()}) == 5


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_every_node_and_edge_is_drawn_and_every_picture_shown_as_kept_or_dropped(palette):
    view = view_of(story(3))
    root = ElementTree.fromstring(svg(view, palette))
    nodes = {group.get("data-node"): group for group in root.findall("svg:g", NS)}
    assert list(nodes) == ["root", "n1", "n2", "n3", "answer"]
    arrows = [path for path in root.findall("svg:path", NS) if path.get("fill") == "none"]
    assert len(arrows) == 4
    squares = {name: group.findall("svg:rect", NS)[1:] for name, group in nodes.items()}
    assert [len(squares[name]) for name in nodes] == [0, 1, 1, 1, 0]
    assert squares["n1"][0].get("fill") == "none"
    assert squares["n2"][0].get("fill") == palette.accent
    assert nodes["n1"].find("svg:path", NS) is not None
    assert nodes["n2"].find("svg:path", NS) is None


def test_few_pixels_are_not_rounded_to_none():
    assert megapixels(4096) == "4,096 pixels"
    assert megapixels(1_254_400) == "1.25 MP"


def test_energies_and_pixels_stand_below_the_pictures():
    view = view_of(story(2))
    words = " ".join(text.text or "" for text in ElementTree.fromstring(svg(view)).iter(f"{{{NS['svg']}}}text"))
    assert "energy 0.50 · 0.01 MP" in words
    assert "no pixels" in words
    assert node_energy(view, "n1") == 0.0


def test_words_of_models_are_text_and_never_markup():
    evil = '"/><script>alert(1)</script>&\x00\x07'
    start = story(1)[0].model_copy(update={"question": evil})
    search = SearchEvent(step=1, node_id="<b>", parent_ids=("root",), query="<image href='http://evil'/>")
    drawn = svg(RunView().after(start).after(search))
    root = ElementTree.fromstring(drawn)
    assert {element.tag.partition("}")[2] for element in root.iter()} == {"svg", "g", "rect", "text", "path"}
    assert not any("href" in name for element in root.iter() for name in element.attrib)


def test_the_chosen_node_is_marked():
    root = ElementTree.fromstring(svg(view_of(story(2)), selected="n2"))
    widths = {
        group.get("data-node"): group.find("svg:rect", NS).get("stroke-width") for group in root.findall("svg:g", NS)
    }
    assert widths == {"root": "1", "n1": "1", "n2": "2.5", "answer": "1"}


def test_the_picture_has_a_description_in_words():
    text = described(view_of(story(2)))
    assert "n2, search from n1" in text and "answer from n2" in text and "1 picture kept, 1 dropped" in text
