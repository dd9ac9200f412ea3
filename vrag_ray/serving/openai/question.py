"""From a conversation to the question of one agent run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import AgentName
from vrag_ray.serving.errors import InvalidError
from vrag_ray.serving.openai.references import InlinePicture, referenced
from vrag_ray.serving.openai.requests import ChatCompletionRequest, ChatMessage, ImageContent, TextContent
from vrag_ray.serving.sent_pictures import is_data_url
from vrag_ray.types.filters import SearchFilter

MAX_CHARS = 4096
"""Of question and context together, the limit of ``RunRequest.question``."""
MAX_TURN_CHARS = 800
_HEADING = "\n\nEarlier in this conversation:"
_NOT_LOOKED_AT = "(with a picture that is not given again)"


def run_request(body: ChatCompletionRequest, run_id: str) -> RunRequest:
    """The run that answers the last message of the user. Raises InvalidError, naming the field.

    Its ``picture`` is the one that this message holds; those of earlier messages were for earlier questions. A model is
    told the other messages too: instructions first, then as many of the newest turns as fit. The extractive agent is
    not: it takes every word for a word of the question.
    """
    if body.tools:
        raise InvalidError("tools: agents have tools of their own; only the model policy takes others", param="tools")
    asked = max((n for n, message in enumerate(body.messages) if message.role == "user"), default=None)
    question = body.messages[asked].text.strip() if asked is not None else ""
    if asked is None or not question:
        raise InvalidError("messages: there is no question: the last user message has no text", param="messages")
    if len(question) > MAX_CHARS:
        raise InvalidError(
            f"messages: the question has {len(question)} characters, an agent takes {MAX_CHARS}", param="messages"
        )
    pictures = list(_sent(body.messages[asked], asked))
    if len(pictures) > 1:
        where = pictures[1][0]
        raise InvalidError(f"{where}: a question holds one picture, not {len(pictures)}", param=where)
    others = [message for number, message in enumerate(body.messages) if number != asked]
    return RunRequest(
        question=question if body.model == AgentName.EXTRACTIVE else with_context(question, others),
        agent=body.model,
        max_steps=body.max_steps,
        top_k=body.top_k,
        thinking=body.thinking,
        picture=pictures[0][1] if pictures else None,
        collection=body.collection,
        filter=_narrowed(body.filter, list(_documents(body.messages))),
        run_id=run_id,
    )


def with_context(question: str, others: Sequence[ChatMessage]) -> str:
    """``question`` and, below it, what was said before, within ``MAX_CHARS``. Long messages are cut at a word."""
    told = [(message.role, cut(_told(message), MAX_TURN_CHARS)) for message in others if _told(message).strip()]
    rules = [f"\nsystem: {text}" for role, text in told if role in ("system", "developer")]
    turns = [f"\n{role}: {text}" for role, text in told if role not in ("system", "developer")]
    room = MAX_CHARS - len(question) - len(_HEADING)
    kept_rules, room = _fitting(rules, room)
    kept_turns, _ = _fitting(turns[::-1], room)
    kept = [*kept_rules, *kept_turns[::-1]]
    return question + _HEADING + "".join(kept) if kept else question


def cut(text: str, limit: int) -> str:
    """``text`` on one line, at most ``limit`` characters of it, cut at a word."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 2].rsplit(" ", 1)[0] + " …"


def _fitting(lines: Sequence[str], room: int) -> tuple[list[str], int]:
    """The first of ``lines`` that fit, and the room that is left."""
    kept: list[str] = []
    for line in lines:
        if len(line) > room:
            break
        kept.append(line)
        room -= len(line)
    return kept, room


def _told(message: ChatMessage) -> str:
    return f"{_NOT_LOOKED_AT} {message.text}" if any(_sent(message, 0)) else message.text


def _sent(message: ChatMessage, number: int) -> Iterator[tuple[str, str]]:
    """The data URLs of a message, each with its place in the request."""
    for index, part in enumerate(message.content):
        if isinstance(part, ImageContent) and is_data_url(part.image_url.url):
            yield f"messages.{number}.content.{index}.image_url.url", part.image_url.url


def _documents(messages: Sequence[ChatMessage]) -> Iterator[str]:
    """Ids of the documents that any message has attached. Raises InvalidError for any other URL but a data URL."""
    for number, message in enumerate(messages):
        for index, part in enumerate(message.content):
            if isinstance(part, TextContent):
                continue
            found = referenced(part, f"messages.{number}.content.{index}")
            if not isinstance(found, InlinePicture):
                yield found.doc_id


def _narrowed(given: SearchFilter | None, documents: list[str]) -> SearchFilter | None:
    if not documents:
        return given
    wanted = given or SearchFilter()
    return wanted.model_copy(update={"doc_ids": list(dict.fromkeys([*(wanted.doc_ids or []), *documents]))})
