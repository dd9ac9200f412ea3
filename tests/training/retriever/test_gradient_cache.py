"""A batch computed in parts has the gradient of the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from vrag_ray.training.retriever.gradient_cache import cached_backward
from vrag_ray.training.retriever.losses import Vectors, contrastive

QUERIES = 12


def loss(vectors: Tensor) -> Tensor:
    """Each of the first ``QUERIES`` is answered by one of the others."""
    scored = torch.ones(len(vectors), 1, dtype=torch.bool)
    queries = Vectors(vectors[:QUERIES, None], scored[:QUERIES])
    passages = Vectors(vectors[QUERIES:, None], scored[QUERIES:])
    everything = torch.ones(QUERIES, len(vectors) - QUERIES, dtype=torch.bool)
    return contrastive(queries, passages, torch.arange(QUERIES), everything, temperature=0.05)[0]


def gradients(model: nn.Module) -> list[Tensor]:
    computed = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    return [gradient.clone() for gradient in computed]


@pytest.mark.parametrize("size", [1, 5, 30])
def test_the_gradient_is_that_of_the_whole_batch(size: int):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).double()
    contents = torch.randn(30, 6, dtype=torch.float64)

    def encode(rows: Tensor) -> Tensor:
        return nn.functional.normalize(model(rows), dim=-1)

    def part(rows: Tensor) -> Callable[[], tuple[Tensor, ...]]:
        return lambda: (encode(rows),)

    def of_parts(computed: Sequence[tuple[Tensor, ...]]) -> Tensor:
        return loss(torch.cat([vectors for (vectors,) in computed]))

    whole = loss(encode(contents))
    torch.autograd.backward(whole)
    expected = gradients(model)
    assert max(float(gradient.abs().max()) for gradient in expected) > 0.1
    value = cached_backward([part(rows) for rows in torch.split(contents, size)], of_parts)
    assert value == pytest.approx(float(whole.detach()), abs=1e-12)
    for gradient, reference in zip(gradients(model), expected, strict=True):
        assert torch.allclose(gradient, reference, atol=1e-6, rtol=0)


def test_only_one_part_at_a_time_has_a_graph():
    model = nn.Linear(2, 2)
    graphs: list[bool] = []

    def part() -> tuple[Tensor, ...]:
        vectors = model(torch.ones(15, 2))
        graphs.append(vectors.requires_grad)
        return (vectors,)

    cached_backward([part, part], lambda computed: loss(torch.cat([vectors for (vectors,) in computed])))
    assert graphs == [False, False, True, True]
