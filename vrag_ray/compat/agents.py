"""``VimRAG`` and ``VRAG``: the agents from a Python program, with the arguments and results of the original."""

from __future__ import annotations

from collections.abc import Generator, Iterator, MutableMapping
from contextlib import closing
from typing import TYPE_CHECKING

from vrag_ray.agent.events import Event
from vrag_ray.compat.http_agent import Endpoints, HttpAgent, agent_config
from vrag_ray.compat.vimrag_events import VimragEvents
from vrag_ray.compat.vrag_steps import VragSteps
from vrag_ray.config import AgentConfig, AgentName
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.types import FamilyName, VragError

if TYPE_CHECKING:
    from vrag_ray.compat.vrag_steps import Step

DEADLINE_S = 600.0
OURS = AgentConfig()
"""Defaults of what the original shares out more generously than one context holds."""
REPLY_TOKENS = 4096
"""Room for thoughts, as in the original."""
LEAST_PIXELS = max(family.patch for family in FAMILIES.values()) ** 2
"""Of a picture: one visual token."""


class VimRAG(HttpAgent):
    """The memory-graph agent."""

    agent = AgentName.VIMRAG

    def __init__(
        self,
        base_url: str,
        search_url: str,
        model_name: str,
        api_key: str | None = "EMPTY",
        max_pixels_image: int = OURS.picture_pixels,
        max_pixels_video: int = OURS.frame_pixels,
        memory_buffer_pixels: int = OURS.memory_pixels,
        search_top_k: int = 3,
        max_mem_steps: int = 20,
        enable_thinking: bool | None = True,
        *,
        search_api_key: str | None = None,
        family: FamilyName | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        """``base_url`` (a model) ends in ``/v1``; ``search_url`` is a gateway, with or without ``/search``.

        ``max_pixels_image`` and ``max_pixels_video`` bound a picture and a frame of a video among the results,
        ``memory_buffer_pixels`` is shared by all remembered pictures. ``max_mem_steps`` counts the model's replies;
        the last one has to be the answer. ``enable_thinking`` sets the model's thinking phase, and the sampling that
        goes with it (temperature 0.6 and top-p 0.95, or greedy); None leaves both to the model. ``search_api_key`` is
        a key of the gateway. ``family`` says how the model writes boxes. Raises VragError for a value that cannot be.
        """
        super().__init__(
            Endpoints(base_url, model_name, api_key, search_url, search_api_key),
            thinking=enable_thinking,
            temperature=None if enable_thinking is None else 0.6 if enable_thinking else 0.0,
            top_p=0.95 if enable_thinking else None,
            deadline_s=deadline_s,
        )
        for name, pixels in {"max_pixels_image": max_pixels_image, "max_pixels_video": max_pixels_video}.items():
            if pixels < LEAST_PIXELS:
                raise VragError(f"{name}={pixels}: a picture has at least {LEAST_PIXELS} pixels")
        self._config = agent_config(
            {
                "picture_pixels": max_pixels_image,
                "frame_pixels": max_pixels_video,
                "memory_pixels": memory_buffer_pixels,
                "search_top_k": search_top_k,
                "max_steps": max_mem_steps,
                "max_reply_tokens": REPLY_TOKENS,
                "deadline_s": deadline_s,
                "family": family,
            },
            {
                "picture_pixels": "max_pixels_image",
                "frame_pixels": "max_pixels_video",
                "memory_pixels": "memory_buffer_pixels",
                "max_steps": "max_mem_steps",
            },
        )
        self.protocol()

    def config(self) -> AgentConfig:
        return self._config

    def run(self, sample: MutableMapping[str, object]) -> Iterator[dict[str, object]]:
        """Events of the run on ``sample["query"]`` as dicts: ``event``, the original's fields, and ours.

        ``think`` and ``content`` (``content``), ``search`` (``query``, ``node_id``), ``search_done`` (``results``:
        ``score``, ``indice``, ``data``), ``memorize`` (``summary``), ``answer`` (``content``, ``sample``), ``error``
        and ``max_steps`` (``content``). Ours besides: ``crop``, ``budget``, ``correction`` and the other names of
        ``vrag_ray.agent.events``. A run that ends without an answer has no ``answer`` event.

        At its end the run fills ``sample`` in: ``trajectory`` (the chats, as sent, each with its last reply),
        ``search_results``, ``graph`` (a list of nodes), ``generate`` and ``generate_times`` (replies acted upon before
        the answer; both only where there is one); ours: ``memory_graph``, ``citations``, ``sentences``, ``status``,
        ``usage``, ``steps``, ``notices``.
        """
        question = sample.get("query")
        if not isinstance(question, str):
            raise VragError("the sample has no query: pass {'query': question}")
        with closing(self.happenings(question)) as happenings:
            yield from VimragEvents(sample, self.gateway).read(happenings)


class VRAG(HttpAgent):
    """The agent of tags; made for the released Qwen2.5-VL-7B-VRAG.

    ``max_steps`` may be changed between runs: searches and crops before the answer is requested.
    """

    agent = AgentName.VRAG

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8002/v1",
        search_url: str = "http://127.0.0.1:8001/search",
        generator: bool = True,
        api_key: str | None = "EMPTY",
        *,
        model_name: str = "Qwen/Qwen2.5-VL-7B-Instruct",
        max_steps: int = 10,
        enable_thinking: bool | None = None,
        search_api_key: str | None = None,
        family: FamilyName | None = None,
        deadline_s: float = DEADLINE_S,
        instruction: str | None = None,
    ) -> None:
        """As ``VimRAG``; the defaults of the addresses and of ``model_name`` are the original's.

        ``generator`` decides what ``run`` gives. ``instruction`` is a file with the first instruction of the model, as
        ``agent.instruction`` has it; without one, the words are this project's.
        """
        super().__init__(
            Endpoints(base_url, model_name, api_key, search_url, search_api_key),
            thinking=enable_thinking,
            temperature=None,
            top_p=None,
            deadline_s=deadline_s,
        )
        self.generator = generator
        self.max_steps = max_steps
        self._family = family
        self._deadline_s = deadline_s
        self._instruction = {AgentName.VRAG: instruction} if instruction is not None else None
        self.protocol()

    def config(self) -> AgentConfig:
        if self.max_steps < 1:
            raise VragError(f"max_steps={self.max_steps}: at least one search comes before the answer")
        actions_and_answer = self.max_steps + 1
        return agent_config(
            {
                "max_steps": actions_and_answer,
                "deadline_s": self._deadline_s,
                "family": self._family,
                "instruction": self._instruction,
            },
            {},
        )

    def run(self, question: str) -> str | Generator[Step, None, Step]:
        """The steps of the run as they happen or, without ``generator``, the answer."""
        return self.steps(question) if self.generator else self.answer(question)

    def answer(self, question: str) -> str:
        """The answer. Raises VragError where the run failed."""
        record = self.record(question)
        if record.error:
            raise VragError(record.error)
        return record.answer

    def steps(self, question: str) -> Generator[Step, None, Step]:
        """``(action, content, raw)``, as the original's generator yields them.

        ``think``: thoughts, and as written. ``search`` and ``bbox``: what the tag holds, and the tag. ``search_image``:
        a PIL image as the model sees it, and the search's tag. ``crop_image``: the crop, and the picture it was cut
        from with the box drawn in. ``answer``: the answer, and its tag (empty where the steps ran out); the last
        triple, and also the value of the generator, where the original has it. Raises VragError where the run failed.
        """
        with closing(self.happenings(question)) as happenings:
            return (yield from VragSteps(self.protocol()).read(happenings))

    def stream(self, question: str) -> Generator[Event]:
        """The typed events of the run, as they happen."""
        return self.events(question)
