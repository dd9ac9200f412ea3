"""What a retriever is trained on, as pure functions of its vectors: MaxSim, InfoNCE, and which negatives count.

Every content has a set of vectors, of which a mask says which are scored; a single-vector model's sets have one. The
mean over queries is taken over those of the whole batch, so that the number of workers changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

SIMILARITIES_AT_ONCE = 1 << 24
"""Inner products of tokens that are held at a time."""


class Vectors(NamedTuple):
    """``values`` [contents, tokens, dim], each of length 1; ``scored`` [contents, tokens], bool: False is padding."""

    values: Tensor
    scored: Tensor


def maxsim(queries: Vectors, passages: Vectors) -> Tensor:
    """The score of each query with each passage, [queries, passages], from -1 to 1 for vectors of length 1.

    ColBERT's late interaction (arXiv 2004.12832, eq. 3): for each scored token of the query its largest inner product
    with a scored token of the passage; here the mean over the query's tokens instead of their sum, so that one
    temperature suits queries of any length. A token that is not scored is no candidate, also where all others are
    negative: padding counts as minus infinity, not as zero.
    """
    import torch

    values, scored = queries
    per_query = max(values.shape[1] * passages.values.shape[0] * passages.values.shape[1], 1)
    rows = max(SIMILARITIES_AT_ONCE // per_query, 1)
    hidden = ~passages.scored[None, None]
    scores = []
    for some, counted in zip(torch.split(values, rows), torch.split(scored, rows), strict=True):
        similar = torch.einsum("qid,pjd->qipj", some, passages.values)
        best = similar.masked_fill(hidden, -torch.inf).max(dim=-1).values
        weights = counted.to(best.dtype)[:, :, None]
        scores.append((best * weights).sum(dim=1) / weights.sum(dim=1))
    return torch.cat(scores)


def info_nce(scores: Tensor, targets: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    """Mean over queries of ``-log(exp(s_t / T) / sum over allowed j of exp(s_j / T))`` (arXiv 1807.03748, eq. 4).

    ``scores`` [queries, passages]; ``targets`` [queries] is the column of each query's passage; ``allowed``
    [queries, passages] says which passages are compared with it, the target among them.
    """
    from torch.nn.functional import cross_entropy

    logits = (scores / temperature).masked_fill(~allowed, float("-inf"))
    return cross_entropy(logits, targets)


def without_likely_answers(scores: Tensor, targets: Tensor, allowed: Tensor, margin: float) -> Tensor:
    """``allowed`` without passages that score above the query's own by more than ``margin``.

    In a batch these are more often answers that nobody marked than negatives (Qwen3-Embedding, arXiv 2506.05176,
    eq. 2, with a margin of 0.1).
    """
    import torch

    with torch.no_grad():
        own = scores.gather(1, targets[:, None])
        allowed_scores = allowed & (scores <= own + margin)
        return allowed_scores.scatter(1, targets[:, None], value=True)


def truncated(vectors: Vectors, dims: int) -> Vectors:
    """The first ``dims`` dimensions, of length 1 again (Matryoshka representations, arXiv 2205.13147)."""
    from torch.nn.functional import normalize

    return Vectors(normalize(vectors.values[..., :dims], dim=-1), vectors.scored)


def contrastive(
    queries: Vectors,
    passages: Vectors,
    targets: Tensor,
    allowed: Tensor,
    *,
    temperature: float,
    dims: Sequence[int] = (),
    margin: float | None = None,
) -> tuple[Tensor, Tensor]:
    """``info_nce`` of ``maxsim``, and the scores in full dimension, without gradient.

    With ``dims`` the mean of the losses at each of these numbers of dimensions (MRL; the full one is taken where it is
    listed). ``margin``: see ``without_likely_answers``.
    """
    import torch

    losses = []
    full = queries.values.shape[-1]
    whole = None
    for size in dims or (full,):
        cut = size < full
        scores = maxsim(truncated(queries, size), truncated(passages, size)) if cut else maxsim(queries, passages)
        counted = allowed if margin is None else without_likely_answers(scores, targets, allowed, margin)
        losses.append(info_nce(scores, targets, counted, temperature))
        if not cut:
            whole = scores.detach()
    if whole is None:
        with torch.no_grad():
            whole = maxsim(queries, passages)
    return torch.stack(losses).mean(), whole
