"""A chat model as the policy of a run, the protocol's messages out and one reply back, and as the judge of its
answer."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from dataclasses import dataclass

from vrag_ray.agent.chat import Delta
from vrag_ray.agent.entailment import FORM, Claim, Verdict, messages, verdict_of
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Say
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest, ModelLostError, Sampling
from vrag_ray.types import Completion, VragError

logger = logging.getLogger(__name__)
CUT_OUT = "content_filter"
LONGEST_VERDICT = 512
"""Tokens: a word, and the thoughts of a model that cannot do without."""
WAITS_S = (0.2, 1.0, 3.0)
"""Before each further try at a reply that was lost on the way."""


@dataclass(frozen=True, slots=True)
class ChatPolicy:
    """One conversation with ``model`` in the form of ``protocol``; ``session`` is the run's id.

    A reply lost with its replica is requested again: the prompt holds all that the run has done, so nothing but the
    unfinished reply is lost with it.
    """

    model: ChatModel
    protocol: WireProtocol
    sampling: Sampling
    thinking: bool | None = None
    native_tools: bool = False
    session: str = ""
    adapter: str = ""
    reads_pages: bool = True
    sees_pictures: bool = True
    constrained: bool = True

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        """Raises ``VragError`` when the model cannot reply, ``ModelLostError`` when it stays lost."""
        request = ChatRequest(
            messages=self.protocol.messages(prompt),
            sampling=self.sampling,
            tools=self.protocol.tools if self.native_tools else (),
            thinking=self.thinking,
            session=self.session,
            adapter=self.adapter,
            form=self.protocol.reply_form(prompt) if self.constrained else None,
        )
        for wait_s in WAITS_S:
            try:
                return await self._reply(request, say)
            except ModelLostError as error:
                logger.warning("session %s: %s", self.session, error)
                say(Delta(trouble=f"{error}; the reply begins anew"))
                await asyncio.sleep(wait_s)
        return await self._reply(request, say)

    async def _reply(self, request: ChatRequest, say: Say) -> Completion:
        done: Completion | None = None
        async with aclosing(self.model.chat(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    done = piece
                else:
                    say(piece)
        if done is None:
            raise ModelLostError("the model broke off")
        if done.finish == CUT_OUT:
            raise VragError("the reply of the model was cut off by its server's content filter")
        return done


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
            sampling=Sampling(max_tokens=LONGEST_VERDICT, temperature=0.0),
            thinking=False,
            session=self.session,
            form=FORM if self.constrained else None,
        )
        async with aclosing(self.model.chat(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    return Verdict(verdict_of(piece.text), piece.usage)
        raise ModelLostError("the model broke off")
