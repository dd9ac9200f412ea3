"""Question files of benchmarks as they are published, in rows made here."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vrag_ray.evaluation.suites.published_sets import load_questions
from vrag_ray.training.data.examples import AnswerFormat, GoldPage
from vrag_ray.training.data.rows import DataError

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


def test_mmlongbench_has_its_lists_in_strings(tmp_path: Path) -> None:
    nowhere = PAPER | {"answer": "Not answerable", "evidence_pages": "[]", "evidence_sources": "[]"}
    (tmp_path / "samples.json").write_text(json.dumps([PAPER, nowhere | {"answer_format": "None"}]))
    found = load_questions(tmp_path / "samples.json")
    first, second = found.examples
    assert "CC BY-NC" in found.licence
    assert first.gold == (GoldPage(file_name="harbours.pdf", page=3), GoldPage(file_name="harbours.pdf", page=5))
    assert (first.answer_format, first.groups["evidence"]) == (AnswerFormat.INTEGER, ("Chart", "Table"))
    assert (first.groups["hops"], second.groups) == (("several pages",), {"hops": ("none",)})


def test_slidevqa_is_read_from_lines_and_from_parquet_with_pictures(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text(f"{json.dumps(SLIDE)}\n")
    pq.write_table(pa.Table.from_pylist([SLIDE | {"page_1": {"bytes": b"x" * 1000}}]), tmp_path / "test.parquet")
    lines, table = load_questions(tmp_path / "test.jsonl"), load_questions(tmp_path / "test.parquet")
    assert lines == table and "no redistribution" in lines.licence
    [one] = lines.examples
    assert (one.uid, one.gold) == ("slidevqa-harbour-plan_95-4", (GoldPage(file_name="harbour-plan_95.pdf", page=6),))


def test_other_forms_are_read_as_they_were(tmp_path: Path) -> None:
    row = {"uid": "a", "query": "how?", "reference_answer": "so"}
    (tmp_path / "vidoseek.json").write_text(json.dumps({"examples": [row]}))
    found = load_questions(tmp_path / "vidoseek.json")
    assert (found.examples[0].question, found.licence) == ("how?", "ViDoSeek: Apache-2.0")


def test_a_broken_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "samples.json").write_text(json.dumps([PAPER, PAPER | {"answer_format": "Poem"}]))
    with pytest.raises(DataError, match=r"samples\.json: row 2: answer_format"):
        load_questions(tmp_path / "samples.json")
