"""One service of two collections for all tests of this folder, in this process and on Ray Serve."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.support import material
from tests.support.patience import HANGS_AFTER_S
from tests.support.service_calls import upload
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.serving.local import LocalService, start_here, start_serving

SECRET_FOLDER = "kept-from-clients"
ON_RAY = pytest.mark.parametrize("service", ["on Ray"], indirect=True)
"""Of a test that is about Ray Serve alone."""


@dataclass(frozen=True, slots=True)
class RunningService(LocalService):
    """With its settings, and whether it runs on Ray Serve."""

    settings: Settings
    on_ray: bool


@pytest.fixture(scope="package", params=["here", "on Ray"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    on_ray = request.param == "on Ray"
    if on_ray:
        request.getfixturevalue("local_ray")
    root = tmp_path_factory.mktemp(SECRET_FOLDER)
    values = {
        "collection": str(root / "collection"),
        "collections": {"side": str(root / "second")},
        "serving": {"max_upload_mb": 8, "heartbeat_s": 1.0, "refresh_s": 0.5},
    }
    Collection.open_or_create(root / "collection")
    Collection.open_or_create(root / "second")
    settings = Settings.model_validate(values)
    running = (start_serving if on_ray else start_here)(settings, 0)
    yield RunningService(running.base_url, running.stop, settings, on_ray)
    running.stop()


@pytest.fixture(scope="package")
def http(service: LocalService) -> Iterator[httpx.Client]:
    """A client that fails the test when any text reply shows a folder of the server or a stack trace."""

    def inspect(response: httpx.Response) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith(("application/json", "text/event-stream")) and "original" not in response.request.url.path:
            text = response.read().decode()
            assert SECRET_FOLDER not in text
            assert "Traceback" not in text

    with httpx.Client(base_url=service.base_url, timeout=HANGS_AFTER_S, event_hooks={"response": [inspect]}) as client:
        yield client


@pytest.fixture(scope="package")
def library(http: httpx.Client) -> dict[str, str]:
    """Ids by name after one upload of four kinds of document and a broken one."""
    empty = http.post("/v1/search", json={"query": "anything"}).json()
    assert empty["results"] == [[]]
    assert "empty" in empty["notices"][0]
    parts = http.get("/readyz").json()["parts"]
    assert parts["retriever"]["ready"]
    assert parts["retriever"]["why"].startswith(f"collection: {empty['notices'][0]}; side: ")
    assert set(parts) == {"retriever", "agent", "library"}
    files = {
        "harbour.pdf": material.pdf(),
        "chart.png": material.picture(),
        "clip.mp4": material.video(),
        "notes.txt": material.TEXT.encode(),
        "broken.pdf": b"%PDF-1.7 this is none",
    }
    job = upload(http, files, meta=json.dumps({"team": "harbour"}))
    assert job["state"] == "done", job
    assert len(job["documents"]) == 4
    [problem] = job["errors"]
    assert problem["name"] == "broken.pdf"
    pages = {file["name"]: (file["done_pages"], file["total_pages"]) for file in job["files"]}
    assert list(pages) == list(files)
    assert pages["harbour.pdf"] == (3, 3) and pages["broken.pdf"] == (0, 0)
    assert job["collection_version"] == http.get("/v1/documents").json()["collection_version"]
    documents = http.get("/v1/documents").json()["documents"]
    assert {document["status"] for document in documents if document["title"] != "broken.pdf"} >= {"ready"}
    return {str(document["uris"][0]).rpartition("/")[2]: str(document["doc_id"]) for document in documents}
