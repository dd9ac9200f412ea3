"""Ranks of a sharded model score equally often: one with fewer micro-batches takes part in the others' passes."""

from __future__ import annotations

from vrag_ray.training.batch import collate
from vrag_ray.training.pixels import Pixels
from vrag_ray.training.ranks import Ranks
from vrag_ray.training.scorer import Scorer
from vrag_ray.training.trajectory import Call


def passes_behind(scorer: Scorer, ranks: Ranks, passes: int) -> int:
    """How many more passes than this rank's another rank has. All ask before their first: passes wait for each other.

    0 where nothing is sharded, without asking.
    """
    return int(ranks.maxima((passes,))[0]) - passes if scorer.sharded else 0


def idle(scorer: Scorer, pixels: Pixels, pad_id: int, passes: int) -> None:
    """Take part in what a sharded model's ranks do together, forwards and, with gradients on, backwards.

    Nothing comes of it.
    """
    import torch

    call = Call((pad_id,), (), (pad_id,))
    for _ in range(passes):
        logp = scorer(collate([call], pixels, pad_id).to(scorer.device)).logp
        if logp.requires_grad:
            torch.autograd.backward(0.0 * logp.sum())
