"""Every rank of a sharded model scores equally often: one with fewer micro-batches takes part in the others' passes."""

from __future__ import annotations

from collections.abc import Callable

from vrag_ray.training.collectives import Collectives
from vrag_ray.training.trainer.batch import Batch, collate
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.training.trainer.scorer import Scorer, Scores
from vrag_ray.training.trajectory import Call

Reference = Callable[[Batch], Scores]
"""Scores a batch with the frozen model that the KL term holds on to."""


def passes_behind(scorer: Scorer, ranks: Collectives, passes: int) -> int:
    """How many more passes than this rank's another rank has. All ask before their first: passes wait for each other.

    0 where nothing is sharded, without asking.
    """
    return int(ranks.maxima((passes,))[0]) - passes if scorer.sharded else 0


def dummy_forward(scorer: Scorer, pixels: Pixels, pad_id: int, passes: int, reference: Reference | None = None) -> None:
    """Take part in what a sharded model's ranks do together, forwards and, with gradients on, backwards.

    Nothing comes of it. ``reference``: what the others score with in each of those passes, between the two; it may be
    spread over the ranks as the model is.
    """
    import torch

    call = Call((pad_id,), (), (pad_id,))
    for _ in range(passes):
        batch = collate([call], pixels, pad_id).to(scorer.device)
        logp = scorer(batch).logp
        if reference is not None:
            with torch.no_grad():
                reference(batch)
        if logp.requires_grad:
            torch.autograd.backward(0.0 * logp.sum())
