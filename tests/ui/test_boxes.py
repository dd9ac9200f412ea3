"""Boxes on pictures: drawn around what they hold, and looked at closely enough."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from ui.boxes import ELEMENT_OUTLINE, OUTLINE, inside, outlined, with_context, zoom_dpi
from vrag_ray.types import Box


def page(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("size", [(200, 300), (1600, 1200)])
def test_the_line_runs_around_the_box_and_covers_nothing_of_it(size: tuple[int, int]):
    width, height = size
    box = Box(0.25, 0.5, 0.75, 0.6)
    drawn = np.asarray(Image.open(io.BytesIO(outlined(page(width, height), box))))
    inside = drawn[int(0.5 * height) + 1 : int(0.6 * height), int(0.25 * width) + 1 : int(0.75 * width)]
    assert (inside == 255).all()
    rows, columns = np.nonzero((drawn == OUTLINE).all(axis=2))
    line = max(2, round(max(size) / 400))
    assert abs(columns.min() - 0.25 * width) <= line + 1 and abs(columns.max() - 0.75 * width) <= line + 1
    assert abs(rows.min() - 0.5 * height) <= line + 1 and abs(rows.max() - 0.6 * height) <= line + 1


def test_the_element_has_a_line_of_its_own_around_the_box():
    box, element = Box(0.25, 0.5, 0.75, 0.6), Box(0.1, 0.4, 0.9, 0.8)
    drawn = np.asarray(Image.open(io.BytesIO(outlined(page(400, 400), box, element))))
    rows, columns = np.nonzero((drawn == ELEMENT_OUTLINE).all(axis=2))
    assert columns.min() < 40 and columns.max() > 360 and rows.min() < 160 and rows.max() > 320
    assert (drawn == OUTLINE).all(axis=2).any()
    assert (drawn[321:] == OUTLINE).all(axis=2).sum() == 0


def test_the_value_has_a_thin_line_within_the_box():
    box, value = Box(0.25, 0.5, 0.75, 0.6), Box(0.5, 0.52, 0.6, 0.58)
    drawn = np.asarray(Image.open(io.BytesIO(outlined(page(400, 400), box, value=value))))
    within = (drawn[204:236, 104:296] == OUTLINE).all(axis=2)
    rows, columns = np.nonzero(within)
    assert abs(columns.min() + 104 - 200) <= 2 and abs(columns.max() + 104 - 240) <= 2
    assert abs(rows.min() + 204 - 208) <= 2 and abs(rows.max() + 204 - 232) <= 2
    assert (drawn[209:231, 201:239] == 255).all()


def test_a_box_at_the_edge_stays_on_the_page():
    drawn = np.asarray(Image.open(io.BytesIO(outlined(page(100, 100), Box(0.0, 0.0, 1.0, 1.0)))))
    assert drawn.shape == (100, 100, 3)
    assert (drawn[0, 50] == OUTLINE).all() and (drawn[99, 50] == OUTLINE).all()


def test_a_crop_shows_a_little_more_and_never_more_than_the_page():
    assert with_context(Box(0.5, 0.5, 0.6, 0.6)).as_tuple() == pytest.approx((0.47, 0.47, 0.63, 0.63))
    assert with_context(Box(0.0, 0.0, 1.0, 1.0)) == Box(0.0, 0.0, 1.0, 1.0)


def test_a_narrow_crop_is_drawn_as_wide_as_the_page_up_to_the_limit():
    assert zoom_dpi(Box(0.0, 0.0, 0.5, 0.1), 100.0, 600.0) == 200.0
    assert zoom_dpi(Box(0.0, 0.0, 0.05, 0.1), 100.0, 600.0) == 600.0


def test_a_box_has_its_place_in_the_crop_around_it():
    box = Box(0.25, 0.5, 0.75, 0.6)
    assert inside(box, Box(0.0, 0.0, 1.0, 1.0)) == box
    assert inside(box, Box(0.25, 0.5, 0.75, 0.7)).rounded() == Box(0.0, 0.0, 1.0, 0.5)
