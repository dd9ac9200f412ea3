"""From a conversation to the question of one agent run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import AgentName
from vrag_ray.policies.extractive.courtesy import without_courtesy
from vrag_ray.policies.extractive.follow_ups import standalone
from vrag_ray.policies.extractive.questions import wants_passage
from vrag_ray.serving.openai.references import InlinePicture, referenced
from vrag_ray.serving.openai.requests import ChatCompletionRequest, ChatMessage, ImageContent, TextContent
from vrag_ray.serving.sent_pictures import is_data_url
from vrag_ray.types import InvalidError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.filters import SearchFilter

MAX_CHARS = 4096
"""Of question and context together, the limit of ``RunRequest.question``."""
MAX_TURN_CHARS = 800
_HEADING = "\n\nEarlier in this conversation:"
_NOT_LOOKED_AT = "(with a picture that is not given again)"
_WITH_CONTEXT = re.compile(
    r"\s*#{1,4} Task:(?P<before>.*?)<context>(?P<context>.*)</context>\s*(?P<question>.*)", re.DOTALL
)
"""How Open WebUI sends a question with excerpts of the files that were attached to it there."""
_USER_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
"""The question in templates that have tags around it, behind the excerpts or before them."""
_FILE_LIST = re.compile(r"<attached_files>.*?</attached_files>\s*", re.DOTALL)
"""And, before its words, their names."""
_ENVIRONMENT = re.compile(
    r"<(?P<name>environment_\w+|system-reminder|workspace_info)>.*?(?:</(?P=name)>|$)\s*", re.DOTALL | re.IGNORECASE
)
"""What editors (Cline, Roo Code, Copilot) write beside a question: open files, the time."""
_TASK_TAGS = re.compile(
    r"^\s*<(?P<name>task|user_message|userRequest|feedback)>(?P<words>.*?)</(?P=name)>\s*$", re.DOTALL
)
"""And around it."""
OF_A_PICTURE = "What does the picture show, and what do the documents say of it?"
"""The question of a picture that comes without words."""
ATTACHED = (
    "files attached in the chat client were given to the model in words, and cut; upload them to the library to have "
    "them searched and cited"
)
ATTACHED_UNREAD = "files attached in the chat client were left out: upload them to the library to have them searched"


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """The run that a chat asks for, and what of the chat it leaves out, in words."""

    request: RunRequest
    notices: tuple[str, ...] = ()


def chat_question(body: ChatCompletionRequest, run_id: str) -> ChatQuestion:
    """The run that answers the last message of the user. Raises InvalidError, naming the field.

    Its ``picture`` is the last one of this message; those of earlier messages were for earlier questions. A model is
    given the other messages too: instructions first, then as many of the newest turns as fit. The extractive agent is
    not, since it takes every word for a word of the question: it is given the question as it reads after those before.
    """
    notices: list[str] = []
    if (body.tools or body.functions) and body.tool_choice in (None, "auto"):
        name = "tools" if body.tools else "functions"
        notices.append(f"{name}: agents use tools of their own; those of the request were left out")
    number = last_user_message(body)
    if number is None:
        raise InvalidError("messages: there is no question: no message is of the role user", param="messages")
    pictures = list(_sent(body.messages[number], number))
    question = _own_words(body.messages[number].text) or (OF_A_PICTURE if pictures else "")
    others = [message for place, message in enumerate(body.messages) if place != number]
    attached = _WITH_CONTEXT.fullmatch(question)
    if attached is not None and (words := _question_with_context(attached)):
        question = words
        others.append(
            ChatMessage.model_validate({"role": "user", "content": f"attached: {attached['context'].strip()}"})
        )
        notices.append(ATTACHED_UNREAD if body.model == AgentName.EXTRACTIVE else ATTACHED)
    if not question:
        raise InvalidError("messages: there is no question: the last user message has no text", param="messages")
    if len(question) > MAX_CHARS:
        notices.append(f"messages: of a question of {len(question):,} characters the last {MAX_CHARS:,} were read")
        question = end_of(question, MAX_CHARS)
    if len(pictures) > 1:
        notices.append(f"messages: of {len(pictures)} pictures in the question the last was looked at")
    if body.model == AgentName.EXTRACTIVE:
        question = without_courtesy(question)
        earlier = [_own_words(message.text) for message in body.messages[:number] if message.role == "user"]
        in_full = _standalone(question, earlier)
        if in_full != question:
            notices.append(f"messages: the question was read as “{cut(in_full, MAX_TURN_CHARS)}”")
        question = in_full
    else:
        question = with_context(question, others)
    request = RunRequest(
        question=question,
        agent=body.model,
        max_steps=body.max_steps,
        top_k=body.top_k,
        thinking=body.thinking,
        picture=pictures[-1][1] if pictures else None,
        collection=body.collection,
        filter=_narrowed(body.filter, list(_documents(body.messages, number))),
        run_id=run_id,
    )
    return ChatQuestion(request, tuple(notices))


def last_user_message(body: ChatCompletionRequest) -> int | None:
    """The place of the last message of the role user; None where there is none."""
    return max((place for place, message in enumerate(body.messages) if message.role == "user"), default=None)


def _question_with_context(attached: re.Match[str]) -> str:
    tagged = _USER_QUERY.search(attached["question"]) or _USER_QUERY.search(attached["before"])
    return tagged[1] if tagged is not None else attached["question"].strip()


def _own_words(text: str) -> str:
    """What the user wrote, without what the client adds."""
    text = _ENVIRONMENT.sub("", _FILE_LIST.sub("", text)).strip()
    tagged = _TASK_TAGS.match(text)
    return tagged["words"].strip() if tagged is not None else text


def _standalone(question: str, earlier: Sequence[str]) -> str:
    """``question`` as it reads after ``earlier`` ones. A sentence that is looked for stays as it is, and so does what
    would be too long for a request."""
    if wants_passage(question):
        return question
    rewritten = standalone(question, [without_courtesy(text) for text in earlier if len(text) <= MAX_TURN_CHARS])
    return rewritten if len(rewritten) <= MAX_CHARS else question


def with_context(question: str, others: Sequence[ChatMessage]) -> str:
    """``question`` and, below it, the earlier messages, within ``MAX_CHARS``. Long messages are cut at a word."""
    earlier = [
        (message.role, cut(_text_of(message), MAX_TURN_CHARS)) for message in others if _text_of(message).strip()
    ]
    rules = [f"\nsystem: {text}" for role, text in earlier if role in ("system", "developer")]
    turns = [f"\n{role}: {text}" for role, text in earlier if role not in ("system", "developer")]
    room = MAX_CHARS - len(question) - len(_HEADING)
    fitting_rules, room = _fitting(rules, room)
    fitting_turns, _ = _fitting(turns[::-1], room)
    context = [*fitting_rules, *fitting_turns[::-1]]
    return question + _HEADING + "".join(context) if context else question


def cut(text: str, limit: int) -> str:
    """``text`` on one line, at most ``limit`` characters of it, cut at a word."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 2].rsplit(" ", 1)[0] + " …"


