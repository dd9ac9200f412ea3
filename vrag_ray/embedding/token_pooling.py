"""Fewer vectors a page: neighbouring patches are averaged."""

from __future__ import annotations

import numpy as np

from vrag_ray.embedding.base import Embedding


def pool_patches(embedding: Embedding, k: int) -> Embedding:
    """Each k x k block of the patch grid as one vector: its mean, of length 1 again; what has no place stays.

    A grid of (rows, columns) becomes (ceil(rows / k), ceil(columns / k)): blocks at the right and lower edge are
    smaller where k does not divide. Mean pooling as in Light-ColPali (arXiv 2506.04997), over places and not over
    clusters, so that each vector still has one. A block whose vectors cancel out keeps its first vector, since a
    vector of zeros would have no direction. Without a grid, nothing changes.
    """
    if embedding.grid is None or k == 1:
        return embedding
    rows, columns = embedding.grid
    patches = embedding.vectors[: rows * columns].reshape(rows, columns, -1)
    down, across = -(-rows // k), -(-columns // k)
    row_starts, column_starts = np.arange(down) * k, np.arange(across) * k
    sums = np.add.reduceat(np.add.reduceat(patches, row_starts, axis=0), column_starts, axis=1)
    lengths = np.linalg.norm(sums, axis=-1, keepdims=True)
    first = patches[row_starts][:, column_starts]
    pooled = np.where(lengths > 1e-6, sums / np.maximum(lengths, 1e-6), first).reshape(down * across, -1)
    rest = embedding.vectors[rows * columns :]
    return Embedding(np.concatenate([pooled, rest]).astype(np.float32), (down, across))
