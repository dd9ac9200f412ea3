"""The generated suite: the same for the same seed, and its answers stand where it says."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pymupdf
import pytest
import yaml
from typer.testing import CliRunner

from tests.support.ingest_material import PLANTED
from vrag_ray.cli.main import make_app
from vrag_ray.evaluation.folder import EvaluationFolder
from vrag_ray.training.data.files import load_examples
from vrag_ray.training.rewards.reward import normalised
from vrag_ray.worlds.harbours.facts import TUGS, Quantity, harbours
from vrag_ray.worlds.harbours.suite import UNANSWERABLE, Difficulty, questions, write_suite


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_suite(tmp_path_factory.mktemp("suite"), seed=5, count=4)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_same_seed_makes_the_same_bytes_and_another_one_others(made: tuple[Path, Path], tmp_path: Path) -> None:
    documents, asked = made
    same, again = write_suite(tmp_path / "same", seed=5, count=4)
    assert digests(same) == digests(documents) and again.read_bytes() == asked.read_bytes()
    _, other = write_suite(tmp_path / "other", seed=6, count=2)
    assert other.read_bytes() != asked.read_bytes()


def text_of(documents: Path, name: str, page: int) -> str:
    text: str = pymupdf.open(documents / name)[page - 1].get_text()
    return normalised(text)


def test_an_answer_stands_on_its_gold_page_where_that_has_text(made: tuple[Path, Path]) -> None:
    documents, asked = made
    looked = 0
    for example in load_examples(asked):
        for page in example.gold:
            assert (documents / page.file_name).is_file(), example.uid
            if example.kind in (Difficulty.LOOKUP, Difficulty.PICTURE) and "yearbook" in page.file_name:
                assert normalised(example.answers[0]) in text_of(documents, page.file_name, page.page), example.uid
                looked += 1
    assert looked == 4 * 3


def test_scans_and_photos_have_no_text_to_read_but_by_ocr(made: tuple[Path, Path]) -> None:
    documents, _ = made
    assert all(text_of(documents, path.name, 1) == "" for path in documents.glob("*-crane-sheet.pdf"))
    assert len(list(documents.glob("*.jpg"))) == 4


def test_what_is_asked_in_vain_stands_nowhere(made: tuple[Path, Path]) -> None:
    documents, asked = made
    everything = " ".join(page.get_text() for path in documents.glob("*.pdf") for page in pymupdf.open(path)).lower()
    vain = [example for example in load_examples(asked) if example.answers == (UNANSWERABLE,)]
    assert all(not example.gold for example in vain) and len(vain) == 8
    assert not any(word in everything for word in ("windmill", "windmühle", "moulin", "2032"))


def test_every_harbour_has_ten_questions_in_five_difficulties() -> None:
    found = Counter(example.kind for example in questions(harbours(0, 6)))
    assert found == {
        Difficulty.LOOKUP: 12,
        Difficulty.PICTURE: 24,
        Difficulty.TWO_HOPS: 6,
        Difficulty.COMPARE: 6,
        Difficulty.NOWHERE: 12,
    }
    sets = Counter(example.data_source for example in questions(harbours(0, 6)))
    assert sets == {"harbours-en": 20, "harbours-de": 20, "harbours-fr": 20}


@pytest.mark.parametrize("seed", range(5))
def test_facts_leave_no_answer_open(seed: int) -> None:
    most = harbours(seed, len(TUGS))
    assert len({one.name for one in most}) == len({one.tug for one in most}) == len(TUGS)
    # Of two neighbours one sold more.
    sold = [one.value(Quantity.FUEL, 2024) for one in most]
    assert all(first != second for first, second in zip(sold, [*sold[1:], sold[0]], strict=True))
    assert len({example.uid for example in questions(most)}) == 10 * len(TUGS)


def test_more_harbours_than_names_are_refused() -> None:
    with pytest.raises(ValueError, match="from 2 to 20"):
        harbours(0, 21)


@pytest.mark.usefixtures("local_ray")
def test_one_command_makes_asks_and_measures_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(yaml.safe_dump({"embedder": PLANTED.model_dump(mode="json")}))
    command = ["evaluate", "answers", "--suite", "generated", "--harbours", "2", "--config", "config.yaml", "--json"]
    done = CliRunner().invoke(make_app(), command)
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    folder = EvaluationFolder.open(Path("vrag-evaluations/generated-2-0"))
    assert folder.is_complete and len(folder.rows) == 20
    told = json.loads(done.stdout.splitlines()[-1])["summaries"]
    by_kind = {one["group"]: one["means"] for one in told}
    assert by_kind[f"kind: {Difficulty.LOOKUP}"]["gold found"] == 1.0
    assert by_kind[f"kind: {Difficulty.NOWHERE}"]["right"] == 1.0
    wrong = CliRunner().invoke(make_app(), [*command, "-c", "elsewhere"])
    assert wrong.exit_code != 0
