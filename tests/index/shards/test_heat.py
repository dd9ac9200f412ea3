"""Where a query was seen on a page."""

from __future__ import annotations

import numpy as np
import pytest

from vrag_ray.index.shards.heat import heat_map, hot_boxes
from vrag_ray.types import Box


def test_the_map_is_hot_where_the_querys_vectors_are_and_sums_to_one() -> None:
    patches = np.eye(6, dtype=np.float32)
    extra = np.full((1, 6), 1 / np.sqrt(6), np.float32)
    heat = heat_map(patches[[1, 5]], np.concatenate([patches, extra]), (2, 3))
    assert heat.shape == (2, 3)
    assert heat.sum() == pytest.approx(1.0)
    assert heat[0, 1] == heat[1, 2] == pytest.approx(0.5, abs=1e-6)


def test_a_place_is_a_rectangle_of_hot_patches_alone_and_the_hottest_comes_first() -> None:
    heat = np.array([[9, 0, 0, 6], [9, 0, 0, 0], [0, 9, 0, 0], [0, 0, 0, 0]], np.float32)
    assert hot_boxes(heat) == [Box(0, 0, 0.25, 0.5), Box(0.25, 0.5, 0.5, 0.75), Box(0.75, 0, 1, 0.25)]
    angle = np.array([[9, 9, 9], [8, 0, 0], [8, 0, 0]], np.float32)
    assert hot_boxes(angle) == [Box(0, 0, 1, 1 / 3), Box(0, 1 / 3, 1 / 3, 1)]


def test_a_map_without_a_hot_place_is_the_whole_page() -> None:
    assert hot_boxes(np.full((2, 3), 0.1, np.float32)) == [Box(0, 0, 1, 1)]
