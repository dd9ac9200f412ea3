"""Gold places: pages, boxes, seconds, and what a run has seen of them."""

from __future__ import annotations

import pytest

from tests.support.planted import document
from vrag_ray.evaluation.measures.gold import GoldPlace, Seen, gold_places, iou, region_measures
from vrag_ray.training.data.examples import Example, GoldPage
from vrag_ray.types import Document, DocumentKind, VragError

BOX = (0.5, 0.2, 0.7, 0.3)
CELL = GoldPlace("r.pdf#p2", "r", page=2, box=BOX)


def example(gold: GoldPage) -> Example:
    return Example(uid="q", question="how much?", answers=("15",), gold=(gold,))


def video() -> Document:
    import dataclasses

    return dataclasses.replace(document("talk", uri="talk.mp4", units=3), kind=DocumentKind.VIDEO)


def test_boxes_are_compared_with_the_best_that_was_seen_on_their_page() -> None:
    wide = Seen("r", 2, box=(0.0, 0.2, 1.0, 0.3))
    near = Seen("r", 2, box=(0.5, 0.2, 0.7, 0.4))
    elsewhere = Seen("r", 3, box=BOX)
    found = region_measures([CELL], [wide, near, elsewhere])
    assert (found["box IoU"], found["right region"]) == (pytest.approx(0.5), 1.0)
    # The whole page is a box, and no region.
    whole = region_measures([CELL], [Seen("r", 2)])
    assert (whole["box IoU"], whole["right region"]) == (pytest.approx(0.02), 0.0)
    assert set(region_measures([CELL], [elsewhere]).values()) == {0.0}
    assert region_measures([GoldPlace("r.pdf#p2", "r", page=2)], [wide]) == {}
    assert iou(BOX, BOX) == pytest.approx(1.0)


def test_evidence_is_met_by_a_tight_box_or_by_its_element_at_half_their_union() -> None:
    row = GoldPlace("r.pdf#p3", "r", page=3, box=(0.1, 0.1, 0.9, 0.3))
    cell = Seen("r", 3, box=(0.1, 0.1, 0.2, 0.15), element=(0.1, 0.1, 0.9, 0.35))
    wide = Seen("r", 2, box=(0.0, 0.2, 1.0, 0.3))
    found = region_measures([CELL, row], [cell, wide, wide, Seen("r", 4)])
    # Of two gold boxes one is met; of two cited boxes one meets it. Whole pages are no boxes.
    assert (found["evidence recall"], found["evidence precision"], found["evidence F1"]) == (0.5, 0.5, 0.5)
    assert region_measures([row], [Seen("r", 3, box=(0.1, 0.1, 0.2, 0.15))])["evidence recall"] == 0.0


def test_seconds_of_a_video_are_met_by_what_overlaps_them() -> None:
    gold = GoldPage(file_name="talk.mp4", t_start=12, t_end=24)
    [place] = gold_places([example(gold)], [video()])["q"]
    assert (place.name, place.page) == ("talk.mp4#t12-24", None)
    meets = [place.is_met_by(Seen(place.doc_id, t_start=start, t_end=end)) for start, end in ((0, 12), (18, 30))]
    assert meets == [False, True]
    # A citation of a single moment has no length.
    assert place.is_met_by(Seen(place.doc_id, t_start=20.0, t_end=20.0))


def test_gold_that_a_document_cannot_have_is_named() -> None:
    pages = document("r", units=2)
    with pytest.raises(VragError, match=r"'q': gold file 'r\.pdf' is of the kind pdf, which has no seconds"):
        gold_places([example(GoldPage(file_name="r.pdf", t_start=1, t_end=2))], [pages])
    with pytest.raises(VragError, match="has 2 pages, so none is page 3"):
        gold_places([example(GoldPage(file_name="r.pdf", page=3))], [pages])
    with pytest.raises(ValueError, match="in fractions of the page"):
        GoldPage(file_name="r.pdf", box=(0, 0, 2, 1))
