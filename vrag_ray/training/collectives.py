"""The training processes as one: sums over all of them. A process of its own is a group of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch
    from torch import Tensor

T = TypeVar("T")


class Collectives:
    """``rank`` of ``size`` processes; torch.distributed where it is up."""

    def __init__(self) -> None:
        from torch import distributed

        up = distributed.is_available() and distributed.is_initialized()
        self.rank = distributed.get_rank() if up else 0
        self.size = distributed.get_world_size() if up else 1

    def share(self, whole: Sequence[T]) -> list[T]:
        """This rank's part: every ``size``-th, so that any prefix is spread evenly."""
        return list(whole[self.rank :: self.size])

    def sums(self, values: Sequence[float]) -> list[float]:
        """Each value summed over the ranks, in double precision."""
        import torch

        return [float(value) for value in self._reduced(torch.tensor(values, dtype=torch.float64), "SUM")]

    def maxima(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over the ranks."""
        import torch

        return [float(value) for value in self._reduced(torch.tensor(values, dtype=torch.float64), "MAX")]

    def gathered(self, value: T) -> list[T]:
        """``value`` of every rank, in order of rank."""
        if self.size == 1:
            return [value]
        from torch import distributed

        values: list[T] = [value] * self.size
        distributed.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        """Until every rank is here."""
        self.gathered(None)

    def sum_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Every gradient becomes its sum over the ranks; a rank that has none adds zeros."""
        import torch

        own = list(parameters)
        for parameter in own:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if self.size == 1 or not own:
            return
        # One message: hundreds of small ones would each wait for the slowest rank.
        flat = torch.cat([parameter.grad.reshape(-1) for parameter in own if parameter.grad is not None])
        self._reduced(flat, "SUM")
        place = 0
        for parameter in own:
            if parameter.grad is not None:
                parameter.grad.copy_(flat[place : place + parameter.numel()].view_as(parameter))
                place += parameter.numel()

    def _reduced(self, tensor: Tensor, how: str) -> Tensor:
        if self.size > 1:
            from torch import distributed

            device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
            there = tensor.to(device)
            distributed.all_reduce(there, getattr(distributed.ReduceOp, how))
            tensor.copy_(there)
        return tensor
