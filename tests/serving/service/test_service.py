"""The whole service for real: Ray, Serve, uvicorn, Lance, FAISS, MuPDF. One instance for all tests of this folder."""

from __future__ import annotations

import asyncio
import io
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import httpx
import pytest

from tests.serving.service.conftest import ON_RAY, RunningService
from tests.support import material
from tests.support.patience import HANGS_AFTER_S
from tests.support.processes import children_called
from tests.support.service_calls import search, upload
from tests.support.sse_client import events_of
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest, SearchRequest
from vrag_ray.serving.local import LocalService
from vrag_ray.types import document_id

pytestmark = pytest.mark.anyio


def test_an_empty_collection_is_served_and_uploads_fill_it(http: httpx.Client, library: dict[str, str]):
    assert set(library) == {"harbour.pdf", "chart.png", "clip.mp4", "notes.txt", "broken.pdf"}
    broken = http.get(f"/v1/documents/{library['broken.pdf']}").json()
    assert broken["status"] == "error"
    assert broken["error"]


@ON_RAY
def test_the_proxy_and_its_replicas_listen_on_this_machine_alone(service: RunningService, http: httpx.Client):
    """HAProxy has no port beside the service's, and no replica answers HTTP on another address."""
    import psutil

    def ports(process: psutil.Process) -> set[tuple[str, int]]:
        with suppress(psutil.Error):
            return {tuple(at.laddr) for at in process.net_connections("tcp") if at.status == psutil.CONN_LISTEN}
        return set()

    assert http.get("/healthz").status_code == 200
    children = psutil.Process().children(recursive=True)
    proxies = [child for child in children if child.name() == "haproxy"]
    assert set().union(*map(ports, proxies)) == {("127.0.0.1", urlsplit(service.base_url).port)}
    of_replicas = set().union(*(ports(child) for child in children if child.name().startswith("ray::Serve")))
    assert {host for host, port in of_replicas if 30_000 <= port <= 31_000 and answers_http(port)} == {"127.0.0.1"}


