"""What tests of the OpenAI-compatible routes ask, and how they read what comes back."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import AsyncIterator

import httpx
from PIL import Image

from tests.support.stand_in import DOC_ID
from vrag_ray.agent.citations import Citation, CitedElement
from vrag_ray.agent.events import AnswerEvent, RunStatus
from vrag_ray.agent.support import CheckedSentence, Support
from vrag_ray.types import PassageKind
from vrag_ray.types.elements import ElementKind

CHAT = "/v1/chat/completions"
PAGE = Citation(
    number=1,
    doc_id=DOC_ID,
    title="report",
    uri="report.pdf",
    kind=PassageKind.PAGE,
    page=2,
    bbox=(0.1, 0.2, 0.5, 0.25),
    element=CitedElement(number=7, last=7, kind=ElementKind.TABLE, bbox=(0.1, 0.2, 0.9, 0.6)),
    value_bbox=(0.4, 0.2, 0.5, 0.25),
    quote="cost 4.7 million",
    score=0.5,
    node_id="a",
)
CLIP = Citation(
    number=2, doc_id=DOC_ID, title="film", uri="f", kind=PassageKind.CLIP, t_start=60.0, t_end=90.0, node_id="b"
)
CITED = AnswerEvent(answer="It cost 4.7 [1], then more [1, 2].", abstained=False, status=RunStatus.ANSWERED,
                    citations=(PAGE, CLIP), notices=("one shard is down",),
                    sentences=(CheckedSentence(start=0, end=34, support=Support.UNSUPPORTED, citations=(1, 2),
                                               missing=("4.7",)),))  # fmt: skip
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def ask(model: str = "extractive", content: object = "q", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": content}], **more}


def json_schema(schema: dict[str, object]) -> dict[str, object]:
    """As ``response_format``."""
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": True}}


async def data_lines(response: httpx.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")


async def chunks_of(client: httpx.AsyncClient, body: dict[str, object]) -> list[dict]:
    """The chunks of a stream that ends as it should."""
    async with client.stream("POST", CHAT, json=body | {"stream": True}) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        *chunks, end = [data async for data in data_lines(response)]
    assert end == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def joined(chunks: list[dict], name: str) -> str:
    return "".join(choice["delta"].get(name) or "" for chunk in chunks for choice in chunk["choices"])


def refused(reply: httpx.Response) -> tuple[int, str, str]:
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return reply.status_code, error["param"], error["code"]


def data_url(size: tuple[int, int] = (40, 20), form: str = "JPEG") -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(buffer, form)
    return f"data:image/{form.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def image_part(url: str) -> list[dict[str, object]]:
    return [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": url}}]
