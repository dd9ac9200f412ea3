"""TREC files: out and in again, by our reader and by ir-measures."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest

from vrag_ray.evaluation.measures.ranking import in_order
from vrag_ray.evaluation.suites.trec import read_qrels, read_run, write_qrels, write_run
from vrag_ray.types import VragError

RANKED = {"q1": ["my file.pdf#p3", "b%20c", "d"], "q 2": ["d"], "q3": []}
QRELS = {"q1": {"my file.pdf#p3": 2, "d": 0}, "q 2": {"d": 1}}


def test_names_with_blanks_and_percent_signs_come_back_in_order(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RANKED, "our system")
    write_qrels(tmp_path / "qrels", QRELS)
    run = read_run(tmp_path / "run")
    assert {query: in_order(scores) for query, scores in run.items()} == {
        query: items for query, items in RANKED.items() if items
    }
    assert read_qrels(tmp_path / "qrels") == QRELS


def test_another_tool_reads_what_is_written(tmp_path: Path) -> None:
    write_run(tmp_path / "run", RANKED, "ours")
    write_qrels(tmp_path / "qrels", QRELS)
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
    run = list(ir_measures.read_trec_run(str(tmp_path / "run")))
    assert ir_measures.calc_aggregate([ir_measures.RR], qrels, run)[ir_measures.RR] == 1.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("q1 Q0 d1 1 0.5 tag\nq1 Q0 d2 2 0.4\n", "line 2: it has 5 fields"),
        ("q1 Q0 d1 1 high tag\n", "line 1: high is no number"),
        ("q1 Q0 d1 1 nan tag\n", "line 1: nan is no number"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(VragError, match=problem):
        read_run(tmp_path / "run")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"missing cannot be read"):
        read_qrels(tmp_path / "missing")
