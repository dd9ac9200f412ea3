"""Neighbouring patches become one vector, and each keeps its place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vrag_ray.embedding.base import Embedding
from vrag_ray.embedding.token_pooling import pool_patches


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return scaled


def page(rows: int, columns: int, others: int = 0) -> Embedding:
    random = np.random.default_rng(rows * 100 + columns)
    return Embedding(unit(random.normal(size=(rows * columns + others, 8)).astype(np.float32)), (rows, columns))


@given(rows=st.integers(1, 9), columns=st.integers(1, 9), k=st.integers(1, 8), others=st.integers(0, 3))
def test_each_block_is_the_mean_of_its_patches(rows: int, columns: int, k: int, others: int) -> None:
    whole = page(rows, columns, others)
    pooled = pool_patches(whole, k)
    patches = whole.vectors[: rows * columns].reshape(rows, columns, 8)
    expected = [
        unit(patches[top : top + k, left : left + k].reshape(-1, 8).mean(axis=0))
        for top in range(0, rows, k)
        for left in range(0, columns, k)
    ]
    assert pooled.grid == (-(-rows // k), -(-columns // k))
    np.testing.assert_allclose(pooled.vectors[: len(expected)], expected, atol=1e-4)
    np.testing.assert_array_equal(pooled.vectors[len(expected) :], whole.vectors[rows * columns :])
    assert pooled.vectors.dtype == np.float32


def test_a_block_that_cancels_out_keeps_a_direction() -> None:
    up = np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32)
    np.testing.assert_array_equal(pool_patches(Embedding(up, (1, 2)), 2).vectors, [[1.0, 0.0]])


@pytest.mark.parametrize("k", [1, 4])
def test_vectors_without_places_stay(k: int) -> None:
    whole = Embedding(page(3, 3).vectors)
    assert pool_patches(whole, k) is whole
