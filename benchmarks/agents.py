"""64 agent runs at once against a policy of fixed latency: does anything make them wait for each other?

Usage: python benchmarks/agents.py [--runs 64] [--latency 3.0]

Everything is the real service over HTTP (gateway, agent, retriever, library, Ray Serve); only the language model is a
script in a process of its own that thinks for a fixed time. Each run searches, looks closer, memorises and answers in
four replies over the demo corpus. Goals: all done within 1.25 times the longest run, event loop of the agent late by
at most 50 ms at p99.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.events import Event
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.client.http import AsyncClient
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import Settings

QUERIES = ("shore power by berth", "minutes of ferry charging", "waste heat by source", "crane 2 maintenance")
GOAL_RATIO, GOAL_LAG_S = 1.25, 0.05


def script(query: str) -> list[str]:
    keep = MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4)
    actions: tuple[Action, ...] = (
        AddSearchNode(id="a", parent_ids=("root",), query=query),
        Crop(information_id="Picture 1", bbox=(100, 100, 800, 500)),
        SummarizeAndMemorize(summarize="seen", memorize=(keep,)),
        AddAnswerNode(parent_ids=("a",), answer="seen [1]", citations=("a#1",)),
    )
    return [GraphProtocol().render(action) for action in actions]


async def serve_model(latency_s: float) -> None:
    """The scripted model, in this process; prints its port first. Which reply is due is read from the request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line.partition(":")[2]) for line in head.splitlines() if line.lower().startswith("content-l"))
        body = (await reader.readexactly(length)).decode()
        step = 3 if "Remembered a#1" in body else 2 if "part of Picture 1" in body else int("tool_response" in body)
        query = next((query for query in QUERIES if query in body), QUERIES[0])
        await asyncio.sleep(latency_s)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for delta, finish in (({"content": script(query)[step]}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            writer.write(f"data: {json.dumps(chunk)}\n\n".encode())
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 26, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def timed_run(client: AsyncClient, number: int) -> tuple[float, Event]:
    """Seconds from the request to the last event, and that event."""
    question = f"{QUERIES[number % len(QUERIES)]}: question {number}"
    begun = time.perf_counter()
    events = [event async for event in client.ask(RunRequest(question=question, agent="vimrag"))]
    return time.perf_counter() - begun, events[-1]


async def measure(base_url: str, runs: int) -> tuple[float, list[float], float]:
    """Wall seconds of all runs, of each run, and the p99 lateness of the agent's loop while they went on."""
    import httpx

    async with AsyncClient(base_url, timeout_s=300) as client:
        await asyncio.gather(*(timed_run(client, number) for number in range(len(QUERIES))))
        begun = time.perf_counter()
        done = await asyncio.gather(*(timed_run(client, number) for number in range(runs)))
        wall = time.perf_counter() - begun
    wrong = [last for _, last in done if last.kind != "answer" or last.status != "answered"]
    assert not wrong, f"{len(wrong)} runs were not answered: {wrong[0]}"
    async with httpx.AsyncClient() as http:
        metrics = (await http.get(f"{base_url}/metrics")).text
    lag = next(float(line.split()[1]) for line in metrics.splitlines() if line.startswith("vrag_agent_loop_lag"))
    return wall, [seconds for seconds, _ in done], lag


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--latency", type=float, default=3.0)
    parser.add_argument("--model", action="store_true", help="be the scripted model")
    args = parser.parse_args()
    if args.model:
        asyncio.run(serve_model(args.latency))
        return
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    from vrag_ray.cluster import start_ray
    from vrag_ray.ingest import ingest
    from vrag_ray.samples.demo.corpus import make_corpus
    from vrag_ray.serving.local import start_serving

    with tempfile.TemporaryDirectory() as folder:
        model = subprocess.Popen(
            [sys.executable, __file__, "--model", "--latency", str(args.latency)], stdout=subprocess.PIPE, text=True
        )
        assert model.stdout is not None
        values = {
            "collection": f"{folder}/collection",
            "openai": {"base_url": f"http://127.0.0.1:{int(model.stdout.readline())}/v1", "model": "scripted"},
            "agent": {"deadline_s": 300},
            "serving": {"max_concurrent_runs": args.runs},
        }
        settings = Settings.model_validate(values)
        start_ray()
        make_corpus(Path(folder) / "corpus")
        ingest([Path(folder) / "corpus"], settings)
        service = start_serving(settings, 0)
        try:
            wall, each, lag = asyncio.run(measure(service.base_url, args.runs))
        finally:
            service.stop()
            model.terminate()
            model.wait()
    ratio, waiting_s = wall / max(each), 4 * args.latency
    in_time, awake = _verdict(ratio <= GOAL_RATIO), _verdict(lag <= GOAL_LAG_S)
    print(f"{args.runs} runs of 4 replies, {args.latency:g} s a reply: {wall:.2f} s")
    print(f"each run                    {min(each):.2f} to {max(each):.2f} s, waiting for the model {waiting_s:g} s")
    print(f"all / longest               {ratio:.3f}   goal {GOAL_RATIO}: {in_time}")
    print(f"agent loop late, p99        {1000 * lag:.1f} ms   goal {1000 * GOAL_LAG_S:g} ms: {awake}")


def _verdict(met: bool) -> str:
    return "met" if met else "NOT MET"


if __name__ == "__main__":
    main()
