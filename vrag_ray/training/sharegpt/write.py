"""Runs as a data set for supervised fine-tuning in LLaMA-Factory's sharegpt form.

``messages`` with an ``<image>`` where a picture stands, and ``images``, the paths of the pictures in that order. A
picture is the file that the policy was shown, at its size, so the numbers of a box mean the same in training as in the
run: pixels of that picture for Qwen2.5-VL, thousandths of it for Qwen3-VL. For the former LLaMA-Factory must not shrink
it: set its ``image_max_pixels`` to at least ``Exported.largest_pixels``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.agent.chat import ImagePart, Message, Role, TextPart
from vrag_ray.imaging.fitting import size_of
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.types import VragError

DATASET = "vrag_sft"
PLACEHOLDER = "<image>"
QUESTION_ID = "question_id"
"""Field of a row: the same for all chats of a question, of which only a run's first begins with the question alone."""
_FORGED = re.compile(r"<(image|video|audio|\|\w+\|)>")
_ROLES = {Role.USER: Role.ASSISTANT, Role.ASSISTANT: Role.USER}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn of a run: the input of the policy, and its reply."""

    messages: tuple[Message, ...]
    reply: str


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written. ``largest_pixels`` is width times height of the largest picture, 0 where there is none."""

    conversations: int
    images: int
    largest_pixels: int


def conversations(exchanges: Sequence[Exchange]) -> tuple[tuple[Message, ...], ...]:
    """The chats of one run, each ending with a reply: a turn that goes on with the chat of the turn before is part of
    it, one whose context was built anew (``graph``, after a memorise) begins the next. So each reply is in one chat,
    once.
    """
    chats: list[tuple[Message, ...]] = []
    for exchange in exchanges:
        whole = (*exchange.messages, Message.of(Role.ASSISTANT, exchange.reply))
        if chats and whole[: len(chats[-1])] == chats[-1]:
            chats[-1] = whole
        else:
            chats.append(whole)
    return tuple(chats)


def write_sharegpt(folder: Path, runs: Iterable[Sequence[Exchange]]) -> Exported:
    """Write ``sft.json``, ``images/<sha256>.png`` and ``dataset_info.json``: a ``dataset_dir`` of LLaMA-Factory.

    Every reply is learnt, so leave out runs with replies that should not be. Raises ``VragError`` for a chat that is
    not of user and assistant by turns, and where a file cannot be written.
    """
    files = CollectionFiles(str(folder))
    sizes: dict[str, int] = {}
    rows: list[dict[str, object]] = []
    for exchanges in runs:
        question = hashlib.sha256(first_prompt(exchanges[0].messages if exchanges else ()).encode()).hexdigest()
        for chat in conversations(exchanges):
            _check_turns(chat)
            images = [_stored_picture(part.png, files, sizes) for part in _pictures(chat)]
            messages = [{"role": message.role.value, "content": content_of(message)} for message in chat]
            rows.append({"messages": messages, "images": images, QUESTION_ID: question})
    info = {
        "file_name": "sft.json",
        "formatting": "sharegpt",
        "columns": {"messages": "messages", "images": "images"},
        "tags": {
            "role_tag": "role",
            "content_tag": "content",
            "user_tag": Role.USER.value,
            "assistant_tag": Role.ASSISTANT.value,
            "system_tag": Role.SYSTEM.value,
        },
    }
    files.write("dataset_info.json", json.dumps({DATASET: info}, indent=2).encode())
    files.write("sft.json", json.dumps(rows, ensure_ascii=False, indent=1).encode())
    return Exported(len(rows), len(sizes), max(sizes.values(), default=0))


def first_prompt(chat: Sequence[Message]) -> str:
    """The first message of the user."""
    return next((content_of(message) for message in chat if message.role is Role.USER), "")


def content_of(message: Message) -> str:
    """A message as one text. What only looks like a placeholder or a special token gets a blank: ``< image>``."""
    pieces: list[str] = []
    for part in message.parts:
        if isinstance(part, TextPart) and pieces and pieces[-1] is not PLACEHOLDER:
            # Joined first: two parts may make up a placeholder that neither holds.
            pieces[-1] += part.text
        else:
            pieces.append(part.text if isinstance(part, TextPart) else PLACEHOLDER)
    return "".join(piece if piece is PLACEHOLDER else _FORGED.sub(r"< \1>", piece) for piece in pieces)


def _pictures(chat: Sequence[Message]) -> Iterator[ImagePart]:
    return (part for message in chat for part in message.parts if isinstance(part, ImagePart))


def _stored_picture(png: bytes, files: CollectionFiles, sizes: dict[str, int]) -> str:
    """The path of a picture below the folder; the same picture is the same file."""
    name = f"images/{hashlib.sha256(png).hexdigest()}.png"
    if name not in sizes:
        sizes[name] = size_of(png).pixels
        if not files.exists(name):
            files.write(name, png)
    return name


def _check_turns(chat: Sequence[Message]) -> None:
    """LLaMA-Factory drops, with no more than a warning, chats that do not alternate."""
    spoken = chat[1:] if chat[0].role is Role.SYSTEM else chat
    due = Role.USER
    for number, message in enumerate(spoken, start=1):
        if message.role is not due:
            raise VragError(f"message {number} of a chat is by {message.role}, where sharegpt needs the {due}")
        due = _ROLES[due]
