"""The graph as DOT."""

from __future__ import annotations

import re

from tests.support.memory_graphs import diamond, item
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.memory.graph_dot import MAX_CHARS, dot


def test_every_node_and_edge_is_drawn_and_what_the_answer_does_not_rest_on_is_grey() -> None:
    graph = diamond().memorize("b", "learnt", (item(),))
    text = dot(graph)
    nodes = dict(re.findall(r'^  "(\w+)" \[(label=.*)\];$', text, re.MULTILINE))
    assert list(nodes) == [node.id for node in graph.nodes]
    assert {name for name, style in nodes.items() if "fontcolor" in style} == {"d"}
    assert set(re.findall(r'"(\w+)" -> "(\w+)"', text)) == {(up, n.id) for n in graph.nodes for up in n.parents}
    assert "priority 3" in nodes["b"]
    assert "box 0." in nodes["b"]


def test_what_documents_say_cannot_leave_its_label() -> None:
    graph = MemoryGraph.start('a "quoted" \\ question').add_search('n"1', ("root",), 'x"]; evil [label="')
    text = dot(graph)
    assert text.count('"root" -> "n\\"1";') == 1
    assert 'evil [label=\\"' in text
    assert 'a \\"quoted\\" \\\\ question\\l' in text


def test_long_texts_are_wrapped_and_cut() -> None:
    text = dot(MemoryGraph.start("long " * 300))
    (label,) = re.findall(r'label="(.*?)", fillcolor', text)
    assert len(label) < 2 * MAX_CHARS
    assert label.count("\\l") > 3
