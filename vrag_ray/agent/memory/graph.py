"""The agent's memory: a directed acyclic graph of queries, what was learnt from each, and the pictures it retains.

A graph is a value. Every change returns a new graph, so a snapshot handed out stays as it was. Nodes are stored in
order of creation and parents always stand before their children, which makes a cycle impossible. A refused change
raises ``GraphError`` with a message that a model can act on.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import count

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from vrag_ray.types import Box, Locator, PassageKind, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.errors import validation_message

ROOT_ID = "root"
ANSWER_ID = "answer"
MAX_ID_CHARS = 120
MADE_ID_WORDS = 6


class GraphError(VragError):
    """A change the memory graph refuses; the message says what to do instead."""


class RepeatedSearchError(GraphError):
    """A search that has been made already."""


class NodeKind(StrEnum):
    """What a node stands for."""

    ROOT = "root"
    SEARCH = "search"
    ANSWER = "answer"


class MemoryItem(BaseModel):
    """A page, picture, video frame, text or a region of one that the agent keeps.

    ``box`` is in page fractions, None for the whole page. ``t_frame`` is the time in seconds of a kept video frame.
    ``quote`` holds words that stand in the item, never words of a policy. ``elements`` are the first and the last of
    the elements of its page that it is about: a policy named them, or they hold what it learnt. ``score`` is the
    retrieval score.
    ``collection`` names the collection that it is in, where several are searched.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    doc_id: str
    locator: Locator
    kind: PassageKind
    box: Box | None = None
    t_frame: float | None = None
    priority: int = Field(ge=1, le=5)
    quote: str = ""
    elements: tuple[int, int] | None = None
    title: str = ""
    uri: str = ""
    score: float = 0.0
    collection: str = ""

    def with_priority(self, priority: int) -> MemoryItem:
        """The same item, more or less important: 1 to 5."""
        return MemoryItem.model_validate(self.model_dump() | {"priority": priority})

    @property
    def visual(self) -> bool:
        """Whether the item takes pixels of a model's context. Plain text does not."""
        return self.kind is not PassageKind.TEXT


