"""Calls of a tiny model: chats of words and pictures in its tokens, and the replies to them."""

from __future__ import annotations

from pathlib import Path

from tests.support.mosaic_runs import format_of, pixels_of
from tests.support.pictures import noise_png
from vrag_ray.agent.chat import ImagePart, Message, Role
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.vllm_prompt import images
from vrag_ray.training.trajectory import Call


def call(folder: Path, *parts: str | bytes, reply: str = "red") -> Call:
    """A chat of words and pictures (PNG), and the reply to it."""
    form = format_of(folder)
    chat = (Message.of(Role.USER, *(part if isinstance(part, str) else ImagePart(part) for part in parts)),)
    shown = images(chat)
    ids, _ = form.tokens(ChatRequest(chat))
    return Call(pixels_of(folder).expand_image_tokens(ids, shown), shown, form.reply_tokens(reply))


def calls_of(folder: Path) -> list[Call]:
    """Texts alone, one picture, several of different sizes, the same one twice in a prompt and in two prompts."""
    square, wide, small = noise_png(112, 112), noise_png(224, 56), noise_png(56, 56)
    return [
        call(folder, "What colour is cell b2?"),
        call(folder, square, "What colour?", reply="c2 blue"),
        call(folder, "Look", wide, "and", small, "and", square, reply="amber falcon or calm otter"),
        call(folder, square, "again", square),
        call(folder, "none of it"),
    ]
