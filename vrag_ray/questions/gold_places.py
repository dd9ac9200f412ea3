"""Where an answer stands in a collection: pages, boxes on them, seconds of videos, or a document as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vrag_ray.questions.examples import Corners, Example, GoldPage, PixelBox
from vrag_ray.questions.named_pages import PAGED, NamedDocument, NamedPages
from vrag_ray.types import DocumentKind, Locator, VragError
from vrag_ray.types.copies import with_changes

LEAST_COVERED = 0.5
"""A region is right that covers this share of the gold box."""
MET = 0.5
"""Intersection over union from which a box is the gold one."""
EVIDENCE_RECALL = "evidence recall"


@dataclass(frozen=True, slots=True)
class Seen:
    """A place that a run saw or cited. ``box`` is in page fractions, None for the whole page; where they are known,
    ``element`` is the box of the paragraph, table or other element around it, ``value`` that of the figure in it."""

    doc_id: str
    page: int | None = None
    t_start: float | None = None
    t_end: float | None = None
    box: Corners | None = None
    element: Corners | None = None
    value: Corners | None = None

    @property
    def boxes(self) -> tuple[Corners, ...]:
        return tuple(box for box in (self.value, self.box, self.element) if box is not None)


@dataclass(frozen=True, slots=True)
class GoldPlace:
    """``page`` is None for what has no pages; there ``seconds`` are those of a video, None for all of the document.
    ``box`` is in fractions of the page. Where it is not known yet, ``text`` are the words that stand there, or
    ``pixels`` the box on a page whose size is not known yet (``evidence_texts.located`` makes boxes of both)."""

    name: str
    doc_id: str
    page: int | None = None
    seconds: tuple[float, float] | None = None
    box: Corners | None = None
    text: str = ""
    pixels: PixelBox | None = None

    @property
    def page_key(self) -> tuple[str, str]:
        """Document id and ``place_key``."""
        return self.doc_id, place_key(self.page, *(self.seconds or (None, None)))

    def is_met_by(self, seen: Seen) -> bool:
        """The same page, or seconds in common."""
        if seen.doc_id != self.doc_id or seen.page != self.page:
            return False
        if self.seconds is None or seen.t_start is None:
            return True
        start, end = self.seconds
        # A single moment has no length: it is met where it lies within.
        is_moment = seen.t_end is None or seen.t_end <= seen.t_start
        return seen.t_start < end and (start <= seen.t_start if is_moment else start < (seen.t_end or 0.0))

    def has_box_met_by(self, seen: Seen) -> bool:
        """The same page, and the gold box with an intersection over union of ``MET`` or more with one of its boxes."""
        gold = self.box
        return gold is not None and self.is_met_by(seen) and any(iou(gold, box) >= MET for box in seen.boxes)


@dataclass(frozen=True, slots=True)
class BoxScores:
    """How cited boxes meet gold boxes.

    ``recall`` is the share of gold boxes that a cited place meets, ``precision`` the share of cited places with a box
    that meet a gold box, 0 where no cited place has one.
    """

    recall: float
    precision: float

    @property
    def f1(self) -> float:
        """Their harmonic mean; 0 where both are 0."""
        both = self.recall + self.precision
        return 2 * self.recall * self.precision / both if both else 0.0


def gold_places(examples: Iterable[Example], documents: Iterable[NamedDocument]) -> dict[str, tuple[GoldPlace, ...]]:
    """By the uid of each example, in the order of its gold. Raises VragError, which names example and file, as
    ``resolve_gold`` does, for seconds of what is no video, and for pixels at some dpi of what is no PDF."""
    pages = NamedPages(documents)
    return {example.uid: tuple(_place(example.uid, page, pages) for page in example.gold) for example in examples}


def without_missing_pages(
    examples: Sequence[Example], documents: Iterable[NamedDocument]
) -> tuple[tuple[Example, ...], int]:
    """``examples`` without gold pages beyond the last page of their document, and of how many examples that took one.

    Published sets name such pages here and there. Raises VragError as ``gold_places`` for files.
    """
    pages = NamedPages(documents)

    def exists(uid: str, gold: GoldPage) -> bool:
        return gold.page <= pages.document(gold.file_name, f"example {uid!r}: gold file {gold.file_name!r}").units

    known = tuple(
        with_changes(example, {"gold": tuple(gold for gold in example.gold if exists(example.uid, gold))})
        for example in examples
    )
    return known, sum(len(after.gold) < len(before.gold) for after, before in zip(known, examples, strict=True))


def _place(uid: str, gold: GoldPage, pages: NamedPages) -> GoldPlace:
    which = f"example {uid!r}: gold file {gold.file_name!r}"
    document = pages.document(gold.file_name, which)
    if gold.seconds is not None and document.kind is not DocumentKind.VIDEO:
        raise VragError(f"{which} is of the kind {document.kind.value}, which has no seconds")
    if document.kind not in PAGED:
        return GoldPlace(name_of(gold), document.doc_id, seconds=gold.seconds)
    if gold.pixels is not None and document.kind is not DocumentKind.PDF:
        raise VragError(f"{which} is of the kind {document.kind.value}, which has no dpi: give box, not pixels")
    pages.find(gold.file_name, gold.page, which)
    text = gold.text if gold.box is None and gold.pixels is None else ""
    return GoldPlace(name_of(gold), document.doc_id, page=gold.page, box=gold.box, text=text, pixels=gold.pixels)


def place_key(page: int | None, t_start: float | None, t_end: float | None) -> str:
    """As ``Locator.key``; "" for a document as a whole."""
    known = page is not None or (t_start is not None and t_end is not None)
    return Locator(page=page, t_start=t_start, t_end=t_end).key if known else ""


def name_of(gold: GoldPage) -> str:
    """``report.pdf#p3`` or ``talk.mp4#t12-24``."""
    if gold.seconds is None:
        return f"{gold.file_name}#p{gold.page}"
    start, end = gold.seconds
    return f"{gold.file_name}#t{start:g}-{end:g}"


