"""MaxSim over the vectors of many pages by torch, in half precision: on a GPU, and the same code on torch's CPU device.

It finds the pages that can be among the best. Their scores differ from those of single precision by at most
``SCORE_ERROR``, so who needs the exact order scores the best of them again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float32]
SCORE_ERROR = 2e-3
"""More than a score can differ from that of single precision, for vectors of length 1: rounding the query to half
precision moves an inner product by at most 2^-11, rounding the product and the partial sums by as much again each."""
BLOCK_BYTES = 256 << 20
"""Of one block of inner products, and of the vectors that make it, at most."""


class MaxSimScan:
    """The vectors of all pages on a torch device; thread-safe, one scan at a time.

    ``vectors`` are [n, dim] fp16 of length 1, or with ``binary`` [n, bytes] of their signs, one bit a dimension.
    ``bounds`` [pages + 1] says which rows are a page's; every page has at least one.
    """

    def __init__(
        self,
        vectors: NDArray[np.float16] | NDArray[np.uint8],
        bounds: NDArray[np.int64],
        dim: int,
        *,
        binary: bool,
        device: str,
    ) -> None:
        """Raises VragError where the vectors do not fit the device's free memory."""
        import torch

        if device != "cpu":
            _refuse_too_large(vectors.nbytes, device)
        self.device, self._dim, self._binary = device, dim, binary
        # A copy where the array is a view of a file's memory, which torch must not be able to write to.
        self._vectors = torch.from_numpy(vectors if vectors.flags.writeable else vectors.copy()).to(device)
        self._bounds = bounds
        self._lock = threading.Lock()

    def scores(self, queries: Sequence[Floats], numbers: NDArray[np.int64] | None = None) -> Floats:
        """[queries, pages]: the mean over a query's vectors, [vectors, dim], of their best inner product with one of
        the page's. ``numbers`` chooses pages; None: all."""
        import torch

        lengths = torch.tensor([len(query) for query in queries])
        parts: list[torch.Tensor] = []
        with self._lock, torch.inference_mode():
            together = torch.from_numpy(np.concatenate(queries)).to(self.device, torch.float16)
            for rows, counts in self._blocks(len(together), numbers):
                products = (self._floats(rows) @ together.T).float()
                best = torch.segment_reduce(products, "max", lengths=counts.to(self.device), axis=0)
                parts.append(torch.segment_reduce(best.T.contiguous(), "mean", lengths=lengths.to(self.device), axis=0))
            scores: Floats = torch.cat(parts, dim=1).cpu().numpy() if parts else np.empty((len(queries), 0), np.float32)
        return scores / np.float32(np.sqrt(self._dim)) if self._binary else scores

    def _blocks(
        self, query_vectors: int, numbers: NDArray[np.int64] | None
    ) -> Iterator[tuple[slice | torch.Tensor, torch.Tensor]]:
        """Rows of some pages, and how many each page has of them."""
        import torch

        pages = np.arange(len(self._bounds) - 1) if numbers is None else numbers
        starts, counts = self._bounds[pages], self._bounds[pages + 1] - self._bounds[pages]
        # Half-precision vectors and products, and the products once more in single precision.
        most = max(1, BLOCK_BYTES // (2 * self._dim + 6 * query_vectors))
        ends = np.cumsum(counts)
        first = 0
        while first < len(pages):
            before = int(ends[first - 1]) if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
            of_block = counts[first:stop]
            if numbers is None:
                rows: slice | torch.Tensor = slice(int(starts[first]), int(starts[stop - 1] + of_block[-1]))
            else:
                shift = np.repeat(starts[first:stop] - (ends[first:stop] - of_block - before), of_block)
                rows = torch.from_numpy(shift + np.arange(len(shift))).to(self.device)
            yield rows, torch.from_numpy(of_block)
            first = stop

    def _floats(self, rows: slice | torch.Tensor) -> torch.Tensor:
        """[n, dim] fp16; of bits, the signs alone, whose products are too large by the root of ``dim``."""
        import torch

        block = self._vectors[rows]
        if not self._binary:
            return block
        places = torch.arange(7, -1, -1, dtype=torch.uint8, device=self.device)
        bits = (block.unsqueeze(-1) >> places) & 1
        return bits.reshape(len(block), -1)[:, : self._dim].to(torch.float16) * 2 - 1


def _refuse_too_large(nbytes: int, device: str) -> None:
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    if nbytes + 2 * BLOCK_BYTES > free:
        raise VragError(
            f"the vectors of late interaction take {nbytes / 1e9:.1f} GB, and the GPU has {free / 1e9:.1f} GB free: "
            "set more index.shards, the space's token_pooling or binary, or index.num_gpus to 0"
        )
