"""A real service over the demo corpus whose language model is a script, and the requests to that model."""

from __future__ import annotations

import base64
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from tests.support.openai_stub import Body, Say, Stub, images_of, openai_stub, texts_of
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.client.blocking import Client
from vrag_ray.config import Settings
from vrag_ray.ingest import ingest
from vrag_ray.samples.demo.corpus import make_corpus
from vrag_ray.serving.local import LocalService, start_here

QUESTION = "What did shore power at the ferry quay, ferry charging and blade B show?"
MEMORY_PIXELS, TOP_K = 500_000, 2
GRAPH = GraphProtocol()


def keep(information_id: str, priority: int, summary: str, *stamps: float) -> SummarizeAndMemorize:
    entry = MemorizeEntry(information_id=information_id, is_useful=True, priority_score=priority, key_timestamp=stamps)
    return SummarizeAndMemorize(summarize=summary, memorize=(entry,))


SCRIPT: tuple[Action, ...] = (
    AddSearchNode(id="quay", parent_ids=("root",), query="shore power delivered to the ferry quay by year"),
    Crop(information_id="Picture 1", bbox=(100, 290, 890, 620)),
    keep("Picture 3", 5, "the ferry quay took 3,467 MWh in 2024"),
    AddSearchNode(id="charging", parent_ids=("quay",), query="minutes of ferry charging by weekday"),
    keep("Picture 1", 4, "charging takes longest on Saturday"),
    AddSearchNode(id="blade", parent_ids=("root",), query="crack at the leading edge of blade B"),
    keep("Video 1", 2, "a crack of 23 cm", 34.0),
    AddAnswerNode(
        parent_ids=("charging", "blade"),
        answer="3,467 MWh [1], Saturday [2], a crack of 23 cm [3].",
        citations=("quay#1", "charging#1", "blade#1"),
    ),
)


class Actor:
    """Plays the script to every run: which step it is, is read from the request. Some questions are special."""

    def __init__(self) -> None:
        self.hold = threading.Event()

    def __call__(self, body: Body, number: int) -> Say | str:
        text = "\n".join(texts_of(body))
        if "wait for me" in text:
            return Say("thinking " * 4000, delay_s=0.005)
        if "<search>" in text:
            return self._tags(body)
        if "break down" in text and not self.hold.is_set():
            self.hold.set()
            return Say(GRAPH.render(SCRIPT[0]), cut_after=4)
        return Say(GRAPH.render(SCRIPT[self._step(text)]), reasoning="let me see")

    @staticmethod
    def _step(text: str) -> int:
        memorised = sum(f'"{name}#1"' in text for name in ("quay", "charging", "blade"))
        if "<tool_response>" in text:
            return (2 if "part of Picture 1" in text else 1, 4, 6)[memorised]
        return (0, 3, 5, 7)[memorised]

    @staticmethod
    def _tags(body: Body) -> str:
        replies = sum(message["role"] == "assistant" for message in body["messages"])
        if "search for ever" in texts_of(body)[0]:
            return f"<think>more</think><search>harbour {replies}</search>"
        return (
            "<think>a</think><search>shore power delivered to the ferry quay by year</search>",
            "<think>b</think><bbox>[40, 150, 500, 420]</bbox>",
            "<think>c</think><answer>3,467 MWh</answer>",
        )[replies]


@dataclass
class StubbedService:
    """``service`` with a ``client`` of it, and the ``stub`` that its language model is."""

    service: LocalService
    stub: Stub
    client: Client


def demo_collection(folder: Path) -> Path:
    """The demo corpus, made and ingested below ``folder``."""
    make_corpus(folder / "corpus")
    ingest([folder / "corpus"], Settings(collection=str(folder / "collection")), meta={"corpus": "demo"})
    return folder / "collection"


@contextmanager
def serving_from_a_script(collection: Path) -> Iterator[StubbedService]:
    """Serves in this process until the block ends."""
    with openai_stub(Actor()) as stub:
        values = {
            "collection": str(collection),
            "openai": {"base_url": stub.base_url, "model": "stub"},
            "agent": {"memory_top_k": TOP_K, "memory_pixels": MEMORY_PIXELS, "search_top_k": 2},
            "serving": {"max_concurrent_runs": 64},
        }
        service = start_here(Settings.model_validate(values), 0)
        try:
            with Client(service.base_url) as client:
                yield StubbedService(service, stub, client)
        finally:
            service.stop()


def sizes(body: Body) -> list[tuple[int, int]]:
    """Width and height of every picture of a request, in order."""
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size for url in images_of(body)]
