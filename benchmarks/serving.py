"""`POST /v1/search` against a plain server: what do the proxy, the deployments and their guards cost?

    python benchmarks/serving.py [--notes 3000] [--clients 1,16,64,256] [--seconds 8] [--run-clients 16]

The plain server is uvicorn with one route that embeds the query with the same embedder, in the same threads, and asks
one FAISS index of the same vectors: no lexical leg, no pages, no texts in the reply. It, the service of one process
and the service on Ray Serve serve the same collection of notes at the same time; they are asked in turn, for each
number of clients, by the same client, in one process of its own, with another query each time. `dense` is
`mode: text`, whose work is that of the plain server; `hybrid` is the default. Times are of a whole request; replies
other than 200 are counted apart. At the end, questions to the agent without a model, whose events are read to the end,
and while they are asked, how long `/readyz` takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel

sys.path[0] = str(Path(__file__).parents[1])

from benchmarks.many_files import write_notes

TOP_K = 3
RUN = "run"
"""In place of a mode of search: a question to the agent, its events read to the end."""
READY = "ready"
"""In place of one: `/readyz`, twenty times a second."""
QUERY_WORDS = ["graph", "memory", "page", "search", "vector", "index", "model", "shard", "answer", "slide", "table"]


class SearchBody(BaseModel):
    """The body of a request to the plain server."""

    query: str
    top_k: int = TOP_K


@dataclass(frozen=True)
class Load:
    """What came of asking for ``seconds``: milliseconds of each good reply, and other replies by status."""

    milliseconds: list[float]
    others: Counter[int]
    seconds: float

    @property
    def rate(self) -> float:
        return len(self.milliseconds) / self.seconds

    def percentile(self, percent: int) -> float:
        """Milliseconds that so many of a hundred replies took at most."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]

    def line(self) -> str:
        if not self.milliseconds:
            return f"no good reply, {dict(self.others)}"
        text = f"{self.rate:7.1f}/s  p50 {self.percentile(50):7.1f} ms  p99 {self.percentile(99):7.1f} ms"
        return text + (f"  {dict(self.others)}" if self.others else "")


