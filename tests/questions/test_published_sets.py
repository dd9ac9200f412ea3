"""Question files of benchmarks as they are published, in rows made here."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vrag_ray.questions.examples import AnswerFormat, GoldPage, PixelBox
from vrag_ray.questions.published_sets import load_questions
from vrag_ray.questions.rows import DataError

PAPER = {
    "doc_id": "harbours.pdf",
    "doc_type": "Research report / Introduction",
    "question": "How many cranes does the report count?",
    "answer": "7",
    "evidence_pages": "[3, 5]",
    "evidence_sources": "['Chart', 'Table']",
    "answer_format": "Int",
}
SLIDE: dict[str, object] = {
    "deck_name": "harbour-plan_95",
    "deck_url": "not-used",
    "qa_id": 4,
    "question": "Which year is the pier from?",
    "answer": "1851",
    "arithmetic_expression": "None",
    "evidence_pages": [6],
}
ELEMENT: dict[str, object] = {
    "type": "table",
    "bbox": [250, 100, 500, 900],
    "content": "<table><tr><td>Fees</td><td>4,210</td></tr></table>",
    "source_page_id": 3,
    "source_doc_index": 2,
    "source_pdf_name": "quay-b.pdf",
    "necessity": "necessary",
    "angle": 0,
}
CITED: dict[str, object] = {
    "index": "c7",
    "Question": "How much more were the fees of quay B?",
    "Standard_Answer": "210 crowns more.",
    "Question_Type": "Quantitative Reasoning",
    "dataset_type": "Multi (N-Gold)",
    "language": "en",
    "description": "Port Tariffs",
    "PDF_Source": ["data/pdf/quay-a.pdf", "data/pdf/quay-b.pdf"],
    "Evidence": [
        ELEMENT,
        ELEMENT | {"source_pdf_name": "quay-a.pdf", "type": "text", "content": "Fees were 4,000."},
        ELEMENT | {"source_page_id": 9, "necessity": "helpful", "type": "image", "content": None},
    ],
}
SCOPED: dict[str, object] = {
    "id": "urnuuid1::q1",
    "split": "dev",
    "question": "How deep is the basin?",
    "answer": {"answer_text": "12 m", "is_answerable": True},
    "pdf": {"doc_id_str": "urnuuid1"},
    "evidences": [
        {"local_id": "e1", "page": 4, "bbox": [100.5, 200, 300, 400], "element_type": "table"},
        {"local_id": "e2", "page": 4, "bbox": [300, 900, 100, 800], "element_type": "text"},
    ],
    "facts": [{"local_id": "f1", "evidence_local_id": "e1", "text_description": "The basin is 12 m deep."}],
    "extract_class": "class2",
}


def test_a_page_0_of_mmlongbench_is_left_out_and_results_say_so(tmp_path: Path) -> None:
    path = tmp_path / "samples.json"
    path.write_text(json.dumps([PAPER, PAPER | {"evidence_pages": "[0]"}, PAPER | {"evidence_pages": "[0, 4]"}]))
    loaded = load_questions(path)
    assert [[gold.page for gold in example.gold] for example in loaded.examples] == [[3, 5], [], [4]]
    assert [example.groups["hops"] for example in loaded.examples] == [("several pages",), ("none",), ("one page",)]
    assert loaded.facts == {"gold pages 0": "left out, of 2 questions: pages count from 1"}


def test_mmlongbench_has_its_lists_in_strings(tmp_path: Path) -> None:
    nowhere = PAPER | {"answer": "Not answerable", "evidence_pages": "[]", "evidence_sources": "[]"}
    (tmp_path / "samples.json").write_text(json.dumps([PAPER, nowhere | {"answer_format": "None"}]))
    loaded = load_questions(tmp_path / "samples.json")
    first, second = loaded.examples
    assert "CC BY-NC" in loaded.licence
    assert first.gold == (GoldPage(file_name="harbours.pdf", page=3), GoldPage(file_name="harbours.pdf", page=5))
    assert (first.answer_format, first.groups["evidence"]) == (AnswerFormat.INTEGER, ("Chart", "Table"))
    assert (first.groups["hops"], second.groups) == (("several pages",), {"hops": ("none",)})


def test_slidevqa_is_read_from_lines_and_from_parquet_with_pictures(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text(f"{json.dumps(SLIDE)}\n")
    pq.write_table(pa.Table.from_pylist([SLIDE | {"page_1": {"bytes": b"x" * 1000}}]), tmp_path / "test.parquet")
    lines, table = load_questions(tmp_path / "test.jsonl"), load_questions(tmp_path / "test.parquet")
    assert lines == table and "no redistribution" in lines.licence
    [example] = lines.examples
    assert (example.uid, example.gold) == (
        "slidevqa-harbour-plan_95-4",
        (GoldPage(file_name="harbour-plan_95.pdf", page=6),),
    )


def test_citevqa_gives_boxes_of_necessary_elements_by_every_reading_that_its_format_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "CiteVQA.json").write_text(json.dumps([CITED]))
    questions = load_questions(tmp_path / "CiteVQA.json")
    [example] = questions.examples
    assert questions.licence.startswith("CiteVQA: MIT")
    assert (example.uid, example.kind, example.answers) == (
        "citevqa-c7",
        "Quantitative Reasoning",
        ("210 crowns more.",),
    )
    # The likeliest reading: pages from 1, y before x. A table's words are what is left of its HTML.
    table, text = example.gold
    assert (table.file_name, table.page, table.box) == ("quay-b.pdf", 3, (0.1, 0.25, 0.9, 0.5))
    assert (text.file_name, table.text.split()) == ("quay-a.pdf", ["Fees", "4,210"])
    assert example.groups == {
        "hops": ("several pages",),
        "evidence": ("table", "text"),
        "documents": ("Multi (N-Gold)",),
        "language": ("en",),
        "domain": ("Port Tariffs",),
        "necessity": ("necessary", "helpful"),
    }
    places = {name: (read.gold[0].page, read.gold[0].box) for name, [read] in questions.readings.items()}
    assert places == {
        "pages from 1, corners (y0, x0, y1, x1)": (3, (0.1, 0.25, 0.9, 0.5)),
        "pages from 1, corners (x0, y0, x1, y1)": (3, (0.25, 0.1, 0.5, 0.9)),
        "pages from 0, corners (y0, x0, y1, x1)": (4, (0.1, 0.25, 0.9, 0.5)),
        "pages from 0, corners (x0, y0, x1, y1)": (4, (0.25, 0.1, 0.5, 0.9)),
    }
    # A page 0 anywhere in the file settles how pages count.
    first_page = CITED | {"index": 8, "Evidence": [ELEMENT | {"source_page_id": 0}]}
    (tmp_path / "CiteVQA.json").write_text(json.dumps([CITED, first_page]))
    readings = load_questions(tmp_path / "CiteVQA.json").readings
    assert [name.split(",")[0] for name in readings] == ["pages from 0", "pages from 0"]
    assert [read.gold[0].page for read in next(iter(readings.values()))] == [4, 1]


def test_docscope_gives_boxes_in_pixels_and_questions_without_answer(tmp_path: Path) -> None:
    nowhere = {"answer": {"answer_text": "", "is_answerable": False}, "evidences": [], "id": "urnuuid1::q2"}
    (tmp_path / "benchmark.json").write_text(json.dumps([SCOPED, SCOPED | nowhere]))
    questions = load_questions(tmp_path / "benchmark.json")
    first, second = questions.examples
    assert "CC BY-NC-SA 4.0" in questions.licence and questions.readings == {}
    assert first.gold == (
        GoldPage(file_name="urnuuid1.pdf", page=4, pixels=PixelBox(corners=(100.5, 200, 300, 400), dpi=144)),
        GoldPage(file_name="urnuuid1.pdf", page=4, pixels=PixelBox(corners=(100, 800, 300, 900), dpi=144)),
    )
    assert (first.kind, first.groups) == (
        "class2",
        {"hops": ("one page",), "evidence": ("table", "text"), "split": ("dev",)},
    )
    assert (second.answers, second.gold, second.groups["hops"]) == (("Unanswerable",), (), ("none",))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (CITED | {"Evidence": [ELEMENT | {"bbox": [500, 100, 250, 900]}]}, r"Evidence\.0\.bbox: .*correct its corners"),
        (CITED | {"Evidence": [ELEMENT | {"bbox": [0, 0, 90, 1200]}]}, r"Evidence\.0\.bbox\.3: .*less than or equal"),
        (CITED | {"Evidence": [ELEMENT | {"source_page_id": None}]}, r"Evidence\.0\.source_page_id: .*leave this evi"),
        (CITED | {"Evidence": [ELEMENT | {"necessity": "core"}]}, "no necessity is 'necessary' .but 'core'.*: mark"),
        (SCOPED | {"evidences": [{"page": 1, "bbox": [5, 5, 5, 9]}]}, r"evidences\.0\.bbox: .*has no area"),
        (SCOPED | {"evidences": [{"page": 0, "bbox": [5, 5, 6, 9]}]}, r"evidences\.0\.page: "),
        (SCOPED | {"answer": {"answer_text": " "}}, "answer.answer_text is empty: give the answer"),
    ],
)
def test_a_row_of_evidence_that_cannot_be_a_place_is_named_with_a_remedy(
    tmp_path: Path, row: dict[str, object], message: str
) -> None:
    good = CITED if "Evidence" in row else SCOPED
    (tmp_path / "q.json").write_text(json.dumps([good, row | {"index": "other", "id": "other"}]))
    with pytest.raises(
        DataError, match=rf"q\.json: row 2: {message}" if message[0] in "Ee" else rf"row 2: .*{message}"
    ):
        load_questions(tmp_path / "q.json")


def test_two_rows_of_one_index_are_refused(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps([CITED, CITED]))
    with pytest.raises(DataError, match=r"row 2: uid: 'c7' is the uid of row 1 already"):
        load_questions(tmp_path / "q.json")


def test_other_forms_are_read_as_they_were(tmp_path: Path) -> None:
    row = {"uid": "a", "query": "how?", "reference_answer": "so"}
    (tmp_path / "vidoseek.json").write_text(json.dumps({"examples": [row]}))
    loaded = load_questions(tmp_path / "vidoseek.json")
    assert (loaded.examples[0].question, loaded.licence) == ("how?", "ViDoSeek: Apache-2.0")


def test_a_broken_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "samples.json").write_text(json.dumps([PAPER, PAPER | {"answer_format": "Poem"}]))
    with pytest.raises(DataError, match=r"samples\.json: row 2: answer_format"):
        load_questions(tmp_path / "samples.json")
