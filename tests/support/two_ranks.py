"""Two processes of one group of training, which meet over loopback. They start once, for all tests that need them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import pytest
import torch

T = TypeVar("T")
WAIT_S = 300


class TwoRanks:
    """Call it with what each of the two processes is to do. Every call has a group of its own."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ends: list[Connection] = []
        self._workers: list[multiprocessing.process.BaseProcess] = []
        for rank in range(2):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_serve, args=(theirs, rank), daemon=True)
            worker.start()
            theirs.close()
            self._ends.append(ours)
            self._workers.append(worker)

    def __call__(self, work: Callable[[Path], T], folder: Path) -> list[T]:
        """What ``work(folder)`` gives on each rank, in order; what it raises on one, raised here."""
        for end in self._ends:
            end.send((work, folder))
        results: list[T] = []
        for end, worker in zip(self._ends, self._workers, strict=True):
            if not end.poll(WAIT_S):
                pytest.fail(f"a rank gave nothing in {WAIT_S} s; its exit code is {worker.exitcode}")
            # As bytes: a tensor that is sent as such is gone with the memory of the process that sent it.
            done = pickle.loads(end.recv_bytes())
            if isinstance(done, BaseException):
                raise done
            results.append(done)
        return results

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
            worker.join()


def _serve(end: Connection, rank: int) -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    while True:
        try:
            work, folder = end.recv()
        except EOFError:
            return
        meeting = f"file://{folder / 'ranks'}"
        torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
        try:
            done: object = work(folder)
        except Exception as error:  # noqa: BLE001  it is raised again in the test's own process
            done = error
        end.send_bytes(pickle.dumps(done))
        torch.distributed.destroy_process_group()
