"""``vrag evaluate`` from files to tables, as a user runs it: a data set in the form of BEIR, PDFs, and TREC files."""

from __future__ import annotations

import json
from pathlib import Path

import ir_measures
import pymupdf
import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.support.ingest_material import PLANTED
from vrag_ray.cli.main import make_app
from vrag_ray.evaluation.folder import ROWS, EvaluationFolder
from vrag_ray.types import VragError

pytestmark = pytest.mark.usefixtures("local_ray")
BIRDS = ("albatross", "bittern", "cormorant", "dunlin", "eider", "fulmar", "gannet", "heron")


def vrag(*arguments: object) -> Result:
    return CliRunner().invoke(make_app(), ["evaluate", *map(str, arguments)])


def good(*arguments: object) -> str:
    done = vrag(*arguments)
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    return done.stdout


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"spaces": {"text": PLANTED.model_dump(mode="json")}}))
    return tmp_path


@pytest.fixture
def beir(place: Path) -> Path:
    """Birds, one a document; one text is there twice; one query has no answer among the first."""
    folder = place / "birds"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": f"b/{n}", "title": bird, "text": f"the {bird} nests here"} for n, bird in enumerate(BIRDS)]
    corpus += [{"_id": "twin 0", "title": BIRDS[0], "text": f"the {BIRDS[0]} nests here"}, {"_id": "e", "text": ""}]
    queries = [{"_id": f"q{n}", "text": f"{bird} nests"} for n, bird in enumerate(BIRDS)]
    queries.append({"_id": "unjudged", "text": "never asked"})
    judged = [f"q{n}\tb/{n}\t1" for n in range(len(BIRDS))] + ["q0\ttwin 0\t2", "q1\tb/2\t0"]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, corpus)) + "\n")
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(judged) + "\n")
    return folder


def test_a_data_set_of_the_form_of_beir_is_searched_by_every_leg_and_scored_as_others_score_it(beir: Path) -> None:
    printed = good("retrieval", beir, "--config", "config.yaml", "--gpus", 0)
    root = Path("vrag-evaluations/birds-test")
    folder = EvaluationFolder.open(root)
    assert folder.header.systems == ("hybrid", "lexical", "text") and folder.is_complete
    # Both names of the text that is there twice were found, and the empty document is none.
    [first] = [row for row in folder.rows if row.key == ("lexical", "q0", 0)]
    assert set(first.found[:2]) == {"b/0", "twin 0"} and first.measures["R@5"] == 1.0
    qrels = list(ir_measures.read_trec_qrels(str(root / "qrels.trec")))
    for system in folder.header.systems:
        run = list(ir_measures.read_trec_run(str(root / f"{system}.run.trec")))
        measure = ir_measures.nDCG @ 10
        theirs = ir_measures.calc_aggregate([measure], qrels, run)[measure]
        own = [row.measures["nDCG@10"] for row in folder.rows if row.system == system]
        assert sum(own) / len(own) == pytest.approx(theirs, abs=1e-9)
        scored = json.loads(
            good("retrieval", "--run", root / f"{system}.run.trec", "--qrels", root / "qrels.trec", "--json")
        )
        assert scored["means"]["nDCG@10"] == pytest.approx(theirs, abs=1e-9)
    assert f"| **lexical** | {len(BIRDS)} | " in printed
    refused = vrag("retrieval", "--run", root / "lexical.run.trec", "--qrels", root / "qrels.trec", "--out", "scores")
    assert refused.exit_code == 2
    assert "printed and not stored" in " ".join(refused.output.split())


def test_killed_in_the_middle_and_done_again_it_ends_with_the_same_table(beir: Path) -> None:
    command = ("retrieval", beir, "--config", "config.yaml", "--mode", "lexical")
    good(*command)
    root = Path("vrag-evaluations/birds-test")
    whole, table = (root / ROWS).read_text(), (root / "table.md").read_text()
    lines = whole.splitlines(keepends=True)
    (root / ROWS).write_text("".join(lines[:3]) + lines[3][:20])
    good(*command)
    again = (root / ROWS).read_text().splitlines(keepends=True)
    # Questions with an answer were not sent again.
    assert again[:3] == lines[:3]
    assert sorted(json.loads(line)["uid"] for line in again) == sorted(json.loads(line)["uid"] for line in lines)

    def without_times(text: str) -> list[str]:
        return [line.rsplit(" | ", 2)[0] for line in text.splitlines()]

    assert without_times((root / "table.md").read_text()) == without_times(table)
    # Another question in the same folder is refused.
    with pytest.raises(VragError, match=r"holds another evaluation .*systems: text, not lexical"):
        raise vrag(*command[:-1], "text").exception or AssertionError


