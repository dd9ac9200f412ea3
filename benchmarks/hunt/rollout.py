"""Many runs at once, in step, and what training needs of them: one segment a turn, its tokens, and the graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.hunt.expert import Expert, Turn
from benchmarks.hunt.memory import Memory, Sight
from benchmarks.hunt.policy import TOKENS, Do, HuntPolicy, TurnLogp, memorise_logp, pick, turn_logp
from benchmarks.hunt.world import Questions, search

if TYPE_CHECKING:
    from torch import Generator, Tensor


@dataclass(frozen=True)
class Step:
    """The segments of one turn: ``runs`` [n] says whose; ``tokens``, ``said`` (mask) and ``logp`` are [n, TOKENS]."""

    runs: Tensor
    sight: Sight
    page: Tensor
    tokens: Tensor
    sampled: Tensor
    logp: Tensor

    def of(self, chosen: Tensor) -> Step:
        """The segments of the runs that ``chosen`` ([all runs], bool) marks."""
        rows = chosen[self.runs].nonzero().squeeze(1)
        return Step(
            self.runs[rows],
            self.sight.take(rows),
            self.page[rows],
            self.tokens[rows],
            self.sampled[rows],
            self.logp[rows],
        )


@dataclass(frozen=True)
class Rollouts:
    """``success`` [runs]: the right answer was given. ``answered_at`` [runs]: the turn of the answer, -1 without one.

    Segments are in the order of ``steps``, and within one in the order of its ``runs``.
    """

    questions: Questions
    memory: Memory
    steps: tuple[Step, ...]
    success: Tensor
    answered_at: Tensor
    answer_parent: Tensor
    answer_source: Tensor

    def runs(self) -> Tensor:
        """Whose segment each is: [segments]."""
        import torch

        return torch.cat([step.runs for step in self.steps])

    def turns(self) -> Tensor:
        """Which turn each segment is: [segments]."""
        import torch

        return torch.cat([torch.full_like(step.runs, number) for number, step in enumerate(self.steps)])

    def sampled(self) -> Tensor:
        import torch

        return torch.cat([step.sampled for step in self.steps])

    def logp(self) -> Tensor:
        import torch

        return torch.cat([step.logp for step in self.steps])


def play(questions: Questions, player: HuntPolicy | Expert, generator: Generator) -> Rollouts:
    """One run of each question until it answers or has no turn left."""
    import torch

    config, count = questions.config, len(questions)
    memory = Memory.empty(config, questions.start)
    success = torch.zeros(count, dtype=torch.bool)
    answered_at, answer_parent, answer_source = (torch.full((count,), -1) for _ in range(3))
    open_runs = torch.arange(count)
    steps: list[Step] = []
    with torch.no_grad():
        for number in range(config.max_steps):
            if not len(open_runs):
                break
            sight = memory.see(open_runs, number)
            if isinstance(player, Expert):
                logp = None
                turn = player.turn(memory, open_runs, number, generator)
            else:
                logp = turn_logp(player, sight)
                turn = _sample(logp, generator)
            page = search(questions, open_runs, turn.key, generator)
            look = memory.look(open_runs, number, turn.key, page)
            if logp is None or not isinstance(player, HuntPolicy):
                keep = player.memorise(page, generator) if isinstance(player, Expert) else page.kind
                keep_logp = None
            else:
                keep_logp = memorise_logp(player, logp.trunk, look)
                keep = pick(keep_logp, generator)
            tokens = torch.stack([turn.do, turn.key, turn.parent, keep], dim=1)
            answers = turn.do == Do.ANSWER
            sampled = torch.ones(tokens.shape, dtype=torch.bool)
            sampled[answers, TOKENS - 1] = False
            zeros = torch.zeros(tokens.shape)
            token_logp = zeros if logp is None or keep_logp is None else gather_logp(logp, keep_logp, tokens) * sampled
            steps.append(Step(open_runs, sight, look, tokens, sampled, token_logp))

            done = open_runs[answers]
            success[done] = turn.key[answers] == questions.answer[done]
            answered_at[done] = number
            answer_parent[done] = turn.parent[answers]
            answer_source[done] = memory.naming(done, number, turn.key[answers])
            going = ~answers
            open_runs = open_runs[going]
            memory.add(open_runs, number, turn.key[going], turn.parent[going], page.of(going), keep[going].bool())
    return Rollouts(questions, memory, tuple(steps), success, answered_at, answer_parent, answer_source)


def _sample(logp: TurnLogp, generator: Generator) -> Turn:
    import torch

    do = pick(logp.do, generator)
    rows = torch.arange(len(do))
    return Turn(do, pick(logp.key[rows, do], generator), pick(logp.parent[rows, do], generator))


def gather_logp(logp: TurnLogp, keep_logp: Tensor, tokens: Tensor) -> Tensor:
    """Log-probability of each token that was said: [runs, TOKENS]."""
    import torch

    do, key, parent, keep = tokens.unbind(dim=1)
    rows = torch.arange(len(do))
    return torch.stack(
        [logp.do[rows, do], logp.key[rows, do, key], logp.parent[rows, do, parent], keep_logp[rows, keep]], dim=1
    )


def step_logp(policy: HuntPolicy, step: Step) -> Tensor:
    """The same log-probabilities under ``policy``, with gradient; 0 where nothing was said: [n, TOKENS]."""
    logp = turn_logp(policy, step.sight)
    return gather_logp(logp, memorise_logp(policy, logp.trunk, step.page), step.tokens) * step.sampled
