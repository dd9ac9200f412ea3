"""One reply, put together from the outputs that vLLM sends step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vrag_ray.policies.llm.chat_model import TokenDelta
from vrag_ray.types import Completion

if TYPE_CHECKING:
    from vllm import RequestOutput


class Piece(NamedTuple):
    """What one step of the engine added to a reply."""

    text: str
    tokens: TokenDelta


class ReplyOutputs:
    """Adds up the engine's outputs of one request."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._last: RequestOutput | None = None
        self._prompt_ids: tuple[int, ...] = ()

    def add(self, output: RequestOutput) -> Piece:
        step = output.outputs[0]
        rows = zip(step.logprobs or (), step.token_ids, strict=True)
        logprobs = tuple(row[token].logprob for row, token in rows if row)
        prompt_ids = () if self._last else tuple(output.prompt_token_ids or ())
        self._prompt_ids = self._prompt_ids or prompt_ids
        self._last = output
        self._text.append(step.text)
        self._ids.extend(step.token_ids)
        self._logprobs.extend(logprobs)
        return Piece(step.text, TokenDelta(tuple(step.token_ids), logprobs, prompt_ids))

    @property
    def tokens(self) -> TokenDelta:
        """All tokens so far as one delta."""
        return TokenDelta(tuple(self._ids), tuple(self._logprobs), self._prompt_ids)

    def whole(self) -> Completion:
        """``weights`` names the versions that spoke, in order and joined by "+" where new weights came in between."""
        assert self._last is not None, "an engine ends with an output"
        step = self._last.outputs[0]
        usage = {
            "prompt_tokens": len(self._last.prompt_token_ids or ()),
            "completion_tokens": len(self._ids),
            "cached_tokens": self._last.num_cached_tokens or 0,
        }
        return Completion(
            text="".join(self._text),
            finish=step.finish_reason or "stop",
            weights="+".join(span.version for span in step.weight_versions or ()),
            token_ids=tuple(self._ids),
            logprobs=tuple(self._logprobs),
            usage=usage,
        )
