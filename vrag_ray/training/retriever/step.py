"""One optimiser step of a retriever: the exact contrastive gradient of a batch that all workers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.embedding.base import Content
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.retriever.batches import Batch
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.training.retriever.gradient_cache import cached_backward
from vrag_ray.training.retriever.inputs import Form, Inputs
from vrag_ray.training.retriever.losses import Vectors, contrastive
from vrag_ray.training.retriever.model import Retriever
from vrag_ray.training.retriever.pairs import Item
from vrag_ray.training.trainer.batch import parts
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor

Read = Callable[[Sequence[Item]], list[Content]]


@dataclass(frozen=True, slots=True)
class Part:
    """One forward pass: ``inputs`` of the contents at ``places``; queries come before passages."""

    places: tuple[int, ...]
    inputs: Inputs


def step(
    batch: Batch,
    read: Read,
    form: Form,
    retriever: Retriever,
    optimizer: Optimizer,
    ranks: Collectives,
    config: RetrieverConfig,
) -> dict[str, float]:
    """Learn from ``batch``, the same one on every rank; each rank computes its share. What is logged of it."""
    device = retriever.model.device
    own = prepared(batch, read, form, ranks, config.model.tokens_per_batch)
    if not own:
        raise VragError(f"a batch of {len(batch.passages)} passages leaves worker {ranks.rank} nothing to do")
    # A sharded model's passes are made together: a worker with fewer repeats one whose gradient is zero.
    passes = int(ranks.maxima((len(own),))[0]) if retriever.sharded else len(own)
    own += [Part((), own[0].inputs)] * (passes - len(own))
    on_device = [part.inputs.to(device) for part in own]
    targets, allowed = (tensor.to(device) for tensor in (_numbers(batch.targets), batch.allowed()))
    measured: dict[str, float] = {}

    def loss(computed: Sequence[tuple[Tensor, ...]]) -> Tensor:
        heads = everywhere(own, on_device, computed, batch, ranks)
        total = None
        for number, (queries, passages) in enumerate(heads):
            row_loss, scores = contrastive(
                queries,
                passages,
                targets,
                allowed,
                temperature=config.temperature,
                dims=config.dims,
                margin=config.margin,
            )
            measured["retriever/loss_tokens" if number else "retriever/loss"] = float(row_loss.detach())
            if not number:
                best = scores.masked_fill(~allowed, float("-inf")).argmax(dim=1)
                measured["retriever/first"] = float((best == targets).float().mean())
            total = row_loss if total is None else total + config.late_weight * row_loss
        if total is None:
            raise VragError("the model gave no vectors")
        return total

    def encode(inputs: Inputs) -> Callable[[], tuple[Tensor, ...]]:
        return lambda: tuple(vectors.values for vectors in retriever(inputs))

    cached_backward([encode(inputs) for inputs in on_device], loss)
    norm = optimizer.step()
    negatives = float(allowed.sum(dim=1).float().mean()) - 1
    return measured | {
        "retriever/grad_norm": norm,
        "retriever/lr": optimizer.lr,
        "retriever/negatives": negatives,
        "retriever/passes": float(len(own)),
    }


def prepared(batch: Batch, read: Read, form: Form, ranks: Collectives, budget: int) -> list[Part]:
    """This rank's share as forward passes whose padded tokens stay within ``budget``.

    Words and pictures do not meet in one pass: the forms take one kind at a time.
    """
    items = (*batch.queries, *batch.passages)
    count = len(batch.queries)
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for kind in (range(count), range(count, len(items))):
        for place in ranks.share(kind):
            item = items[place]
            kinds.setdefault((place < count, bool(item.picture or item.doc)), []).append(place)
    passes = []
    for (queries, _), places in kinds.items():
        contents = read([items[place] for place in places])
        for part in parts([[form.tokens(content)] for content in contents], budget):
            inputs = form.inputs([contents[number] for number in part], queries=queries)
            passes.append(Part(tuple(places[number] for number in part), inputs))
    return passes


def everywhere(
    own: Sequence[Part],
    inputs: Sequence[Inputs],
    computed: Sequence[tuple[Tensor, ...]],
    batch: Batch,
    ranks: Collectives,
) -> list[tuple[Vectors, Vectors]]:
    """For each kind of vector, those of all queries and of all passages of the batch, padded to the longest.

    Those of other ranks have no gradient here: each rank answers for its own, and gradients are summed.
    """
    import torch

    heads = []
    for head in range(len(computed[0])):
        rows: dict[int, tuple[Tensor, Tensor]] = {}
        for part, shown, values in zip(own, inputs, computed, strict=True):
            scored = shown.scored if values[head].shape[1] > 1 else torch.ones_like(values[head][..., 0]).bool()
            rows.update(zip(part.places, zip(values[head], scored, strict=True), strict=False))
        if ranks.size > 1:
            sent = {place: (values.detach().cpu(), scored.cpu()) for place, (values, scored) in rows.items()}
            for rank, others in enumerate(ranks.gathered(sent)):
                if rank != ranks.rank:
                    rows |= {
                        place: (values.to(computed[0][head]), scored.to(inputs[0].scored.device))
                        for place, (values, scored) in others.items()
                    }
        ordered = [rows[place] for place in sorted(rows)]
        count = len(batch.queries)
        heads.append((padded(ordered[:count]), padded(ordered[count:])))
    return heads


def padded(rows: Sequence[tuple[Tensor, Tensor]]) -> Vectors:
    """Token vectors of several contents side by side. Raises VragError where a content has no token that is scored."""
    from torch.nn.utils.rnn import pad_sequence

    values = pad_sequence([values for values, _ in rows], batch_first=True)
    scored = pad_sequence([scored for _, scored in rows], batch_first=True, padding_value=False)
    if not bool(scored.any(dim=1).all()):
        raise VragError("a query or passage has no token that is scored: is its text empty?")
    return Vectors(values, scored)


def _numbers(values: Sequence[int]) -> Tensor:
    import torch

    return torch.tensor(values)
