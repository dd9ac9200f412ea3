"""From a chat or from token ids to what vLLM reads: prompt token ids and decoded pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from vrag_ray.agent.chat import ImagePart, Message, TextPart, Tool
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.function_calls import in_words
from vrag_ray.policies.llm.turn_tokenizer import TurnTokenizer
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from PIL.Image import Image
    from transformers import PreTrainedTokenizerFast, Qwen2_5_VLProcessor, Qwen3VLProcessor

    Processor: TypeAlias = Qwen2_5_VLProcessor | Qwen3VLProcessor


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
        from transformers import AutoProcessor, PreTrainedTokenizerFast

        # Of a model without eyes, this is its tokenizer.
        load: Callable[[str], Processor | PreTrainedTokenizerFast] = AutoProcessor.from_pretrained
        loaded = load(model)
        self._model = model
        self._processor = loaded if not isinstance(loaded, PreTrainedTokenizerFast) else None
        self._tokenizer: PreTrainedTokenizerFast = (
            loaded if isinstance(loaded, PreTrainedTokenizerFast) else loaded.tokenizer
        )
        # Both render to text, with other names of their other parameters.
        self._render: Callable[..., str] = getattr(loaded, "apply_chat_template")  # noqa: B009
        encoder = self._tokenizer.backend_tokenizer
        # A tokenizer's file may bring both; a prompt that is too long has to be refused, not cut.
        encoder.no_truncation()
        encoder.no_padding()
        self._turns = TurnTokenizer(encoder, str(self._tokenizer.eos_token))
        known = self._tokenizer.added_tokens_decoder.values()
        self._markers: tuple[str, ...] = tuple(token.content for token in known if token.special)
        self.picture_tokens: tuple[int, ...] = ()
        if self._processor is not None:
            self.picture_tokens = (int(self._processor.image_token_id), int(self._processor.video_token_id))
        template = loaded.chat_template or self._tokenizer.chat_template or ""
        self.shows_tools = "tools" in str(template)

    @property
    def processor(self) -> Processor:
        """What makes the model's pictures. Raises VragError for a model without eyes."""
        if self._processor is None:
            raise VragError(f"the model {self._model} has no eyes, and only models that see can be trained")
        return self._processor

    def prompt(self, request: ChatRequest) -> ModelPrompt:
        """The chat up to where the assistant speaks. ``tools`` are shown only by templates that know of them."""
        ids, opening = self.tokens(request)
        return ModelPrompt(ids, pictures(images(request.messages)), opening)

    def reply_tokens(self, text: str) -> tuple[int, ...]:
        """A whole reply as the model would have generated it, up to and with the token that ends its turn."""
        return (*self._turns.ids(self._harmless(text)), int(self._tokenizer.eos_token_id))

    def tokens(self, request: ChatRequest) -> tuple[tuple[int, ...], str]:
        """``ids`` and ``opening`` of ``prompt``, for who needs no decoded pictures."""
        from jinja2 import TemplateError

        try:
            text = self._render(
                [self._turn(message) for message in in_words(request.messages)],
                tools=[_declared(tool) for tool in request.tools] or None,
                add_generation_prompt=True,
                tokenize=False,
                **({} if request.thinking is None else {"enable_thinking": request.thinking}),
            )
        except TemplateError as error:
            raise VragError(f"the model's chat template refuses these messages: {error}") from error
        return self._turns.ids(text), THINK if text.rstrip().endswith(THINK) else ""

    def _turn(self, message: Message) -> dict[str, object]:
        if self._processor is None:
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
