"""Several training processes as one: real processes that meet over loopback."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.support.two_ranks import TwoRanks
from vrag_ray.training.collectives import Collectives


class Seen(dict[str, object]):
    """What a rank saw of the others."""


def look(_: Path) -> Seen:
    ranks = Collectives()
    lone, shared = torch.nn.Parameter(torch.zeros(2, 2)), torch.nn.Parameter(torch.zeros(3))
    shared.grad = torch.tensor([1.0, 2.0, 3.0]) * (ranks.rank + 1)
    if ranks.rank == 1:
        lone.grad = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    ranks.sum_gradients([lone, shared])
    assert lone.grad is not None
    return Seen(
        place=(ranks.rank, ranks.size),
        share=ranks.share(range(5)),
        sums=ranks.sums([0.1 + ranks.rank, 1e-9, ranks.rank]),
        maxima=ranks.maxima([-1.0 - ranks.rank, ranks.rank]),
        gathered=ranks.gathered({"rank": ranks.rank}),
        nothing=ranks.gathered(None),
        lone=lone.grad.tolist(),
        shared=shared.grad.tolist(),
    )


def test_two_processes_agree_on_sums_maxima_lists_and_gradients(on_two_ranks: TwoRanks, tmp_path: Path):
    first, second = on_two_ranks(look, tmp_path)
    assert (first.pop("place"), second.pop("place")) == ((0, 2), (1, 2))
    assert (first.pop("share"), second.pop("share")) == ([0, 2, 4], [1, 3])
    assert first == second
    assert first["sums"] == [0.1 + 1.1, 2e-9, 1.0]
    assert first["maxima"] == [-1.0, 1.0]
    assert first["gathered"] == [{"rank": 0}, {"rank": 1}]
    assert first["nothing"] == [None, None]
    assert first["lone"] == [[1.0, 2.0], [3.0, 4.0]], "a rank without a gradient adds zeros"
    assert first["shared"] == [3.0, 6.0, 9.0]


def test_a_process_of_its_own_is_a_group_of_one():
    ranks = Collectives()
    assert (ranks.rank, ranks.size) == (0, 1)
    assert ranks.share(range(3)) == [0, 1, 2]
    assert ranks.sums([0.1, 2.0]) == ranks.maxima([0.1, 2.0]) == [0.1, 2.0]
    assert ranks.gathered("x") == ["x"]
    unused = torch.nn.Parameter(torch.ones(2))
    ranks.sum_gradients([unused])
    assert torch.equal(unused.grad, torch.zeros(2))
