"""Conversations in LLaMA-Factory's sharegpt form: what ``write_sharegpt`` wrote, and files of others in that form; a
message may also be a list of parts (``{"type": "text"}``, ``{"type": "image"}``), as TRL and transformers have it.

A file is a list of rows (``.json``) or a row a line (``.jsonl``): messages with an ``<image>`` where a picture stands,
and the paths of the pictures in that order, relative to the file's folder. The names of fields and roles are given by
``dataset_info.json`` beside it; without one, ``messages`` or ``conversations`` in the first row tells.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from vrag_ray.agent.chat import ImagePart, Message, Part, Role, TextPart
from vrag_ray.questions.rows import DataError, json_lines, read_bytes, read_text
from vrag_ray.training.sharegpt.write import PLACEHOLDER, QUESTION_ID, first_prompt
from vrag_ray.types.errors import validation_message

INFO = "dataset_info.json"
SUFFIXES = (".json", ".jsonl")
NOT_READ = ("tools", "videos", "audios")
"""Fields that would change the input of the model. A row that uses one is refused."""
PICTURE_KEYS = ("image", "path", "url")
"""Where a part of a message may name its picture; without any, it is the next of the row's."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat by turns that ends with the assistant. ``where`` names file and row; ``question`` is the ``QUESTION_ID``
    of the row, and the first message of the user where it has none."""

    messages: tuple[Message, ...]
    where: str
    question: str


class _Named(BaseModel):
    """Of ``dataset_info.json`` only what is needed here; it has more."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Columns(_Named):
    """What a row's fields are called. The defaults are LLaMA-Factory's."""

    messages: str = "conversations"
    images: str = "images"
    system: str = "system"


class Tags(_Named):
    """What a message's fields and roles are called. The defaults are LLaMA-Factory's."""

    role_tag: str = "from"
    content_tag: str = "value"
    user_tag: str = "human"
    assistant_tag: str = "gpt"
    system_tag: str = "system"


class DataSet(_Named):
    """One entry of ``dataset_info.json``."""

    file_name: str
    formatting: str = "alpaca"
    columns: Columns = Columns()
    tags: Tags = Tags()


class _ReplyMessage(BaseModel):
    role: str
    content: str


class _Row(BaseModel):
    messages: tuple[_ReplyMessage, ...] = Field(min_length=1)
    images: tuple[str, ...] = ()
    system: str = ""


OPENAI = DataSet(
    file_name="",
    formatting="sharegpt",
    columns=Columns(messages="messages"),
    tags=Tags(role_tag="role", content_tag="content", user_tag="user", assistant_tag="assistant"),
)
"""The names of the original's own files, and of ours."""


def sharegpt_file(path: Path) -> Path | None:
    """The file of conversations that ``path`` means, itself or in a folder; None where it means something else.

    Raises ``DataError`` for a folder of several.
    """
    if not path.is_dir():
        return path if path.suffix.lower() in SUFFIXES else None
    named = {file.file_name for file in _described(path).values()}
    files = sorted(named) or sorted(
        file.name for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.name != INFO
    )
    if len(files) > 1:
        raise DataError(f"{path} holds {len(files)} data sets ({', '.join(files)}): give the file of one")
    return path / files[0] if files else None


def read_conversations(file: Path) -> Iterator[Conversation]:
    """All conversations of a file, in order. Raises ``DataError`` that names file, row (from 1) and field."""
    rows = _rows(file)
    form = _form(file, rows)
    pictures: dict[Path, bytes] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{file}: row {number}"
        messages = _conversation(row, form, where, file.parent, pictures)
        question = row.get(QUESTION_ID) if isinstance(row, dict) else None
        yield Conversation(messages, where, str(question or first_prompt(messages)))


