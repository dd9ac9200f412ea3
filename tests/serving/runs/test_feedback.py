"""Readers' feedback on runs: stored, shown, and exported in a form that training and evaluation read."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.support.stand_in import StandIn
from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import PictureRef, RunStatus
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.client.schemas import Feedback, RatedRun, Rating
from vrag_ray.policies.extractive.wording import NO_MODEL
from vrag_ray.questions.examples import GoldPage
from vrag_ray.questions.files import load_examples
from vrag_ray.serving.runs.feedback import FeedbackStore, rated_run, unified_lines
from vrag_ray.types import NotFoundError, PassageKind

pytestmark = pytest.mark.anyio


def citation(number: int, uri: str, page: int | None) -> Citation:
    return Citation(number=number, doc_id="ab" * 32, title="t", uri=uri, kind=PassageKind.PAGE, page=page, node_id="q1")


def record(run_id: str = "run-0001", *, abstained: bool = False) -> RunRecord:
    return RunRecord(
        run_id=run_id,
        question="How much?",
        agent="extractive",
        status=RunStatus.ABSTAINED if abstained else RunStatus.ANSWERED,
        answer=f"287 MWh: \u201cIce factory: 287 MWh\u201d [1] [2]\n{NO_MODEL}",
        abstained=abstained,
        citations=(citation(1, "a/report.pdf", 4), citation(2, "a/report.pdf", 2), citation(3, "b.pdf", 1)),
        graph=MemoryGraph.start("How much?"),
        steps=3,
        corrections=0,
        events=(),
        timings=Timings(),
        usage={},
    )


def test_a_liked_run_teaches_its_own_answer_and_the_pages_of_its_first_source():
    rated = rated_run(record(), Feedback(rating=Rating.UP, comment=" clear "))
    assert rated.right_answer == "287 MWh: \u201cIce factory: 287 MWh\u201d"
    assert (rated.file_name, rated.pages, rated.comment) == ("report.pdf", [2, 4], "clear")


def test_a_run_about_a_picture_is_kept_but_teaches_nothing_because_the_picture_is_gone():
    with_picture = record().model_copy(update={"picture": PictureRef(sha256="cd" * 32, size=9)})
    rated = rated_run(with_picture, Feedback(rating=Rating.UP))
    assert rated.picture_sha256 == "cd" * 32
    assert list(unified_lines([rated])) == []
    assert list(unified_lines([rated_run(record(), Feedback(rating=Rating.UP))]))


@pytest.mark.parametrize("abstained", [False, True])
def test_a_disliked_run_teaches_only_what_the_reader_knows(abstained: bool):
    feedback = Feedback(rating=Rating.DOWN, answer="302 MWh")
    assert rated_run(record(abstained=abstained), feedback).right_answer == "302 MWh"
    assert rated_run(record(), Feedback(rating=Rating.DOWN)).right_answer == ""
    assert rated_run(record(), feedback).pages == []


def test_a_liked_abstention_has_no_answer_to_teach():
    assert rated_run(record(abstained=True), Feedback(rating=Rating.UP)).right_answer == ""


def test_the_export_is_read_by_training_and_leaves_out_what_has_no_answer(tmp_path: Path):
    store = FeedbackStore(tmp_path / "feedback")
    store.put(record("run-liked"), Feedback(rating=Rating.UP))
    store.put(record("run-wrong"), Feedback(rating=Rating.DOWN, answer="302 MWh"))
    store.put(record("run-unknown"), Feedback(rating=Rating.DOWN, comment="no idea"))
    path = tmp_path / "feedback.jsonl"
    path.write_text("".join(unified_lines(store.all())), encoding="utf-8")
    examples = {example.uid: example for example in load_examples(path)}
    assert set(examples) == {"run-liked", "run-wrong"}
    assert examples["run-liked"].gold == (
        GoldPage(file_name="report.pdf", page=2),
        GoldPage(file_name="report.pdf", page=4),
    )
    assert examples["run-wrong"].answers == ("302 MWh",)


def test_a_second_word_replaces_the_first_and_damage_costs_only_its_own_file(tmp_path: Path):
    store = FeedbackStore(tmp_path)
    store.put(record(), Feedback(rating=Rating.DOWN))
    store.put(record(), Feedback(rating=Rating.UP))
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    assert [rated.rating for rated in FeedbackStore(tmp_path).all()] == [Rating.UP]
    with pytest.raises(NotFoundError, match="has no feedback"):
        store.get("run-0002")


async def test_feedback_over_http_is_kept_shown_and_exported(client: httpx.AsyncClient, backend: StandIn):
    body = {"question": "How much?", "run_id": "run-0001"}
    async with client.stream("POST", "/v1/runs", json=body) as reply:
        early = await client.put("/v1/runs/run-0001/feedback", json={"rating": "up"})
        assert (early.status_code, early.json()["error"]["code"]) == (409, "running")
        backend.go.set()
        await reply.aread()
    assert (await client.get("/v1/runs/run-0001/feedback")).status_code == 404
    response = await client.put("/v1/runs/run-0001/feedback", json={"rating": "up", "comment": "yes"})
    assert RatedRun.model_validate_json(response.content).right_answer == "42"
    assert (await client.get("/v1/runs/run-0001/feedback")).json() == response.json()
    assert (await client.get("/v1/feedback")).json() == {"runs": [response.json()]}
    exported = await client.get("/v1/feedback.jsonl")
    assert exported.headers["content-type"].startswith("application/jsonl")
    assert json.loads(exported.text)["reference_answer"] == "42"


@pytest.mark.parametrize("body", [{}, {"rating": "great"}, {"rating": "up", "stars": 5}])
async def test_feedback_of_another_form_is_422(client: httpx.AsyncClient, body: dict[str, object]):
    assert (await client.put("/v1/runs/run-0001/feedback", json=body)).status_code == 422


async def test_feedback_on_no_run_is_404(client: httpx.AsyncClient):
    reply = await client.put("/v1/runs/run-none/feedback", json={"rating": "up"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
