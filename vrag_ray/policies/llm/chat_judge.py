"""The chat model of a run as the judge of its answer, sentence by sentence."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass

from vrag_ray.agent.entailment import FORM, Claim, Verdict, messages, verdict_of
from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest, ModelLostError, Sampling
from vrag_ray.types import Completion

LONGEST_REPLY = 512
"""Tokens: a word, and the thoughts of a model that cannot do without."""


@dataclass(frozen=True, slots=True)
class ChatJudge:
    """Asks ``model`` greedily, held to yes or no where its server can; ``session`` is the run's id."""

    model: ChatModel
    session: str = ""
    constrained: bool = True

    async def judge(self, claim: Claim) -> Verdict:
        """Raises ``VragError`` when the model cannot reply."""
        request = ChatRequest(
            messages=messages(claim),
            sampling=Sampling(max_tokens=LONGEST_REPLY, temperature=0.0),
            thinking=False,
            session=self.session,
            form=FORM if self.constrained else None,
        )
        async with aclosing(self.model.chat(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return Verdict(verdict_of(piece.text), piece.usage)
        raise ModelLostError("the model broke off")
