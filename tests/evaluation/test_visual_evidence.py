"""Benchmarks of visual evidence in their published forms, about a small document made here, from file to table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pymupdf
import pytest
import yaml
from typer.testing import CliRunner, Result

from vrag_ray.cli.main import make_app
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.evaluation.folder import EvaluationFolder
from vrag_ray.ingest import ingest
from vrag_ray.types import VragError

pytestmark = pytest.mark.usefixtures("local_ray")
TARIFF = (
    "Shore power at the north quay costs 4,210 crowns a day.",
    "The price holds for ferries of every length and it holds",
    "from the first of May until the last day of September in",
    "each year, whether a ferry takes the power by day or not.",
)
OTHERS = (
    (
        "Pilots board incoming ships two miles off the breakwater,",
        "and leave them again at the gate of the inner lock.",
    ),
    (
        "Dogs are welcome on the pier when they are on a leash and",
        "bins for all their needs stand at both of its ends.",
    ),
)
ROWS_OF_TEXT = 15.0
"""Points from one line to the next."""


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory, local_ray: None) -> Path:
    """A document of three pages of 500 by 1,000 points. The tariff stands on page 2: its letters, 6 points wide, from
    x 50 to 392, its lines on baselines from 300 to 345. What stands elsewhere has none of its words."""
    folder = tmp_path_factory.mktemp("evidence")
    with pymupdf.open() as document:
        for number in range(3):
            page = document.new_page(width=500, height=1000)
            lines = TARIFF if number == 1 else OTHERS[number // 2]
            for line, text in enumerate(lines):
                page.insert_text((50, 300 + ROWS_OF_TEXT * line), text, fontname="cour", fontsize=10)
        page = document[1]
        for line, text in enumerate(OTHERS[0]):
            page.insert_text((50, 800 + ROWS_OF_TEXT * line), text, fontname="cour", fontsize=10)
        document.save(folder / "tariff.pdf")
    settings = Settings(collection=str(folder / "c"), spaces={"text": SpaceConfig(model="none")})
    ingest([folder / "tariff.pdf"], settings)
    return folder / "c"


ELEMENT = {
    "type": "text",
    "bbox": [291, 100, 348, 784],
    "content": " ".join(TARIFF),
    "source_page_id": 2,
    "source_doc_index": 1,
    "source_pdf_name": "tariff.pdf",
    "necessity": "necessary",
    "angle": 0,
}
"""From 291 to 348 thousandths of the page's height, and from 100 to 784 of its width."""
QUESTION = {
    "index": 1,
    "Question": "What does shore power at the north quay cost?",
    "Standard_Answer": "4,210 crowns a day",
    "Question_Type": "Factual Retrieval",
    "dataset_type": "Single-Doc",
    "language": "en",
    "description": "Port Tariffs",
    "PDF_Source": ["data/pdf/tariff.pdf"],
    "Evidence": [ELEMENT],
}
NOWHERE = {
    "index": 2,
    "Question": "Who conducts the zeppelin orchestra?",
    "Standard_Answer": "Nobody does",
    "dataset_type": "Multi (1-Gold)",
    "language": "zh",
}


def evaluated(collection: Path, folder: Path, file: str, rows: object, *more: str) -> Result:
    (folder / file).write_text(json.dumps(rows))
    (folder / "config.yaml").write_text(yaml.safe_dump({"spaces": {"text": {"model": "none"}}}))
    command = ("answers", folder / file, "-c", collection, "--config", folder / "config.yaml", "--out", folder / "e")
    return CliRunner().invoke(make_app(), ["evaluate", *map(str, command), "--agent", "extractive", *more])


