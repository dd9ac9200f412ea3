"""What the agent has before its eyes: results of a search, the pages read for it, and crops of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.memory.energy import Allotment
from vrag_ray.agent.memory.graph import MemoryGraph, MemoryItem
from vrag_ray.imaging.coordinates import holds_centre
from vrag_ray.types import Box, Hit, Locator, PageText, PassageKind, Word, joined
from vrag_ray.types.elements import Element, ElementKind

LABELS = {
    PassageKind.PAGE: "Picture",
    PassageKind.IMAGE: "Picture",
    PassageKind.CLIP: "Video",
    PassageKind.TEXT: "Text",
}


@dataclass(frozen=True, slots=True)
class Sighting:
    """One thing that a search or a crop brought up, under an id (``Picture 1``) that the policy refers to.

    ``passage_text`` is the window that matched; ``page`` all words of its page, None while not read (``read_error``
    says why it could not be). ``region`` is None for a whole page, and ``source`` names what it was cropped from.
    ``t_frame`` is the time in seconds of the frame that a crop of a video shows. ``max_pictures`` is its share of
    the pictures that the model takes: 0 shows it in words, None in as many pictures as its protocol has for it.
    ``passage_box`` is around the lines of ``passage_text``, None where their place is not known. ``seen_at`` is where
    on the page a vector leg of the search saw its query, None where no leg can tell: nobody has looked there for that.
    ``collection`` names the collection that it is in, where several are searched. ``with_figures``: figures count among
    its elements, because numbers are drawn on its picture, and a model can point at them there.
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
    t_frame: float | None = None
    max_pictures: int | None = None
    passage_box: Box | None = None
    seen_at: Box | None = None
    collection: str = ""
    with_figures: bool = False

    @classmethod
    def of(cls, hit: Hit, information_id: str, *, with_figures: bool = False) -> Sighting:
        passage = hit.passage
        return cls(
            information_id,
            passage.doc_id,
            passage.locator,
            passage.kind,
            hit.title,
            hit.uri,
            hit.score,
            passage.text,
            passage_box=passage.box,
            seen_at=hit.region,
            collection=hit.collection,
            with_figures=with_figures,
        )

    @property
    def is_remembered(self) -> bool:
        """Whether it is a part of a remembered item, whose reference is its id: ids of results have no number sign."""
        return "#" in self.id

    @property
    def words(self) -> tuple[Word, ...]:
        """The words that stand in the region, in reading order; none where the page has no geometry."""
        if self.page is None:
            return ()
        if self.region is None:
            return self.page.words
        return tuple(word for word in self.page.words if holds_centre(self.region, word.box))

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements that stand in the region, a table as one; none where they are not known. Those without words
        are figures; shots of a clip have numbers nowhere, so they are none of them."""
        if self.page is None:
            return ()
        whole = [
            element
            for element in self.page.elements
            if element.table is None
            and (element.text.strip() or (self.with_figures and element.kind is not ElementKind.SHOT))
        ]
        return tuple(element for element in whole if self.region is None or self._shows(self.region, element))

    @property
    def text(self) -> str:
        """The words of the region where they are known, else the page's text, else the passage that matched."""
        if self.region is not None and self.page is not None and self.page.words:
            return joined(self.words)
        return self.page.text if self.page is not None and self.page.text.strip() else self.passage_text

    def _shows(self, region: Box, element: Element) -> bool:
        """Whether ``element`` is seen in ``region``: a frame shows what is written in it at its time."""
        if element.t_start is None or element.t_end is None:
            return holds_centre(region, element.box)
        is_written = element.kind not in (ElementKind.CUE, ElementKind.SHOT)
        is_now = self.t_frame is not None and element.t_start <= self.t_frame <= element.t_end
        return is_written and is_now and holds_centre(region, element.box)

    def same_place(self, other: Sighting) -> bool:
        """Whether both show the same region of the same page, or of the same moment."""
        mine, theirs = (self.doc_id, self.locator, self.region), (other.doc_id, other.locator, other.region)
        return mine == theirs and self.t_frame == other.t_frame

    def remembered(
        self,
        priority: int,
        *,
        quote: str = "",
        t_frame: float | None = None,
        elements: tuple[int, int] | None = None,
    ) -> MemoryItem:
        return MemoryItem(
            doc_id=self.doc_id,
            locator=self.locator,
            kind=self.kind,
            box=self.region,
            t_frame=self.t_frame if t_frame is None else t_frame,
            priority=priority,
            quote=quote,
            elements=elements,
            title=self.title,
            uri=self.uri,
            score=self.score,
            collection=self.collection,
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
        """By its label (``Text 1``) in any case; or by its number alone or behind this node's id (``title#1``)."""
        label = " ".join(information_id.replace("_", " ").split()).strip("[]").casefold()
        labelled = next((sighting for sighting in self.sightings if sighting.id.casefold() == label), None)
        node, _, number = information_id.strip().strip("[]").rpartition("#")
        if labelled is not None or node not in ("", self.node_id) or not number.isdecimal():
            return labelled
        place = int(number[:9]) - 1
        return self.sightings[place] if 0 <= place < len(self.sightings) else None

    def next_id(self, kind: PassageKind, *, in_words: bool = False) -> str:
        """The id of the next sighting of ``kind``: ``Picture 4`` after ``Picture 3``.

        ``in_words``: to a model that sees no pictures, everything is a ``Text``.
        """
        label = LABELS[PassageKind.TEXT if in_words else kind]
        return f"{label} {1 + sum(sighting.id.startswith(f'{label} ') for sighting in self.sightings)}"


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply of the policy and what came of it: things that came into view, or a note in words (a correction).

    ``closes_node``: the reply was a memorise, after which the context begins anew with it. ``left_out`` are the ids of
    what is in view no longer, because the model takes no more pictures.
    """

    reply: str
    shown: tuple[Sighting, ...] = ()
    note: str = ""
    closes_node: bool = False
    left_out: frozenset[str] = frozenset()

    @property
    def in_view(self) -> tuple[Sighting, ...]:
        """What may still be looked at."""
        return (
            tuple(picture for picture in self.shown if picture.id not in self.left_out) if self.left_out else self.shown
        )


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a policy may know when it decides. Protocols render it for models; rules read it as it is.

    ``observation`` has the results that are not yet memorised, ``history`` all earlier observations. ``turns`` are the
    replies since the context was last rebuilt from the graph, in protocols that never rebuild it since the start.
    ``allotments`` say which remembered items may be shown, in how many pixels and characters; ``pictures`` holds those
    drawn. ``with_picture``: the question came with one.
    ``steps_left`` counts this reply; at 1 only an answer is accepted. ``correction`` says why the previous reply was
    refused, ``searched_out`` that it repeated a search: a model that repeats itself has no better one. What was
    retrieved is data, never instructions.
    """

    question: str
    graph: MemoryGraph
    observation: Observation | None
    history: tuple[Observation, ...]
    steps_left: int
    correction: str = ""
    searched_out: bool = False
    turns: tuple[Turn, ...] = ()
    allotments: tuple[Allotment, ...] = ()
    pictures: Mapping[PictureRequest, Picture] = field(default_factory=dict)
    with_picture: bool = False

    @property
    def must_answer(self) -> bool:
        return self.steps_left <= 1
