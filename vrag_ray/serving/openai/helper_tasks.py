"""Chats that a chat client sends for itself: a title for a conversation, tags, follow-up questions, search queries.

Open WebUI begins such a message with ``### Task:``; other clients have words of their own, which name the conversation
as what the title, the summary or the tags are for. They are no questions about documents: no search is made for them,
and no run is recorded. A question to which files are attached begins so in Open WebUI, too, and is a question. Pure.
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
    IMAGE_PROMPT = "prompt"
    SUMMARY = "summary"
    OTHER = "other"


_TASK = re.compile(r"\s*#{1,4} Task:", re.IGNORECASE)
_KEY = re.compile(r'"(title|tags|follow_ups|queries|text|prompt)"\s*:')
_IN_SENTENCE = r"[^.?!\n]"
_MAKE = (
    r"(?:provide|generate|write|create|make|give|suggest|craft|compose|propose|produce|return|output|find|"
    r"come up with|think of|summari[sz]e|condense|turn)\b"
)
_LENGTH = (
    r"(?:(?:at most|up to|under|about|no more than|less than|exactly) )?(?:\d|an?\b|one\b|two\b|few\b|your\b|his\b)"
)
_CONVERSATION = (
    r"\b(?:the|this|our|an?) (?:[\w'\u2019-]+ ){0,2}"
    r"(?:conversation|chat|dialog(?:ue)?|thread|(?<=user's )(?:message|request|query|input)|(?<=our )discussion|"
    r"(?<=this )discussion)(?: (?:history|log|thread|session))?"
    r"(?=\W*$|\s*[^\w\s]|\s*\n|\s+(?:between (?:the|an?|you|us)\b|(?:into|as|with|without|using|below|above|that|so|"
    r"based|and|an?)\b|in " + _LENGTH + r"))"
)
"""The conversation with the client itself; one that the documents are about has words behind it that say which."""
_TITLE = re.compile(
    r"\b(?:provide|generate|write|create|make)\b[^.\n]{0,60}\btitle\b[^.\n]{0,40}"
    r"\b(?:for|of) (?:the|this|our) (?:\w+ ){0,2}(?:conversation|chat)\b"
    r"|\banaly[sz]e this conversation and provide\b"
    rf"|\b{_MAKE}{_IN_SENTENCE}{{0,80}}?\b(?<!the )(?:title|name|heading)\b{_IN_SENTENCE}{{0,60}}?"
    rf"\b(?:for|of|to|from|about|(?:summari[sz]|describ|captur|reflect)(?:ing|es)) {_CONVERSATION}"
    rf"|\b{_MAKE} {_CONVERSATION}{_IN_SENTENCE}{{0,40}}?\b(?:title|name|heading)\b"
    rf"|^\W*name {_CONVERSATION}"
    r"|\byou are (?:an? |the )?(?:[\w-]+ ){0,4}(?:titles?|titling)[ -](?:generator|assistant|writer|creator|expert)"
    r"|(?:总结|概括|生成|返回|给出)[^。\n]{0,40}(?:会话|对话|聊天|这句话)[^。\n]{0,40}(?:标题|主题)",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    rf"^\W*(?:please )?(?:(?:briefly )?summari[sz]e|recap|condense|{_MAKE}{_IN_SENTENCE}{{0,40}}?\bsummary of) "
    rf"(?:briefly )?{_CONVERSATION}",
    re.IGNORECASE,
)
_SUMMARY_OF_ALL = re.compile(
    r"^\W*(?:please )?(?:briefly )?summari[sz]e (?:the|this|our) (?:\w+ ){0,2}"
    r"(?:discussion|conversation|chat|dialog(?:ue)?|exchange|messages)\b(?! (?:of|about|on)\b)",
    re.IGNORECASE,
)
"""Of a system message that stands last: nothing but the conversation is before it."""
_TAGS = re.compile(rf"\b{_MAKE}{_IN_SENTENCE}{{0,60}}?\btags\b{_IN_SENTENCE}{{0,60}}?{_CONVERSATION}", re.IGNORECASE)
_FOLLOW_UPS = re.compile(
    rf"\b{_MAKE}{_IN_SENTENCE}{{0,60}}?\bfollow[- ]?ups?\b{_IN_SENTENCE}{{0,60}}?"
    rf"(?:{_CONVERSATION}|\b(?:the )?user (?:might|may|could|would|can)\b)",
    re.IGNORECASE,
)
_EMOJI = re.compile(
    rf"\b(?:your task is to|{_MAKE}|reply|respond|answer|choose|pick|select){_IN_SENTENCE}{{0,100}}?"
    r"\b(?:single|one|fitting|suitable|appropriate|matching|relevant) emojis?\b",
    re.IGNORECASE,
)
_FIRST_WORDS = 400
"""Characters of a message in which it says what it wants."""
_TURN = re.compile(
    r"^[^\w\n]*(?:user|human)\s*:\s*(?P<plain>.+)$"
    r'|"role"\s*:\s*"user"[^{}]{0,200}?"(?:content|text|mainText)"\s*:\s*"(?P<json>(?:[^"\\]|\\.)+)"',
    re.MULTILINE | re.IGNORECASE,
)
_HISTORY = re.compile(r"#+ Chat History:|<chat_history>|\bConversation\s*:", re.IGNORECASE)
_TAG = re.compile(r"</?[\w-]+>")
SUMMARY_CHARS = 400


def helper_task(body: ChatCompletionRequest) -> HelperTask | None:
    """The task that the last message sets; None for a question."""
    number = last_user_message(body)
    if number is None:
        return None
    text = body.messages[number].text
    if _TASK.match(text) and "<context>" not in text:
        key = _KEY.search(text)
        return HelperTask(key[1]) if key is not None else HelperTask.OTHER
    has_turns = any(message.role == "assistant" for message in body.messages) or _TURN.search(text) is not None
    last = body.messages[-1]
    if has_turns and last.role in ("system", "developer") and _SUMMARY_OF_ALL.match(last.text):
        return HelperTask.SUMMARY
    system = [message.text for message in body.messages if message.role in ("system", "developer")]
    return _in_words(text[:_FIRST_WORDS], has_turns=has_turns) or next(
        (HelperTask.TITLE for each in system if _TITLE.search(each[:_FIRST_WORDS])), None
    )


def _in_words(text: str, *, has_turns: bool) -> HelperTask | None:
    """The task that a message of the user sets in words. Without turns there is no conversation to sum up: a document
    is meant."""
    if _TITLE.search(text):
        return HelperTask.TITLE
    if has_turns and _SUMMARY.search(text):
        return HelperTask.SUMMARY
    if _TAGS.search(text):
        return HelperTask.TAGS
    if _FOLLOW_UPS.search(text):
        return HelperTask.FOLLOW_UPS
    return HelperTask.OTHER if _EMOJI.search(text) else None


def without_model(task: HelperTask, body: ChatCompletionRequest) -> str:
    """The reply where no language model is configured: the title and the picture are of the first question, a summary
    is of the questions, lists are empty."""
    number = last_user_message(body)
    text = body.messages[number].text if number is not None else ""
    if task is HelperTask.TITLE:
        title = _title(body, text)
        return json.dumps({"title": title}, ensure_ascii=False) if '"title"' in text else title
    if task is HelperTask.SUMMARY:
        return cut(" ".join(_questions(body, text)), SUMMARY_CHARS)
    if task is HelperTask.IMAGE_PROMPT:
        return json.dumps({task.value: next(iter(_questions(body, text)), "")}, ensure_ascii=False)
    if task in (HelperTask.TAGS, HelperTask.FOLLOW_UPS, HelperTask.QUERIES):
        return json.dumps({task.value: []}) if f'"{task}"' in text else ""
    return json.dumps({"text": ""}) if task is HelperTask.COMPLETION else ""


def _title(body: ChatCompletionRequest, text: str) -> str:
    return cut(next(iter(_questions(body, text)), ""), TITLE_CHARS).rstrip(" ?.!") or "Documents"


def _questions(body: ChatCompletionRequest, text: str) -> list[str]:
    """The user's turns of the conversation: those in ``text``, which sets the task, or messages of their own."""
    history = _HISTORY.search(text)
    turns = list(_TURN.finditer(text, history.end() if history is not None else 0))
    if turns:
        return [turn["plain"] or _unescaped(turn["json"]) for turn in turns]
    texts = [message.text for message in body.messages if message.role == "user" and message.text.strip()]
    return [_TAG.sub("", each).strip() for each in texts if _in_words(each[:_FIRST_WORDS], has_turns=True) is None]


def _unescaped(text: str) -> str:
    """The text that stands in JSON as ``text``; what is no JSON as it stands."""
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text
