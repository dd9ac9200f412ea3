"""The graph as text and as DOT."""

from __future__ import annotations

from tests.agent.test_graph import diamond, item
from vrag_ray.agent.graph import MemoryGraph
from vrag_ray.agent.pictures import dot, text_tree


def test_the_tree_shows_every_node_once_and_marks_what_the_answer_rests_on() -> None:
    tree = text_tree(diamond().memorize("b", "learnt", (item(),)))
    lines = tree.splitlines()
    assert lines[0] == "*root: why?"
    assert [line.split(":")[0].strip("│├└─ ") for line in lines if "·" not in line] == [
        "*root",
        "*a",
        "*b",
        "*answer",
        "*c",
        "d",
    ]
    assert "(also from c)" in tree
    assert "page 2 [region], priority 3: “as it stands”" in tree


def test_lines_are_cut_to_the_width() -> None:
    graph = MemoryGraph.start("long " * 60).add_search("a", ("root",), "x" * 300)
    assert all(len(line) <= 60 for line in text_tree(graph, width=60).splitlines())


def test_dot_quotes_what_documents_say() -> None:
    graph = MemoryGraph.start('a "quoted" \\\\ question').add_search('n"1', ("root",), 'x"]; evil [label="')
    text = dot(graph)
    assert text.count('"root" -> "n\\"1";') == 1
    assert 'evil [label=\\"' in text
    assert text.startswith("digraph")
