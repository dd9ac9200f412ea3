"""From a chat or from token ids to what vLLM reads: prompt token ids and decoded pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.agent.chat import ImagePart, Message, TextPart, Tool
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.turn_tokenizer import TurnTokenizer
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from PIL.Image import Image
    from transformers import PreTrainedTokenizerFast, ProcessorMixin


THINK = "<think>"


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """Token ids with one image token for each of ``pictures``; the engine widens it to the picture's visual tokens.

    ``opening`` is what the prompt has the assistant say already, and what belongs before the model's own words: the tag
    with which the templates of thinking models begin.
    """

    ids: tuple[int, ...]
    pictures: tuple[Image, ...]
    opening: str = ""


class ChatFormat:
    """A model's own chat template and tokenizer. Its methods may run in any thread.

    ``picture_tokens`` stand for a picture and for a video in a prompt; a model without eyes has none. ``shows_tools``
    says whether the template knows of tools.
    """

    def __init__(self, model: str) -> None:
        from transformers import AutoProcessor

        # Of a model without eyes, this is its tokenizer.
        load: Callable[[str], ProcessorMixin | PreTrainedTokenizerFast] = AutoProcessor.from_pretrained
        self.processor = load(model)
        tokenizer: PreTrainedTokenizerFast | None = getattr(self.processor, "tokenizer", None)
        self.sees = tokenizer is not None
        self._tokenizer = tokenizer if tokenizer is not None else self.processor
        encoder = self._tokenizer.backend_tokenizer
        # A tokenizer's file may bring both; a prompt that is too long has to be refused, not cut.
        encoder.no_truncation()
        encoder.no_padding()
        self._turns = TurnTokenizer(encoder, str(self._tokenizer.eos_token))
        known = self._tokenizer.added_tokens_decoder.values()
        self._markers: tuple[str, ...] = tuple(token.content for token in known if token.special)
        self.picture_tokens: tuple[int, ...] = (
            tuple(int(getattr(self.processor, name)) for name in ("image_token_id", "video_token_id"))
            if self.sees
            else ()
        )
        template = self.processor.chat_template or self._tokenizer.chat_template or ""
        self.shows_tools = "tools" in str(template)

    def prompt(self, request: ChatRequest) -> ModelPrompt:
        """The chat up to where the assistant speaks. ``tools`` are shown only by templates that know of them."""
        ids, opening = self.tokens(request)
        return ModelPrompt(ids, pictures(images(request.messages)), opening)

    def reply_tokens(self, text: str) -> tuple[int, ...]:
        """A whole reply as the model would have said it, up to and with the token that ends its turn."""
        return (*self._turns.ids(self._harmless(text)), int(self._tokenizer.eos_token_id))

    def tokens(self, request: ChatRequest) -> tuple[tuple[int, ...], str]:
        """``ids`` and ``opening`` of ``prompt``, for who needs no decoded pictures."""
        from jinja2 import TemplateError

        render: Callable[..., str] = self.processor.apply_chat_template
        try:
            text = render(
                [self._turn(message) for message in request.messages],
                tools=[_declared(tool) for tool in request.tools] or None,
                add_generation_prompt=True,
                tokenize=False,
                **({} if request.thinking is None else {"enable_thinking": request.thinking}),
            )
        except TemplateError as error:
            raise VragError(f"the model's chat template refuses these messages: {error}") from error
        return self._turns.ids(text), THINK if text.rstrip().endswith(THINK) else ""

    def _turn(self, message: Message) -> dict[str, object]:
        if not self.sees:
            # The templates of such models know of nothing but words.
            return {"role": message.role.value, "content": self._harmless(message.text)}
        content = [
            {"type": "text", "text": self._harmless(part.text)} if isinstance(part, TextPart) else {"type": "image"}
            for part in message.parts
        ]
        return {"role": message.role.value, "content": content}

    def _harmless(self, text: str) -> str:
        """Without the tokens that end turns and stand for pictures: a document's text must not forge either."""
        for marker in self._markers:
            if marker in text:
                text = text.replace(marker, f"{marker[0]} {marker[1:]}")
        return text


def images(messages: Sequence[Message]) -> tuple[bytes, ...]:
    """The pictures of a chat as PNG, in order."""
    return tuple(part.png for message in messages for part in message.parts if isinstance(part, ImagePart))


def pictures(pngs: Sequence[bytes]) -> tuple[Image, ...]:
    """Decoded, as RGB. Raises VragError that names the picture (from 1) which is no PNG."""
    from PIL import Image

    decoded = []
    for number, png in enumerate(pngs, start=1):
        try:
            decoded.append(Image.open(io.BytesIO(png), formats=("PNG",)).convert("RGB"))
        except (OSError, ValueError, Image.DecompressionBombError) as error:
            raise VragError(f"picture {number} of {len(pngs)} cannot be read as PNG: {error}") from error
    return tuple(decoded)


def _declared(tool: Tool) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": json.loads(tool.parameters)}
    return {"type": "function", "function": function}
