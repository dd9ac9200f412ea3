"""Gold places: pages, boxes, seconds, and what a run has seen of them."""

from __future__ import annotations

import pytest

from tests.support.planted import document
from vrag_ray.questions.examples import Example, GoldPage, PixelBox
from vrag_ray.questions.gold_places import GoldPlace, Seen, gold_places, iou, region_measures, without_missing_pages
from vrag_ray.types import Document, DocumentKind, VragError

BOX = (0.5, 0.2, 0.7, 0.3)
CELL = GoldPlace("r.pdf#p2", "r", page=2, box=BOX)


def example(gold: GoldPage) -> Example:
    return Example(uid="q", question="how much?", answers=("15",), gold=(gold,))


def video() -> Document:
    import dataclasses

    return dataclasses.replace(document("talk", uri="talk.mp4", units=3), kind=DocumentKind.VIDEO)


def picture() -> Document:
    import dataclasses

    return dataclasses.replace(document("r", uri="r.png"), kind=DocumentKind.IMAGE)


def test_pages_beyond_the_last_of_their_document_are_left_out_and_counted() -> None:
    questions = [example(GoldPage(file_name="r.pdf", page=page)) for page in (1, 3, 4, 289)]
    known, missing = without_missing_pages(questions, [document("r", uri="r.pdf", units=3)])
    assert [[gold.page for gold in question.gold] for question in known] == [[1], [3], [], []]
    assert missing == 2
    with pytest.raises(VragError, match="is not in the collection"):
        without_missing_pages(questions, [])


def test_boxes_are_compared_with_the_best_that_was_seen_on_their_page() -> None:
    wide = Seen("r", 2, box=(0.0, 0.2, 1.0, 0.3))
    near = Seen("r", 2, box=(0.5, 0.2, 0.7, 0.4))
    elsewhere = Seen("r", 3, box=BOX)
    values = region_measures([CELL], [wide, near, elsewhere])
    assert (values["box IoU"], values["right region"]) == (pytest.approx(0.5), 1.0)
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
    values = region_measures([CELL, row], [cell, wide, wide, Seen("r", 4)])
    # Of two gold boxes one is met; of two cited boxes one meets it. Whole pages are no boxes.
    assert (values["evidence recall"], values["evidence precision"], values["evidence F1"]) == (0.5, 0.5, 0.5)
    assert region_measures([row], [Seen("r", 3, box=(0.1, 0.1, 0.2, 0.15))])["evidence recall"] == 0.0


def test_evidence_is_measured_as_citevqa_measures_it_but_for_its_own_precision() -> None:
    """Boxes in hundredths of a page. Gold: two elements of a.pdf, page 1, and one of b.pdf, page 1."""
    first = GoldPlace("a.pdf#p1", "a", page=1, box=(0.10, 0.10, 0.50, 0.20))
    second = GoldPlace("a.pdf#p1", "a", page=1, box=(0.10, 0.30, 0.50, 0.40))
    other = GoldPlace("b.pdf#p1", "b", page=1, box=(0.10, 0.10, 0.50, 0.20))
    gold = [first, second, other]
    # Just above half the height of the first element, and just below half that of the second.
    near = Seen("a", 1, box=(0.10, 0.10, 0.50, 0.151))
    far = Seen("a", 1, box=(0.10, 0.30, 0.50, 0.345))
    again = Seen("a", 1, box=(0.10, 0.10, 0.50, 0.19))
    names = ("evidence recall", "evidence precision", "evidence F1")

    def measured(*cited: Seen) -> list[float]:
        values = region_measures(gold, cited)
        return [values[name] for name in names]

    # One of three elements is met, by one of two boxes; F1 is 2 x 1/3 x 1/2 / (5/6).
    assert measured(near, far) == pytest.approx([1 / 3, 1 / 2, 0.4])
    # The same box of another document or page is none.
    assert measured(Seen("c", 1, box=first.box), Seen("a", 2, box=first.box)) == [0, 0, 0]
    assert measured(Seen("a", 1, box=first.box), Seen("b", 1, box=other.box)) == pytest.approx([2 / 3, 1, 0.8])
    # Both boxes meet the first element. The benchmark's script counts met elements, so its precision would be 1 / 2.
    assert measured(near, again) == pytest.approx([1 / 3, 1, 0.5])
    assert measured() == [0, 0, 0]


def test_a_box_in_pixels_is_a_share_of_the_size_of_its_page() -> None:
    """At 144 dpi a page of 500 by 1,000 points has 1,000 by 2,000 pixels."""
    box = PixelBox(corners=(100, 200, 300, 400), dpi=144)
    assert box.on_page(500, 1000) == pytest.approx((0.1, 0.1, 0.3, 0.2))
    edge = PixelBox(corners=(-2, 1900, 1004, 2003), dpi=144)
    assert edge.on_page(500, 1000) == pytest.approx((0, 0.95, 1, 1))
    with pytest.raises(ValueError, match="at 144 dpi reaches beyond a page of 120 by 1000 points"):
        box.on_page(120, 1000)
    with pytest.raises(ValueError, match="must be the greater"):
        PixelBox(corners=(100, 200, 100, 400), dpi=144)
    with pytest.raises(ValueError, match="give box or pixels, not both"):
        GoldPage(file_name="r.pdf", box=BOX, pixels=box)
    with pytest.raises(VragError, match="is of the kind image, which has no dpi"):
        gold_places([example(GoldPage(file_name="r.png", pixels=box))], [picture()])


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
