"""The agents as OpenAI-compatible models, over stand-ins: what maps to what, and what a hang-up ends."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from pathlib import Path

import httpx
import pytest
from PIL import Image

from tests.support.http_gateway import http
from tests.support.openai_calls import (
    CHAT,
    CITED,
    PAGE,
    TOOL,
    ask,
    chunks_of,
    data_lines,
    data_url,
    image_part,
    joined,
    refused,
)
from tests.support.stand_in import DOC_ID, StandIn
from vrag_ray.agent.events import ErrorEvent, RunStatus, SearchEvent, UsageEvent
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import ServingConfig
from vrag_ray.serving.openai.question import OF_A_PICTURE
from vrag_ray.types import PassageKind

pytestmark = pytest.mark.anyio
NO_TIMES = {"t_start": None, "t_end": None}


async def test_an_answer_has_marks_with_their_places_and_evidence_with_its_box(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    backend.ending = (UsageEvent(usage={"prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 4}), CITED)
    reply = await client.post(CHAT, json=ask("vimrag"))
    body = reply.json()
    [choice] = body["choices"]
    message = choice["message"]
    assert (body["object"], body["model"], choice["finish_reason"]) == ("chat.completion", "vimrag", "stop")
    assert message["content"] == CITED.answer
    assert "thought 0" in message["reasoning_content"]
    assert message["notices"] == ["one shard is down"]
    marks = [annotation["url_citation"] for annotation in message["annotations"]]
    shown = [message["content"][mark["start_index"] : mark["end_index"]] for mark in marks]
    assert shown == ["[1]", "[1, 2]", "[1, 2]"]
    assert marks[0]["url"] == f"{client.base_url}/v1/documents/{DOC_ID}/pages/2.png?bbox=0.1,0.2,0.5,0.25"
    assert marks[2]["url"].endswith("/frames/60.000.png")
    assert (await client.get(marks[0]["url"])).content == b"\x89PNG"
    page, clip = message["evidence"]
    assert (page["document"], page["page"], page["box"]) == (DOC_ID, 2, [0.1, 0.2, 0.5, 0.25])
    assert page["element"] == {"number": 7, "last": 7, "kind": "table", "bbox": [0.1, 0.2, 0.9, 0.6]} | NO_TIMES
    assert page["value_box"] == [0.4, 0.2, 0.5, 0.25] and "element" not in clip
    [first] = message["sentences"]
    assert (first["support"], first["citations"], first["missing"]) == ("unsupported", [1, 2], ["4.7"])
    assert message["content"][first["start"] : first["end"]] == CITED.answer
    assert (page["score"], page["node"], page["quote"]) == (0.5, "a", "cost 4.7 million")
    assert (clip["t_start"], clip["t_end"]) == (60.0, 90.0)
    assert body["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 4},
    }


async def test_the_run_behind_an_answer_can_be_fetched(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    reply = await client.post(CHAT, json=ask())
    run_id = reply.headers["x-run-id"]
    assert reply.json()["id"] == f"chatcmpl-{run_id}"
    assert (await client.get(f"/v1/runs/{run_id}")).json()["answer"] == "42"


async def test_a_citation_without_a_mark_is_annotated_at_the_end(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED.model_copy(update={"answer": "Much [9].", "citations": (PAGE,)}),)
    message = (await client.post(CHAT, json=ask())).json()["choices"][0]["message"]
    [mark] = [annotation["url_citation"] for annotation in message["annotations"]]
    assert (mark["start_index"], mark["end_index"]) == (9, 9)


async def test_a_stream_tells_progress_as_reasoning_and_the_answer_once_it_is_certain(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.ending = (SearchEvent(node_id="a", parent_ids=("root",), query="crane"), CITED)
    async with client.stream("POST", CHAT, json=ask("vrag", stream=True)) as response:
        data = data_lines(response)
        first = json.loads(await anext(data))
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        thought = json.loads(await anext(data))
        assert thought["choices"][0]["delta"] == {"reasoning_content": "thought 0\u2028next"}
        assert response.headers["x-run-id"] == first["id"].removeprefix("chatcmpl-")
        backend.go.set()
        *rest, end = [chunk async for chunk in data]
    assert end == "[DONE]"
    chunks = [first, thought, *map(json.loads, rest)]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert "Search: crane\n" in joined(chunks, "reasoning_content")
    *_, answer, last = chunks
    assert answer["choices"][0]["delta"]["content"] == joined(chunks, "content") == CITED.answer
    assert len(answer["choices"][0]["delta"]["annotations"]) == 3
    assert len(answer["choices"][0]["delta"]["evidence"]) == 2
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]


async def test_usage_comes_last_and_only_on_request(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    plain = await chunks_of(client, ask())
    assert not any("usage" in chunk for chunk in plain)
    with_usage = await chunks_of(client, ask(stream_options={"include_usage": True}))
    assert with_usage[-1]["choices"] == []
    assert with_usage[-1]["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


async def test_an_answer_at_the_end_of_the_budget_says_length(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED.model_copy(update={"status": RunStatus.MAX_STEPS}),)
    assert (await client.post(CHAT, json=ask())).json()["choices"][0]["finish_reason"] == "length"


async def test_a_run_that_fails_is_one_error_that_the_sdk_does_not_repeat(client: httpx.AsyncClient, backend: StandIn):
    reply = await client.post(CHAT, json=ask(content="crash"))
    assert refused(reply) == (502, None, "run_failed")
    assert reply.headers["x-should-retry"] == "false"
    assert "secret" not in reply.text
    assert (await client.get(f"/v1/runs/{reply.headers['x-run-id']}")).json()["status"] == "error"


async def test_a_run_that_fails_in_mid_stream_is_an_error_event_and_then_the_end(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    backend.ending = (ErrorEvent(message="the model /srv/x/weights.bin is gone", terminal=True),)
    async with client.stream("POST", CHAT, json=ask(stream=True)) as response:
        *_, last = [json.loads(data) async for data in data_lines(response)]
    assert last["error"]["message"] == "the model weights.bin is gone"
    assert last["error"]["code"] == "run_failed"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reader_who_hangs_up_ends_the_run(client: httpx.AsyncClient, backend: StandIn, stream: bool):
    if stream:
        async with client.stream("POST", CHAT, json=ask(stream=True)) as response:
            await anext(data_lines(response))
    else:
        asking = asyncio.create_task(client.post(CHAT, json=ask()))
        await backend.asked.wait()
        asking.cancel()
    run_id = backend.started[0].run_id
    # The stream of its events ends with the run.
    await client.get(f"/v1/runs/{run_id}/events")
    assert (await client.get(f"/v1/runs/{run_id}")).json()["status"] == "cancelled"


async def test_a_silent_reply_is_kept_alive(tmp_path: Path):
    backend = StandIn(tmp_path / "runs")
    async with http(backend, tmp_path, ServingConfig(heartbeat_s=0.05)) as client:
        async with client.stream("POST", CHAT, json=ask(stream=True)) as response:
            comments = 0
            async for line in response.aiter_lines():
                comments += line.startswith(":")
                if comments == 3:
                    backend.go.set()
        assert comments >= 3


async def test_a_full_server_refuses_a_stream_with_a_status(client: httpx.AsyncClient, backend: StandIn):
    for number in range(4):
        backend.runs.start(RunRequest(question=f"q{number}"))
    for stream in (True, False):
        reply = await client.post(CHAT, json=ask(stream=stream))
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")


async def test_the_question_is_the_last_user_message_and_a_model_receives_the_rest(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    messages = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": "Who runs\nthe harbour?"},
        {"role": "assistant", "content": "The authority [1]."},
        {"role": "user", "content": "Since when?"},
    ]
    for model in ("vimrag", "extractive"):
        await client.post(CHAT, json={"model": model, "messages": messages})
    whole, alone = (request.question for request in backend.started)
    assert whole.splitlines() == [
        "Since when?",
        "",
        "Earlier in this conversation:",
        "system: Answer in French.",
        "user: Who runs the harbour?",
        "assistant: The authority [1].",
    ]
    assert alone == "Since when?"


async def test_the_agent_without_a_model_reads_a_question_after_those_before_it_and_says_so(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    messages = [
        {"role": "user", "content": "Who founded Harwick Marine?"},
        {"role": "assistant", "content": "Olga Brandt [1]."},
        {"role": "user", "content": "When was it sold?"},
    ]
    reply = await client.post(CHAT, json={"model": "extractive", "messages": messages})
    read = "messages: the question was read as “When was Harwick Marine sold?”"
    assert read in reply.json()["choices"][0]["message"]["notices"]
    await client.post(
        CHAT, json={"model": "extractive", "messages": [*messages[:2], messages[2] | {"content": "“It”"}]}
    )
    assert [request.question for request in backend.started] == ["When was Harwick Marine sold?", "“It”"]


async def test_a_long_conversation_keeps_its_rules_and_its_newest_turns(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    turns = [{"role": "user", "content": f"turn {number} " + "word " * 400} for number in range(30)]
    messages = [{"role": "system", "content": "Be brief."}, *turns, {"role": "user", "content": "And now?"}]
    await client.post(CHAT, json={"model": "vimrag", "messages": messages})
    question = backend.started[0].question
    assert len(question) <= 4096
    assert question.startswith("And now?")
    assert "system: Be brief." in question
    numbers = [number for number in range(30) if f"turn {number} " in question]
    assert numbers == list(range(30 - len(numbers), 30))
    assert len(numbers) >= 4


async def test_extension_fields_and_attached_documents_bound_the_run(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    content = [
        {"type": "file", "file": {"file_id": f"file-{DOC_ID}"}},
        {"type": "image_url", "image_url": {"url": f"{DOC_ID[:12]}#page=2"}},
        {"type": "text", "text": "q"},
    ]
    extra = {"max_steps": 5, "top_k": 2, "thinking": True, "filter": {"kinds": ["page"]}, "verbosity": "low"}
    assert (await client.post(CHAT, json=ask("vrag", content, **extra))).status_code == 200
    [run] = backend.started
    assert (run.max_steps, run.top_k, run.thinking, run.agent) == (5, 2, True, "vrag")
    assert run.filter is not None
    assert (run.filter.doc_ids, run.filter.kinds) == ([DOC_ID, DOC_ID[:12]], [PassageKind.PAGE])


async def test_agents_leave_functions_out_and_say_so(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    message = (await client.post(CHAT, json=ask("vimrag", tools=[TOOL]))).json()["choices"][0]["message"]
    assert message["content"] == "42"
    assert message["notices"] == ["tools: agents use tools of their own; those of the request were left out"]
    quiet = (await client.post(CHAT, json=ask("vimrag", tools=[TOOL], tool_choice="none"))).json()
    assert "notices" not in quiet["choices"][0]["message"]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"tools": [{"type": "custom", "custom": {"name": "a b"}}]}, "tools"),
        ({"tools": [{"type": "web_search_preview"}, TOOL]}, "tools"),
        ({"tools": [{"name": "weather"}, {"function": TOOL["function"]}]}, "tools"),
        ({"functions": [TOOL["function"]], "function_call": "auto"}, "functions"),
    ],
)
async def test_agents_leave_tools_of_any_kind_out_and_say_so(
    client: httpx.AsyncClient, backend: StandIn, sent: dict[str, object], field: str
):
    backend.go.set()
    message = (await client.post(CHAT, json=ask("extractive", **sent))).json()["choices"][0]["message"]
    assert message["notices"] == [f"{field}: agents use tools of their own; those of the request were left out"]


async def test_a_long_question_is_cut_at_its_beginning_and_says_so(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    message = (await client.post(CHAT, json=ask(content="lorem ipsum " * 500 + "Who?"))).json()["choices"][0]["message"]
    assert message["notices"] == ["messages: of a question of 6,004 characters the last 4,096 were read"]
    question = backend.started[0].question
    assert 4_080 < len(question) <= 4_096
    assert question.startswith(("… lorem", "… ipsum")) and question.endswith("ipsum Who?")


async def test_a_picture_without_words_and_one_of_no_type_are_questions(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    for kind in ("", "application/octet-stream"):
        url = f"data:{kind};base64,{data_url().partition(',')[2]}"
        assert (await client.post(CHAT, json=ask("vimrag", image_part(url)[1:]))).status_code == 200
    assert {run.question for run in backend.started} == {OF_A_PICTURE}
    assert None not in backend.pictures


async def test_of_several_pictures_the_last_is_looked_at(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    content = [*image_part(data_url((8, 8))), *image_part(data_url((40, 20)))[1:]]
    message = (await client.post(CHAT, json=ask("vimrag", content))).json()["choices"][0]["message"]
    assert message["notices"] == ["messages: of 2 pictures in the question the last was looked at"]
    [picture] = backend.pictures
    assert picture is not None
    assert Image.open(io.BytesIO(picture.png)).size == (40, 20)


@pytest.mark.parametrize("path", ["pages/2.png?bbox=0.1,0.2,0.5,0.25", "frames/60.000.png", "original"])
async def test_the_address_of_a_citation_is_a_picture_of_the_collection(
    client: httpx.AsyncClient, backend: StandIn, path: str
):
    backend.go.set()
    url = f"http://harbour.example:8000/v1/documents/{DOC_ID}/{path}"
    assert (await client.post(CHAT, json=ask("vimrag", image_part(url)))).status_code == 200
    [run] = backend.started
    assert run.filter is not None
    assert run.filter.doc_ids == [DOC_ID]


async def test_a_picture_in_the_question_is_decoded_and_becomes_the_runs(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    url = data_url()
    assert (await client.post(CHAT, json=ask("vimrag", image_part(url)))).status_code == 200
    [run], [picture] = backend.started, backend.pictures
    assert (run.question, run.picture) == ("what is this?", None), "what was sent travels no further"
    assert picture is not None
    assert Image.open(io.BytesIO(picture.png), formats=("PNG",)).size == (40, 20)
    sent = base64.b64decode(url.partition(",")[2])
    assert (picture.sha256, picture.size) == (hashlib.sha256(sent).hexdigest(), len(sent))


async def test_pictures_of_earlier_messages_are_named_and_not_looked_at(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    messages = [{"role": "user", "content": image_part(data_url())}, {"role": "user", "content": "Who made it?"}]
    await client.post(CHAT, json={"model": "vimrag", "messages": messages})
    assert backend.pictures == [None]
    assert (
        backend.started[0].question.splitlines()[-1] == "user: (with a picture that is not given again) what is this?"
    )


@pytest.mark.parametrize(
    ("url", "param", "says"),
    [
        ("https://example.org/a.png", "messages.0.content.1.image_url.url", "URLs are not fetched"),
        ("http://169.254.169.254/latest/meta-data", "messages.0.content.1.image_url.url", "URLs are not fetched"),
        ("data:image/png;base64,AAAA", "messages", "picture"),
        ("data:image/png;base64,A", "messages.0.content.1.image_url.url", "not base64"),
    ],
)
async def test_other_pictures_in_a_question_are_refused_in_words(
    client: httpx.AsyncClient, backend: StandIn, url: str, param: str, says: str
):
    reply = await client.post(CHAT, json=ask("vimrag", image_part(url)))
    assert refused(reply)[:2] == (422, param)
    assert says in reply.json()["error"]["message"]
    assert not backend.started


@pytest.mark.parametrize(
    "content",
    [
        "Who runs the harbour?\n<environment_details>\n# VSCode Open Tabs\nharbour.py\n</environment_details>",
        [
            {"type": "text", "text": "<task>\nWho runs the harbour?\n</task>"},
            {"type": "text", "text": "<environment_details>\n# Current Time\n1/1/2026\n</environment_details>"},
        ],
        "Hello! Who runs the harbour? Best regards, Anna",
    ],
)
async def test_what_editors_and_courtesy_add_to_a_question_is_not_searched(
    client: httpx.AsyncClient, backend: StandIn, content: object
):
    backend.go.set()
    body = {"model": "extractive", "messages": [{"role": "user", "content": content}]}
    reply = await client.post(CHAT, json=body)
    assert [request.question for request in backend.started] == ["Who runs the harbour?"]
    assert not reply.json()["choices"][0]["message"].get("notices")
