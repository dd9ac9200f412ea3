"""Which parts of the program run on a GPU: what there is, what is free, and what is configured.

``place`` decides what a part asks of Ray, ``device_of_process`` what a process does with what Ray granted. Both are
pure. ``ray_cards`` and ``local_cards`` read from Ray and from torch what ``place`` needs.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from vrag_ray.types import VragError

log = logging.getLogger(__name__)
LEAST_SHARE = 0.05
"""Of a card: less is not taken by default, because a model and CUDA's own memory would not fit it."""
_PRECISION = 10_000
"""Ray counts resources in ten-thousandths."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the program that computes, in ``processes`` processes of the same kind.

    ``share`` is the GPU share of each that ``setting`` configures; None: nothing is configured, and the part takes a
    free GPU, or ``most`` of it. ``cannot`` says why it has no use for a GPU, ``unless_set`` why it takes one only where
    ``setting`` says so; both are "" for a part that takes a free one.
    """

    name: str
    setting: str
    share: float | None = None
    processes: int = 1
    most: float = 1.0
    cannot: str = ""
    unless_set: str = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """The GPUs that can be used: the ``free`` share of each that has one, and how many there are in ``total``.

    ``unusable`` says why torch cannot compute on them; "" where it can, or where that is not known here. ``growing``
    is a cluster that may get more. ``most`` is what the user allows (``--gpus``); None: all.
    """

    free: tuple[float, ...] = ()
    total: int = 0
    unusable: str = ""
    growing: bool = False
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """``share`` of a GPU for each process of a part; 0 is the CPU, and ``why`` says why."""

    part: Part
    share: float
    why: str = ""

    def __str__(self) -> str:
        if not self.share:
            return f"{self.part.name} on the CPU ({self.why})"
        each = f" for each of {self.part.processes} processes" if self.part.processes > 1 else ""
        if self.share >= 1:
            return f"{self.part.name} on {self.share:g} GPU{'s' if self.share > 1 else ''}{each}"
        return f"{self.part.name} on a GPU ({self.share:g} of it{each})"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where every part runs, and ``notices`` of what a user should change."""

    placed: tuple[Placed, ...]
    notices: tuple[str, ...] = ()

    def share(self, setting: str) -> float:
        """GPU share of each process of the part that ``setting`` configures; 0 for one that was not placed."""
        return next((placed_part.share for placed_part in self.placed if placed_part.part.setting == setting), 0.0)

    def report(self, on_line: Callable[[str], None] | None) -> None:
        """Call ``on_line`` with what runs where and with the notices; None: they are logged.

        Where there is no GPU, and nothing that could use one, there is nothing to report.
        """
        lines = (
            [self.line] if any(placed_part.share or not placed_part.part.cannot for placed_part in self.placed) else []
        )
        for text in [*lines, *(f"notice: {notice}" for notice in self.notices)]:
            if on_line is not None:
                on_line(text)
            else:
                log.log(logging.WARNING if text.startswith("notice") else logging.INFO, "%s", text)

    @property
    def line(self) -> str:
        """What runs where, in one line; parts that run on the CPU for one reason are named together."""
        groups = groupby(
            sorted(self.placed, key=lambda placed: (not placed.share, placed.why)), lambda placed: placed.why
        )
        texts: list[str] = []
        for why, group in groups:
            members = list(group)
            if why:
                texts.append(f"{_listed([member.part.name for member in members])} on the CPU ({why})")
            else:
                texts += map(str, members)
        return "; ".join(texts)


def place(parts: Sequence[Part], cards: Cards) -> Placement:
    """Where ``parts``, which run at the same time, compute.

    Configured shares are given as they are; the other parts share what is then free alike. Raises VragError, which
    names the setting, for a share that the part cannot use or that these GPUs cannot give.
    """
    if cards.most == 0:
        return Placement(tuple(Placed(part, 0.0, part.cannot or "gpus is 0") for part in parts))
    total = cards.total if cards.most is None else min(cards.total, cards.most)
    _refuse(parts, cards, total)
    free = sorted(cards.free, reverse=True)[: cards.most]
    for part in parts:
        free = _without(free, part.share or 0.0, part.processes) or []
    open_parts = [part for part in parts if part.share is None and not (part.cannot or part.unless_set)]
    share = 0.0 if cards.unusable else _even_share(free, open_parts)
    placed = tuple(_placed(part, share, cards, total) for part in parts)
    for placed_part in placed:
        if placed_part.part in open_parts:
            free = _without(free, placed_part.share, placed_part.part.processes) or []
    return Placement(placed, tuple(_notices(placed, cards, idle=sum(card >= 1 for card in free))))


def device_of_process(device: str, *, visible: bool, granted: bool | None) -> str:
    """``cpu`` or ``cuda``, for a model whose setting is ``device`` (``auto``, ``cpu`` or ``cuda``).

    ``visible`` says whether torch sees a GPU, ``granted`` whether Ray gave this process one: a GPU stays visible to a
    worker that has none. None: the process is no worker of Ray. Raises VragError for another word, and for a GPU that
    this process does not have or cannot use.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise VragError(f"device is {device!r}: use auto, cpu or cuda")
    if device == "cpu":
        return "cpu"
    if device == "cuda" and not visible:
        raise VragError("device is cuda, but torch finds no GPU in this process: use auto or cpu")
    if device == "cuda" and granted is False:
        raise VragError("device is cuda, but Ray gave this process no GPU: set num_gpus to its share, or use auto")
    if granted and not visible:
        raise VragError(
            "Ray gave this process a GPU, and torch finds none: pip install '.[gpu]' in the checkout on every node "
            "with a GPU, or set gpus to 0"
        )
    return "cuda" if visible and granted is not False else "cpu"


