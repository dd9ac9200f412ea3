"""Earlier calls of functions on their way to an endpoint: in OpenAI's fields, or in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.policies.llm.test_endpoint_quirks import Body, config, hear, openai_says
from tests.support.openai_stub import Say, openai_stub
from vrag_ray.agent.chat import FunctionCall, ImagePart, Message, Role, Tool
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.function_calls import in_fields, in_words

RAIN = FunctionCall("c1", "rain", '{"city": "Bremen"}')
WIND = FunctionCall("c2", "wind", '{"city": "Bremen"}')
QUESTION = Message.of(Role.USER, "Rain and wind?")
TOOLS = (Tool("rain", "", '{"type": "object"}'), Tool("wind", "", '{"type": "object"}'))


def called(*calls: FunctionCall, text: str = "") -> Message:
    return Message(Role.ASSISTANT, Message.of(Role.ASSISTANT, text).parts, calls)


def result(call: FunctionCall, text: str = "none") -> Message:
    return replace(Message.of(Role.TOOL, text), call_id=call.id)


CHAT = (QUESTION, called(RAIN, WIND, text="I look."), result(RAIN), result(WIND, "7"))
WORDS = [
    "Rain and wind?",
    'I look.<tool_call>\n{"name": "rain", "arguments": {"city": "Bremen"}}\n</tool_call>'
    '<tool_call>\n{"name": "wind", "arguments": {"city": "Bremen"}}\n</tool_call>',
    "<tool_response>\nnone\n</tool_response>",
    "<tool_response>\n7\n</tool_response>",
]


def test_an_endpoint_gets_calls_and_results_in_their_fields() -> None:
    with openai_stub(lambda *_: Say("dry")) as stub:
        [reply] = hear(config(stub.base_url), ChatRequest(CHAT, tools=TOOLS))
    _, call, *results = stub.requests[0]["messages"]
    assert [entry["id"] for entry in call["tool_calls"]] == ["c1", "c2"]
    assert call["tool_calls"][0]["function"] == {"name": "rain", "arguments": '{"city": "Bremen"}'}
    assert (call["role"], call["content"]) == ("assistant", "I look.")
    assert results == [
        {"role": "tool", "content": "none", "tool_call_id": "c1"},
        {"role": "tool", "content": "7", "tool_call_id": "c2"},
    ]
    assert reply.notices == ()


def test_a_call_without_words_has_no_content() -> None:
    with openai_stub(lambda *_: Say("dry")) as stub:
        hear(config(stub.base_url), ChatRequest((QUESTION, called(RAIN), result(RAIN)), tools=TOOLS))
    assert stub.requests[0]["messages"][1]["content"] is None


def test_calls_of_one_turn_that_come_in_several_messages_are_one_message() -> None:
    apart = (QUESTION, called(text="I look."), called(RAIN), called(WIND), result(WIND), result(RAIN))
    joined = in_fields(apart)
    assert joined is not None
    assert [(message.role, message.text, message.calls) for message in joined[1:]] == [
        (Role.ASSISTANT, "I look.", (RAIN, WIND)),
        (Role.TOOL, "none", ()),
        (Role.TOOL, "none", ()),
    ]
    turns = (*CHAT, called(RAIN), result(RAIN), Message.of(Role.USER, "thanks"))
    assert in_fields(turns) == list(turns)


@pytest.mark.parametrize(
    "chat",
    [
        (QUESTION, called(replace(RAIN, id="")), replace(result(RAIN), call_id="")),
        (QUESTION, called(RAIN)),
        (QUESTION, called(RAIN, WIND), result(RAIN), Message.of(Role.USER, "go on")),
        (QUESTION, result(RAIN)),
        (QUESTION, called(RAIN), result(WIND)),
        (QUESTION, called(replace(RAIN, arguments="{half")), result(RAIN)),
        (QUESTION, called(RAIN), Message(Role.TOOL, (ImagePart(b"png"),), call_id="c1")),
    ],
    ids=["no id", "no result", "a result too few", "no call", "of another call", "no JSON", "a picture"],
)
def test_what_a_strict_endpoint_refuses_goes_in_words(chat: tuple[Message, ...]) -> None:
    assert in_fields(chat) is None
    with openai_stub(lambda *_: Say("dry")) as stub:
        hear(config(stub.base_url), ChatRequest(chat, tools=TOOLS))
    assert {message["role"] for message in stub.requests[0]["messages"]} <= {"user", "assistant"}


def test_words_are_those_that_open_models_are_trained_on() -> None:
    assert [message.text for message in in_words(CHAT)] == WORDS
    assert [message.role for message in in_words(CHAT)] == [Role.USER, Role.ASSISTANT, Role.USER, Role.USER]


def test_without_functions_in_the_request_earlier_calls_go_in_words() -> None:
    with openai_stub(lambda *_: Say("dry")) as stub:
        hear(config(stub.base_url), ChatRequest(CHAT))
    assert not any("tool_calls" in message for message in stub.requests[0]["messages"])


@pytest.mark.parametrize(
    "words",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "messages.2.role: Input should be 'system', 'user' or 'assistant'",
        "Unexpected tool messages",
        "Extra field tool_call_id",
    ],
)
def test_an_endpoint_that_refuses_earlier_calls_gets_them_in_words_from_then_on(words: str) -> None:
    def respond(body: Body, _: int) -> Say:
        refused = any(message["role"] == "tool" for message in body["messages"])
        return Say(status=400, body=openai_says(words, None)) if refused else Say("dry")

    request = ChatRequest(CHAT, tools=TOOLS)
    with openai_stub(respond) as stub:
        first, second, other = hear(config(stub.base_url), request, request, ChatRequest((QUESTION,), tools=TOOLS))
    assert len(stub.requests) == 4
    assert first.notices == second.notices and other.notices == ()
    [notice] = first.notices
    assert "takes no earlier calls of functions" in notice and words in notice
