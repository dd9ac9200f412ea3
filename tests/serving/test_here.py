"""The service of one process: what it needs, what it refuses, and what an end in the middle leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Semaphore

import httpx
import psutil
import pytest

from tests.support.openai_stub import Say, openai_stub
from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import doc_id_of, document, plant
from tests.support.signals import heeding_interrupts
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest import IngestReport, Source
from vrag_ray.serving.here import why_ray
from vrag_ray.serving.ingest_jobs.child import ingest_in_child
from vrag_ray.serving.local import start_here
from vrag_ray.types import VragError

VRAG = (sys.executable, "-m", "vrag_ray.cli")
SLOW = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}


@contextmanager
def served(root: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """``vrag serve`` in a process of its own, killed at the end if it still runs."""
    command = heeding_interrupts(*VRAG, "serve", "-c", str(root), "--port", "0", "--json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            with httpx.Client(base_url=url, timeout=HANGS_AFTER_S) as client:
                yield process, client
        finally:
            process.kill()


def ended(client: httpx.Client, job_id: str) -> dict[str, object]:
    deadline = time.monotonic() + HANGS_AFTER_S
    while True:
        job: dict[str, object] = client.get(f"/v1/jobs/{job_id}").json()
        if job["state"] in ("done", "failed"):
            return job
        assert time.monotonic() < deadline, job
        time.sleep(0.1)


def test_the_service_of_one_process_imports_neither_ray_nor_torch(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["red apple"]})
    script = (
        "import sys, httpx\n"
        "from vrag_ray.config import Settings\n"
        "from vrag_ray.serving.local import start_here\n"
        f"service = start_here(Settings(collection={str(tmp_path / 'c')!r}), 0)\n"
        "reply = httpx.post(service.base_url + '/v1/search', json={'query': 'red apple', 'mode': 'lexical'}).json()\n"
        "service.stop()\n"
        "print(reply['results'][0][0]['title'], [name for name in ('ray', 'torch') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "a []\n", done.stderr


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, ""),
        ({"index": {"shards": 1}, "openai": SLOW}, ""),
        ({"index": {"shards": 4}}, "index.shards is set"),
        ({"index": {"replicas": 2}}, "index.replicas is set"),
        ({"index": {"num_gpus": 0.5}}, "index.num_gpus is set"),
        ({"serving": {"num_gpus": 0.5}}, "serving.num_gpus is set"),
        ({"vllm": {"model": "m"}}, "vllm.model needs a replica"),
    ],
)
def test_settings_that_need_ray_are_refused_by_their_name(
    values: dict[str, object], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    settings = Settings.model_validate(values)
    assert why_ray(settings) == reason
    if reason:
        with pytest.raises(VragError, match=f"cannot serve these settings: {reason}"):
            start_here(settings, 0)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    assert why_ray(settings) == "RAY_ADDRESS names a cluster"


def test_a_collection_that_cannot_be_loaded_ends_the_start_at_once_with_the_reason(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["red apple"]})
    for data in (tmp_path / "c" / "spaces" / "text-1.lance" / "data").iterdir():
        data.unlink()
    with pytest.raises(VragError, match="not ready after 5 s: retriever: it failed"):
        start_here(Settings(collection=str(tmp_path / "c")), 0)


@pytest.mark.parametrize("setting", ["runs_dir", "uploads_dir"])
def test_a_folder_of_its_own_that_cannot_be_written_ends_the_start_with_the_setting(
    tmp_path: Path, setting: str
) -> None:
    plant(tmp_path / "c", {"a": ["red apple"]})
    # Where nobody may make a folder, root neither.
    settings = Settings.model_validate({"collection": str(tmp_path / "c"), "serving": {setting: "/sys/vrag"}})
    with pytest.raises(VragError, match=rf"^the folder /sys/vrag .* opening it \(serving\.{setting}\) for writing"):
        start_here(settings, port=0)


def test_replies_name_documents_of_the_same_title_by_the_folders_that_differ(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {"a": ["red apple"], "b": ["red pear"], "plum": ["blue plum"]})
    with CollectionWriter(root) as writer:
        for name, folder in (("a", "2023"), ("b", "2024")):
            moved = document(name, f"file:///srv/private/{folder}/report.pdf")
            writer.commit_documents([replace(moved, title="report")])
        writer.publish("moved")
    service = start_here(Settings(collection=str(root)), 0)
    try:
        with httpx.Client(base_url=service.base_url) as client:
            [hits] = client.post("/v1/search", json={"query": "red apple", "mode": "lexical"}).json()["results"]
            listed = client.get("/v1/documents").json()["documents"]
            first = client.get(f"/v1/documents/{doc_id_of('a')}").json()
    finally:
        service.stop()
    assert [(hit["title"], hit["uri"]) for hit in hits] == [
        ("report (2023)", "report.pdf"),
        ("report (2024)", "report.pdf"),
    ]
    assert sorted(each["title"] for each in listed) == ["plum", "report (2023)", "report (2024)"]
    assert first["title"] == "report (2023)" and "private" not in json.dumps(listed)


def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["red apple"]})
    service = start_here(Settings(collection=str(tmp_path / "c")), 0)
    try:
        port = httpx.URL(service.base_url).port
        with pytest.raises(VragError, match=f"port {port} of 127.0.0.1 cannot be used"):
            start_here(Settings(collection=str(tmp_path / "c")), port)
    finally:
        service.stop()


def test_an_upload_survives_the_death_of_the_service_and_ctrl_c_ends_its_child(tmp_path: Path) -> None:
    root = tmp_path / "c"
    Collection.open_or_create(root)
    many = [("files", (f"{number}.txt", f"whale number {number}".encode())) for number in range(12)]
    with served(root) as (process, client):
        job_id = client.post("/v1/documents", files=many).json()["job_id"]
        deadline = time.monotonic() + HANGS_AFTER_S
        while client.get(f"/v1/jobs/{job_id}").json()["state"] == "queued":
            assert time.monotonic() < deadline
        process.kill()
        process.wait()
    with served(root) as (process, client):
        # Interrupted while it goes on with the job of the first: the child must not outlive it.
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGS_AFTER_S) == 0
        assert psutil.wait_procs(children, timeout=HANGS_AFTER_S)[1] == []
    with served(root) as (_, client):
        job = ended(client, job_id)
        assert (job["state"], job["errors"]) == ("done", [])
        assert client.get("/v1/documents").json()["total"] == len(many)
        reply = client.post("/v1/search", json={"query": "whale number 7", "mode": "lexical"}).json()
        assert reply["results"][0][0]["title"] == "7"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_of_the_system_or_of_a_closed_terminal_ends_the_service_as_ctrl_c_does(
    tmp_path: Path, number: signal.Signals
) -> None:
    Collection.open_or_create(tmp_path / "c")
    with served(tmp_path / "c") as (process, _):
        process.send_signal(number)
        assert process.wait(HANGS_AFTER_S) == 0


def test_replies_under_way_end_with_their_reason_when_the_service_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plant(tmp_path / "c", {"a": ["red apple"]})
    with openai_stub(lambda *_: Say("a long reply " * 10_000, delay_s=0.1)) as stub:
        settings = Settings.model_validate(
            {
                "collection": str(tmp_path / "c"),
                "openai": {"base_url": stub.base_url, "model": "m"},
                "agent": {"evidence": "text"},
            }
        )
        service = start_here(settings, 0)
        try:
            with ThreadPoolExecutor(4) as readers, socket.create_connection(_address(service.base_url)) as uploading:
                chat = {"model": "policy", "messages": [{"role": "user", "content": "q"}]}
                began = Semaphore(0)
                streams = [
                    readers.submit(_last_event, f"{service.base_url}{path}", body, began)
                    for path, body in (
                        ("/v1/chat/completions", chat | {"stream": True}),
                        ("/v1/chat/completions", chat | {"model": "vimrag", "stream": True}),
                        ("/v1/runs", {"question": "q", "agent": "vimrag"}),
                    )
                ]
                whole = readers.submit(httpx.post, f"{service.base_url}/v1/chat/completions", json=chat, timeout=None)
                for _ in streams:
                    assert began.acquire(timeout=HANGS_AFTER_S)
                uploading.sendall(
                    b"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n"
                    b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
                )
                while len(stub.requests) < 4:
                    time.sleep(0.05)
                service.stop()
                policy, agent, run = (json.loads(stream.result()) for stream in streams)
                refused = b"".join(iter(lambda: uploading.recv(1 << 16), b""))
        finally:
            service.stop()
    for error in (policy["error"], agent["error"], whole.result().json()["error"]):
        assert (error["code"], "the service is stopping" in error["message"]) == ("not_ready", True)
    assert (run["kind"], run["terminal"], run["message"]) == ("error", True, "the run was cancelled")
    assert refused.startswith(b"HTTP/1.1 503") and b"the service is stopping" in refused
    assert [record for record in caplog.records if record.exc_info] == []


def _address(base_url: str) -> tuple[str, int]:
    url = httpx.URL(base_url)
    assert url.port is not None
    return url.host, url.port


def _last_event(url: str, body: dict[str, object], began: Semaphore) -> str:
    """The data of the last event of a stream that ends in an orderly way; ``began`` is released at the first."""
    last = ""
    with httpx.stream("POST", url, json=body, timeout=None) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                if not last:
                    began.release()
                last = line.removeprefix("data: ")
    return last


def test_a_killed_ingest_is_begun_again_and_reports_as_if_nothing_had_happened(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a lighthouse at night")
    settings = Settings(collection=str(tmp_path / "c"))
    before = {child.pid for child in psutil.Process().children()}

    async def ingested(kills: int) -> Sequence[IngestReport]:
        """Kills the child as often before it can report."""
        source = Source(path=tmp_path / "a.txt", uri="upload:a.txt", name="a.txt")
        reports: list[IngestReport] = []

        async def kill() -> None:
            killed: set[int] = set()
            while len(killed) < kills:
                for child in psutil.Process().children():
                    if child.pid not in before | killed and "ingest_jobs.child" in " ".join(child.cmdline()):
                        os.kill(child.pid, signal.SIGKILL)
                        killed.add(child.pid)
                await asyncio.sleep(0.005)

        killing = asyncio.create_task(kill())
        async with aclosing(ingest_in_child(settings, [source], {})) as updates:
            async for update in updates:
                if isinstance(update, IngestReport):
                    reports.append(update)
        await killing
        return reports

    [report] = asyncio.run(ingested(1))
    assert (report.added, report.failed) == (1, ())
    with pytest.raises(VragError, match="ended twice without a report, with exit code -9"):
        asyncio.run(ingested(2))


def test_a_child_that_is_done_ends_without_a_word(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("The harbour was dredged.\n", encoding="utf-8")
    settings = Settings(collection=str(tmp_path / "c"))

    async def messages() -> list[object]:
        return [message async for message in ingest_in_child(settings, [tmp_path / "a.txt"], {})]

    *_, report = asyncio.run(messages())
    assert isinstance(report, IngestReport) and report.added == 1
    assert "Fatal Python error" not in capfd.readouterr().err


def test_a_fault_of_ingest_comes_out_of_the_child_as_it_was_raised(tmp_path: Path) -> None:
    async def ingested(settings: Settings) -> None:
        source = Source(path=tmp_path / "a.txt", uri="upload:a.txt", name="a.txt")
        async with aclosing(ingest_in_child(settings, [source], {})) as updates:
            async for _ in updates:
                pass

    (tmp_path / "a.txt").write_text("a lighthouse at night")
    (tmp_path / "c").write_text("no folder")
    with pytest.raises(VragError, match="c"):
        asyncio.run(ingested(Settings(collection=str(tmp_path / "c"))))