def ray_cards(most: int | None) -> Cards:
    """The GPUs of the Ray that this process is connected to; one that another process started may grow."""
    # Where nobody has imported Ray, which takes a second, there is none.
    if "ray" not in sys.modules or not sys.modules["ray"].is_initialized():
        # A configuration is only built, for a cluster that is not known yet.
        return Cards(growing=True, most=most)
    import ray
    from ray._private import worker
    from ray._private.state import available_resources_per_node

    own = worker._global_node
    growing = own is None or not own.is_head()

    nodes = {node["NodeID"]: int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]}
    if not any(nodes.values()):
        return Cards(growing=growing, most=most)
    available = available_resources_per_node()
    free: list[float] = []
    for node, count in nodes.items():
        left = float(available.get(node, {}).get("GPU", 0.0))
        # Ray fills a card before it takes the next: what is free on several is whole cards, and on one any share.
        free += [1.0] * int(left) if count > 1 else [left] if left > 0 else []
    # Another node's torch is not known here; a process there refuses a GPU that it cannot use.
    alone = set(nodes) == {ray.get_runtime_context().get_node_id()}
    return Cards(tuple(free), sum(nodes.values()), _why_unusable() if alone else "", growing, most)


def local_cards(most: int | None) -> Cards:
    """The GPUs that torch sees in this process, without Ray: all of them are its own."""
    if most == 0 or importlib.util.find_spec("torch") is None:
        return Cards(most=most)
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return Cards((1.0,) * count, count, most=most)