def test_citevqa_from_its_file_to_a_table_by_groups(collection: Path, tmp_path: Path) -> None:
    # What cannot be answered is abstained from, and its evidence is a picture of another page.
    unseen = ELEMENT | {"type": "image", "content": "", "source_page_id": 3, "bbox": [600, 100, 700, 900]}
    done = evaluated(collection, tmp_path, "CiteVQA.json", [QUESTION, NOWHERE | {"Evidence": [unseen]}])
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    folder = EvaluationFolder.open(tmp_path / "e")
    facts = folder.header.subject
    assert facts["gold boxes"] == "pages from 1, corners (y0, x0, y1, x1); 1 of 1 compared hold their texts"
    assert facts["SAA"] == (
        "a reference stands in the answer, and evidence recall is 0.6 or more; relevance is not judged"
    )
    assert facts["licence of the questions"].startswith("CiteVQA: MIT")
    measures = {row.uid: row.measures for row in folder.rows}
    answered, abstained = measures["citevqa-1"], measures["citevqa-2"]
    names = ("right", "page recall", "evidence recall", "SAA")
    assert [answered[name] for name in names] == [1, 1, 1, 1], answered
    assert [abstained[name] for name in names] == [0, 0, 0, 0], abstained
    assert (abstained["abstained"], answered["evidence precision"]) == (1, 1)
    table = (tmp_path / "e" / "table.md").read_text()
    lines = {line.split(" | ")[0]: line for line in table.splitlines()}
    assert {f"| extractive, documents: {name}" for name in ("Single-Doc", "Multi (1-Gold)")} <= lines.keys()
    assert {"| extractive, language: en", "| extractive, evidence: image", "| extractive, kind: Factual Retrieval"} <= (
        lines.keys()
    )
    assert "| **extractive** | 2 | 0.500 | 0.500 |" in table


@pytest.mark.parametrize("first_page", [0, 1])
@pytest.mark.parametrize("order", ["(y0, x0, y1, x1)", "(x0, y0, x1, y1)"])
def test_the_texts_of_the_elements_decide_how_a_file_is_read(
    collection: Path, tmp_path: Path, first_page: int, order: str
) -> None:
    top, left, bottom, right = 291, 100, 348, 784
    box = [top, left, bottom, right] if order.startswith("(y0") else [left, top, right, bottom]
    element = ELEMENT | {"bbox": box, "source_page_id": 1 + first_page}
    done = evaluated(collection, tmp_path, "CiteVQA.json", [QUESTION | {"Evidence": [element]}])
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    folder = EvaluationFolder.open(tmp_path / "e")
    assert folder.header.subject["gold boxes"].startswith(f"pages from {first_page}, corners {order}; 1 of 1")
    [row] = folder.rows
    assert (row.gold, row.measures["SAA"]) == (("tariff.pdf#p2",), 1.0)


def docscope(bbox: list[float], page: int = 2) -> list[Mapping[str, object]]:
    return [
        {
            "id": "tariff::q1",
            "split": "test",
            "question": QUESTION["Question"],
            "answer": {"answer_text": "4,210 crowns a day", "is_answerable": True},
            "pdf": {"doc_id_str": "tariff"},
            "evidences": [{"local_id": "e1", "page": page, "bbox": bbox, "element_type": "text"}],
            "facts": [],
            "extract_class": "class1",
        }
    ]


def test_docscope_boxes_are_pixels_of_the_page_of_the_collection(collection: Path, tmp_path: Path) -> None:
    # At 144 dpi a point is two pixels: the tariff stands between x 100 and 784, y 582 and 696.
    done = evaluated(collection, tmp_path, "benchmark.json", docscope([100, 582, 784, 696]))
    assert done.exit_code == 0, f"{done.output} {done.exception!r}"
    folder = EvaluationFolder.open(tmp_path / "e")
    [row] = folder.rows
    [place] = row.gold_places
    assert place.box == pytest.approx((0.1, 0.291, 0.784, 0.348)) and place.pixels is None
    assert (row.measures["page recall"], row.measures["evidence recall"], row.measures["SAA"]) == (1, 1, 1)
    assert (row.groups["kind"], row.groups["split"]) == (("class1",), ("test",))
    assert "CC BY-NC-SA" in folder.header.subject["licence of the questions"]


def test_a_box_of_another_page_size_is_refused_before_the_first_question(collection: Path, tmp_path: Path) -> None:
    done = evaluated(collection, tmp_path, "benchmark.json", docscope([900, 582, 1400, 696]))
    message = r"'tariff::q1': gold place 'tariff.pdf#p2': .*beyond a page of 500 by 1000 points: ingest the file"
    with pytest.raises(VragError, match=message):
        raise done.exception or AssertionError
    assert not (tmp_path / "e").exists()