def region_measures(gold: Sequence[GoldPlace], seen: Sequence[Seen]) -> Mapping[str, float]:
    """Of gold places with a box, means over them: ``box IoU`` with the best box on that page (0 where the page is not
    seen; the whole page is a box), and ``right region``, whether some box that is not the whole page covers at least
    half of it. Nothing where no box is known.

    ``evidence recall``, ``evidence precision`` and ``evidence F1`` are those of ``box_scores``. CiteVQA's recall is the
    same. Its script divides the gold boxes that are met by the number of cited ones and calls that precision, so two
    citations of one element count as a hit and a miss there, and it leaves questions without a cited box out of the
    mean of precision, those without a hit out of that of F1.
    """
    scores = box_scores(gold, seen)
    if scores is None:
        return {}
    boxed = [(place, place.box) for place in gold if place.box is not None]
    best, right = 0.0, 0
    for place, box in boxed:
        there = [other.box for other in seen if place.is_met_by(other)]
        best += max((iou(box, other or (0.0, 0.0, 1.0, 1.0)) for other in there), default=0.0)
        right += any(other is not None and shared(box, other) / area(box) >= LEAST_COVERED for other in there)
    return {
        "box IoU": best / len(boxed),
        "right region": right / len(boxed),
        EVIDENCE_RECALL: scores.recall,
        "evidence precision": scores.precision,
        "evidence F1": scores.f1,
    }


def box_scores(gold: Sequence[GoldPlace], seen: Sequence[Seen]) -> BoxScores | None:
    """Of the gold places with a box, and of what was seen with one, equal places once; None where no gold box is known.

    A gold box is met as ``GoldPlace.has_box_met_by`` says: by a place's own box, its figure's or its element's.
    """
    boxed = [place for place in gold if place.box is not None]
    if not boxed:
        return None
    shown = [other for other in dict.fromkeys(seen) if other.boxes]
    recall = sum(any(place.has_box_met_by(other) for other in shown) for place in boxed) / len(boxed)
    right = sum(any(place.has_box_met_by(other) for place in boxed) for other in shown)
    return BoxScores(recall, right / len(shown) if shown else 0.0)


def iou(box: Corners, other: Corners) -> float:
    """Intersection over union."""
    common = shared(box, other)
    return common / (area(box) + area(other) - common)


def shared(box: Corners, other: Corners) -> float:
    """Area of the intersection."""
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    return max(0.0, width) * max(0.0, height)


def area(box: Corners) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])
