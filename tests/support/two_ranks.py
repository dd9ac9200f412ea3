"""Two processes of one group of training, which meet over loopback."""

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