async def _client(
    url: str, mode: str | None, queries: random.Random, words: list[str], stop: float, load: Load
) -> None:
    """One connection that asks until ``stop``: HTTP/1.1 by hand, since a client library would take the cores."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    while time.perf_counter() < stop:
        query = " ".join(queries.choices(words, k=5))
        body: dict[str, object] = {"query": query, "top_k": TOP_K}
        if mode == READY:
            await asyncio.sleep(0.05)
        if mode == RUN:
            body = {"question": f"What does the note say of {query}?"}
        elif mode is not None:
            body["mode"] = mode
        data = json.dumps(body).encode()
        method = "GET" if mode == READY else "POST"
        head = (
            f"{method} {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        began = time.perf_counter()
        writer.write(head.encode() + data)
        headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(headers.split(" ", 2)[1])
        await _read_body(reader, headers)
        if status == 200:
            load.milliseconds.append((time.perf_counter() - began) * 1e3)
        else:
            load.others[status] += 1
            retry_after = [line.partition(":")[2] for line in headers.split("\r\n") if line.startswith("retry-after:")]
            await asyncio.sleep(float(retry_after[0]) if retry_after else 0.05)
    writer.close()


async def _read_body(reader: asyncio.StreamReader, headers: str) -> None:
    length = next((line for line in headers.split("\r\n") if line.startswith("content-length:")), None)
    if length is not None:
        await reader.readexactly(int(length.split(":")[1]))
        return
    size = 1
    while size:
        size = int(await reader.readline(), 16)
        await reader.readexactly(size + 2)


async def _ask(url: str, mode: str | None, clients: int, seconds: float, words: list[str]) -> Load:
    load = Load([], Counter(), seconds)
    stop = time.perf_counter() + seconds
    await asyncio.gather(*(_client(url, mode, random.Random(number), words, stop, load) for number in range(clients)))
    return load


def plain_server(collection: str, port: int) -> None:
    """One route over one FAISS index, as one would write it in an afternoon."""
    import faiss
    import numpy as np
    import uvicorn
    from fastapi import FastAPI

    from vrag_ray.config import SpaceConfig
    from vrag_ray.embedding.minilm.text import TextEmbedder
    from vrag_ray.embedding.registry import space_embedder
    from vrag_ray.index.shards.row_loader import load_space_rows
    from vrag_ray.index.storage.collection import Collection

    embedder = space_embedder(SpaceConfig(model="minilm"))
    assert isinstance(embedder, TextEmbedder)
    space = load_space_rows(Collection.open(collection), "text")
    index = faiss.IndexFlatIP(space.vectors.shape[1])
    index.add(space.vectors.astype(np.float32))
    faiss.omp_set_num_threads(1)
    ids = space.rows.ids.to_pylist()
    app = FastAPI()

    def find(body: SearchBody) -> list[dict[str, object]]:
        scores, numbers = index.search(embedder.vectors([body.query]), body.top_k)
        return [{"id": ids[n], "score": float(s)} for s, n in zip(scores[0], numbers[0], strict=True)]

    @app.post("/search")
    async def search(body: SearchBody) -> dict[str, object]:
        return {"hits": await asyncio.to_thread(find, body)}

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def ask(url: str, mode: str | None, clients: int, seconds: float) -> Load:
    """The load of one client process."""
    command = [sys.executable, __file__, "--ask", url, mode or "", str(clients), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    return Load(report["milliseconds"], Counter({int(k): v for k, v in report["others"].items()}), seconds)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str) -> None:
    import httpx

    for _ in range(300):
        try:
            httpx.get(url, timeout=2.0)
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("the plain server did not start")


@contextmanager
def served_notes(count: int) -> Iterator[tuple[str, str]]:
    """The service on a collection of so many notes: its address, and the folder of the collection."""
    from vrag_ray.cluster import start_ray, stop_ray
    from vrag_ray.config import Settings
    from vrag_ray.ingest import ingest
    from vrag_ray.serving.local import start_serving

    with tempfile.TemporaryDirectory() as folder:
        source, root = Path(folder) / "in", Path(folder) / "collection"
        source.mkdir()
        write_notes(source, count)
        settings = Settings(collection=str(root))
        start_ray(None)
        try:
            print(f"{ingest([source], settings).windows} windows", flush=True)
            service = start_serving(settings, 0)
            try:
                yield service.base_url, str(root)
            finally:
                service.stop()
        finally:
            stop_ray()


@contextmanager
def one_process(root: str) -> Iterator[str]:
    """The address of `vrag serve` on a collection. Says how long it took to be ready."""
    command = [sys.executable, "-m", "vrag_ray.cli", "serve", "-c", root, "--port", "0", "--json"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        url = json.loads(serving.stdout.readline())["url"]
        print(f"one process ready in {time.perf_counter() - began:.1f} s", flush=True)
        try:
            yield url
        finally:
            serving.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=3000)
    parser.add_argument("--clients", default="1,16,64,256")
    parser.add_argument("--run-clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()

    with served_notes(options.notes) as (ray_url, root), one_process(root) as here_url:
        port = _free_port()
        plain = subprocess.Popen([sys.executable, __file__, "--plain", root, str(port)])
        try:
            plain_url = f"http://127.0.0.1:{port}/search"
            services = {"one process": here_url, "Ray Serve": ray_url}
            _wait_for(plain_url)
            ask(plain_url, None, 2, 2.0)
            for address in services.values():
                for mode in ("text", "hybrid"):
                    ask(f"{address}/v1/search", mode, 2, 2.0)
            for clients in (int(part) for part in options.clients.split(",")):
                base = ask(plain_url, None, clients, options.seconds)
                print(f"{clients:4d} clients  {'plain':19} {base.line()}", flush=True)
                for mode, name in (("text", "dense"), ("hybrid", "hybrid")):
                    for place, address in services.items():
                        ours = ask(f"{address}/v1/search", mode, clients, options.seconds)
                        ratio = ours.rate / base.rate if base.rate else 0.0
                        called = f"{name}, {place}"
                        print(f"{clients:4d} clients  {called:19} {ours.line()}  {ratio:.2f} of plain", flush=True)
            for place, address in services.items():
                with ThreadPoolExecutor(1) as beside:
                    ready = beside.submit(ask, f"{address}/readyz", READY, 1, options.seconds * 2)
                    runs = ask(f"{address}/v1/runs", RUN, options.run_clients, options.seconds * 3)
                print(f"{options.run_clients:4d} clients  {'runs, ' + place:19} {runs.line()}", flush=True)
                print(f"   1 client   {'/readyz, ' + place:19} {ready.result().line()}", flush=True)
        finally:
            plain.terminate()
            plain.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plain"]:
        plain_server(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["--ask"]:
        search_mode = sys.argv[3] or None
        result = asyncio.run(_ask(sys.argv[2], search_mode, int(sys.argv[4]), float(sys.argv[5]), QUERY_WORDS))
        print(json.dumps({"milliseconds": result.milliseconds, "others": dict(result.others)}))
    else:
        main()
