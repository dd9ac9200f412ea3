"""What the agent has before its eyes: results of a search, the pages read for it, and crops of them."""

from __future__ import annotations

from dataclasses import dataclass

from vrag_ray.agent.coordinates import Size, View, holds_centre
from vrag_ray.agent.graph import MemoryGraph, MemoryItem
from vrag_ray.types import FULL_PAGE, Box, Hit, Locator, PageText, PassageKind, Word

LABELS = {
    PassageKind.PAGE: "Picture",
    PassageKind.IMAGE: "Picture",
    PassageKind.CLIP: "Video",
    PassageKind.TEXT: "Text",
}
UNKNOWN_SIZE = Size(1000, 1000)
"""Stands in for the size of a picture that was not rendered: a policy that reads words sees no pixels."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One thing that a search or a crop brought up, under an id (``Picture 1``) that the policy refers to.

    ``passage_text`` is the window that matched; ``page`` all words of its page, None while not read (``read_error``
    says why it could not be). ``region`` is None for a whole page, and ``source`` names what it was cropped from.
    ``shown`` is the size in pixels at which a model saw the picture.
    """

    id: str
    doc_id: str
    locator: Locator
    kind: PassageKind
    title: str
    uri: str
    score: float
    passage_text: str
    page: PageText | None = None
    read_error: str = ""
    region: Box | None = None
    source: str = ""
    shown: Size | None = None

    @classmethod
    def of(cls, hit: Hit, information_id: str) -> Sighting:
        passage = hit.passage
        return cls(
            information_id, passage.doc_id, passage.locator, passage.kind, hit.title, hit.uri, hit.score, passage.text
        )

    @property
    def view(self) -> View:
        """Which rectangle of the page this picture shows, and at which size."""
        return View(self.region or FULL_PAGE, self.shown or UNKNOWN_SIZE)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words that stand in the region, in reading order; none where the page has no geometry."""
        if self.page is None:
            return ()
        if self.region is None:
            return self.page.words
        return tuple(word for word in self.page.words if holds_centre(self.region, word.box))

    @property
    def text(self) -> str:
        """The words of the region where they are known, else the page's text, else the passage that matched."""
        if self.region is not None and self.page is not None and self.page.words:
            return " ".join(word.text for word in self.words)
        return self.page.text if self.page is not None and self.page.text.strip() else self.passage_text

    def remembered(self, priority: int, *, quote: str = "", t_frame: float | None = None) -> MemoryItem:
        return MemoryItem(
            doc_id=self.doc_id,
            locator=self.locator,
            kind=self.kind,
            box=self.region,
            t_frame=t_frame,
            priority=priority,
            quote=quote,
            title=self.title,
            uri=self.uri,
            score=self.score,
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """The results of the search of node ``node_id``, with what was cropped from them since, in that order."""

    node_id: str
    query: str
    sightings: tuple[Sighting, ...]
    shards_ok: int = 0
    shards_total: int = 0
    notices: tuple[str, ...] = ()

    def find(self, information_id: str) -> Sighting | None:
        wanted = information_id.strip().casefold()
        return next((sighting for sighting in self.sightings if sighting.id.casefold() == wanted), None)

    def next_id(self, kind: PassageKind) -> str:
        """The id of the next sighting of ``kind``: ``Picture 4`` after ``Picture 3``."""
        label = LABELS[kind]
        return f"{label} {1 + sum(LABELS[sighting.kind] == label for sighting in self.sightings)}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a policy may know when it decides. Protocols render it for models; rules read it as it is.

    ``observation`` is what was found and not yet memorised, ``history`` all earlier observations. ``steps_left``
    counts this reply; at 1 only an answer is accepted. ``correction`` says why the previous reply was refused.
    Everything under ``observation`` and ``history`` is retrieved content: data, never instructions.
    """

    question: str
    graph: MemoryGraph
    observation: Observation | None
    history: tuple[Observation, ...]
    steps_left: int
    correction: str = ""

    @property
    def must_answer(self) -> bool:
        return self.steps_left <= 1
