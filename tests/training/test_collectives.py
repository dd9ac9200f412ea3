"""Several training processes as one: real processes that meet over loopback."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from queue import Empty
from typing import TypeVar

import pytest
import torch

from vrag_ray.training.collectives import Collectives

T = TypeVar("T")
START_S = 300


def on_two_ranks(work: Callable[[Path], T], folder: Path) -> list[T]:
    """What ``work(folder)`` gives on each of two processes of one group, in order of rank."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_enter, args=(work, folder, rank, results)) for rank in range(2)]
    for worker in workers:
        worker.start()
    try:
        # As bytes: a tensor in a queue is gone with the process that put it there.
        found: dict[int, T] = dict(pickle.loads(results.get(timeout=START_S)) for _ in workers)
    except Empty:
        pytest.fail(f"two ranks gave nothing in {START_S} s: {[worker.exitcode for worker in workers]}")
    finally:
        for worker in workers:
            worker.join(timeout=10)
            worker.kill()
    failed = [one for one in found.values() if isinstance(one, BaseException)]
    if failed:
        raise failed[0]
    return [found[rank] for rank in range(2)]


def _enter(work: Callable[[Path], T], folder: Path, rank: int, results: multiprocessing.Queue[bytes]) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    meeting = f"file://{folder / 'ranks'}"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    try:
        done: object = work(folder)
    except Exception as error:  # noqa: BLE001  it is raised again in the test's own process
        done = error
    results.put(pickle.dumps((rank, done)))
    torch.distributed.destroy_process_group()


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


def test_two_processes_agree_on_sums_maxima_lists_and_gradients(tmp_path: Path):
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
