"""Chats that a chat client sends for itself: a title for a conversation, tags, follow-up questions, search queries.

Open WebUI begins such a message with ``### Task:``; LibreChat asks for a title in its own words. They are no questions
about documents: no search is made for them, and no run is recorded. A question to which files are attached begins so in
Open WebUI, too, and is a question. Pure.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum

from vrag_ray.serving.openai.question import cut, last_user_message
from vrag_ray.serving.openai.requests import ChatCompletionRequest

TITLE_CHARS = 48


class HelperTask(StrEnum):
    """The kinds of task, by the key of the JSON that Open WebUI reads it from."""

    TITLE = "title"
    TAGS = "tags"
    FOLLOW_UPS = "follow_ups"
    QUERIES = "queries"
    COMPLETION = "text"
    OTHER = "other"


_TASK = re.compile(r"\s*#{1,4} Task:", re.IGNORECASE)
_KEY = re.compile(r'"(title|tags|follow_ups|queries|text)"\s*:')
_TITLE = re.compile(
    r"\b(?:provide|generate|write|create|make)\b[^.\n]{0,60}\btitle\b[^.\n]{0,40}"
    r"\b(?:for|of) (?:the|this|our) (?:\w+ ){0,2}(?:conversation|chat)\b"
    r"|\banaly[sz]e this conversation and provide\b",
    re.IGNORECASE,
)
_FIRST_WORDS = 400
"""Characters of a message in which it says that it wants a title."""
_TURN = re.compile(r"^\W*(?:user|human)\s*:\s*(.+)$", re.MULTILINE | re.IGNORECASE)
_HISTORY = re.compile(r"#+ Chat History:|<chat_history>|\bConversation\s*:", re.IGNORECASE)


def helper_task(body: ChatCompletionRequest) -> HelperTask | None:
    """The task that the last message sets; None for a question."""
    number = last_user_message(body)
    if number is None:
        return None
    text = body.messages[number].text
    if _TASK.match(text) and "<context>" not in text:
        key = _KEY.search(text)
        return HelperTask(key[1]) if key is not None else HelperTask.OTHER
    system = [message.text for message in body.messages if message.role in ("system", "developer")]
    asks_for_title = any(_TITLE.search(each[:_FIRST_WORDS]) for each in (text, *system))
    return HelperTask.TITLE if asks_for_title else None


def without_model(task: HelperTask, body: ChatCompletionRequest) -> str:
    """The reply where no language model is configured: the title is taken from the first question, lists are empty."""
    number = last_user_message(body)
    text = body.messages[number].text if number is not None else ""
    if task is HelperTask.TITLE:
        title = _title(body, text)
        return json.dumps({"title": title}, ensure_ascii=False) if '"title"' in text else title
    if task in (HelperTask.TAGS, HelperTask.FOLLOW_UPS, HelperTask.QUERIES):
        return json.dumps({task.value: []})
    return json.dumps({"text": ""}) if task is HelperTask.COMPLETION else ""


def _title(body: ChatCompletionRequest, text: str) -> str:
    history = _HISTORY.search(text)
    turn = _TURN.search(text, history.end() if history is not None else 0)
    earlier = [message.text for message in body.messages if message.role == "user" and message.text != text]
    question = turn[1] if turn is not None else next(iter(earlier), "")
    return cut(question, TITLE_CHARS).rstrip(" ?.!") or "Documents"
