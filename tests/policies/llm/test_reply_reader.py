"""Bodies of chat completions in the forms that servers write them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from vrag_ray.agent.chat import Delta
from vrag_ray.policies.llm.reply_reader import EndpointError, NoChatCompletionError, ReplyReader, UnfinishedError
from vrag_ray.types import Completion

Json = dict[str, object]
DONE = "data: [DONE]\n\n"
OVER: Json = {"finish_reason": "stop"}


def events(*chunks: object, end: str = DONE) -> bytes:
    """A stream of chunks; a string is the data of an event as it is."""
    data = (chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks)
    return ("".join(f"data: {text}\n\n" for text in data) + end).encode()


def of(*deltas: object, finish: str | None = "stop", end: str = DONE) -> bytes:
    """A stream of deltas and the reason of its end."""
    return events(
        *({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), choice(finish_reason=finish), end=end
    )


def choice(**members: object) -> Json:
    return {"choices": [{"index": 0, "delta": {}, **members}]}


def message(content: Json, **members: object) -> bytes:
    return json.dumps({"choices": [{"message": content, **members}]}).encode()


def read(body: bytes, *, step: int = 1 << 20) -> tuple[list[Delta], Completion]:
    reader = ReplyReader()
    deltas = [delta for at in range(0, len(body), step) for delta in reader.feed(body[at : at + step])]
    deltas += reader.end()
    whole = reader.completion("model m", ())
    assert whole.text.startswith("".join(delta.content for delta in deltas))
    assert whole.reasoning == "".join(delta.think for delta in deltas)
    return deltas, whole


def calls(body: bytes) -> list[tuple[str, object]]:
    text = read(body)[1].text
    written = [json.loads(part.partition("</tool_call>")[0]) for part in text.split("<tool_call>")[1:]]
    return [(call["name"], json.loads(call["arguments"])) for call in written]


HELLO = of({"role": "assistant"}, {"content": "Hello "}, {"content": "world."})
FORMS = {
    "events": HELLO,
    "CRLF": HELLO.replace(b"\n", b"\r\n"),
    "CR": HELLO.replace(b"\n", b"\r"),
    "no space": HELLO.replace(b"data: ", b"data:"),
    "byte order mark": b"\xef\xbb\xbf" + HELLO,
    "comments and names": b": PROCESSING\n\nevent: message\nid: 1\nretry: 5\n" + HELLO,
    "no [DONE]": of({"content": "Hello world."}, end=""),
    "no blank line at the end": of({"content": "Hello world."}, end="").rstrip(),
    "an index as text": events({"choices": [{"index": "0", "delta": {"content": "Hello world."}}]}),
    "no reason": of({"content": "Hello world."}, finish=None),
    "empty reason": of({"content": "Hello world."}, finish=""),
    "no choices": events({"choices": [], "prompt_filter_results": [{}]}, {"choices": None}, {"type": "ping"}, end="")
    + HELLO,
    "no delta": events({"choices": [{"index": 0}]}, {"choices": [{"delta": None}]}, end="") + HELLO,
    "empty data": b"data:\n\ndata: \n\ndata\n\n" + HELLO,
    "plain data": events("ping", end="") + HELLO,
    "two objects in an event": events(
        json.dumps(choice(delta={"content": "Hello "})) + json.dumps(choice(delta={"content": "world."}) | {"x": 1})
    ),
    "an object in two lines": b'data: {"choices":[{"delta":\ndata: {"content":"Hello world."}}]}\n\n' + DONE.encode(),
    "parts": of({"content": [{"type": "text", "text": "Hello "}, {"type": "text", "text": "world."}]}),
    "other choices": events(
        {"choices": [{"index": 1, "delta": {"content": "OTHER"}}, {"index": 0, "delta": {"content": "Hello world."}}]}
    ),
    "a message in an event": events({"choices": [{"message": {"content": "Hello world."}}]}),
    "deltas, then the message": events(
        choice(delta={"content": "Hello world."}), {"choices": [{"message": {"content": "Hello world."}}]}
    ),
    "text completion": events({"choices": [{"text": "Hello world.", "finish_reason": "stop"}]}),
    "JSON": message({"content": "Hello world."}, finish_reason="stop"),
    "JSON in lines": json.dumps(json.loads(message({"content": "Hello world."})), indent=2).encode(),
    "JSON without a reason": message({"content": "Hello world."}, finish_reason=None),
    "JSON of parts": message({"content": [{"type": "text", "text": "Hello world."}]}),
    "JSON twice": message({"content": "Hello world."}) + b"\n" + message({"content": "Hello world."}),
    "an object a line": json.dumps(choice(delta={"content": "Hello "})).encode()
    + b"\n"
    + json.dumps(choice(delta={"content": "world."}, finish_reason="eos")).encode(),
    "other types": json.dumps(
        {"id": None, "created": 1.5, "model": 7, "choices": [{"message": {"content": "Hello world."}, "logprobs": 3}]}
    ).encode(),
}


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS)
def test_a_reply_is_the_same_in_every_form_and_however_its_bytes_come(body: bytes, step: int) -> None:
    _, whole = read(body, step=step)
    assert (whole.text, whole.reasoning, whole.finish, whole.notices) == ("Hello world.", "", "stop", ())


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        *(
            (reason, "stop")
            for reason in ("stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls")
        ),
        *((reason, "length") for reason in ("length", "max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens")),
        *((reason, "content_filter") for reason in ("content_filter", "SAFETY", "sensitive", "RECITATION")),
    ],
)
def test_the_end_of_a_reply_has_many_names(reason: str, finish: str) -> None:
    for body in (of({"content": "Hel"}, finish=reason), message({"content": "Hel"}, finish_reason=reason)):
        _, whole = read(body)
        assert (whole.text, whole.finish, whole.notices) == ("Hel", finish, ())


@pytest.mark.parametrize("reason", ["error", "network_error", "insufficient_system_resource", "abort", "cancelled"])
def test_a_reply_that_broke_off_does_not_look_whole(reason: str) -> None:
    for body in (of({"content": "Hel"}, finish=reason), message({"content": "Hel"}, finish_reason=reason)):
        with pytest.raises(EndpointError, match=f"finish_reason {reason}"):
            read(body)


def test_a_reason_of_no_known_meaning_is_passed_on_in_a_notice() -> None:
    _, whole = read(of({"content": "Hel"}, finish="pause_turn"))
    assert whole.finish == "stop"
    assert whole.notices == ("model m ended its reply with finish_reason pause_turn, which has no known meaning",)


FAILURES = {
    "an object": events({"error": {"message": "GPU fell over", "code": 500}}),
    "text": events({"error": "GPU fell over"}),
    "no object": events({"error": ["GPU fell over"]}),
    "in a choice": events(choice(finish_reason="error", error={"message": "GPU fell over"})),
    "an event": b'event: error\ndata: {"message": "GPU fell over"}\n\n',
    "an event of text": b"event: error\ndata: GPU fell over\n\n",
    "old vLLM": events({"object": "error", "message": "GPU fell over", "code": 500}),
    "Anthropic": events({"type": "error", "error": {"message": "GPU fell over"}}),
    "a line": b'{"error": {"message": "GPU fell over"}}',
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failure_in_mid_reply_is_reported_in_the_words_of_the_endpoint(failure: bytes) -> None:
    with pytest.raises(EndpointError, match=r"^GPU fell over$") as caught:
        read(events(choice(delta={"content": "Hello "}), end="") + failure)
    assert not caught.value.whole


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b'{"error": {"message": "quota used up", "code": "x"}}', 200, "quota used up"),
        (b'{"code": 401, "msg": "bad token", "success": false}', 401, "bad token"),
        (events({"error": {"message": "no such model", "code": 404}}), 404, "no such model"),
    ],
)
def test_a_failure_before_the_reply_is_a_refusal(body: bytes, status: int, words: str) -> None:
    with pytest.raises(EndpointError) as caught:
        read(body)
    assert (caught.value.whole, caught.value.refusal.status, caught.value.refusal.words) == (True, status, words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html><title>Login</title><body>Please sign in</body></html>", "Login Please sign in"),
        (b"[]", r"\[\]"),
        (b'{"id": "c", "choices": null}', '"choices": null'),
        (b'{"error_code": 110, "error_msg": "bad token"}', "bad token"),
    ],
)
def test_what_is_no_chat_completion_is_shown(body: bytes, words: str) -> None:
    with pytest.raises(NoChatCompletionError, match=words):
        read(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (events(choice(delta={"content": "Hel"}), end=""), "^$"),
        (events(choice(delta={"content": "Hel"}), '{"id":'), "no JSON"),
        (events(choice(delta={"content": "Hel"}), {"message": "quota used up"}), "^quota used up$"),
        (events(choice(delta={"content": "Hel"}), end="") + b"<b>502 Bad Gateway</b>", "^502 Bad Gateway$"),
        (HELLO[: HELLO.index(b"world")], "no JSON"),
        (message({"content": "Hel"})[:-5], "Hel"),
        (events(), "^$"),
        (b"", "the body is empty"),
    ],
)
def test_a_reply_without_its_end_is_unfinished(body: bytes, words: str) -> None:
    with pytest.raises(UnfinishedError, match=words):
        read(body)


def test_a_filter_that_failed_in_a_choice_is_no_failure_of_the_reply() -> None:
    filtered = {"choices": [{"index": 0, "content_filter_results": {"error": {"code": "x"}}}]}
    assert read(events(filtered, end="") + HELLO)[1].text == "Hello world."


def called(name: str | None = None, arguments: object = None, **members: object) -> Json:
    return {"function": {"name": name, "arguments": arguments}, **members}


TWO = [("f", {"a": 1}), ("f", {"a": 2})]
ONE, OTHER = '{"a":1}', '{"a":2}'


@pytest.mark.parametrize(
    ("entries", "called_functions"),
    [
        ([[called("f", ONE, index=0, id="")], [called("f", OTHER, index=0, id="")]], TWO),
        ([[called("f", ONE), called("f", OTHER)]], TWO),
        ([[called("f", ONE, id="x")], [called("f", OTHER, id="y")]], TWO),
        ([[called("f", "")], [called("g", "")]], [("f", {}), ("g", {})]),
        ([[called("f", "", index=0, id="x")], [called("f", ONE, index=0, id="x")]], [("f", {"a": 1})]),
        ([[called("f", ONE, index=0, id="x")], [called("f", ONE, index=0, id="x")]], [("f", {"a": 1})]),
        ([[called("f", ONE, index=0, id="x")], [called("f", "", index=0, id="x")]], [("f", {"a": 1})]),
        (
            [
                [called("f", "", index=0, id="x"), called("g", "", index=1, id="y")],
                [called(None, ONE, index=0)],
                [called(None, '{"a":', index=1)],
                [called(None, "2}", index=1)],
            ],
            [("f", {"a": 1}), ("g", {"a": 2})],
        ),
        ([[called("f", {"a": 1}, index=0, id="x")]], [("f", {"a": 1})]),
        ([[{"name": "f", "arguments": {"a": 1}}]], [("f", {"a": 1})]),
        ([[called("f", '{"a":')], [called(None, "1}")]], [("f", {"a": 1})]),
        ([[{"index": 0, "id": "x", "function": None}]], []),
    ],
)
def test_calls_are_distinguished_with_and_without_ids_and_indices(
    entries: Sequence[object], called_functions: Sequence[object]
) -> None:
    assert calls(of(*({"tool_calls": entry} for entry in entries), finish="tool_calls")) == list(called_functions)


def test_a_call_of_the_older_form_is_a_call() -> None:
    deltas = ({"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": ONE}})
    assert calls(of(*deltas, finish="function_call")) == [("f", {"a": 1})]
    assert calls(message({"function_call": {"name": "f", "arguments": ONE}})) == [("f", {"a": 1})]


def test_the_calls_of_a_whole_message_need_no_ids() -> None:
    assert calls(message({"content": None, "tool_calls": [called("f", {"a": 1}), called("f", {"a": 2})]})) == TWO


@pytest.mark.parametrize(
    "think",
    [
        {"reasoning_content": "hmm"},
        {"reasoning": "hmm", "reasoning_content": "hmm"},
        {"reasoning": {"text": "hmm"}},
        {"reasoning": "hmm", "reasoning_details": [{"type": "reasoning.text", "text": "hmm"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hmm"}, {"type": "reasoning.encrypted"}]},
        {"thinking": "hmm", "content": ""},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}]},
        {"content": "<thought>hmm</thought>\n\n"},
        {"content": "\n<thinking>hmm</thinking>\n"},
        {"content": "[THINK]hmm[/THINK]"},
        {"content": "<|channel|>analysis<|message|>hmm<|end|><|start|>assistant<|channel|>final<|message|>"},
    ],
)
def test_thoughts_are_no_content_wherever_a_server_puts_them(think: Json) -> None:
    split = [{"content": letter} for letter in str(think["content"])] if isinstance(think.get("content"), str) else []
    for deltas in ([think], split or [think]):
        _, whole = read(of(*deltas, {"content": "Hello"}, {"content": " <thinking>"}))
        assert (whole.reasoning, whole.text) == ("hmm", "Hello <thinking>")


def test_text_that_begins_like_a_tag_is_content() -> None:
    assert read(of({"content": " <tho"}))[1].text == " <tho"
    assert read(of({"content": "<think>"}, {"content": "hmm</think>a"}))[1].text == "<think>hmm</think>a"
    assert read(of({"content": "<thought>hmm"}))[1].reasoning == "hmm"


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({}, {}),
        ({"prompt_tokens": None, "completion_tokens": None}, {}),
        ({"prompt_tokens": "5", "completion_tokens": 2.5}, {"prompt_tokens": 5, "completion_tokens": 2}),
        ({"input_tokens": 5, "output_tokens": 2}, {"prompt_tokens": 5, "completion_tokens": 2}),
        ({"prompt_tokens": 5, "prompt_tokens_details": []}, {"prompt_tokens": 5}),
        ({"prompt_tokens": -1, "completion_tokens": "many"}, {}),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}},
            {"prompt_tokens": 5, "cached_tokens": 4},
        ),
    ],
)
def test_only_what_can_be_counted_is(usage: Json, counts: dict[str, int]) -> None:
    assert read(of({"content": "a"}, end="") + events({"choices": [], "usage": usage}))[1].usage == counts


def test_a_character_that_was_cut_in_two_is_put_together() -> None:
    halves = of({"content": "a\ud83d", "reasoning": "\ud83d"}, {"content": "\ude00 b", "reasoning": "\ude00"})
    _, whole = read(halves)
    assert (whole.text, whole.reasoning) == ("a\U0001f600 b", "\U0001f600")
    with pytest.raises(EndpointError, match=r"^broken \?$"):
        read(b'{"error": "broken \\ud83d"}')
    assert read(of({"content": "a\ud83d"}, {"content": "b\ude00\ud83d"}))[1].text == "a\ufffdb\ufffd\ufffd"