class MemoryNode(BaseModel):
    """One node. ``summary`` is what was learnt; for the answer node it is the answer itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    kind: NodeKind
    parents: tuple[str, ...] = ()
    query: str = ""
    summary: str = ""
    items: tuple[MemoryItem, ...] = ()

    @field_validator("parents")
    @classmethod
    def _without_duplicates(cls, parents: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(parents))


class MemoryGraph(BaseModel):
    """Nodes in order of creation; the first is the root, and at most one is the answer, which is the last."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: tuple[MemoryNode, ...]

    @classmethod
    def start(cls, question: str) -> MemoryGraph:
        """A graph that holds only the question."""
        return cls(nodes=(MemoryNode(id=ROOT_ID, kind=NodeKind.ROOT, query=question),))

    @classmethod
    def from_json(cls, text: str) -> MemoryGraph:
        """The inverse of ``to_json``; raises ``GraphError`` on text that is not a valid graph."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise GraphError(f"not a memory graph: {where or 'the text'}: {validation_message(first)}") from error

    def to_json(self) -> str:
        return self.model_dump_json()

    @model_validator(mode="after")
    def _is_a_dag(self) -> MemoryGraph:
        known: list[str] = []
        ids = [node.id for node in self.nodes]
        if not self.nodes or self.nodes[0].kind is not NodeKind.ROOT:
            raise GraphError("a memory graph begins with its root")
        for place, node in enumerate(self.nodes):
            if place and node.kind is NodeKind.ROOT:
                raise GraphError(f"node {node.id!r} is a second root: a memory graph has one")
            if node.kind is NodeKind.ANSWER and place != len(self.nodes) - 1:
                raise GraphError(f"node {self.nodes[place + 1].id!r} comes after the answer: the answer ends the graph")
            _check_id(node.id, known)
            _check_parents(node, known, later=ids[place + 1 :])
            known.append(node.id)
        return self

    def add_search(
        self, node_id: str, parents: tuple[str, ...], query: str, *, may_repeat: bool = False
    ) -> MemoryGraph:
        """With a search node whose results are not memorised yet. ``may_repeat``: an earlier query may come again."""
        if node_id == ANSWER_ID:
            raise GraphError(f"the id {ANSWER_ID!r} is kept for the answer node: choose another id")
        if not query.strip():
            raise GraphError(f"search node {node_id!r} has an empty query: say what to search for")
        made = {" ".join(node.query.casefold().split()): node.id for node in self.nodes[1:]}
        same = made.get(" ".join(query.casefold().split()))
        if same is not None and not may_repeat:
            raise RepeatedSearchError(
                f"the search {query[:120]!r} has been made already, in node {same!r}: search for something else, or "
                "answer"
            )
        return self._with(MemoryNode(id=node_id, kind=NodeKind.SEARCH, parents=parents, query=query))

    def free_id(self, title: str) -> str:
        """An id for a node about ``title``: its beginning, with a number where that is taken."""
        base = " ".join(printable_title(title).split()[:MADE_ID_WORDS])[: MAX_ID_CHARS - 8] or "search"
        taken = {node.id for node in self.nodes} | {ANSWER_ID}
        return next(name for number in count(1) if (name := base if number == 1 else f"{base} {number}") not in taken)

    def memorize(self, node_id: str, summary: str, items: tuple[MemoryItem, ...]) -> MemoryGraph:
        """With ``summary`` and ``items`` in the search node ``node_id``."""
        node = self.node(node_id)
        if node.kind is not NodeKind.SEARCH:
            raise GraphError(f"node {node_id!r} is the {node.kind}: only a search node remembers results")
        changed = with_changes(node, {"summary": summary, "items": items})
        return MemoryGraph(nodes=tuple(changed if old.id == node_id else old for old in self.nodes))

    def add_answer(self, parents: tuple[str, ...], answer: str) -> MemoryGraph:
        """With the terminal node."""
        return self._with(MemoryNode(id=ANSWER_ID, kind=NodeKind.ANSWER, parents=parents, summary=answer))

    def node(self, node_id: str) -> MemoryNode:
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise GraphError(f"there is no node {node_id!r}: the nodes are {_listed([node.id for node in self.nodes])}")

    @property
    def answer(self) -> MemoryNode | None:
        return self.nodes[-1] if self.nodes[-1].kind is NodeKind.ANSWER else None

    def children(self, node_id: str) -> tuple[MemoryNode, ...]:
        """Direct children in order of creation."""
        return tuple(node for node in self.nodes if node_id in node.parents)

    def ancestors(self, node_id: str) -> frozenset[str]:
        """Every node on some path from the root to ``node_id``, the node itself included."""
        by_id = {node.id: node for node in self.nodes}
        reached: set[str] = set()
        open_ids = [self.node(node_id).id]
        while open_ids:
            current = open_ids.pop()
            if current not in reached:
                reached.add(current)
                open_ids.extend(by_id[current].parents)
        return frozenset(reached)

    def _with(self, node: MemoryNode) -> MemoryGraph:
        if self.answer is not None:
            raise GraphError(f"node {node.id!r} comes after the answer: the answer ends the graph")
        _check_id(node.id, [known.id for known in self.nodes])
        return MemoryGraph(nodes=(*self.nodes, node))


def printable_title(text: str) -> str:
    """``text`` as far as it can be the id of a node: on one line, and no longer than an id is."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())[:MAX_ID_CHARS].strip()


def _check_id(node_id: str, known: list[str]) -> None:
    if not node_id.strip() or len(node_id) > MAX_ID_CHARS or not node_id.isprintable():
        raise GraphError(
            f"a node id is a short title of 1 to {MAX_ID_CHARS} printable characters, not {node_id[:40]!r}"
        )
    if node_id in known:
        raise GraphError(f"the id {node_id!r} is taken: choose an id other than {_listed(known)}")


def _check_parents(node: MemoryNode, known: list[str], later: list[str]) -> None:
    if node.kind is NodeKind.ROOT:
        if node.parents:
            raise GraphError(f"the root has no parents, not {_listed(list(node.parents))}")
        return
    if not node.parents:
        raise GraphError(f"node {node.id!r} has no parents: give parent_ids out of {_listed(known)}")
    for parent in node.parents:
        if parent == node.id:
            raise GraphError(f"node {node.id!r} cannot be its own parent: give parent_ids out of {_listed(known)}")
        if parent in later:
            raise GraphError(f"parent {parent!r} of node {node.id!r} was created later: parents come first")
        if parent not in known:
            raise GraphError(f"parent {parent[:80]!r} does not exist: give parent_ids out of {_listed(known)}")


def _listed(ids: list[str]) -> str:
    return ", ".join(repr(node_id) for node_id in ids)
