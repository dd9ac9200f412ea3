"""A scripted server of whole (not streamed) chat completions over real HTTP: the paid boundary of the judge."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.loopback import QuietHandler, loopback_server
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.config import OpenAiConfig
from vrag_ray.questions.judge import Judge

Body = dict[str, Any]


@dataclass(frozen=True)
class JudgeReply:
    """One reply. ``hold`` keeps it back until it is set; ``raw`` is sent in place of a chat completion."""

    text: str | None = ""
    status: int = 200
    finish: str = "stop"
    raw: str | None = None
    hold: threading.Event | None = None


@dataclass
class JudgeStub:
    """``requests`` are the bodies received so far; ``busiest`` is how many were open at once."""

    base_url: str
    requests: list[Body] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0


@contextmanager
def judge_stub(respond: Callable[[Body, int], JudgeReply | str]) -> Iterator[JudgeStub]:
    """``respond`` makes the reply from a request's body and the number of requests before it."""
    lock = threading.Lock()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  called by http.server
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(stub.requests)
                stub.requests.append(body)
                stub.busy += 1
                stub.busiest = max(stub.busiest, stub.busy)
            reply = respond(body, number)
            reply = JudgeReply(reply) if isinstance(reply, str) else reply
            if reply.hold is not None:
                reply.hold.wait(HANGS_AFTER_S)
            with lock:
                stub.busy -= 1
            message = {"role": "assistant", "content": reply.text}
            whole = {"object": "chat.completion", "choices": [{"message": message, "finish_reason": reply.finish}]}
            refusal = {"error": {"message": "the stub refuses"}}
            text = reply.raw if reply.raw is not None else json.dumps(whole if reply.status == 200 else refusal)
            self.send(text.encode(), "application/json", reply.status)

    with loopback_server(Handler) as address:
        stub = JudgeStub(f"{address}/v1")
        yield stub


def case_of(body: Body) -> Body:
    """What a request asks to judge: question, references and answer."""
    return dict(json.loads(body["messages"][1]["content"]))


def compares(body: Body, _: int) -> str:
    """A judge that knows right from wrong: the answer is one of the references."""
    case = case_of(body)
    return f"<judge>{case['answer'] in case['references']}</judge>"


def endpoint(base_url: str, **more: object) -> OpenAiConfig:
    return OpenAiConfig.model_validate({"base_url": base_url, "model": "stub", "retries": 1, "timeout_s": 10} | more)


def judge_numbers(base_url: str, cache: str, upto: int) -> list[bool]:
    """Run by tests in processes of their own: whether each even number is 0, 2, 4, …"""

    async def all_of_them() -> list[bool]:
        judge = Judge(endpoint(base_url), cache=cache)
        references = [str(number) for number in range(0, upto, 2)]
        return await asyncio.gather(*(judge.verdict("even?", references, str(number)) for number in range(upto)))

    return asyncio.run(all_of_them())
