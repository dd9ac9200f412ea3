"""The interface of every language model behind a policy: a chat in, words out, as they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from vrag_ray.agent.chat import Delta, Message, Tool
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.types import Completion, VragError


class ModelLostError(VragError):
    """The model went away before or while it spoke. Another try may help: it meets another replica, or a new one."""

    status = 503
    type = "server_error"
    code = "not_ready"


class BrokenReplyError(ModelLostError):
    """The model went away after its first words: what came of the reply is no reply."""

    status = 502
    code = "upstream"


class ModelDownError(VragError):
    """The model's server refuses or cannot be reached. Nothing in the request can mend that; the server's owner can."""

    status = 502
    type = "server_error"
    code = "upstream"


class ModelBusyError(ModelDownError):
    """The model's server takes no more requests for the moment: the same request may pass after ``retry_after_s``."""

    status = 429
    type = "rate_limit_error"
    code = "overloaded"

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


BANNED_LOGIT = -100.0
"""Added to the logits of ``Sampling.banned_token_ids``, before the temperature."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next tokens are drawn. ``temperature`` 0 is greedy; None leaves a value to the model's own default.

    ``banned_token_ids`` are token ids that get practically no probability.
    """

    max_tokens: int = 2048
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    banned_token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request for one reply. ``session`` names the conversation, so that its turns can meet the same prefix cache.

    ``thinking`` switches the model's own thinking phase where it has one; None leaves it to the model. ``adapter``
    names a LoRA adapter of the server. ``form`` is what the reply has to be, where the server can hold it to that.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    tools: tuple[Tool, ...] = ()
    thinking: bool | None = None
    session: str = ""
    adapter: str = ""
    form: ReplyForm | None = None


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """One continuation of exactly these tokens, so that the trainer never tokenises it again.

    ``prompt_ids`` has one image token where each of ``images`` (PNG) stands, in order; the engine widens it.
    """

    prompt_ids: tuple[int, ...]
    images: tuple[bytes, ...] = ()
    sampling: Sampling = Sampling()
    session: str = ""
    adapter: str = ""


@dataclass(frozen=True, slots=True)
class TokenDelta:
    """The tokens since the last delta, and the natural log of each one's probability before temperature and top-p.

    ``prompt_ids``, in the first delta only, is the prompt as the model read it: each picture's image token repeated
    once for every visual token.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    prompt_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights: ``source`` is their folder or object-store URI, ``version`` what replies by them are marked with."""

    source: str
    version: str


class ChatModel(Protocol):
    """Answers chats, many at once."""

    def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        """Deltas as they come and, last, one whole ``Completion``. Closing the generator ends the generation.

        Raises ``VragError`` when there can be no reply; the message says whether another try may help.
        """
        ...
