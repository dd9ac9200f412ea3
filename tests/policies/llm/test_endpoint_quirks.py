"""Servers refuse in their own words. The replies here are written in the shapes of those servers' own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing

import pytest

from tests.support.agent_pages import library
from tests.support.openai_stub import Body, Respond, Say, images_of, openai_stub
from tests.support.pictures import grey_png
from tests.support.scripted_agent import ticking
from vrag_ray.agent.actions import AddAnswerNode
from vrag_ray.agent.chat import ImagePart, Message, Role
from vrag_ray.agent.driver import Run
from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import AgentConfig, CorpusConfig, OpenAiConfig
from vrag_ray.policies.llm.chat_model import ChatRequest, ModelDownError, Sampling
from vrag_ray.policies.llm.endpoint_quirks import KNOWN_SERVERS, UNKNOWN_SERVER, Refusal, SentFields, server_at
from vrag_ray.policies.llm.openai_api import OpenAiModel
from vrag_ray.policies.registry import agent_spec
from vrag_ray.questions.judge_endpoint import JudgeEndpoint
from vrag_ray.types import Completion, VragError

HELLO = ChatRequest((Message.of(Role.USER, "hello"),))
LOOK = ChatRequest((Message.of(Role.USER, "look", ImagePart(grey_png(9))),))
ANSWER = GraphProtocol().render(AddAnswerNode(parent_ids=("root",), answer="15"))


def openai_says(message: str, param: str | None, code: str | None = "unsupported_parameter") -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


def fastapi_says(field: str) -> str:
    detail = {"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted", "input": True}
    return json.dumps({"detail": [detail]})


UNKNOWN = {
    "OpenAI": lambda name: openai_says(f"Unknown parameter: '{name}'.", name, "unknown_parameter"),
    "OpenAI, older": lambda name: openai_says(f"Unrecognized request argument supplied: {name}", None, None),
    "a gateway": lambda name: json.dumps({"error": f"{name} is not supported by this deployment"}),
    "FastAPI": fastapi_says,
    "Gemini": lambda name: json.dumps(
        [
            {
                "error": {
                    "code": 400,
                    "message": f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.',
                    "status": "INVALID_ARGUMENT",
                }
            }
        ]
    ),
    "vLLM, older": lambda name: json.dumps(
        {
            "object": "error",
            "message": f"[{{'type': 'extra_forbidden', 'loc': ('body', '{name}'), 'msg': 'Extra inputs are not "
            "permitted'}]",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        }
    ),
}
"""How a server says that it does not know a field."""
OTHER_LIMIT = openai_says(
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "max_tokens",
)
RENAMED = "the endpoint of model stub refuses max_tokens: max_completion_tokens was sent in its place"
ONLY_DEFAULT = openai_says(
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    "temperature",
    "unsupported_value",
)
ALWAYS_THINKS = openai_says(
    "<400> InternalError.Algo.InvalidParameter: The value of the enable_thinking parameter is restricted to True.",
    None,
    "invalid_parameter_error",
)
TOO_MANY_TOKENS = {
    "OpenAI": "max_tokens is too large: 2048. This model supports at most 1024 completion tokens, whereas you provided "
    "2048.",
    "DeepSeek": "Invalid max_tokens value, the valid range of max_tokens is [1, 1024]",
    "DashScope": "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 1024]",
    "Anthropic": "max_tokens: 2048 > 1024, which is the maximum allowed number of output tokens for haiku-20240307",
    "Groq": "`max_tokens` must be less than or equal to `1024`, the maximum value for `max_tokens` is less than the "
    "`context_window` for this model",
    "a gateway": "max_tokens may be 1,024 at most.",
}
NO_SYSTEM = {
    "Gemma": "System role not supported",
    "Gemini": "Developer instruction is not enabled for models/gemma-3-27b-it",
    "OpenAI": "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    "a gateway": "system messages are not supported by this model",
}
NEVER_THINKS = openai_says('"qwen3-coder:30b" does not support thinking', None, None)
TOO_LONG = {
    "OpenAI": (
        400,
        openai_says("This model's maximum context length is 8192 tokens.", "messages", "context_length_exceeded"),
    ),
    "DashScope": (
        400,
        openai_says("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", None),
    ),
    "vLLM": (
        400,
        json.dumps(
            {
                "error": {
                    "message": "The decoder prompt (length 9000) is longer than the maximum model length of 4096.",
                    "type": "BadRequestError",
                    "param": None,
                    "code": 400,
                }
            }
        ),
    ),
    "llama.cpp": (
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size, try increasing it",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 1407,
                    "n_ctx": 256,
                }
            }
        ),
    ),
    "llama.cpp, older": (
        500,
        json.dumps({"error": {"code": 500, "message": "…", "type": "exceed_context_size_error", "n_ctx": 256}}),
    ),
    "Ollama": (400, openai_says("the input length exceeds the context length", None, None)),
}
BLIND = {
    "OpenAI": (
        400,
        openai_says(
            "Invalid content type. image_url is only supported by certain models.", "messages.[0].content", None
        ),
    ),
    "DashScope": (
        400,
        openai_says(
            "The provided messages input is invalid. The error info is [Unexpected item type in content.]", None
        ),
    ),
    "vLLM": (400, json.dumps({"error": {"message": "org/name is not a multimodal model", "type": "BadRequestError"}})),
    "llama.cpp": (
        500,
        json.dumps(
            {
                "error": {
                    "code": 500,
                    "message": "image input is not supported - hint: you may need to provide the mmproj",
                    "type": "server_error",
                }
            }
        ),
    ),
    "Ollama": (
        500,
        json.dumps({"error": {"message": "this model is missing data required for image input", "type": "api_error"}}),
    ),
}


def config(base_url: str, **more: object) -> OpenAiConfig:
    return OpenAiConfig.model_validate({"base_url": base_url, "model": "stub", "retries": 2, "timeout_s": 10} | more)


def hear(settings: OpenAiConfig, *requests: ChatRequest) -> list[Completion]:
    """The replies of one model to one request after another."""

    async def listen() -> list[Completion]:
        async with aclosing(OpenAiModel(settings)) as model:
            return [[piece async for piece in model.chat(request)][-1] for request in requests]  # type: ignore[misc]

    return asyncio.run(listen())


def strict(refusals: dict[str, str], reply: str = "ok", status: int = 400) -> Respond:
    """A server that refuses the first field of ``refusals`` that a request has."""

    def respond(body: Body, _: int) -> Say:
        refused = next((text for name, text in refusals.items() if name in body), None)
        return Say(reply) if refused is None else Say(status=status, body=refused)

    return respond


def run_agent(base_url: str, **more: object) -> RunRecord:
    made = agent_spec("vimrag", AgentConfig(), CorpusConfig(), OpenAiModel(config(base_url, **more)), session="r1")
    run = Run(
        "r1",
        "What was North in 2022?",
        policy=made.policy,
        protocol=made.protocol,
        source=library().source,
        config=AgentConfig(),
        clock=ticking(),
        agent="vimrag",
    )
    return asyncio.run(run.finish())


@pytest.mark.parametrize("say", UNKNOWN.values(), ids=UNKNOWN)
def test_a_refused_field_is_known_in_the_words_of_any_server(say: Callable[[str], str]) -> None:
    sent = ("model", "messages", "stream", "stream_options", "max_tokens", "seed", "stop", "enable_thinking")
    for field in ("enable_thinking", "stream_options", "seed", "stop"):
        # A word of English is taken for a field only where it is marked as one.
        plain = say is UNKNOWN["a gateway"] and "_" not in field
        assert Refusal.of(400, say(field)).refused(sent) == (() if plain else (field,))


def test_a_field_that_is_refused_by_name_is_left_out_from_then_on() -> None:
    request = ChatRequest(HELLO.messages, Sampling(seed=3), thinking=False)
    with openai_stub(strict({"enable_thinking": UNKNOWN["OpenAI"]("enable_thinking")})) as stub:
        replies = hear(config(stub.base_url), request, request)
    assert [reply.text for reply in replies] == ["ok", "ok"]
    assert ["enable_thinking" in sent for sent in stub.requests] == [True, False, False], "it is asked once"
    for reply in replies:
        [notice] = reply.notices
        assert "the endpoint of model stub refuses enable_thinking (Unknown parameter" in notice
    assert all({"max_tokens", "messages", "seed"} <= set(sent) for sent in stub.requests)


def test_every_field_that_is_refused_goes_one_after_the_other() -> None:
    names = ["enable_thinking", "chat_template_kwargs", "stream_options", "temperature", "max_tokens"]
    refusals = {name: UNKNOWN["OpenAI"](name) for name in names}
    with openai_stub(strict(refusals)) as stub:
        [reply] = hear(config(stub.base_url, thinking=True, temperature=0.2), HELLO)
        assert reply.text == "ok"
        assert len(stub.requests) == 6
        assert set(stub.requests[-1]) == {"model", "messages", "stream", "max_completion_tokens"}


def test_the_limit_of_a_reply_is_sent_by_its_other_name() -> None:
    with openai_stub(strict({"max_tokens": OTHER_LIMIT})) as stub:
        first, second = hear(config(stub.base_url), HELLO, HELLO)
    assert [sent.get("max_completion_tokens") for sent in stub.requests] == [None, 2048, 2048]
    assert first.notices == (
        "the endpoint of model stub refuses max_tokens: max_completion_tokens was sent in its place",
    )
    assert second.notices == (), "nothing is missing"


def test_a_limit_that_is_refused_under_both_names_is_left_out() -> None:
    refusals = {name: UNKNOWN["OpenAI"](name) for name in ("max_tokens", "max_completion_tokens")}
    with openai_stub(strict(refusals)) as stub:
        hear(config(stub.base_url), HELLO, HELLO)
        assert len(stub.requests) == 4
        assert not {"max_tokens", "max_completion_tokens"} & set(stub.requests[-1])


@pytest.mark.parametrize("words", TOO_MANY_TOKENS.values(), ids=TOO_MANY_TOKENS)
def test_the_limit_of_a_reply_is_lowered_to_what_the_server_takes(words: str) -> None:
    def respond(body: Body, _: int) -> Say:
        return Say("ok") if body["max_tokens"] <= 1024 else Say(status=400, body=openai_says(words, None))

    less = ChatRequest(HELLO.messages, Sampling(max_tokens=100))
    with openai_stub(respond) as stub:
        first, second, third = hear(config(stub.base_url), HELLO, HELLO, less)
    assert [sent["max_tokens"] for sent in stub.requests] == [2048, 1024, 1024, 100]
    assert first.notices == second.notices and third.notices == ()
    [notice] = first.notices
    assert "refuses max_tokens 2048 (" in notice and "1024 was sent in its place" in notice


@pytest.mark.parametrize("words", NO_SYSTEM.values(), ids=NO_SYSTEM)
def test_a_model_without_system_messages_gets_their_text_from_the_user(words: str) -> None:
    def respond(body: Body, _: int) -> Say:
        refused = any(message["role"] == "system" for message in body["messages"])
        return Say(status=400, body=openai_says(words, "messages[0].role")) if refused else Say("ok")

    system = Message.of(Role.SYSTEM, "be brief")
    request = ChatRequest((system, *LOOK.messages, Message.of(Role.ASSISTANT, "a dog"), *HELLO.messages))
    with openai_stub(respond) as stub:
        first, second = hear(config(stub.base_url), request, ChatRequest((system, *HELLO.messages)))
    [notice] = first.notices
    assert f"takes no system message ({words})" in notice
    assert [notice] == list(second.notices)
    _, sent, short = stub.requests
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][0]["content"][:2] == [
        {"type": "text", "text": "be brief\n\n"},
        {"type": "text", "text": "look"},
    ]
    assert short["messages"] == [{"role": "user", "content": "be brief\n\nhello"}]


def test_a_model_without_system_messages_runs_an_agent() -> None:
    def respond(body: Body, _: int) -> Say:
        refused = any(message["role"] == "system" for message in body["messages"])
        return Say(status=400, body=openai_says(NO_SYSTEM["Gemma"], None)) if refused else Say(ANSWER)

    with openai_stub(respond) as stub:
        record = run_agent(stub.base_url)
    assert record.answer == "15"
    assert any("takes no system message" in notice for notice in record.notices)


@pytest.mark.parametrize(
    "words",
    [
        "response_format is not supported by this system",
        "The file system: seed is not supported",
        "This model does not support tools of a system",
    ],
)
def test_not_every_system_is_a_message(words: str) -> None:
    assert not Refusal.of(400, openai_says(words, None)).is_of_system


def test_a_refusal_of_every_request_ends_it() -> None:
    for words in (NO_SYSTEM["Gemma"], TOO_MANY_TOKENS["OpenAI"]):
        with (
            openai_stub(lambda _, __, words=words: Say(status=400, body=openai_says(words, None))) as stub,
            pytest.raises(VragError, match="refuses"),
        ):
            hear(config(stub.base_url), ChatRequest((Message.of(Role.SYSTEM, "be brief"), *HELLO.messages)))
        assert len(stub.requests) == 2


@pytest.mark.parametrize(
    "body",
    [
        openai_says("Streaming is not supported for this model", None),
        openai_says("This model does not support streaming.", None),
        openai_says("Your organization must be verified to stream this model.", "stream", "unsupported_value"),
    ],
)
def test_a_model_that_does_not_stream_is_heard_without(body: str) -> None:
    reply = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    with openai_stub(lambda sent, _: Say(status=400, body=body) if "stream" in sent else Say(whole=reply)) as stub:
        [heard] = hear(config(stub.base_url), HELLO)
    assert heard.text == "ok" and "refuses stream (" in heard.notices[0]
    assert "stream_options" not in stub.requests[-1]


def test_a_value_that_the_model_does_not_take_is_left_to_the_model() -> None:
    with openai_stub(strict({"temperature": ONLY_DEFAULT})) as stub:
        [reply] = hear(config(stub.base_url, temperature=0.2), HELLO)
    assert reply.text == "ok"
    assert "refuses temperature" in reply.notices[0]


@pytest.mark.parametrize(
    ("field", "body"), [("enable_thinking", ALWAYS_THINKS), ("chat_template_kwargs", NEVER_THINKS)]
)
def test_a_model_that_cannot_switch_its_thinking_is_left_as_it_is(field: str, body: str) -> None:
    with openai_stub(strict({field: body})) as stub:
        record = run_agent(stub.base_url, thinking=False) if field else None
    assert record is not None
    assert any("the thinking phase is as the server is set" in notice for notice in record.notices)
    assert "enable_thinking" not in stub.requests[-1]


def test_without_a_choice_no_field_of_the_thinking_phase_is_sent() -> None:
    with openai_stub(lambda _, __: "ok") as stub:
        hear(config(stub.base_url), HELLO)
        assert set(stub.requests[0]) == {"model", "messages", "max_tokens", "stream", "stream_options"}


def test_a_parameter_that_an_endpoint_refused_is_a_notice_of_the_run() -> None:
    refusals = {"stream_options": UNKNOWN["OpenAI"]("stream_options"), "max_tokens": OTHER_LIMIT}
    with openai_stub(strict(refusals, reply=ANSWER)) as stub:
        record = run_agent(stub.base_url)
    assert record.answer == "15"
    assert record.notices == (
        RENAMED,
        "the endpoint of model stub refuses stream_options (Unknown parameter: 'stream_options'.): tokens are not "
        "counted",
    )


def test_a_judge_leaves_out_what_its_endpoint_refuses() -> None:
    reply = {"choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}]}
    refuse = strict({"max_tokens": OTHER_LIMIT, "temperature": ONLY_DEFAULT})

    def respond(body: Body, number: int) -> Say:
        response = refuse(body, number)
        assert isinstance(response, Say)
        return Say(whole=reply) if response.status == 200 else response

    async def ask(base_url: str) -> list[str]:
        async with aclosing(JudgeEndpoint(config(base_url), concurrency=1)) as judge:
            return [await judge.reply(HELLO.messages) for _ in range(2)]

    with openai_stub(respond) as stub:
        assert asyncio.run(ask(stub.base_url)) == ["yes", "yes"]
        assert len(stub.requests) == 4


@pytest.mark.parametrize(
    "body",
    [
        openai_says(
            "max_tokens is too large: 9999. This model supports at most 4096 completion tokens.", "max_tokens", None
        ),
        openai_says("The model `stub` does not exist", "model", "model_not_found"),
        openai_says("The messages are not supported: stop", None),
        openai_says("'tools' is not supported with this model", "tools"),
    ],
)
def test_another_refusal_names_no_field_to_leave_out(body: str) -> None:
    assert Refusal.of(400, body).refused(("model", "messages", "max_tokens", "stop", "tools", "stream")) == ()


@pytest.mark.parametrize(("status", "body"), TOO_LONG.values(), ids=TOO_LONG)
def test_a_prompt_that_is_too_long_is_known_in_the_words_of_any_server(status: int, body: str) -> None:
    refusal = Refusal.of(status, body)
    assert (refusal.is_too_long, refusal.is_blind) == (True, False)


@pytest.mark.parametrize("server", ["llama.cpp", "llama.cpp, older"])
def test_a_prompt_that_is_too_long_is_a_limit_of_the_engine_and_not_tried_again(server: str) -> None:
    status, body = TOO_LONG[server]
    with openai_stub(lambda _, __: Say(status=status, body=body)) as stub:
        record = run_agent(stub.base_url)
        assert (record.status, record.engine_limited) == ("error", True)
        assert len(stub.requests) == 1


@pytest.mark.parametrize(("status", "body"), BLIND.values(), ids=BLIND)
def test_a_model_without_eyes_is_known_in_the_words_of_any_server(status: int, body: str) -> None:
    refusal = Refusal.of(status, body)
    assert (refusal.is_too_long, refusal.is_blind) == (False, True)


@pytest.mark.parametrize("server", ["OpenAI", "llama.cpp"])
def test_pictures_for_a_model_without_eyes_are_refused_once_with_the_remedy(server: str) -> None:
    status, body = BLIND[server]
    with openai_stub(lambda _, __: Say(status=status, body=body)) as stub:
        with pytest.raises(PromptRefusedError, match=r"takes no pictures \(.*\): set openai\.max_images to 0"):
            hear(config(stub.base_url), LOOK)
        assert [len(images_of(sent)) for sent in stub.requests] == [1]


def test_another_error_of_the_server_is_still_tried_again() -> None:
    with openai_stub(lambda _, __: Say(status=500)) as stub:
        with pytest.raises(ModelDownError):
            hear(config(stub.base_url), LOOK)
        assert len(stub.requests) == 3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"detail":"Not authenticated"}', "Not authenticated"),
        ('{"error":"model requires more system memory"}', "model requires more system memory"),
        (
            "<html><head><style>p {x: y}</style></head><body><h1>403 Forbidden</h1>nginx</body></html>",
            "403 Forbidden nginx",
        ),
        ('{"object":"error","message":"no such model","code":404}', "no such model"),
        ('{"error":{"message":"bad key","code":"x"}}', "bad key"),
        ('{"detail":[{"loc":["body","n"],"msg":"too many","type":"v"}]}', "body.n: too many"),
        ("[1, 2]", "[1, 2]"),
        ("", ""),
    ],
)
def test_the_words_of_a_refusal_are_in_the_error_whatever_its_form(body: str, words: str) -> None:
    assert Refusal.of(403, body).words == words


def test_the_code_of_a_refusal_is_in_the_error_once() -> None:
    with (
        openai_stub(lambda _, __: Say(status=403, body='{"detail":"Not authenticated"}')) as stub,
        pytest.raises(ModelDownError, match=r"^model stub refuses \(403\): Not authenticated$"),
    ):
        hear(config(stub.base_url), HELLO)


def test_servers_at_known_addresses_are_sent_their_own_fields() -> None:
    assert server_at("https://api.openai.com/v1").name == "OpenAI"
    assert server_at("https://dashscope.aliyuncs.com/compatible-mode/v1").name == "DashScope"
    assert server_at("http://localhost:11434/v1").name == "Ollama"
    assert server_at("http://10.0.0.1:8000/v1") is UNKNOWN_SERVER
    others = {"OpenAI", "DashScope", "Gemini", "vLLM", "llama.cpp", "Ollama", "a gateway of this project"}
    assert {server.name for server in KNOWN_SERVERS} == others
    for server in (*KNOWN_SERVERS, UNKNOWN_SERVER):
        assert set(server.thinking) == {True, False}


def test_what_two_requests_learn_at_once_is_learnt_once() -> None:
    fields = SentFields("stub")
    refusal = Refusal.of(400, OTHER_LIMIT)
    sent, _ = fields.fitted({"model": "stub", "max_tokens": 5})
    assert fields.learn(refusal, sent) != ()
    assert fields.learn(refusal, sent) == (), "another try, and nothing more to say"
    assert fields.fitted({"model": "stub", "max_tokens": 5}) == ({"model": "stub", "max_completion_tokens": 5}, ())


def test_a_server_that_does_not_stream_is_heard_all_the_same() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    whole = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "all", "tool_calls": [call]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }
    with openai_stub(lambda _, __: Say(whole=whole)) as stub:
        [reply] = hear(config(stub.base_url), HELLO)
    assert reply.text == 'all<tool_call>{"name": "f", "arguments": "{}"}</tool_call>'
    assert reply.usage == {"prompt_tokens": 3, "completion_tokens": 1}


def test_a_new_id_is_a_new_call_also_where_the_index_is_the_same() -> None:
    def called(id: str, value: int) -> Body:
        function = {"name": "f", "arguments": json.dumps({"a": value})}
        return {"tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]}

    with openai_stub(lambda _, __: Say(chunks=(called("x", 1), called("y", 2)), finish="tool_calls")) as stub:
        [reply] = hear(config(stub.base_url), HELLO)
    assert reply.text.count("<tool_call>") == 2
    assert "ff" not in reply.text


def test_a_reply_that_was_filtered_does_not_look_whole() -> None:
    with openai_stub(lambda _, __: Say("Hel", finish="content_filter")) as stub:
        [reply] = hear(config(stub.base_url), HELLO)
        assert (reply.text, reply.finish) == ("Hel", "content_filter")
        record = run_agent(stub.base_url)
        assert "content filter" in record.error
        assert len(stub.requests) == 2, "no steps are spent on it"


def test_a_refusal_of_the_model_is_reported_in_its_words() -> None:
    chunks = ({"content": None, "refusal": "I can't "}, {"refusal": "help."})
    with (
        openai_stub(lambda _, __: Say(chunks=chunks)) as stub,
        pytest.raises(VragError, match="stub declines to answer: I can't help"),
    ):
        hear(config(stub.base_url), HELLO)
