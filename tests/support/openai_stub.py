"""A scripted server of OpenAI's chat completions, over real HTTP: the paid boundary of the policies, and nothing else.

What it says is computed from the request, so a test can read what was asked and answer to it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.loopback import QuietHandler, loopback_server


@dataclass(frozen=True)
class Say:
    """One reply. ``cut_after`` breaks the connection after that number of pieces, by a reset where it ``resets``;
    ``status`` refuses instead, with ``body``.

    ``chunks`` are sent in place of the text; ``whole`` is sent as one JSON object, without a stream, of which
    ``cut_after`` leaves that number of bytes.
    """

    text: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, str]] = ()
    status: int = 200
    cut_after: int | None = None
    resets: bool = False
    finish: str = "stop"
    delay_s: float = 0.0
    body: str = json.dumps({"error": {"message": "the stub refuses", "type": "stub", "code": "no"}})
    chunks: Sequence[dict[str, Any]] = ()
    whole: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Of a refusal."""
    lingers_s: float = 0.0
    """How long the connection stays open behind a stream, unless its reader leaves."""
    content_type: str = ""
    """With one, ``body`` is sent as it is."""


Body = dict[str, Any]
Respond = Callable[[Body, int], Say | str]
"""From a request's body and the number of requests before it to the reply."""


@dataclass
class Stub:
    """``requests`` are the bodies received so far, ``keys`` their bearer keys, ``left`` how many readers went away."""

    base_url: str
    requests: list[Body] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    left: int = 0
    busy: int = 0
    busiest: int = 0


@contextmanager
def openai_stub(respond: Respond, owner: str = "") -> Iterator[Stub]:
    """``owner``: whom the models of the server belong to, as its list of them says."""
    lock = threading.Lock()

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802  called by http.server
            listed = {"object": "list", "data": [{"id": "stub", "object": "model", "owned_by": owner}]}
            self.send(json.dumps(listed).encode(), "application/json", 200 if owner else 404)

        def do_POST(self) -> None:  # noqa: N802  called by http.server
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(stub.requests)
                stub.requests.append(body)
                stub.keys.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
                stub.busy += 1
                stub.busiest = max(stub.busiest, stub.busy)
            try:
                reply = respond(body, number)
                self._reply(Say(reply) if isinstance(reply, str) else reply)
            except OSError:
                with lock:
                    stub.left += 1
            finally:
                with lock:
                    stub.busy -= 1

        def _reply(self, say: Say) -> None:
            if say.status != 200 or say.content_type:
                self.send(say.body.encode(), say.content_type or "application/json", say.status, say.headers)
                return
            if say.whole is not None:
                self._reply_whole(say)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for number, chunk in enumerate(_chunks(say)):
                if say.cut_after is not None and number >= say.cut_after:
                    self._break_off(say)
                    return
                if say.delay_s:
                    time.sleep(say.delay_s)
                self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")
            self.wfile.flush()
            if say.lingers_s:
                self.connection.settimeout(say.lingers_s)
                self.connection.recv(1)

        def _reply_whole(self, say: Say) -> None:
            data = json.dumps(say.whole).encode()
            if say.cut_after is None:
                self.send(data, "application/json")
                return
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: say.cut_after])
            self._break_off(say)

        def _break_off(self, say: Say) -> None:
            self.wfile.flush()
            self.close_connection = True
            if say.resets:
                # Closed with nothing to wait for, a connection is reset.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with loopback_server(Handler) as address:
        stub = Stub(f"{address}/v1")
        yield stub


def _chunks(say: Say) -> Iterator[Body]:
    def chunk(delta: Body, finish: str | None = None) -> Body:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "stub", "choices": [choice]}

    if say.chunks:
        for delta in say.chunks:
            yield chunk(delta)
        yield chunk({}, say.finish)
        return
    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(say.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(say.text):
        yield chunk({"content": piece})
    for index, (name, arguments) in enumerate(say.calls):
        yield chunk(
            {"tool_calls": [{"index": index, "id": f"t{index}", "type": "function", "function": {"name": name}}]}
        )
        for piece in _pieces(arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, say.finish)
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    yield chunk({}) | {"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": 64}}}


def _pieces(text: str) -> list[str]:
    return [text[start : start + 12] for start in range(0, len(text), 12)]


def texts_of(body: Body) -> list[str]:
    """The words of every message of a request."""
    texts = []
    for message in body["messages"]:
        content = message["content"] or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts.append("".join(part.get("text", "") for part in parts))
    return texts


def images_of(body: Body) -> list[str]:
    """The data URLs of a request, in order."""
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    return [part["image_url"]["url"] for content in contents for part in content if part["type"] == "image_url"]