def answers_http(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.HTTPError:
        return False


def test_search_finds_the_page_by_each_mode_and_filter(http: httpx.Client, library: dict[str, str]):
    for mode in ("hybrid", "dense", "lexical"):
        best = search(http, "dredging cost of the northern basin", mode=mode)[0]
        assert (best["doc_id"], best["page"]) == (library["harbour.pdf"], 2)
    only = search(http, "dredging cost", filter={"doc_ids": [library["notes.txt"]]})
    assert {hit["doc_id"] for hit in only} == {library["notes.txt"]}
    assert search(http, "dredging", filter={"meta": {"team": "other"}}) == []
    assert http.post("/v1/search", json={"query": "x", "filter": {"doc_ids": ["cd" * 32]}}).status_code == 404


def test_the_box_of_a_hit_holds_all_ink_of_its_page_and_plain_text_has_none(
    http: httpx.Client, library: dict[str, str]
):
    from PIL import Image

    def ink(**params: object) -> int:
        reply = http.get(f"/v1/documents/{library['harbour.pdf']}/pages/2.png", params={"dpi": 72, **params})
        return sum(Image.open(io.BytesIO(reply.content)).convert("L").point(lambda level: level < 128).tobytes())

    best = search(http, "dredging cost of the northern basin")[0]
    x0, y0, x1, y1 = best["bbox"]
    assert (x1 - x0) * (y1 - y0) < 0.05
    assert ink(bbox=f"{x0},{y0},{x1},{y1}") == pytest.approx(ink(), rel=0.1)
    crane = search(http, "cranes", filter={"doc_ids": [library["chart.png"]]})[0]
    assert 0.2 < crane["bbox"][1] < crane["bbox"][3] < 0.8
    assert search(http, "tide tables", filter={"doc_ids": [library["notes.txt"]]})[0]["bbox"] is None


def test_the_original_search_shapes_work(http: httpx.Client, library: dict[str, str]):
    body = http.post("/search", json={"queries": ["dredging cost northern basin"], "top_k": 1}).json()
    assert body["results"][0]["data"][0]["type"] == "image"
    [images] = http.get("/search", params={"queries": "dredging cost northern basin"}).json()
    assert f"/v1/documents/{library['harbour.pdf']}/pages/2.png" in images[0]["image_file"]
    assert http.get(images[0]["image_file"]).content.startswith(b"\x89PNG")


def test_a_page_is_drawn_from_its_source_and_a_box_has_more_pixels_at_more_dpi(
    http: httpx.Client, library: dict[str, str]
):
    from PIL import Image

    url = f"/v1/documents/{library['harbour.pdf']}/pages/2.png"
    sizes = [
        Image.open(io.BytesIO(http.get(url, params=params).content)).size
        for params in ({"dpi": 72}, {"dpi": 72, "bbox": "0,0,0.5,0.5"}, {"dpi": 288, "bbox": "0,0,0.5,0.5"})
    ]
    width, height = material.PAGE_SIZE
    assert sizes == [(width, height), (width // 2, height // 2), (2 * width, 2 * height)]
    assert http.get(f"/v1/documents/{library['harbour.pdf']}/pages/99.png").status_code == 404
    assert http.get(f"/v1/documents/{library['notes.txt']}/pages/1.png").status_code == 404
    assert http.get(f"/v1/documents/{library['broken.pdf']}/pages/1.png").status_code in (404, 422)
    picture = http.get(f"/v1/documents/{library['chart.png']}/pages/1.png")
    assert Image.open(io.BytesIO(picture.content)).size == material.PICTURE_SIZE


def test_a_frame_is_the_one_shown_at_its_second(http: httpx.Client, library: dict[str, str]):
    from PIL import Image

    for second, colour in material.COLOURS.items():
        reply = http.get(f"/v1/documents/{library['clip.mp4']}/frames/{second + 0.5}.png")
        assert reply.status_code == 200, reply.text
        pixel = Image.open(io.BytesIO(reply.content)).convert("RGB").getpixel((8, 8))
        assert all(abs(a - b) < 40 for a, b in zip(pixel, colour, strict=True))
    assert http.get(f"/v1/documents/{library['harbour.pdf']}/frames/0.png").status_code == 404
    assert http.get(f"/v1/documents/{library['clip.mp4']}/pages/1.png").status_code == 404


def test_the_original_comes_back_byte_for_byte_and_in_ranges(http: httpx.Client, library: dict[str, str]):
    url = f"/v1/documents/{library['notes.txt']}/original"
    assert http.get(url).content == material.TEXT.encode()
    part = http.get(url, headers={"Range": "bytes=4-9"})
    assert (part.status_code, part.content) == (206, material.TEXT.encode()[4:10])


async def test_a_run_streams_a_cited_answer_is_kept_and_resumes(service: LocalService, library: dict[str, str]):
    question = "What did dredging the northern basin cost?"
    async with httpx.AsyncClient(base_url=service.base_url, timeout=HANGS_AFTER_S) as client:
        async with client.stream("POST", "/v1/runs", json={"question": question}) as response:
            received = [event async for event in events_of(response)]
            run_url = response.headers["location"]
        record = RunRecord.from_json((await client.get(run_url)).text)
        assert "4.7 million" in record.answer
        assert record.citations[0].doc_id == library["harbour.pdf"]
        assert record.citations[0].page == 2
        assert [event.id for event in received] == [event.seq for event in record.events]
        async with client.stream("GET", f"{run_url}/events", headers={"Last-Event-ID": "2"}) as response:
            resumed = [event async for event in events_of(response)]
        assert resumed == received[3:]
        async with client.stream("POST", "/v1/runs", json={"question": question, "run_id": "hang-up-1"}) as response:
            async for event in events_of(response):
                seen = event.id
                break
        async with client.stream("GET", "/v1/runs/hang-up-1/events", headers={"Last-Event-ID": str(seen)}) as response:
            rest = [event async for event in events_of(response)]
        assert rest[-1].kind == "answer", rest[-1]
        assert [event.id for event in rest] == list(range(1, len(received)))
        assert (await client.get("/v1/runs")).json()["total"] >= 2


async def test_many_runs_at_once_all_end_or_are_refused_with_a_time_to_retry(
    service: LocalService, library: dict[str, str]
):
    async with httpx.AsyncClient(
        base_url=service.base_url, timeout=HANGS_AFTER_S, limits=httpx.Limits(max_connections=100)
    ) as client:

        async def ask(number: int) -> tuple[int, str]:
            async with client.stream("POST", "/v1/runs", json={"question": f"dredging cost {number}?"}) as response:
                if response.status_code == 429:
                    return 429, response.headers["retry-after"]
                return 200, [event.kind async for event in events_of(response)][-1]

        outcomes = await asyncio.gather(*(ask(number) for number in range(24)))
    assert set(outcomes) <= {(200, "answer"), (429, "1")}
    assert (200, "answer") in outcomes


def test_searches_go_on_unchanged_while_an_upload_is_ingested(http: httpx.Client, library: dict[str, str]):
    expected = [hit["passage_id"] for hit in search(http, "dredging cost of the northern basin", top_k=1)]
    with ThreadPoolExecutor(9) as pool:
        job = pool.submit(upload, http, {"more.txt": b"Lighthouse keepers count passing ships at dusk."})
        rounds = 0
        while not job.done() or rounds < 3:
            searches = [pool.submit(search, http, "dredging cost of the northern basin", top_k=1) for _ in range(8)]
            for pending in searches:
                assert [hit["passage_id"] for hit in pending.result()] == expected
            rounds += 1
        assert job.result()["state"] == "done"
    assert search(http, "lighthouse keepers")[0]["title"] == "more"


def test_a_deleted_document_is_in_no_later_search_page_or_original(http: httpx.Client, library: dict[str, str]):
    job = upload(http, {"secret.txt": b"The zanzibar ledger lists forgotten debts."})
    [doc_id] = job["documents"]
    assert search(http, "zanzibar ledger")[0]["doc_id"] == doc_id
    deleted = http.delete(f"/v1/documents/{doc_id}")
    assert deleted.status_code == 200
    for mode in ("hybrid", "dense", "lexical"):
        assert all(hit["doc_id"] != doc_id for hit in search(http, "zanzibar ledger", mode=mode, top_k=10))
    for path in ("", "/original", "/pages/1.png"):
        assert http.get(f"/v1/documents/{doc_id}{path}").status_code == 404
    assert http.delete(f"/v1/documents/{doc_id}").status_code == 404


def test_an_upload_over_the_limit_is_413_through_the_proxy(http: httpx.Client):
    reply = http.post("/v1/documents", files={"files": ("big.txt", b"x" * (10 << 20))})
    assert reply.status_code == 413


def test_unknown_agents_ids_and_paths_are_named_and_nothing_leaks(http: httpx.Client):
    agent = http.post("/v1/runs", json={"question": "q", "agent": "oracle"})
    assert (agent.status_code, agent.json()["error"]["param"]) == (422, "agent")
    for path in (
        "/v1/documents/..%2f..%2fblobs",
        "/v1/runs/..%2fx",
        "/v1/runs/unknown0/events",
        "/v1/jobs/none",
        "/v1/documents/" + "cd" * 32,
    ):
        assert http.get(path).status_code == 404


def test_each_reply_has_one_request_id_and_the_callers_own_is_kept(http: httpx.Client):
    assert http.get("/healthz", headers={"x-request-id": "mine-1"}).headers.get_list("x-request-id") == ["mine-1"]
    assert len(http.get("/healthz").headers.get_list("x-request-id")) == 1


def test_metrics_tell_shards_version_searches_and_runs(http: httpx.Client, library: dict[str, str]):
    text = http.get("/metrics").text
    for name in (
        'vrag_shards_ok{collection="collection"} 1.0',
        'vrag_shards_total{collection="side"} 1.0',
        'vrag_up{part="retriever"} 1.0',
        "vrag_runs_active",
    ):
        assert name in text


def test_the_gateway_loads_no_index_and_no_decoder():
    import subprocess
    import sys

    heavy = "faiss pymupdf lance onnxruntime torch av decord cv2 ray.data"
    code = f"import sys, vrag_ray.serving.app; print([m for m in {heavy!r}.split() if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_the_typed_client_asks_fetches_and_cancels(service: LocalService, library: dict[str, str]):
    with Client(service.base_url) as client:
        assert client.ready().ready
        hit = client.search(SearchRequest(query="dredging cost of the northern basin")).results[0][0]
        assert client.page_png(hit.doc_id, hit.page or 0).startswith(b"\x89PNG")
        events = list(client.events(RunRequest(question="What did dredging the northern basin cost?")))
        run_id = client.runs().runs[0].run_id
        assert client.run(run_id).events == tuple(events)
        assert tuple(client.follow(run_id)) == tuple(events)
        assert tuple(client.follow(run_id, after=events[2].seq)) == tuple(events[3:])
        assert tuple(client.follow(run_id, after=events[-1].seq)) == ()
        assert "extractive" in client.models().names
        assert document_id(client.original(hit.doc_id)) == hit.doc_id
        client.cancel(run_id)
        assert client.run(run_id).status is RunStatus.ANSWERED


@ON_RAY
def test_a_killed_retriever_is_reported_and_comes_back(http: httpx.Client, library: dict[str, str]):
    [retriever] = children_called("ServeReplica:vrag:Retriever")
    retriever.kill()
    # Asked again of the next replica, which may take longer to come than a search waits.
    statuses = []
    deadline = time.monotonic() + HANGS_AFTER_S
    while 200 not in statuses:
        assert time.monotonic() < deadline
        reply = http.post("/v1/search", json={"query": "dredging cost of the northern basin"})
        statuses.append(reply.status_code)
    assert set(statuses) <= {200, 503}
    assert [process.pid for process in children_called("ServeReplica:vrag:Retriever")] != [retriever.pid]
    best = reply.json()["results"][0][0]
    assert (best["doc_id"], best["page"]) == (library["harbour.pdf"], 2)
    # The other collection comes back by itself, after or before this one.
    while (ready := http.get("/readyz")).status_code != 200:
        assert time.monotonic() < deadline, ready.text
        time.sleep(0.1)
