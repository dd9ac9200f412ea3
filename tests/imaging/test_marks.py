"""Numbers of elements on pictures: beside the page or around its elements, and how many pixels that takes."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from vrag_ray.config import Marks
from vrag_ray.imaging.coordinates import CoordinateError, Size, model_size
from vrag_ray.imaging.marks import MARGIN_COLOUR, Mark, PictureMarks, draw_marks, marked, spread
from vrag_ray.types import Box

PATCH = 28
LEFT, RIGHT = Mark(7, Box(0.1, 0.2, 0.45, 0.3)), Mark(123, Box(0.55, 0.6, 0.9, 0.9))


def page(width: int = 560, height: int = 840) -> Image.Image:
    """No two rows or columns alike, and no pixel in a colour of the marks."""
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([200 + x % 40, 200 + y % 40, 200 + (x + y) % 30], axis=2).astype(np.uint8))


def png_of(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def margin(*marks: Mark) -> PictureMarks:
    return PictureMarks(Marks.MARGIN, marks, aspect=2 / 3)


def ink(strip: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which pixels [rows, columns] of a margin are drawn on."""
    drawn: NDArray[np.bool_] = (strip != np.array(MARGIN_COLOUR)).any(axis=2)
    return drawn


def test_a_margin_hides_nothing_and_has_each_number_at_the_height_of_its_element() -> None:
    original = page()
    picture = np.asarray(draw_marks(original, margin(LEFT, RIGHT), PATCH, PATCH))
    assert picture.shape == (840, 560 + 2 * PATCH, 3)
    assert (picture[:, PATCH:-PATCH] == np.asarray(original)).all()
    for strip, mark in ((picture[:, :PATCH], LEFT), (picture[:, -PATCH:], RIGHT)):
        rows = np.flatnonzero(ink(strip).any(axis=1))
        assert (rows[0], rows[-1]) == pytest.approx((mark.box.y0 * 840, mark.box.y1 * 840), abs=1)
        far_side = strip[:, : PATCH - 7] if mark is LEFT else strip[:, 7:]
        digits = np.flatnonzero(ink(far_side).any(axis=1))
        assert 9 <= digits[-1] - digits[0] + 1 <= 12, "digits that can be read, beside the first line"
        assert digits[0] == pytest.approx(mark.box.y0 * 840 + 4, abs=4)


def test_each_number_is_drawn_as_itself() -> None:
    def drawn(number: int) -> bytes:
        return np.asarray(draw_marks(page(), margin(Mark(number, LEFT.box)), PATCH, 0))[:, : PATCH - 7].tobytes()

    assert len({drawn(number) for number in (1, 7, 8, 18, 81, 118)}) == 6
    assert (
        ink(np.frombuffer(drawn(118), np.uint8).reshape(840, -1, 3)).sum()
        > ink(np.frombuffer(drawn(1), np.uint8).reshape(840, -1, 3)).sum()
    )


@pytest.mark.parametrize("number", [1, 88, 888, 8888, 88888])
def test_a_number_of_any_length_stays_in_its_margin(number: int) -> None:
    picture = draw_marks(page(), margin(Mark(number, LEFT.box), Mark(number, RIGHT.box)), PATCH, PATCH)
    strips = np.asarray(picture)[:, :PATCH], np.asarray(picture)[:, :-PATCH:-1]
    assert not any(ink(strip)[:, 0].any() for strip in strips), "the outermost column is free"


def test_a_page_of_one_column_has_one_margin() -> None:
    assert margin(LEFT, Mark(8, Box(0.1, 0.4, 0.95, 0.5))).margins(PATCH) == (PATCH, 0)
    assert margin(RIGHT).margins(PATCH) == (0, PATCH)
    assert PictureMarks(Marks.BOXES, (LEFT, RIGHT), 1.0).margins(PATCH) == (0, 0)