def _described(folder: Path) -> dict[str, DataSet]:
    """The data sets of ``dataset_info.json`` by name; none where there is no such file."""
    path = folder / INFO
    if not path.exists():
        return {}
    try:
        rows = json.loads(read_text(path))
        if not isinstance(rows, dict):
            raise DataError(f"{path} is not a description of data sets by their names")
        return TypeAdapter(dict[str, DataSet]).validate_python(rows)
    except ValidationError as error:
        raise DataError(f"{path}: {_field(error, {})}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error


def _form(file: Path, rows: Sequence[object]) -> DataSet:
    for name, description in _described(file.parent).items():
        if description.file_name == file.name:
            if description.formatting not in ("sharegpt", "openai"):
                raise DataError(
                    f"{file.parent / INFO}: {name}: formatting is {description.formatting!r}, which is not read here"
                )
            return description
    first = rows[0] if rows else None
    if isinstance(first, dict) and OPENAI.columns.messages in first:
        return OPENAI
    return DataSet(file_name=file.name, formatting="sharegpt")


def _rows(file: Path) -> Sequence[object]:
    if file.suffix.lower() == ".jsonl":
        return json_lines(file)
    try:
        rows = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is not JSON: {error}") from error
    if not isinstance(rows, list):
        raise DataError(f"{file} is not a list of conversations")
    return rows


def _conversation(
    row: object, form: DataSet, where: str, folder: Path, pictures: dict[Path, bytes]
) -> tuple[Message, ...]:
    columns, tags = form.columns, form.tags
    names = {"messages": columns.messages, "images": columns.images, "system": columns.system}
    names |= {"role": tags.role_tag, "content": tags.content_tag}
    if not isinstance(row, dict):
        raise DataError(f"{where}: not an object with {columns.messages}")
    for name in NOT_READ:
        if row.get(name):
            raise DataError(f"{where}: {name}: the agent's conversations have none, and they are not read")
    try:
        read = _Row.model_validate(_renamed(row, names, where))
    except ValidationError as error:
        raise DataError(f"{where}: {_field(error, names)}") from error
    roles = {tags.user_tag: Role.USER, tags.assistant_tag: Role.ASSISTANT, tags.system_tag: Role.SYSTEM}
    left = iter(read.images)
    messages = [Message.of(Role.SYSTEM, read.system)] if read.system else []
    for number, message in enumerate(read.messages):
        field = f"{columns.messages}.{number}"
        if message.role not in roles:
            raise DataError(f"{where}: {field}.{tags.role_tag}: {message.role!r} is none of {', '.join(roles)}")
        role = roles[message.role]
        if role is not Role.USER and PLACEHOLDER in message.content:
            raise DataError(f"{where}: {field}.{tags.content_tag}: only a user shows a picture")
        messages.append(Message(role, tuple(_parts(message.content, left, where, columns.images, folder, pictures))))
    more = sum(1 for _ in left)
    if more:
        raise DataError(f"{where}: {columns.images}: {more} more than there are {PLACEHOLDER} in the messages")
    _check_turns(messages, where, columns.messages)
    return tuple(messages)


def _renamed(row: Mapping[object, object], names: Mapping[str, str], where: str) -> dict[str, object]:
    """A row by our names; fields that mean nothing to us are left out, and so are those of no value."""
    own: dict[str, object] = {
        ours: row[names[ours]] for ours in ("messages", "images", "system") if row.get(names[ours]) is not None
    }
    messages = own.get("messages")
    if isinstance(messages, list):
        shown: list[str] = []
        inner = ("role", "content")
        own["messages"] = [
            {ours: _by_words(message[names[ours]], shown) for ours in inner if names[ours] in message}
            if isinstance(message, dict)
            else message
            for message in messages
        ]
        if any(shown):
            if not all(shown) or own.get("images"):
                raise DataError(
                    f"{where}: {names['images']}: name all pictures there, or each in its part of a message"
                )
            own["images"] = shown
    return own


def _by_words(content: object, shown: list[str]) -> object:
    """Content by parts, as transformers and TRL have it, in words with placeholders; ``shown`` gets the path of each
    picture, "" for one without. What is no such list stays as it is, to be refused."""
    if not isinstance(content, list):
        return content
    words: list[str] = []
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                words.append(text)
            case {"type": "image", **rest}:
                words.append(PLACEHOLDER)
                shown.append(next((str(rest[key]) for key in PICTURE_KEYS if rest.get(key)), ""))
            case _:
                return content
    return "".join(words)


def _parts(
    content: str, left: Iterator[str], where: str, field: str, folder: Path, pictures: dict[Path, bytes]
) -> Iterator[Part]:
    for number, text in enumerate(content.split(PLACEHOLDER)):
        if number:
            name = next(left, None)
            if name is None:
                raise DataError(f"{where}: {field}: fewer than there are {PLACEHOLDER} in the messages")
            path = folder / name
            if path not in pictures:
                pictures[path] = _png(path, f"{where}: {field}")
            yield ImagePart(pictures[path])
        if text:
            yield TextPart(text)


def _png(path: Path, where: str) -> bytes:
    """A picture as PNG, at its own size; a PNG as it is."""
    from PIL import Image, ImageOps

    try:
        data = read_bytes(path)
        with Image.open(io.BytesIO(data)) as picture:
            if picture.format == "PNG":
                picture.verify()
                return data
            made = io.BytesIO()
            ImageOps.exif_transpose(picture).convert("RGB").save(made, "PNG")
            return made.getvalue()
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{where}: {path} is no picture: {error}") from error


def _check_turns(messages: Sequence[Message], where: str, field: str) -> None:
    spoken = messages[1:] if messages[0].role is Role.SYSTEM else messages
    first = len(messages) - len(spoken) + 1
    for number, message in enumerate(spoken):
        due = (Role.USER, Role.ASSISTANT)[number % 2]
        if message.role is not due:
            raise DataError(f"{where}: {field}: message {first + number} is by the {message.role}, not by the {due}")
    if len(spoken) % 2 or not spoken:
        raise DataError(f"{where}: {field}: there is no reply to the last message")


def _field(error: ValidationError, names: Mapping[str, str]) -> str:
    """The first fault, by the names of the file."""
    first = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(names.get(part, part) if isinstance(part, str) else str(part) for part in first["loc"])
    return f"{path}: {validation_message(first)}"
