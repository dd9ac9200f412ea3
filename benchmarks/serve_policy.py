"""What serving costs: tokens a second through gateway, agent and policy, against the bare vLLM engine.

Usage: python benchmarks/serve_policy.py [--layers 12] [--heads 16] [--tokens 128]

A model of random weights on the CPU answers the same prompts twice in one run: over HTTP, streamed, through the whole
service, and by vLLM's AsyncLLM alone in this process. Speed, not quality. Goal: 0.90 of the bare engine at 32 at once.
Then a VimRAG run over the same service: how much of what its prompts share with earlier ones came from the prefix
cache. Goal: 0.8.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import Delta, Message, Role
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.config import AgentConfig, CorpusConfig, Settings, VllmConfig
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.index.storage.collection import Collection
from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest, Sampling
from vrag_ray.types import Completion, FamilyName
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tools")]
Units = list[tuple[int, int]]
FAMILY = FAMILIES[FamilyName.QWEN2_5_VL]
SIZES = AgentConfig(picture_pixels=256 * 28 * 28, search_top_k=2)
AT_ONCE = (1, 8, 32)
GOAL_SPEED, GOAL_CACHE = 0.90, 0.8
WORDS = [
    "harbour",
    "crane",
    "ferry",
    "quay",
    "battery",
    "turbine",
    "blade",
    "tide",
    "cable",
    "berth",
    "pilot",
    "launch",
]


def prompts(count: int) -> list[str]:
    """Distinct from the first word on, so that no prefix cache helps either side."""
    return [f"{number} " + " ".join(WORDS[(number + i) % len(WORDS)] for i in range(12)) for number in range(count)]


async def at_once(ask: Callable[[str], Awaitable[int]], questions: Sequence[str], limit: int) -> float:
    """Tokens a second with ``limit`` questions under way at any time."""
    gate = asyncio.Semaphore(limit)

    async def tokens_of(question: str) -> int:
        async with gate:
            return await ask(question)

    begun = time.perf_counter()
    tokens = await asyncio.gather(*map(tokens_of, questions))
    return sum(tokens) / (time.perf_counter() - begun)


def bare_asker(config: VllmConfig, tokens: int) -> tuple[Callable[[str], Awaitable[int]], Callable[[], None]]:
    """vLLM's AsyncLLM in this process, and how to end it."""
    from vllm import SamplingParams, TokensPrompt
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    from vrag_ray.policies.llm.vllm_prompt import ChatFormat
    from vrag_ray.policies.llm.vllm_setup import engine_arguments, prepare_process

    prepare_process(config)
    engine = AsyncLLM.from_engine_args(engine_arguments(config))
    form = ChatFormat(config.model)
    numbers = iter(range(10**9))

    async def ask(question: str) -> int:
        ids = form.prompt(ChatRequest((Message.of(Role.USER, question),))).ids
        params = SamplingParams(max_tokens=tokens, temperature=0.0, logprobs=0, output_kind=RequestOutputKind.DELTA)
        generated = 0
        async for output in engine.generate(TokensPrompt(prompt_token_ids=list(ids)), params, f"b{next(numbers)}"):
            generated += len(output.outputs[0].token_ids)
        return generated

    return ask, engine.shutdown