def test_an_outline_is_around_its_element_and_leaves_its_inside_as_it_was() -> None:
    original = page()
    picture = np.asarray(draw_marks(original, PictureMarks(Marks.BOXES, (LEFT, RIGHT), 2 / 3), 0, 0))
    changed = (picture != np.asarray(original)).any(axis=2)
    assert picture.shape == (840, 560, 3)
    for mark in (LEFT, RIGHT):
        x0, y0, x1, y1 = (round(edge) for edge in np.array(mark.box.as_tuple()) * [560, 840, 560, 840])
        assert changed[y0 - 2, x0 + 1 : x1].all() and changed[y0 + 1 : y1, x1 + 2].all()
        assert not changed[y0:y1, x0:x1].any()
        assert changed[y0 - 2 : y0 + 12, x0 - 40 : x0 - 2].sum() > 50, "its number stands beside it"
    assert np.asarray(original).tobytes() == np.asarray(page()).tobytes(), "the page itself is not drawn on"


def test_numbers_of_outlines_do_not_lie_over_each_other() -> None:
    rows = [Mark(number, Box(0.3, 0.1 + number * 0.013, 0.6, 0.11 + number * 0.013)) for number in range(1, 40)]
    alone = sum(
        (np.asarray(draw_marks(page(), PictureMarks(Marks.BOXES, (row,), 1.0), 0, 0))[:, :166] < 190).any(axis=2).sum()
        for row in rows
    )
    together = np.asarray(draw_marks(page(), PictureMarks(Marks.BOXES, tuple(rows), 1.0), 0, 0))
    assert (together < 190).any(axis=2).sum() > alone, "as much ink and more as all of the numbers alone"


BOXES = st.builds(
    lambda x, y, w, h: Box(x, y, x + w, y + h),
    st.floats(0, 0.9), st.floats(0, 0.9), st.floats(0.0001, 0.1), st.floats(0.0001, 0.1),
)  # fmt: skip
ELEMENTS = st.lists(st.builds(Mark, st.integers(1, 2000), BOXES), min_size=1, max_size=120).map(tuple)


@settings(max_examples=60, deadline=None)
@given(ELEMENTS, st.sampled_from([28, 32]), st.integers(4, 60), st.integers(60, 2000), st.integers(60, 2000))
def test_a_picture_with_its_margins_is_whole_patches_within_the_budget(
    elements: tuple[Mark, ...], patch: int, most: int, width: int, height: int
) -> None:
    marks = PictureMarks(Marks.MARGIN, elements, width / height)
    most_pixels = most * patch * patch
    room = marks.page_pixels(patch, most_pixels)
    size = model_size(Size(width, height), patch=patch, min_pixels=0, max_pixels=room)
    try:
        done = marked(png_of(page(size.width, size.height)), marks, patch, most_pixels)
    except CoordinateError:
        # A page as high as the whole budget has no room for a margin beside it.
        assert size.height // patch * (1 + sum(marks.margins(patch)) // patch) > most
        return
    assert done.size.pixels <= most_pixels
    assert (done.size.width % patch, done.size.height % patch) == (0, 0)
    assert Image.open(io.BytesIO(done.png)).size == (done.size.width, done.size.height)
    assert (done.left, done.right) == marks.margins(patch)


def test_the_room_that_margins_leave_fits_pages_without_scaling_them_twice() -> None:
    marks = margin(LEFT, RIGHT)
    room = marks.page_pixels(PATCH, 1280 * PATCH * PATCH)
    for raw in (Size(1700, 2550), Size(1654, 2481), Size(3000, 4500)):
        size = model_size(raw, patch=PATCH, min_pixels=0, max_pixels=room)
        done = marked(png_of(page(size.width, size.height)), marks, PATCH, 1280 * PATCH * PATCH)
        assert done.size == Size(size.width + 2 * PATCH, size.height)
        assert done.size.pixels > 0.9 * 1280 * PATCH * PATCH


@given(st.lists(st.floats(0, 500), min_size=1, max_size=60).map(sorted), st.floats(5, 20))
def test_numbers_are_spread_in_order_within_the_height(places: list[float], distance: float) -> None:
    spaced = spread(places, distance, 500.0)
    least = min(distance, 500.0 / len(places))
    assert all(after - before >= least - 1e-6 for before, after in pairwise(spaced))
    assert least / 2 - 1e-6 <= spaced[0] and spaced[-1] <= 500.0 - least / 2 + 1e-6


def test_what_has_room_stays_where_it_is_and_a_heap_is_spread_around_its_middle() -> None:
    assert spread([50.0, 100.0, 400.0], 12.0, 500.0) == [50.0, 100.0, 400.0]
    assert spread([100.0, 100.0, 100.0, 300.0], 12.0, 500.0) == [88.0, 100.0, 112.0, 300.0]
