"""Random batches for the loss, the ratios it can have, and what it makes of a batch."""

from __future__ import annotations

import torch

from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.algorithms.loss import Counts, loss

RATIOS = ("token", "geo", "raw")
Batch = dict[str, torch.Tensor]


def wide(ratio: str = "geo", **changes: object) -> Algorithm:
    """GGPO with clips wide enough that some segments are clipped and some are not."""
    given = ALGORITHMS["ggpo"].model_dump() | {"ratio": ratio, "clip_low": 0.2, "clip_high": 0.2}
    return Algorithm.model_validate(given | changes)


def random_batch(seed: int = 0, rows: int = 9, width: int = 5) -> Batch:
    made = torch.Generator().manual_seed(seed)
    old = torch.randn((rows, width), generator=made, dtype=torch.float64)
    return {
        "logp_new": old + 0.15 * torch.randn((rows, width), generator=made, dtype=torch.float64),
        "logp_old": old,
        "advantages": torch.randn(rows, generator=made, dtype=torch.float64),
        "token_mask": torch.arange(width) < torch.randint(1, width + 1, (rows, 1), generator=made),
        "keep": torch.tensor([1, 1, 0, 1, 1, 0, 1, 1, 1])[:rows],
        "logp_reference": old + 0.3 * torch.randn((rows, width), generator=made, dtype=torch.float64),
    }


def outcome(batch: Batch, algorithm: Algorithm, counts: Counts | None = None) -> tuple[float, torch.Tensor]:
    """The loss and its gradient by ``logp_new``."""
    new = batch["logp_new"].clone().requires_grad_()
    whole = counts or Counts.of(batch["token_mask"], batch["keep"])
    total = loss(**(batch | {"logp_new": new}), algorithm=algorithm, counts=whole).total
    total.backward()
    assert new.grad is not None
    return total.item(), new.grad
