"""Earlier calls of functions and their results in a chat: in fields of their own, or in words.

OpenAI's interface has fields for both. A server that takes them writes them as its model was trained to read them.
Models behind a chat template that knows no tools get them in the words that most open models are trained on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from vrag_ray.agent.chat import ImagePart, Message, Role, TextPart


def has_calls(messages: Sequence[Message]) -> bool:
    """Whether a message is a call or the result of one."""
    return any(message.calls or message.role is Role.TOOL for message in messages)


def in_fields(messages: Sequence[Message]) -> list[Message] | None:
    """The messages as strict servers take them: all calls of a turn in one message, and the result of each behind it.

    None where that is not how they are: a call without an id, a result or arguments in JSON, a result without its call,
    or one with a picture, for which OpenAI's field has no place.
    """
    calls = [call for message in messages for call in message.calls]
    if not all(call.id and _is_object(call.arguments) for call in calls):
        return None
    ordered: list[Message] = []
    unanswered: set[str] = set()
    for message in messages:
        last = ordered[-1] if ordered else None
        if message.role is Role.TOOL:
            if message.call_id not in unanswered or any(isinstance(part, ImagePart) for part in message.parts):
                return None
            unanswered.remove(message.call_id)
            ordered.append(message)
        elif message.calls and last is not None and last.role is Role.ASSISTANT:
            ordered[-1] = replace(last, parts=(*last.parts, *message.parts), calls=(*last.calls, *message.calls))
            unanswered.update(call.id for call in message.calls)
        elif unanswered:
            return None
        else:
            ordered.append(message)
            unanswered.update(call.id for call in message.calls)
    return None if unanswered else ordered


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def in_words(messages: Sequence[Message]) -> list[Message]:
    """Calls as the text of their message, results as words of the user."""
    return [_in_words(message) for message in messages]


def _in_words(message: Message) -> Message:
    if message.role is Role.TOOL:
        return Message(Role.USER, (TextPart("<tool_response>\n"), *message.parts, TextPart("\n</tool_response>")))
    if not message.calls:
        return message
    own = [part for part in message.parts if not isinstance(part, TextPart) or part.text]
    return Message(message.role, (*own, *(TextPart(_call_text(call.name, call.arguments)) for call in message.calls)))


def _call_text(name: str, arguments: str) -> str:
    try:
        value: object = json.loads(arguments)
    except ValueError:
        value = arguments
    call = json.dumps({"name": name, "arguments": value}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"