def test_another_corpus_of_the_same_name_is_not_taken_for_the_old_one(beir: Path) -> None:
    command = ("retrieval", beir, "--config", "config.yaml", "--mode", "lexical")
    good(*command)
    with (beir / "corpus.jsonl").open("a") as stream:
        stream.write(json.dumps({"_id": "new", "text": "the osprey nests here"}) + "\n")
    with pytest.raises(VragError, match=r"holds another evaluation .*corpus: "):
        raise vrag(*command).exception or AssertionError


def outlined(path: Path, birds: tuple[str, ...]) -> Path:
    document = pymupdf.open()
    for text in ("Contents", *(f"The {bird} nests on this page." for bird in birds), "Index of birds"):
        document.new_page().insert_text((72, 72), text)
    titles = ("Contents", *birds, "Index")
    document.set_toc([[1, title, page] for page, title in enumerate(titles, start=1)])
    document.save(path)
    return path


def test_outlines_of_pdfs_are_tests_each_in_its_own_document(place: Path) -> None:
    pdfs = [outlined(place / "one.pdf", BIRDS[:4]), outlined(place / "two.pdf", BIRDS[2:6])]
    (place / "words.json").write_text(json.dumps({"which one nests": "dunlin"}))
    good("outline", *pdfs, "--paraphrases", "words.json", "--config", "config.yaml", "--out", "results")
    folder = EvaluationFolder.open(Path("results"))
    lexical = {row.uid: row for row in folder.rows if row.system == "lexical"}
    assert len(lexical) == 9
    titles = [row for row in lexical.values() if row.groups["wording"] == ("title",)]
    assert all(row.measures["Success@1"] == 1.0 for row in titles)
    assert all({item.partition("#")[0] for item in row.found} == set(row.groups["document"]) for row in titles)
    [paraphrase] = [row for row in lexical.values() if row.groups["wording"] == ("paraphrase",)]
    assert paraphrase.gold == ("one.pdf#p5",)
    report = json.loads(good("compare", "results", "results", "--system", "text", "--json"))
    assert all(row["low"] == row["high"] == 0 for row in report["differences"])


def test_a_fall_that_is_too_great_ends_with_an_error(beir: Path) -> None:
    good("retrieval", beir, "--config", "config.yaml")
    root = Path("vrag-evaluations/birds-test")
    path = root / ROWS
    worse = [json.loads(line) for line in path.read_text().splitlines()]
    for row in worse:
        if row["system"] == "text":
            row["measures"]["RR"] = 0.0
    path.write_text("".join(f"{json.dumps(row)}\n" for row in worse))
    command = ("compare", root, root, "--system", "hybrid", "--second-system", "text", "--measure", "RR")
    assert "worse" in good(*command)
    assert vrag(*command, "--not-worse-than", "1").exit_code == 1
    assert vrag(*command, "--not-worse-than", "100").exit_code == 0


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("corpus.jsonl", '{"title": "a"}\n', r"corpus\.jsonl, line 1: it is no object with _id"),
        ("queries.jsonl", "{\n", r"queries\.jsonl cannot be read"),
        ("qrels/test.tsv", "q0\tb/0\n", r"test\.tsv, line 1: it is not query-id"),
        ("qrels/test.tsv", "q77\tb/0\t1\n", "has no query q77, which"),
    ],
)
def test_what_is_wrong_in_a_data_set_is_named(beir: Path, file: str, text: str, problem: str) -> None:
    (beir / file).write_text(text)
    with pytest.raises(VragError, match=problem):
        raise vrag("retrieval", beir, "--config", "config.yaml").exception or AssertionError


def test_a_split_that_is_not_there_and_a_pdf_without_bookmarks_are_named(beir: Path, place: Path) -> None:
    with pytest.raises(VragError, match=r"has no qrels/dev\.tsv: splits there are test"):
        raise vrag("retrieval", beir, "--split", "dev", "--config", "config.yaml").exception or AssertionError
    bare = pymupdf.open()
    bare.new_page().insert_text((72, 72), "words")
    bare.save(place / "bare.pdf")
    with pytest.raises(VragError, match=r"bare\.pdf has no outline"):
        raise vrag("outline", place / "bare.pdf", "--config", "config.yaml").exception or AssertionError