def _why_unusable() -> str:
    """Why torch of this Python cannot use a GPU; "" where it can."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: pip install '.[gpu]' in the checkout"
    import torch

    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built for the CPU: pip install '.[gpu]' in the checkout"
    return f"torch {torch.__version__} finds no GPU: see that its driver works (nvidia-smi)"


def _refuse(parts: Sequence[Part], cards: Cards, total: int) -> None:
    room: list[float] | None = [1.0] * total
    for part in parts:
        if not part.share:
            continue
        setting = f"{part.setting} is {part.share:g}"
        if part.cannot:
            raise VragError(f"{setting}, and {part.cannot}: set {part.setting} to 0")
        # A factory need not use torch.
        if total and cards.unusable and not part.unless_set:
            raise VragError(f"{setting}, and {cards.unusable}, or set {part.setting} to 0")
        room = None if room is None else _without(room, part.share, part.processes)
        if room is None and not cards.growing:
            processes = f" for each of {part.processes} processes" if part.processes > 1 else ""
            have = "no GPU" if total == 0 else "1 GPU" if total == 1 else f"{total} GPUs"
            others = " for all parts together" if len([part for part in parts if part.share]) > 1 else ""
            raise VragError(
                f"{setting}{processes}, and there is {have}{others}: set {part.setting} to less, or to 0 for the CPU"
            )


def _without(free: Sequence[float], share: float, processes: int) -> list[float] | None:
    """What is left of cards after ``processes`` shares of them; None where they do not fit."""
    left = sorted(free)
    for _ in range(processes if share > 0 else 0):
        if share > 1:
            whole = [card for card in left if card >= 1]
            if len(whole) < share:
                return None
            left = left[: len(left) - int(share)]
            continue
        place = next((n for n, card in enumerate(left) if card >= share - 0.5 / _PRECISION), None)
        if place is None:
            return None
        left[place] = max(0.0, left[place] - share)
        left.sort()
    return left


def _even_share(free: Sequence[float], parts: Sequence[Part]) -> float:
    """The largest share that ``free`` cards give to every process of ``parts``; 0 where that is too little."""
    processes = sum(part.processes for part in parts)
    if not processes:
        return 0.0
    most = min(part.most for part in parts)
    tried = {min(most, card / among) for card in free for among in range(1, processes + 1)}
    for share in sorted(tried, reverse=True):
        rounded = int(share * _PRECISION + 1e-6) / _PRECISION
        if rounded >= LEAST_SHARE and _without(free, rounded, processes) is not None:
            return rounded
    return 0.0


def _placed(part: Part, share: float, cards: Cards, total: int) -> Placed:
    if part.share is not None:
        return Placed(part, part.share, "" if part.share else f"{part.setting} is 0")
    if part.cannot or part.unless_set:
        return Placed(part, 0.0, part.cannot or part.unless_set)
    if share:
        return Placed(part, share)
    if total == 0:
        return Placed(part, 0.0, "there is no GPU")
    return Placed(part, 0.0, cards.unusable or "no GPU is free")


def _notices(placed: Sequence[Placed], cards: Cards, *, idle: int) -> list[str]:
    """Notices of a GPU that nothing uses although no setting demands that; and of parts without a free GPU."""
    notices: list[str] = []
    waiting = [placed_part for placed_part in placed if placed_part.why == "no GPU is free"]
    if waiting:
        names = _listed([placed_part.part.name for placed_part in waiting])
        settings = _listed([placed_part.part.setting for placed_part in waiting])
        notices.append(
            f"{names} on the CPU, because no GPU is free: give every part its share ({settings}), "
            "or wait for what holds the GPU"
        )
    reasons = [
        placed_part
        for placed_part in placed
        if not placed_part.share and placed_part.part.share is None and placed_part not in waiting
    ]
    if cards.total and reasons and (idle or cards.unusable):
        count = cards.total if cards.unusable else idle
        why = cards.unusable or "; ".join(f"{reason.part.name}: {reason.why}" for reason in reasons)
        notices.append(f"{count} GPU{' is' if count == 1 else 's are'} idle: {why}")
    return notices


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def configured_share(share: float | None, device: str, setting: str) -> float | None:
    """The share that ``setting`` configures for a model whose ``device`` is configured too.

    Raises VragError where the two contradict each other.
    """
    if device == "cpu":
        if share:
            raise VragError(f"{setting} is {share:g} and its device is cpu: leave one of them out")
        return 0.0
    if device == "cuda" and share == 0:
        raise VragError(f"{setting} is 0 and its device is cuda: leave one of them out")
    return share
