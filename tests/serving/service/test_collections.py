"""Several collections of one service, by name, over real HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.serving.service.conftest import ON_RAY
from tests.support.service_calls import search, upload
from vrag_ray.agent.events import AnswerEvent
from vrag_ray.agent.record import RunRecord
from vrag_ray.cli.show import answer_lines
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.serving.local import LocalService, start_serving
from vrag_ray.types import VragError, document_id


def test_collections_side_by_side_are_filled_searched_questioned_and_emptied_by_name(
    http: httpx.Client, library: dict[str, str]
):
    both = {"query": "the lighthouse keeper's ledger of 1911", "top_k": 10}
    text = b"The lighthouse keeper's ledger of 1911 counts 212 ships."
    job = upload(http, {"ledger.txt": text}, params={"collection": "side"})
    assert (job["state"], job["collection"], job["documents"]) == ("done", "side", [document_id(text)])
    ready = http.get("/readyz").json()
    assert [(entry["name"], entry["documents"] > 0) for entry in ready["collections"]] == [
        ("collection", True),
        ("side", True),
    ]
    assert ready["collection"] == ready["collections"][0]
    listed = http.get("/v1/documents", params={"collection": "side"}).json()
    assert ([document["doc_id"] for document in listed["documents"]], listed["collection"]) == (
        [document_id(text)],
        "side",
    )
    assert document_id(text) not in {document["doc_id"] for document in http.get("/v1/documents").json()["documents"]}

    assert document_id(text) not in {hit["doc_id"] for hit in search(http, **both)}
    [hit] = search(http, **both, collection="side")
    assert (hit["doc_id"], hit["collection"]) == (document_id(text), "side")
    merged = http.post("/v1/search", json={**both, "collection": ["collection", "side"]}).json()
    assert (merged["collections"], merged["shards_ok"], merged["shards_total"]) == (["collection", "side"], 2, 2)
    assert merged["results"][0][0]["doc_id"] == document_id(text)
    assert {hit["collection"] for hit in merged["results"][0]} == {"collection", "side"}
    legacy = http.post("/search", json={"queries": [both["query"]], "search_corpus": "*", "top_k": 1}).json()
    assert "212 ships" in str(legacy["results"][0]["data"])

    # Documents are read by id, wherever they are.
    assert http.get(f"/v1/documents/{document_id(text)}/original").content == text
    question = {"question": "How many ships does the keeper's ledger of 1911 count?", "agent": "extractive"}
    with Client(str(http.base_url)) as client:
        alone = [*client.events(RunRequest(**question))][-1]
        request = RunRequest(**question, collection=["collection", "side"], run_id="both-collections")
        together = [*client.events(request)][-1]
    assert isinstance(alone, AnswerEvent) and document_id(text) not in {citation.doc_id for citation in alone.citations}
    assert isinstance(together, AnswerEvent) and together.citations[0].doc_id == document_id(text)
    assert together.citations[0].collection == "side"
    record = RunRecord.from_json(http.get("/v1/runs/both-collections").text)
    assert record.collections == ("collection", "side")
    assert any("(side)" in line for line in answer_lines(record, None))
    chat = {
        "model": "extractive",
        "messages": [{"role": "user", "content": question["question"]}],
        "collection": "side",
    }
    assert "212" in http.post("/v1/chat/completions", json=chat).json()["choices"][0]["message"]["content"]

    deleted = http.delete(f"/v1/documents/{document_id(text)}").json()
    assert (deleted["collection"], deleted["doc_id"]) == ("side", document_id(text))
    assert search(http, **both, collection="side") == []


@pytest.mark.exhaustive
def test_a_document_in_two_collections_is_deleted_from_the_named_one(http: httpx.Client, library: dict[str, str]):
    text = b"A tide table that both collections hold."
    for name in ("collection", "side"):
        upload(http, {"tides.txt": text}, params={"collection": name})
    path = f"/v1/documents/{document_id(text)}"
    refused = http.delete(path)
    assert (refused.status_code, refused.json()["error"]["param"]) == (409, "collection")
    assert "is in collection and side" in refused.json()["error"]["message"]
    for name in ("side", "collection"):
        assert http.delete(path, params={"collection": name}).json()["collection"] == name
    assert http.get(path).status_code == 404


def test_a_collection_that_is_not_served_is_refused_wherever_it_is_named(http: httpx.Client):
    chat = {"model": "extractive", "messages": [{"role": "user", "content": "q"}], "collection": "top"}
    replies = [
        http.post("/v1/search", json={"query": "q", "collection": ["side", "top"]}),
        http.post("/search", json={"queries": ["q"], "search_corpus": "top"}),
        http.post("/v1/runs", json={"question": "q", "collection": "top"}),
        http.post("/v1/chat/completions", json=chat),
        http.get("/v1/documents", params={"collection": "top"}),
        http.post("/v1/documents", params={"collection": "top"}, files=[("files", ("a.txt", b"text"))]),
        http.delete("/v1/documents/" + "cd" * 32, params={"collection": "top"}),
    ]
    for reply in replies:
        error = reply.json()["error"]
        assert (reply.status_code, error["param"]) == (422, "collection"), reply.request.url
        assert "there is no collection 'top' here: use collection, side" in error["message"]


@ON_RAY
def test_a_service_that_nobody_could_reach_is_refused_at_once_and_the_running_one_stays(
    service: LocalService, http: httpx.Client, tmp_path: Path
):
    """Serve keeps the port with which it was started first: another service would wait for itself in vain."""
    port = httpx.URL(service.base_url).port
    Collection.open_or_create(tmp_path / "c")
    with pytest.raises(
        VragError, match=rf"Serve runs in this Ray already, on port {port}: choose that port, or end it"
    ):
        start_serving(Settings(collection=str(tmp_path / "c")), 0)
    assert http.get("/readyz").status_code == 200