def end_of(text: str, limit: int) -> str:
    """The last ``limit`` characters of ``text`` at most, from the beginning of a word: the question stands last."""
    end = text[-(limit - 2) :]
    return "… " + end.split(" ", 1)[-1] if " " in end else end


def _fitting(lines: Sequence[str], room: int) -> tuple[list[str], int]:
    """The first of ``lines`` that fit, and the room that is left."""
    retained: list[str] = []
    for line in lines:
        if len(line) > room:
            break
        retained.append(line)
        room -= len(line)
    return retained, room


def _text_of(message: ChatMessage) -> str:
    return f"{_NOT_LOOKED_AT} {message.text}" if any(_sent(message, 0)) else message.text


def _sent(message: ChatMessage, number: int) -> Iterator[tuple[str, str]]:
    """The data URLs of a message, each with its place in the request."""
    for index, part in enumerate(message.content):
        if isinstance(part, ImageContent) and is_data_url(part.image_url.url):
            yield f"messages.{number}.content.{index}.image_url.url", part.image_url.url


def _documents(messages: Sequence[ChatMessage], question: int) -> Iterator[str]:
    """Ids of the documents that any message has attached. Raises InvalidError for any other URL but a data URL in the
    message ``question``; in the others these were for other questions."""
    for number, message in enumerate(messages):
        for index, part in enumerate(message.content):
            if isinstance(part, TextContent):
                continue
            if number != question and isinstance(part, ImageContent) and is_data_url(part.image_url.url):
                continue
            try:
                reference = referenced(part, f"messages.{number}.content.{index}")
            except InvalidError:
                if number == question:
                    raise
                continue
            if not isinstance(reference, InlinePicture):
                yield reference.doc_id


def _narrowed(given: SearchFilter | None, documents: list[str]) -> SearchFilter | None:
    if not documents:
        return given
    narrowed = given or SearchFilter()
    return with_changes(narrowed, {"doc_ids": list(dict.fromkeys([*(narrowed.doc_ids or []), *documents]))})
