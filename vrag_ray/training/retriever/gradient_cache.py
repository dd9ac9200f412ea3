"""The exact gradient of a large contrastive batch in the memory of a small one (GradCache, arXiv 2101.06983).

A contrastive loss needs the vectors of all contents at once, but not what the model computed on the way to them. So
they are first computed without a graph, part by part; the loss gives the gradient of every vector; then each part is
computed again, with a graph, and that gradient is sent through it. The workers of a run share a batch in the same
way: each knows all vectors and answers for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

Encode = Callable[[], tuple["Tensor", ...]]
"""The vectors of one part, computed anew at each call: the same vectors, hence without dropout."""
Loss = Callable[[Sequence[tuple["Tensor", ...]]], "Tensor"]
"""The loss of the whole batch from the vectors of this process's parts, in order."""


def cached_backward(parts: Sequence[Encode], loss: Loss) -> float:
    """Add the gradient of ``loss`` to the parameters that ``parts`` depend on; its value.

    A single part keeps its graph and is computed once. Otherwise each is computed twice, and no more than one graph is
    held.
    """
    import torch

    with torch.set_grad_enabled(len(parts) == 1):
        computed = [part() for part in parts]
    vectors = [tuple(tensor.detach().requires_grad_() for tensor in part) for part in computed]
    value = loss(vectors)
    torch.autograd.backward(value)
    for part, leaves, again in zip(computed, vectors, parts, strict=True):
        outputs = part if len(parts) == 1 else again()
        gradients = [torch.zeros_like(tensor) if tensor.grad is None else tensor.grad for tensor in leaves]
        torch.autograd.backward(list(outputs), gradients)
    return float(value.detach())
