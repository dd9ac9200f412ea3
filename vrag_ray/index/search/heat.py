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
    """The hot places of a map, page fractions, those with most heat first: patches that touch at a side are one."""
    hot = heat >= HOT_SHARE * heat.max()
    places = []
    while hot.any():
        cells = _grown(hot, *map(int, np.argwhere(hot)[0]))
        for cell in cells:
            hot[cell] = False
        rows, columns = zip(*cells, strict=True)
        height, width = heat.shape
        box = Box(min(columns) / width, min(rows) / height, (max(columns) + 1) / width, (max(rows) + 1) / height)
        places.append((float(sum(heat[cell] for cell in cells)), box))
    return [box for _, box in sorted(places, key=lambda place: (-place[0], place[1].as_tuple()))]


def _grown(hot: NDArray[np.bool_], row: int, column: int) -> set[tuple[int, int]]:
    """All hot cells that are connected with one of them."""
    found, waiting = {(row, column)}, [(row, column)]
    while waiting:
        at_row, at_column = waiting.pop()
        for next_row, next_column in (
            (at_row - 1, at_column), (at_row + 1, at_column), (at_row, at_column - 1), (at_row, at_column + 1),
        ):  # fmt: skip
            inside = 0 <= next_row < hot.shape[0] and 0 <= next_column < hot.shape[1]
            if inside and hot[next_row, next_column] and (next_row, next_column) not in found:
                found.add((next_row, next_column))
                waiting.append((next_row, next_column))
    return found
