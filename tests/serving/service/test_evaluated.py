"""``vrag evaluate --url``: the same measures of a running service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from vrag_ray.cli.main import make_app
from vrag_ray.evaluation.folder import EvaluationFolder
from vrag_ray.serving.local import LocalService

QUESTIONS = [
    {
        "uid": "page",
        "question": "dredging cost of the northern basin",
        "answers": ["nobody knows"],
        "gold": [{"file_name": "harbour.pdf", "page": 2, "box": [0.05, 0.05, 0.95, 0.5]}],
    },
    {"uid": "none", "question": "Who is the emperor of the zeppelins?", "answers": ["Not answerable"]},
]


@pytest.fixture
def questions_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "q.jsonl"
    file.write_text("".join(f"{json.dumps(question)}\n" for question in QUESTIONS))
    return file


def evaluated(what: str, questions_file: Path, *more: str) -> Result:
    return CliRunner().invoke(make_app(), ["evaluate", what, str(questions_file), *more])


def test_searches_and_answers_of_a_service_are_measured_against_its_documents(
    service: LocalService, library: dict[str, str], questions_file: Path
) -> None:
    done = evaluated("retrieval", questions_file, "--url", service.base_url, "--mode", "hybrid")
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    searches = EvaluationFolder.open(Path("vrag-evaluations/searches-q"))
    # A question without gold is no search.
    [row] = searches.rows
    assert (row.uid, row.measures["RR"], row.gold) == ("page", 1.0, ("harbour.pdf#p2",))
    assert row.measures["box IoU"] > 0
    assert searches.header.subject["asked"] == "a running service"
    done = evaluated("answers", questions_file, "--url", service.base_url)
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    answers = {row.uid: row for row in EvaluationFolder.open(Path("vrag-evaluations/answers-q")).rows}
    assert answers["page"].measures["gold found"] == 1.0
    assert answers["none"].measures["right"] == 1.0


def test_a_collection_that_the_service_has_not_and_documents_of_another_one_are_named(
    service: LocalService, library: dict[str, str], questions_file: Path
) -> None:
    unknown = evaluated("answers", questions_file, "--url", service.base_url, "-c", "nowhere")
    assert "there is no collection 'nowhere' here: use collection, side" in str(unknown.exception)
    empty = evaluated("answers", questions_file, "--url", service.base_url, "-c", "side")
    assert "'page': gold file 'harbour.pdf' is not in the collection" in str(empty.exception)