def served_asker(base_url: str, tokens: int) -> Callable[[str], Awaitable[int]]:
    """A client of ``/v1/chat/completions`` that streams."""
    import httpx

    http = httpx.AsyncClient(base_url=base_url, timeout=600, limits=httpx.Limits(max_connections=64))

    async def ask(question: str) -> int:
        body = {
            "model": "policy",
            "messages": [{"role": "user", "content": question}],
            "max_tokens": tokens,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        usage = ""
        async with http.stream("POST", "/v1/chat/completions", json=body) as reply:
            reply.raise_for_status()
            async for line in reply.aiter_lines():
                usage = line if '"completion_tokens"' in line else usage
        return int(json.loads(usage.removeprefix("data: "))["usage"]["completion_tokens"])

    return ask


class Scripted:
    """Has the model read every prompt of a run and says the next line of a script in its place."""

    def __init__(self, model: ChatModel, form: ChatFormat, lines: Sequence[str]) -> None:
        self.model, self.form, self.lines = model, form, lines
        self.seen: list[Units] = []
        self.shareable = self.cached = self.read = 0

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        units = token_units(self.form, request)
        common = max((shared(units, earlier) for earlier in self.seen), default=0)
        self.seen.append(units)
        one_token = replace(request, sampling=Sampling(max_tokens=1, temperature=0.0))
        async for piece in self.model.chat(one_token):
            if isinstance(piece, Completion):
                self.shareable += common
                self.cached += piece.usage.get("cached_tokens", 0)
                self.read += piece.usage["prompt_tokens"]
        yield Completion(self.lines[len(self.seen) - 1])


def token_units(form: ChatFormat, request: ChatRequest) -> Units:
    """The prompt as the model reads it: token ids, and pictures by their content with their visual tokens."""
    prompt = form.prompt(request)
    images = iter(prompt.pictures)
    units: Units = []
    for token in prompt.ids:
        if token == form.picture_tokens[0]:
            image = next(images)
            units.append((hash(image.tobytes()), FAMILY.tokens(image.width * image.height)))
        else:
            units.append((token, 1))
    return units


def shared(left: Units, right: Units) -> int:
    """Tokens of the longest common beginning."""
    count = 0
    for mine, theirs in zip(left, right, strict=False):
        if mine != theirs:
            break
        count += mine[1]
    return count


async def cache_rate(model: ChatModel, folder: str) -> tuple[int, int, int]:
    """Tokens cached, shareable and read in all turns of one scripted VimRAG run."""
    from tests.support.agent_pages import library
    from tests.support.scripted_agent import ticking
    from vrag_ray.agent.driver import Run
    from vrag_ray.policies.llm.vllm_prompt import ChatFormat
    from vrag_ray.policies.registry import agent_spec

    keep = MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4)
    actions: tuple[Action, ...] = (
        AddSearchNode(id="a", parent_ids=("root",), query="units sold by region"),
        Crop(information_id="Picture 1", bbox=(50, 200, 700, 800)),
        Crop(information_id="Picture 1", bbox=(0, 0, 500, 500)),
        SummarizeAndMemorize(summarize="North sold 15", memorize=(keep,)),
        AddSearchNode(id="b", parent_ids=("a",), query="visitors of the museum"),
        Crop(information_id="Picture 1", bbox=(50, 200, 700, 800)),
        SummarizeAndMemorize(summarize="675 on Wednesday", memorize=(keep,)),
        AddAnswerNode(parent_ids=("b",), answer="15 and 675"),
    )
    render = GraphProtocol().render
    config = with_changes(SIZES, {"family": FAMILY.name, "deadline_s": 3600.0})
    scripted = Scripted(model, ChatFormat(folder), list(map(render, actions)))
    spec = agent_spec("vimrag", config, CorpusConfig(), scripted, session="cache")
    run = Run(
        "cache",
        "What was sold?",
        policy=spec.policy,
        protocol=spec.protocol,
        source=library().source,
        config=config,
        clock=ticking(),
    )
    record = await run.finish()
    assert record.corrections == 0, [event for event in record.events if event.kind == "correction"]
    return scripted.cached, scripted.shareable, scripted.read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=128)
    args = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    from tiny_model import save_tiny_model

    from vrag_ray.serving.local import start_serving

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_tiny_model(folder / "model", layers=args.layers, heads=args.heads)
        config = VllmConfig(
            model=str(folder / "model"),
            dtype="float32",
            max_model_len=16_000,
            max_num_seqs=32,
            max_images=40,
            enforce_eager=True,
            # Ray gives the engine as many threads as the replica reserves CPUs; the bare engine takes all there are.
            num_cpus=os.cpu_count() or 1,
            num_gpus=0,
            engine_args={"block_size": 32},
        )
        settings = Settings(collection=f"{folder}/collection", vllm=config, agent=SIZES)
        Collection.open_or_create(settings.collection)
        service = start_serving(settings, 0, ready_timeout_s=300)
        try:
            cached, shareable, read = asyncio.run(measured(config, service.base_url, args.tokens))
        finally:
            service.stop()
    rate = cached / shareable
    print(f"prefix cache over a run     {read} tokens read, {shareable} shared with earlier turns, {cached} cached")
    print(f"cached of the shareable     {rate:.3f}   goal {GOAL_CACHE}: {'met' if rate >= GOAL_CACHE else 'NOT MET'}")


async def measured(config: VllmConfig, base_url: str, tokens: int) -> tuple[int, int, int]:
    """Prints the speeds; gives what ``cache_rate`` gives."""
    from ray import serve

    from vrag_ray.serving.deployments.policy import ServedModel

    bare, end = bare_asker(config, tokens)
    try:
        await speeds(bare, served_asker(base_url, tokens))
    finally:
        end()
    return await cache_rate(ServedModel(serve.get_deployment_handle("Policy", "vrag")), config.model)


async def speeds(bare: Callable[[str], Awaitable[int]], served: Callable[[str], Awaitable[int]]) -> None:
    """One warm-up each, then both by turns at every level."""
    for ask in (bare, served):
        await at_once(ask, prompts(4), 4)
    for limit in AT_ONCE:
        questions = prompts(max(4, 2 * limit))
        rates = [(await at_once(bare, questions, limit), await at_once(served, questions, limit)) for _ in range(2)]
        alone, through = (max(rate[side] for rate in rates) for side in (0, 1))
        ratio = through / alone
        goal = f"   goal {GOAL_SPEED}: {'met' if ratio >= GOAL_SPEED else 'NOT MET'}" if limit == AT_ONCE[-1] else ""
        print(
            f"{limit:3d} at once   bare {alone:8.1f}   served {through:8.1f} tokens/s   ratio {ratio:.3f}{goal}",
            flush=True,
        )


if __name__ == "__main__":
    main()
