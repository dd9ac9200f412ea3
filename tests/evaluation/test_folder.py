"""An evaluation on disk goes on where it was killed, and is not mixed with another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.evaluation.folder import HEADER, ROWS, EvaluationFolder, Header, Kind, Row
from vrag_ray.types import VragError

HEADER_OF_ALL = Header(
    kind=Kind.RETRIEVAL,
    suite="s",
    suite_hash="0123456789abcdef",
    questions=3,
    subject={"embedder": "a"},
    systems=("hybrid",),
    environment={"command": "one"},
)


def row(uid: str, value: float = 1.0) -> Row:
    return Row(system="hybrid", uid=uid, question=f"what is {uid}?", measures={"RR": value}, seconds=0.1)


def test_rows_are_there_after_a_kill_in_the_middle_of_a_line(tmp_path: Path) -> None:
    folder = EvaluationFolder.begin(tmp_path / "e", HEADER_OF_ALL)
    folder.add(row("a"))
    folder.add(row("b"))
    path = tmp_path / "e" / ROWS
    path.write_bytes(path.read_bytes()[:-7])
    again = EvaluationFolder.begin(tmp_path / "e", HEADER_OF_ALL)
    assert (again.has("hybrid", "a"), again.has("hybrid", "b"), again.is_complete) == (True, False, False)
    again.add(row("b", 0.5))
    again.add(row("c"))
    assert [row.uid for row in EvaluationFolder.open(tmp_path / "e").rows] == ["a", "b", "c"]
    assert EvaluationFolder.open(tmp_path / "e").is_complete


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"suite_hash": "ffff"}, "suite_hash: ffff, not 0123456789ab"),
        ({"subject": {"embedder": "b"}}, "embedder: b, not a"),
        ({"systems": ("hybrid", "text")}, "systems: hybrid, text, not hybrid"),
    ],
)
def test_another_evaluation_is_refused_with_what_differs(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    EvaluationFolder.begin(tmp_path / "e", HEADER_OF_ALL)
    with pytest.raises(VragError, match=problem):
        EvaluationFolder.begin(tmp_path / "e", HEADER_OF_ALL.model_copy(update=change))


def test_another_machine_may_go_on(tmp_path: Path) -> None:
    EvaluationFolder.begin(tmp_path / "e", HEADER_OF_ALL)
    elsewhere = HEADER_OF_ALL.model_copy(update={"environment": {"command": "two"}})
    assert EvaluationFolder.begin(tmp_path / "e", elsewhere).rows == ()


def test_what_is_no_evaluation_is_named(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=f"has no {HEADER}"):
        EvaluationFolder.open(tmp_path)
    EvaluationFolder.begin(tmp_path / "e", HEADER_OF_ALL)
    (tmp_path / "e" / ROWS).write_text('{"system": "hybrid"}\n')
    with pytest.raises(VragError, match=r"questions\.jsonl, line 1 cannot be read"):
        EvaluationFolder.open(tmp_path / "e")
