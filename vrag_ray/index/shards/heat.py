"""Where on a page a query was seen: a heat map over the picture's patches, and the boxes of its hot places. Pure.

Each vector of the query has a say of 1, which it spreads over the patches by the softmax of its similarities (MaxSim
itself takes the one best patch; the softmax at a low temperature leaves near-equals a part). The map is the mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vrag_ray.types import Box

TEMPERATURE = 0.05
HOT_SHARE = 0.5
"""A patch is hot with at least this share of the hottest one's heat."""


def heat_map(query: NDArray[np.float32], vectors: NDArray[np.float32], grid: tuple[int, int]) -> NDArray[np.float32]:
    """[rows, columns], sums to 1: how much of ``query`` [q, dim] is at each patch, the first rows x columns vectors."""
    rows, columns = grid
    similarities = query @ vectors[: rows * columns].T
    weights = np.exp((similarities - similarities.max(axis=1, keepdims=True)) / TEMPERATURE)
    shares = weights / weights.sum(axis=1, keepdims=True)
    heat: NDArray[np.float32] = shares.mean(axis=0).reshape(rows, columns).astype(np.float32)
    return heat


def hot_boxes(heat: NDArray[np.float32]) -> list[Box]:
    """The hot places of a map, page fractions, those with most heat first: rectangles of hot patches and no others."""
    left = np.where(heat >= HOT_SHARE * heat.max(), heat, 0.0)
    height, width = heat.shape
    places = []
    while left.any():
        top, low, first, last = _grown(left, *map(int, np.unravel_index(left.argmax(), left.shape)))
        box = Box(first / width, top / height, (last + 1) / width, (low + 1) / height)
        places.append((float(left[top : low + 1, first : last + 1].sum()), box))
        left[top : low + 1, first : last + 1] = 0.0
    return [box for _, box in sorted(places, key=lambda place: (-place[0], place[1].as_tuple()))]


def _grown(left: NDArray[np.float32], row: int, column: int) -> tuple[int, int, int, int]:
    """First and last row and column of the rectangle around a patch, as large as it can be grown by whole sides of
    patches that are all hot, the hottest side first."""
    top, low, first, last = row, row, column, column
    while True:
        rows, columns = slice(top, low + 1), slice(first, last + 1)
        sides = {
            (-1, 0, 0, 0): left[top - 1, columns] if top > 0 else None,
            (0, 1, 0, 0): left[low + 1, columns] if low + 1 < left.shape[0] else None,
            (0, 0, -1, 0): left[rows, first - 1] if first > 0 else None,
            (0, 0, 0, 1): left[rows, last + 1] if last + 1 < left.shape[1] else None,
        }
        hot = {step: float(side.mean()) for step, side in sides.items() if side is not None and (side > 0).all()}
        if not hot:
            return top, low, first, last
        up, down, before, after = max(hot, key=lambda step: hot[step])
        top, low, first, last = top + up, low + down, first + before, last + after
