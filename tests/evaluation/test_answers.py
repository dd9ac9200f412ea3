"""``vrag evaluate answers``: what agents answer, measured against references, gold pages and a judge."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.support import material
from tests.support.ingest_material import PLANTED, settings_for
from tests.support.judge_stub import judge_stub
from tests.support.openai_stub import openai_stub
from vrag_ray.agent.record import RunRecord
from vrag_ray.cli.main import make_app
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.evaluation.folder import ROWS, EvaluationFolder, Row
from vrag_ray.ingest import ingest
from vrag_ray.types import VragError

pytestmark = pytest.mark.usefixtures("local_ray")
QUESTIONS: list[dict[str, object]] = [
    {
        "uid": "gold",
        "question": "Which colour has the lighthouse of Ardmore?",
        "answers": ["white", "ivory"],
        "gold": [{"file_name": "ardmore.png", "page": 1}],
        "kind": "single_hop",
    },
    {"uid": "wrong", "question": "When was the pier of Belmore built?", "answers": ["in 1907"]},
    {"uid": "none", "question": "Who is the emperor of the zeppelins?", "answers": ["Not answerable"]},
]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory, local_ray: None) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    (folder / "ardmore.txt").write_text("The lighthouse of Ardmore has the colour white.")
    (folder / "belmore.txt").write_text("The pier of Belmore was built in 1851.")
    ingest([folder / "ardmore.txt", folder / "belmore.txt"], settings_for(folder / "c"))
    return folder / "c"


@pytest.fixture
def evaluated(collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command on the questions, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    questions = [{name: value for name, value in question.items() if name != "gold"} for question in QUESTIONS]
    Path("q.jsonl").write_text("".join(f"{json.dumps(question)}\n" for question in questions))

    def run(*more: object, file: str = "q.jsonl", **settings: object) -> Result:
        Path("config.yaml").write_text(
            yaml.safe_dump({"spaces": {"text": PLANTED.model_dump(mode="json")}, **settings})
        )
        command = ["evaluate", "answers", file, "-c", str(collection), "--config", "config.yaml", *map(str, more)]
        return CliRunner().invoke(make_app(), command)

    return run


def rows(folder: str = "vrag-evaluations/answers-q") -> dict[str, Row]:
    return {row.uid: row for row in EvaluationFolder.open(Path(folder)).rows}


def test_answers_abstentions_and_wrong_references_are_counted_separately(evaluated: Callable[..., Result]) -> None:
    done = evaluated()
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    by_uid = rows()
    right = {uid: row.measures["right"] for uid, row in by_uid.items()}
    assert right == {"gold": 1.0, "wrong": 0.0, "none": 1.0}, by_uid
    assert (by_uid["gold"].measures["contains"], by_uid["none"].measures["abstained"]) == (1.0, 1.0)
    assert "EM" not in by_uid["none"].measures and by_uid["none"].groups["answerable"] == ("no",)
    assert by_uid["gold"].groups["kind"] == ("single_hop",)
    # The notice of the extractive policy is no part of what it says.
    assert by_uid["gold"].measures["F1"] > 0.2
    [record] = [
        candidate
        for path in Path("vrag-evaluations/answers-q/runs/extractive").glob("*.json")
        if (candidate := RunRecord.from_json(path.read_text())).question == QUESTIONS[0]["question"]
    ]
    assert "white" in record.answer and record.citations
    report = CliRunner().invoke(make_app(), ["evaluate", "report", "vrag-evaluations/answers-q"])
    page = Path(report.stdout.strip()).read_text()
    assert "extractive right (abstained)" in page and "extractive wrong" in page and "Right: white / ivory" in page


def test_a_killed_evaluation_asks_only_what_is_left(evaluated: Callable[..., Result]) -> None:
    evaluated()
    path = Path("vrag-evaluations/answers-q") / ROWS
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]) + lines[2][:9])
    assert evaluated().exit_code == 0
    again = path.read_text().splitlines(keepends=True)
    assert again[:2] == lines[:2] and len(again) == 3


def test_a_judge_decides_what_is_right_by_one_request_an_answer(evaluated: Callable[..., Result]) -> None:
    with judge_stub(lambda body, number: "<judge>True</judge>") as judge:
        command = ("--judge", judge.base_url, "--judge-model", "stub")
        assert evaluated(*command).exit_code == 0
        # Of a question without answer abstaining decides.
        assert len(judge.requests) == 2
        assert all(row.measures["right"] == 1.0 for row in rows().values())
        assert rows()["wrong"].measures["contains"] == 0.0
        (Path("vrag-evaluations/answers-q") / ROWS).unlink()
        assert evaluated(*command).exit_code == 0
        assert len(judge.requests) == 2


def test_a_verdict_that_is_none_is_no_row_and_comes_later(evaluated: Callable[..., Result]) -> None:
    says = ["perhaps"]
    with judge_stub(lambda body, number: says[-1]) as judge:
        command = ("--judge", judge.base_url, "--judge-model", "stub")
        failed = evaluated(*command)
        assert failed.exit_code != 0 and "2 of 3 have no result" in str(failed.exception)
        assert list(rows()) == ["none"]
        says.append("<judge>False</judge>")
        assert evaluated(*command).exit_code == 0
        assert rows()["gold"].measures["right"] == 0.0


def test_gold_pages_that_the_collection_has_not_are_named(evaluated: Callable[..., Result]) -> None:
    Path("gold.jsonl").write_text(f"{json.dumps(QUESTIONS[0])}\n")
    with pytest.raises(VragError, match=r"'gold': gold file 'ardmore\.png' is not in the collection"):
        raise evaluated(file="gold.jsonl").exception or AssertionError


def test_questions_to_an_endpoint_are_sent_concurrently(evaluated: Callable[..., Result]) -> None:
    many = [{"uid": f"u{n}", "question": f"Which colour has lighthouse {n}?", "answers": ["white"]} for n in range(16)]
    Path("many.jsonl").write_text("".join(f"{json.dumps(question)}\n" for question in many))

    def slow(_body: object, _number: int) -> str:
        time.sleep(0.5)
        return "<answer>white</answer>"

    with openai_stub(slow) as stub:
        openai = {"base_url": stub.base_url, "model": "stub", "api_key": "none"}
        done = evaluated("--agent", "vrag", "--concurrency", 16, file="many.jsonl", openai=openai)
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    by_uid = rows("vrag-evaluations/answers-many")
    assert all(row.measures["right"] == 1.0 for row in by_uid.values())
    header = EvaluationFolder.open(Path("vrag-evaluations/answers-many")).header
    assert header.subject["model"] == "stub"
    # One after the other they would take as long as all together.
    assert max(row.seconds for row in by_uid.values()) < sum(row.seconds for row in by_uid.values()) / 4


def test_samples_have_a_spread_and_are_compared_by_question(evaluated: Callable[..., Result]) -> None:
    says = iter(["white", "green"] * 3)
    with openai_stub(lambda body, number: f"<answer>{next(says)}</answer>") as stub:
        openai = {"base_url": stub.base_url, "model": "stub", "api_key": "none"}
        only = [QUESTIONS[0] | {"gold": []}]
        Path("one.jsonl").write_text(f"{json.dumps(only[0])}\n")
        done = evaluated("--agent", "vrag", "--samples", 2, "--concurrency", 1, file="one.jsonl", openai=openai)
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    folder = EvaluationFolder.open(Path("vrag-evaluations/answers-one"))
    assert sorted((row.sample, row.measures["right"]) for row in folder.rows) == [(0, 1.0), (1, 0.0)]
    assert "0.500 ± 0.707" in (folder.root / "table.md").read_text()
    assert len(list((folder.root / "runs" / "vrag").glob("*.json"))) == 2


def test_two_judges_both_judge_and_their_agreement_is_reported(evaluated: Callable[..., Result]) -> None:
    with (
        judge_stub(lambda body, number: "<judge>True</judge>") as kind,
        judge_stub(lambda body, number: f"<judge>{'white' in str(body['messages'])}</judge>") as strict,
    ):
        done = evaluated(
            *("--judge", kind.base_url, "--judge-model", "kind", "--judge", strict.base_url, "--judge-model", "strict")
        )
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    by_uid = rows()
    assert {uid: row.measures.get("judges agree") for uid, row in by_uid.items()} == {
        "gold": 1.0,
        "wrong": 0.0,
        "none": None,
    }
    assert (by_uid["wrong"].measures["right"], by_uid["wrong"].measures["right by strict"]) == (1.0, 0.0)
    assert EvaluationFolder.open(Path("vrag-evaluations/answers-q")).header.subject["right"] == (
        "judged by kind, beside strict"
    )


def test_ray_actors_give_the_same_rows_as_this_process(evaluated: Callable[..., Result]) -> None:
    assert evaluated("--out", "here").exit_code == 0
    done = evaluated("--out", "there", "--workers", 2, "--samples", 1)
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    here, there = rows("here"), rows("there")
    assert {uid: (row.answer, row.measures, row.found) for uid, row in here.items()} == {
        uid: (row.answer, row.measures, row.found) for uid, row in there.items()
    }
    assert len(list(Path("there/runs/extractive").glob("*.json"))) == 3


@pytest.mark.parametrize("workers", [0, 1])
def test_cited_and_right_pages_are_kept_as_small_pictures_and_shown(tmp_path: Path, workers: int) -> None:
    (tmp_path / "report.pdf").write_bytes(material.pdf())
    own = Settings(collection=str(tmp_path / "c"), spaces={"text": SpaceConfig(model="none")})
    ingest([tmp_path / "report.pdf"], own)
    gold = [{"file_name": "report.pdf", "page": page, "box": [0.1, 0.1, 0.5, 0.5]} for page in (2, 3)]
    question = {"uid": "u", "question": "How much did dredging the northern basin cost?", "answers": ["4.7 million"]}
    (tmp_path / "q.jsonl").write_text(json.dumps(question | {"gold": gold}))
    (tmp_path / "config.yaml").write_text("spaces: {text: {model: none}}")
    command = ("answers", tmp_path / "q.jsonl", "-c", own.collection, "--config", tmp_path / "config.yaml")
    for more in ((*command, "--out", tmp_path / "e", "--workers", workers), ("report", tmp_path / "e")):
        done = CliRunner().invoke(make_app(), ["evaluate", *map(str, more)])
        assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    files = sorted(path.name[-7:] for path in (tmp_path / "e" / "pages").iterdir())
    assert files == ["-p2.jpg", "-p3.jpg"]
    page = (tmp_path / "e" / "report.html").read_text()
    assert page.count("<symbol ") == 2 and page.count("stroke-dasharray") == 2
    assert "page 2: cited by [1] in a box; the answer stands here in a dashed box" in page
    assert str(tmp_path) not in page


def test_options_that_exclude_each_other_are_refused(evaluated: Callable[..., Result]) -> None:
    done = evaluated("--url", "http://127.0.0.1:1", "--workers", 2)
    assert done.exit_code == 2 and "leave --workers out" in done.output
    done = evaluated("--judge", "http://127.0.0.1:1")
    assert done.exit_code == 2 and "--judge and --judge-model go together" in done.output


def test_the_rule_of_mmlongbench_takes_the_short_answer_that_a_judge_finds(
    evaluated: Callable[..., Result],
) -> None:
    question = QUESTIONS[0] | {"gold": [], "answers": ["white"], "answer_format": "Str"}
    nowhere = QUESTIONS[2] | {"answer_format": "None"}
    Path("forms.jsonl").write_text(f"{json.dumps(question)}\n{json.dumps(nowhere)}\n")
    assert evaluated("--out", "plain", file="forms.jsonl").exit_code == 0
    # In a sentence of its own the word is not the reference.
    assert {uid: row.measures["MMLB"] for uid, row in rows("plain").items()} == {"gold": 0.0, "none": 1.0}

    def says(body: dict[str, object], _number: int) -> str:
        return "<short>White</short>" if "shorten" in str(body["messages"]) else "<judge>True</judge>"

    with judge_stub(says) as judge:
        command = ("--judge", judge.base_url, "--judge-model", "stub", "--out", "judged")
        done = evaluated(*command, file="forms.jsonl")
        assert done.exit_code == 0, f"{done.output} {done.exception!r}"
        assert {uid: row.measures["MMLB"] for uid, row in rows("judged").items()} == {"gold": 1.0, "none": 1.0}
        assert EvaluationFolder.open(Path("judged")).header.subject["MMLB"] == "short answers extracted by stub"
        assert "MMLB F1" in Path("judged/table.md").read_text()
        requests_before = len(judge.requests)
        (Path("judged") / ROWS).unlink()
        assert evaluated(*command, file="forms.jsonl").exit_code == 0
        assert len(judge.requests) == requests_before


def test_a_reply_without_a_short_answer_makes_no_row(evaluated: Callable[..., Result]) -> None:
    Path("forms.jsonl").write_text(f"{json.dumps(QUESTIONS[0] | {'gold': [], 'answer_format': 'Str'})}\n")
    with judge_stub(lambda body, number: "it is white") as judge:
        failed = evaluated("--judge", judge.base_url, "--judge-model", "stub", file="forms.jsonl")
    assert failed.exit_code != 0 and "stub gave no short answer in 3 replies" in str(failed.exception)
