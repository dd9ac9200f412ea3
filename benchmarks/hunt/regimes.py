"""The regimes of the study of masks: what is hard about a hunt, one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.hunt.learning import Imitation, Schedule
from benchmarks.hunt.world import HuntConfig


@dataclass(frozen=True)
class Regime:
    """``about``: what sets it apart, in words."""

    about: str
    config: HuntConfig
    imitation: Imitation = field(default_factory=Imitation)
    schedule: Schedule = field(default_factory=Schedule)


def _hunt(hops: int, branches: int, miss: float, misread: float, max_steps: int) -> HuntConfig:
    return HuntConfig(
        hops=(hops, hops),
        branches=branches,
        miss=miss,
        misread=misread,
        false_trails=0.7,
        max_steps=max_steps,
        keys=40,
        topics=32,
    )


_LONG = _hunt(8, 2, 0.15, 0.05, 16)
_MISREAD = _hunt(3, 2, 0.1, 0.15, 11)

REGIMES = {
    "short": Regime("two pages lead to the answer", _hunt(2, 2, 0.1, 0.05, 7)),
    "long": Regime("eight pages lead to the answer", _LONG),
    "branching": Regime("three pages, each of which names four", _hunt(3, 4, 0.1, 0.05, 9)),
    "missing": Regime("two searches in five bring nothing", _hunt(3, 2, 0.4, 0.0, 10)),
    "misreading": Regime("three names in twenty are misread", _MISREAD),
    "small groups": Regime("misreading, in groups of four", _MISREAD, schedule=Schedule(groups=16, size=4)),
    "sparse": Regime("long, from an expert that is right once in six", _LONG, Imitation(success=0.16)),
}
