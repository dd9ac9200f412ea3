"""The memory graph of every run, in the terms in which training credits segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.hunt.memory import Parent
from benchmarks.hunt.rollout import Rollouts
from vrag_ray.training.algorithms.progress import CreditInput

ROOT, ANSWER = "root", "answer"


@dataclass(frozen=True, slots=True)
class Run:
    """One run. ``parents`` are as declared, by node in order of creation; ``found`` gold pages by search node."""

    parents: Mapping[str, Sequence[str]]
    answer_id: str | None
    success: bool
    segment_nodes: tuple[str, ...]
    found: Mapping[str, frozenset[int]]
    gold: int

    def credit_input(self) -> CreditInput:
        return CreditInput(float(self.success), self.segment_nodes, self.found, self.gold)


def runs_of(rollouts: Rollouts) -> list[Run]:
    """The runs in the order of the questions."""
    memory = rollouts.memory
    parent, source, memorised = memory.parent.tolist(), memory.source.tolist(), memory.memorised.tolist()
    gold_place, hops = memory.gold_place.tolist(), rollouts.questions.hops.tolist()
    success, answered_at = rollouts.success.tolist(), rollouts.answered_at.tolist()
    last_parent, last_source = rollouts.answer_parent.tolist(), rollouts.answer_source.tolist()
    records = []
    for run, answered in enumerate(answered_at):
        searches = memory.config.max_steps if answered < 0 else answered
        parents: dict[str, list[str]] = {ROOT: []}
        for step in range(searches):
            parents[_name(step)] = _declared(parent[run][step], step, source[run][step], memorised[run])
        if answered >= 0:
            parents[ANSWER] = _declared(last_parent[run], answered, last_source[run], memorised[run])
        records.append(
            Run(
                parents=parents,
                answer_id=ANSWER if answered >= 0 else None,
                success=success[run],
                segment_nodes=tuple(node for node in parents if node != ROOT),
                found={
                    _name(step): frozenset({gold_place[run][step]})
                    for step in range(searches)
                    if gold_place[run][step] >= 0
                },
                gold=hops[run],
            )
        )
    return records


def _name(step: int) -> str:
    return f"n{step}"


def _declared(parent: int, step: int, source: int, memorised: Sequence[bool]) -> list[str]:
    """What stands for nothing yet (no node before, none that names the key) stands for the question."""
    match Parent(parent):
        case Parent.PREVIOUS if step:
            return [_name(step - 1)]
        case Parent.SOURCE if source >= 0:
            return [_name(source)]
        case Parent.ALL:
            return [_name(earlier) for earlier in range(step) if memorised[earlier]] or [ROOT]
        case _:
            return [ROOT]
