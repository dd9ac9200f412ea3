"""``OpenAiModel`` and ``ChatPolicy`` against a scripted server over real HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import pickle
import time
from contextlib import aclosing
from email.utils import formatdate

import pytest

from tests.support.agent_pages import library
from tests.support.openai_stub import Body, Respond, Say, images_of, openai_stub, texts_of
from tests.support.pictures import grey_png
from tests.support.scripted_agent import run_to_end, ticking
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import Delta, ImagePart, Message, Role
from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import AnswerEvent, ContentEvent, ErrorEvent, Event, RunStatus, ThinkEvent
from vrag_ray.agent.ports import PromptRefusedError
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.support import Support
from vrag_ray.config import AgentConfig, CorpusConfig, OpenAiConfig
from vrag_ray.policies.llm import openai_api
from vrag_ray.policies.llm.chat_model import ChatRequest, ModelBusyError, ModelDownError, ModelLostError, Sampling
from vrag_ray.policies.llm.openai_api import OpenAiModel
from vrag_ray.policies.registry import UnknownAgentError, agent_spec, agents
from vrag_ray.types import Completion, VragError
from vrag_ray.views.words import unsupported_lines

GRAPH = GraphProtocol()
SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region")
KEEP = SummarizeAndMemorize(
    summarize="North sold 15", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4),)
)
ANSWER = AddAnswerNode(parent_ids=("a",), answer="15 [1]", citations=("a#1",))
HELLO = ChatRequest((Message.of(Role.USER, "hello"),))


def config(base_url: str, **more: object) -> OpenAiConfig:
    return OpenAiConfig.model_validate({"base_url": base_url, "model": "stub", "retries": 2, "timeout_s": 10} | more)


def hear(request: ChatRequest, settings: OpenAiConfig) -> tuple[list[Delta], Completion]:
    async def listen() -> list[Delta | Completion]:
        async with aclosing(OpenAiModel(settings)) as model:
            return [piece async for piece in model.chat(request)]

    *deltas, last = asyncio.run(listen())
    assert isinstance(last, Completion)
    return [delta for delta in deltas if isinstance(delta, Delta)], last


def test_deltas_put_together_are_the_completion_with_its_thoughts_and_usage() -> None:
    with openai_stub(lambda _, __: Say("the answer is in the harbour", "let me think about it")) as stub:
        deltas, whole = hear(HELLO, config(stub.base_url))
    assert len(deltas) > 3
    assert "".join(delta.content for delta in deltas) == whole.text == "the answer is in the harbour"
    assert "".join(delta.think for delta in deltas) == whole.reasoning == "let me think about it"
    assert whole.usage == {"prompt_tokens": 100, "completion_tokens": 10, "cached_tokens": 64}


def test_the_request_is_the_chat_and_its_settings() -> None:
    request = ChatRequest(
        (Message.of(Role.SYSTEM, "be brief"), Message.of(Role.USER, "see", ImagePart(grey_png(9)), "this")),
        sampling=Sampling(max_tokens=77, temperature=0.5, seed=3, stop=("END",)),
        thinking=False,
    )
    with openai_stub(lambda _, __: "ok") as stub:
        hear(request, config(stub.base_url, api_key="secret"))
        [body] = stub.requests
        assert stub.keys == ["secret"]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("stub", 77, 0.5)
    assert (body["seed"], body["stop"], body["stream"]) == (3, ["END"], True)
    assert (body["enable_thinking"], body["chat_template_kwargs"]) == (False, {"enable_thinking": False})
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert texts_of(body) == ["be brief", "seethis"]
    [url] = images_of(body)
    assert base64.b64decode(url.partition(",")[2]) == grey_png(9)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARBOUR_KEY", "from outside")
    with openai_stub(lambda _, __: "ok") as stub:
        hear(HELLO, config(stub.base_url, api_key_env="HARBOUR_KEY"))
        assert stub.keys == ["from outside"]


def test_a_key_is_never_shown() -> None:
    assert "hush" not in repr(config("http://x/v1", api_key="hush"))


def test_more_pictures_than_the_model_takes_are_refused_before_anything_is_sent() -> None:
    pictures = [ImagePart(grey_png(number)) for number in range(3)]
    with openai_stub(lambda _, __: "ok") as stub:
        with pytest.raises(PromptRefusedError, match=r"3 pictures and model stub takes 2.*raise openai\.max_images"):
            hear(ChatRequest((Message.of(Role.USER, *pictures),)), config(stub.base_url, max_images=2))
        assert stub.requests == []


def test_a_refusal_for_the_moment_is_tried_again() -> None:
    with openai_stub(lambda _, number: Say(status=503) if number == 0 else "ok") as stub:
        _, whole = hear(HELLO, config(stub.base_url))
        assert (whole.text, len(stub.requests)) == ("ok", 2)


LOADING = Say(
    status=503, body=json.dumps({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
)


def test_a_server_that_loads_its_model_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "LOADING_POLL_S", 0.01)
    with openai_stub(lambda _, number: LOADING if number < 20 else "ok") as stub:
        _, whole = hear(HELLO, config(stub.base_url, retries=1))
        assert (whole.text, len(stub.requests)) == ("ok", 21)
    with openai_stub(lambda _, __: LOADING) as stub, pytest.raises(ModelDownError, match="Loading model"):
        hear(HELLO, config(stub.base_url, timeout_s=0.05))


def test_a_server_that_is_full_says_when_to_come_back() -> None:
    with (
        openai_stub(lambda _, __: Say(status=429, headers={"Retry-After": "7"})) as stub,
        pytest.raises(ModelBusyError, match=r"\(429\).*the stub refuses") as caught,
    ):
        hear(HELLO, config(stub.base_url, retries=0))
    assert pickle.loads(pickle.dumps(caught.value)).retry_after_s == 7


@pytest.mark.parametrize(("after", "seconds"), [("2.5", 3), ("0", 1), ("soon", 1), ("nan", 1)])
def test_the_time_to_come_back_may_be_a_fraction(after: str, seconds: int) -> None:
    with (
        openai_stub(lambda _, __: Say(status=429, headers={"Retry-After": after})) as stub,
        pytest.raises(ModelBusyError) as caught,
    ):
        hear(HELLO, config(stub.base_url, retries=0))
    assert caught.value.retry_after_s == seconds


def test_the_time_to_come_back_may_be_a_date() -> None:
    later = formatdate(time.time() + 3000, usegmt=True)
    with (
        openai_stub(lambda _, __: Say(status=429, headers={"Retry-After": later})) as stub,
        pytest.raises(ModelBusyError) as caught,
    ):
        hear(HELLO, config(stub.base_url, retries=0))
    assert 2900 < caught.value.retry_after_s <= 3000


@pytest.mark.parametrize("status", [301, 302, 303])
def test_an_address_that_has_moved_is_reported_with_the_setting_to_check(status: int) -> None:
    moved = Say(status=status, body="", headers={"Location": "https://elsewhere.example/login"})
    with openai_stub(lambda _, __: moved) as stub:
        with pytest.raises(
            ModelDownError, match=rf"\({status}\) to https://elsewhere\.example/login: check openai\.base_url"
        ):
            hear(HELLO, config(stub.base_url))
        assert len(stub.requests) == 1


def test_an_address_that_has_moved_is_reported_with_its_host() -> None:
    with openai_stub(lambda _, __: Say(status=302, body="", headers={"Location": "/login"})) as stub:
        host = stub.base_url.removesuffix("/v1")
        with pytest.raises(ModelDownError, match=f"to {host}/login: "):
            hear(HELLO, config(stub.base_url))


def test_a_redirect_that_keeps_the_request_is_followed() -> None:
    moved = Say(status=308, body="", headers={"Location": "/v2/chat/completions"})
    with openai_stub(lambda _, number: "ok" if number else moved) as stub:
        assert hear(HELLO, config(stub.base_url))[1].text == "ok"
        assert stub.requests[0] == stub.requests[1]


def test_a_refusal_without_words_says_so() -> None:
    with (
        openai_stub(lambda _, __: Say(status=400, body="")) as stub,
        pytest.raises(VragError, match=r"refuses \(400\): it gives no reason$"),
    ):
        hear(HELLO, config(stub.base_url))


@pytest.mark.parametrize("kind", ["Application/JSON; charset=UTF-8", "text/plain", "text/event-stream"])
def test_a_whole_reply_is_read_whatever_its_header_calls_it(kind: str) -> None:
    with openai_stub(lambda _, __: Say(body=json.dumps(WHOLE), content_type=kind)) as stub:
        assert hear(HELLO, config(stub.base_url))[1].text == "a long answer"


@pytest.mark.parametrize(
    ("body", "kind", "error", "words"),
    [
        ("<h1>Please sign in</h1>", "text/html", ModelDownError, "no chat completion: Please sign in: check openai.b"),
        ('{"error": "quota used up"}', "application/json", ModelDownError, "refuses \\(200\\): quota used up"),
        ('{"error": {"code": 429, "message": "slow"}}', "application/json", ModelBusyError, "refuses \\(429\\): slow"),
        ('data: {"error": "GPU fell over"}\n\n', "text/event-stream", ModelLostError, "broke off: GPU fell over"),
        ("", "application/json", ModelLostError, "ended its stream in mid-reply: the body is empty"),
        (
            'data: {"error": {"message": "This model\'s maximum context length is 8192 tokens."}}\n\n',
            "text/event-stream",
            PromptRefusedError,
            "maximum context length",
        ),
    ],
)
def test_a_success_that_is_none_is_reported_in_the_words_of_the_endpoint(
    body: str, kind: str, error: type[VragError], words: str
) -> None:
    with (
        openai_stub(lambda _, __: Say(body=body, content_type=kind)) as stub,
        pytest.raises(error, match=words),
    ):
        hear(HELLO, config(stub.base_url))


def test_a_reply_that_is_over_waits_for_no_end_of_its_body() -> None:
    """A server may keep the connection open behind ``[DONE]``."""
    with openai_stub(lambda _, __: Say("ok", lingers_s=30)) as stub:
        began = time.monotonic()
        assert hear(HELLO, config(stub.base_url))[1].text == "ok"
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(("status", "tries"), [(401, 1), (400, 1), (503, 3)])
def test_a_permanent_refusal_is_reported_with_the_reason(status: int, tries: int) -> None:
    with openai_stub(lambda _, __: Say(status=status)) as stub:
        with pytest.raises(VragError, match=f"stub refuses \\({status}\\).*the stub refuses"):
            hear(HELLO, config(stub.base_url))
        assert len(stub.requests) == tries


def test_a_missing_server_is_reported_with_the_setting_to_check() -> None:
    with pytest.raises(VragError, match=r"cannot be reached.*openai\.base_url"):
        hear(HELLO, config("http://127.0.0.1:9/v1", retries=0))


WHOLE = {"id": "c", "created": 0, "model": "stub", "choices": [{"index": 0, "message": {"content": "a long answer"}}]}


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("whole", [None, WHOLE])
@pytest.mark.parametrize("cut_after", [1, 3])
def test_a_reply_that_breaks_off_is_lost_not_short(
    cut_after: int, whole: dict[str, object] | None, resets: bool
) -> None:
    reply = Say("a long answer that never ends", cut_after=cut_after, whole=whole, resets=resets)
    with (
        openai_stub(lambda _, __: reply) as stub,
        pytest.raises(ModelLostError),
    ):
        hear(HELLO, config(stub.base_url))


def test_leaving_the_stream_ends_the_generation() -> None:
    async def leave(base_url: str) -> None:
        async with aclosing(OpenAiModel(config(base_url))) as model, aclosing(model.chat(HELLO)) as pieces:
            await anext(pieces)

    with openai_stub(lambda _, __: Say("word " * 2000, delay_s=0.002)) as stub:
        asyncio.run(leave(stub.base_url))
        # The server notices when it writes on; it writes to the end where it does not.
        while stub.busy:
            time.sleep(0.001)
        assert stub.left == 1


def run_agent(
    base_url: str, agent: str = "vimrag", *, native_tools: bool = False, settings: AgentConfig | None = None
) -> tuple[Run, list[Event]]:
    model = OpenAiModel(config(base_url))
    settings = settings or AgentConfig()
    made = agent_spec(agent, settings, CorpusConfig(), model, session="r1", native_tools=native_tools)
    run = Run(
        "r1",
        "What was North in 2022?",
        policy=made.policy,
        protocol=made.protocol,
        source=library().source,
        config=settings,
        clock=ticking(),
        agent=agent,
        judge=made.judge,
    )

    async def collect() -> list[Event]:
        async with aclosing(model):
            return [event async for event in run.events()]

    return run, asyncio.run(collect())


def test_the_model_judges_each_sentence_by_its_sources_with_yes_or_no() -> None:
    """Of the two sentences one has a figure that stands nowhere: no model needs to judge it."""
    text = "North sold 15 units in 2022 [1]. It was 999 before [1]."
    answer = AddAnswerNode(parent_ids=("a",), answer=text, citations=("a#1",))
    lines = [GRAPH.render(action) for action in (SEARCH, KEEP, answer)]
    settings = AgentConfig(entailment=True)
    with openai_stub(script(*lines, Say("<think>It says so.</think>No.")), owner="llamacpp") as stub:
        run, events = run_agent(stub.base_url, settings=settings)
        requests = stub.requests[3:]
    assert len(requests) == 1
    assert "Statement: North sold 15 units in 2022.\n" in requests[0]["messages"][1]["content"]
    assert "| North | 12 | 15 | 18 |" in requests[0]["messages"][1]["content"]
    assert (requests[0]["temperature"], 'reply ::= "yes" | "no"' in requests[0]["grammar"]) == (0.0, True)
    first, second = run.record().sentences
    assert (first.support, first.missing, first.entailed) == (Support.UNSUPPORTED, (), False)
    assert (second.support, second.missing, second.entailed) == (Support.UNSUPPORTED, ("999",), None)
    assert list(unsupported_lines(run.record().answer, run.record().sentences)) == [
        "the model finds that its sources do not say: North sold 15 units in 2022 [1].",
        'not in its source: "999" (It was 999 before [1].)',
    ]
    assert isinstance(events[-1], AnswerEvent) and events[-1].sentences == (first, second)


def script(*lines: Say | str) -> Respond:
    def say(_: Body, number: int) -> Say | str:
        return lines[min(number, len(lines) - 1)]

    return say


def test_vimrag_runs_over_an_endpoint_and_its_words_are_streamed() -> None:
    turns = [Say(GRAPH.render(action), "hm, I think") for action in (SEARCH, KEEP, ANSWER)]
    with openai_stub(script(*turns)) as stub:
        run, events = run_agent(stub.base_url)
        assert [len(images_of(body)) for body in stub.requests] == [0, 1, 1]
    record = run.record()
    assert (record.status, record.answer, record.citations[0].title) == (RunStatus.ANSWERED, "15 [1]", "Annual report")
    contents = {
        step: "".join(event.content for event in events if isinstance(event, ContentEvent) and event.step == step)
        for step in (1, 2, 3)
    }
    assert contents[1] == GRAPH.render(SEARCH)
    thought = [event.content for event in events if isinstance(event, ThinkEvent) and event.step == 2]
    assert "".join(thought) == "hm, I think"
    assert record.usage["cached_tokens"] == 3 * 64


def test_functions_called_natively_do_the_same() -> None:
    def call(action: AddSearchNode | SummarizeAndMemorize | AddAnswerNode) -> Say:
        return Say(calls=((action.name, action.model_dump_json(exclude={"name"})),), finish="tool_calls")

    with openai_stub(script(call(SEARCH), call(KEEP), call(ANSWER))) as stub:
        run, _ = run_agent(stub.base_url, native_tools=True)
        tools = [tool["function"]["name"] for tool in stub.requests[0]["tools"]]
    assert tools == ["add_search_node", "summarize_and_memorize", "crop", "add_answer_node"]
    assert (run.record().status, run.record().corrections) == (RunStatus.ANSWERED, 0)


def test_vrag_runs_over_an_endpoint_with_one_picture_a_turn() -> None:
    turns = ("<think>a</think><search>units sold</search>", "<think>b</think><answer>15</answer>")
    with openai_stub(script(*turns)) as stub:
        run, _ = run_agent(stub.base_url, "vrag")
        assert [len(images_of(body)) for body in stub.requests] == [0, 1]
    assert run.record().answer == "15"


def test_a_reply_that_was_lost_begins_anew_and_says_so() -> None:
    turns = (
        Say(GRAPH.render(SEARCH), cut_after=3),
        *(Say(GRAPH.render(action)) for action in (SEARCH, KEEP, ANSWER)),
    )
    with openai_stub(script(*turns)) as stub:
        run, events = run_agent(stub.base_url)
    errors = [event for event in events if isinstance(event, ErrorEvent)]
    assert ["begins anew" in error.message for error in errors] == [True]
    after = [event for event in events if isinstance(event, ContentEvent) and event.seq > errors[0].seq]
    assert "".join(event.content for event in after if event.step == 1) == GRAPH.render(SEARCH)
    assert (run.record().status, run.record().corrections) == (RunStatus.ANSWERED, 0)


def test_a_model_that_refuses_ends_the_run_with_its_reason() -> None:
    with openai_stub(lambda _, __: Say(status=401)) as stub:
        run, events = run_agent(stub.base_url)
    assert run.record().status is RunStatus.ERROR
    last = events[-1]
    assert isinstance(last, ErrorEvent) and last.terminal and "401" in last.message


def test_agents_that_need_a_model_are_offered_only_with_one() -> None:
    assert agents(has_model=False) == ("extractive",)
    assert agents(has_model=True) == ("extractive", "vimrag", "vrag")
    with pytest.raises(UnknownAgentError, match="needs a language model"):
        agent_spec("vimrag", AgentConfig(), CorpusConfig(), None)
    with pytest.raises(UnknownAgentError, match="no agent"):
        agent_spec("wizard", AgentConfig(), CorpusConfig(), None)


def test_the_extractive_policy_needs_no_model() -> None:
    made = agent_spec("extractive", AgentConfig(), CorpusConfig(), None)
    run, _ = run_to_end(made.policy, library(), "How many units did North sell in 2022?")
    assert run.record().status is RunStatus.ANSWERED


def constraint_of(body: Body) -> str:
    """The field by which a request says what form its reply has to have, "" for none."""
    fields = {"grammar", "structured_outputs", "response_format"} & set(body)
    assert len(fields) <= 1
    return "".join(fields)


def run_with(base_url: str, agent: str = "vimrag", config_of: AgentConfig | None = None, **endpoint: object) -> Run:
    spec = agent_spec(
        agent,
        config_of or AgentConfig(),
        CorpusConfig(),
        OpenAiModel(config(base_url, **endpoint)),
        native_tools=bool(endpoint.get("native_tools")),
    )
    return Run(
        "r1",
        "What was North in 2022?",
        policy=spec.policy,
        protocol=spec.protocol,
        source=library().source,
        config=config_of or AgentConfig(),
        clock=ticking(),
    )


@pytest.mark.parametrize(
    ("owner", "agent", "field"),
    [
        ("llamacpp", "vimrag", "grammar"),
        ("llamacpp", "vrag", "grammar"),
        ("vllm", "vimrag", "structured_outputs"),
        ("", "vimrag", "response_format"),
        ("library", "vimrag", "response_format"),
        ("library", "vrag", ""),
        ("vrag_ray", "vimrag", ""),
    ],
)
def test_a_reply_is_held_to_its_form_in_the_way_of_the_server(owner: str, agent: str, field: str) -> None:
    lines = (
        [*map(GRAPH.render, (SEARCH, KEEP, ANSWER))]
        if agent == "vimrag"
        else ["<search>x</search>", "<answer>1</answer>"]
    )
    with openai_stub(lambda _, number: lines[number], owner) as stub:
        record = asyncio.run(run_with(stub.base_url, agent).finish())
    assert record.status is RunStatus.ANSWERED and record.notices == ()
    assert {constraint_of(body) for body in stub.requests} == {field}


def test_the_form_is_that_of_each_step() -> None:
    lines = [*map(GRAPH.render, (SEARCH, KEEP, ANSWER))]
    with openai_stub(lambda _, number: lines[number]) as stub:
        asyncio.run(run_with(stub.base_url).finish())
    schemas = [body["response_format"]["json_schema"]["schema"] for body in stub.requests]
    assert [schema["properties"]["name"]["enum"][0] for schema in schemas] == [
        "add_search_node",
        "summarize_and_memorize",
        "add_search_node",
    ]


def test_a_server_without_grammars_gets_requests_without_them_and_the_run_has_a_notice() -> None:
    lines = [*map(GRAPH.render, (SEARCH, KEEP, ANSWER))]
    refusal = '{"error": {"message": "\'response_format\' is not supported with this model."}}'

    def respond(body: Body, _: int) -> Say | str:
        if constraint_of(body):
            return Say(status=400, body=refusal)
        return lines.pop(0)

    with openai_stub(respond) as stub:
        record = asyncio.run(run_with(stub.base_url).finish())
    assert record.status is RunStatus.ANSWERED
    assert [constraint_of(body) for body in stub.requests] == ["response_format", "", "", ""]
    assert any("response_format" in notice for notice in record.notices)


@pytest.mark.parametrize(
    ("settings", "endpoint"),
    [
        (AgentConfig(constrained=False), {}),
        (AgentConfig(), {"constraint": "off"}),
        (AgentConfig(), {"native_tools": True}),
    ],
)
def test_replies_are_free_where_the_settings_say_so_and_of_native_calls(
    settings: AgentConfig, endpoint: dict[str, object]
) -> None:
    lines = [*map(GRAPH.render, (SEARCH, KEEP, ANSWER))]
    with openai_stub(lambda _, number: lines[number]) as stub:
        asyncio.run(run_with(stub.base_url, config_of=settings, **endpoint).finish())
    assert {constraint_of(body) for body in stub.requests} == {""}
    assert [body.get("tool_choice") for body in stub.requests] == [
        "required" if "native_tools" in endpoint else None
    ] * 3
    if "native_tools" in endpoint:
        assert "add_search_node" not in texts_of(stub.requests[0])[0].partition("After a search")[0]
