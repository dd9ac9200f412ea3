"""An evaluation on disk: what was evaluated, and a line a question, so that a killed run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.questions.examples import GroupValues
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.types import VragError

HEADER, ROWS = "evaluation.json", "questions.jsonl"
Model = TypeVar("Model", bound=BaseModel)
Key = tuple[str, str, int]
"""System, uid and sample of a row."""


class Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Kind(StrEnum):
    RETRIEVAL = "retrieval"
    ANSWERS = "answers"


class Header(Stored):
    """The questions and the system. ``subject`` is what was evaluated (collection, version, model, settings that
    matter), ``systems`` are its variants: modes of search, or agents; ``samples`` is the number of runs of each
    question. ``suite_hash`` is that of questions and gold.

    ``environment`` has versions, hardware and command: it may differ when a run goes on.
    """

    kind: Kind
    suite: str
    suite_hash: str
    questions: int
    subject: Mapping[str, str]
    systems: tuple[str, ...]
    samples: int = 1
    environment: Mapping[str, str] = {}

    @property
    def row_total(self) -> int:
        """Of the whole evaluation."""
        return self.questions * len(self.systems) * self.samples

    def differs_from(self, other: Header) -> list[str]:
        """What is not the same of those fields that make results comparable, as ``name: this, not that``."""
        mine, theirs = self._identity(), other._identity()
        names = dict.fromkeys((*mine, *theirs))
        return [
            f"{name}: {mine.get(name)}, not {theirs.get(name)}" for name in names if mine.get(name) != theirs.get(name)
        ]

    def _identity(self) -> dict[str, object]:
        return {
            "kind": self.kind.value,
            "suite": self.suite,
            "suite_hash": self.suite_hash[:12],
            "systems": ", ".join(self.systems),
            "samples": str(self.samples),
            **self.subject,
        }


class Row(Stored):
    """One question put to one system, for the ``sample``-th time (from 0). ``measures`` are those of the question, by
    name; ``groups`` are what it is counted under, by the name of the division (``kind``: ``chart``). ``found`` and
    ``gold`` are items, best first; ``gold_places`` says where those of an answer stand."""

    system: str
    uid: str
    question: str
    measures: Mapping[str, float]
    seconds: float
    sample: int = 0
    groups: Mapping[str, GroupValues] = {}
    found: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    answer: str = ""
    references: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    gold_places: tuple[GoldPlace, ...] = ()

    @property
    def key(self) -> Key:
        return self.system, self.uid, self.sample


class EvaluationFolder:
    """Rows by system and question, in the order in which they came. Each is on disk before the next is begun."""

    def __init__(self, root: Path, header: Header, rows: dict[Key, Row]) -> None:
        self.root, self.header, self._rows = root, header, rows

    @classmethod
    def begin(cls, root: Path, header: Header) -> EvaluationFolder:
        """Make the folder, or go on in it. Raises VragError where it holds another evaluation."""
        if not (root / HEADER).exists():
            root.mkdir(parents=True, exist_ok=True)
            _write(root / HEADER, header.model_dump_json(indent=1))
            return cls(root, header, {})
        there = cls.open(root)
        if differences := header.differs_from(there.header):
            other = "; ".join(differences)
            raise VragError(f"{root} holds another evaluation ({other}): name another folder with --out, or delete it")
        there._cut_torn_line()
        return there

    @classmethod
    def open(cls, root: Path) -> EvaluationFolder:
        """Raises VragError where there is no evaluation, and for a row that is none."""
        if not (root / HEADER).is_file():
            raise VragError(f"{root} is no evaluation: it has no {HEADER}")
        header = _parsed(Header, (root / HEADER).read_text(encoding="utf-8"), str(root / HEADER))
        lines = _whole_lines(root / ROWS)
        rows = [_parsed(Row, line, f"{root / ROWS}, line {n}") for n, line in enumerate(lines, start=1)]
        return cls(root, header, {row.key: row for row in rows})

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(self._rows.values())

    @property
    def is_complete(self) -> bool:
        return len(self._rows) == self.header.row_total

    def has(self, system: str, uid: str, sample: int = 0) -> bool:
        return (system, uid, sample) in self._rows

    def add(self, row: Row) -> None:
        with (self.root / ROWS).open("a", encoding="utf-8") as stream:
            stream.write(f"{row.model_dump_json()}\n")
        self._rows[row.key] = row

    def _cut_torn_line(self) -> None:
        path = self.root / ROWS
        if path.exists() and (data := path.read_bytes()) and not data.endswith(b"\n"):
            path.write_bytes(data[: data.rfind(b"\n") + 1])


def _whole_lines(path: Path) -> Iterator[str]:
    """Without a last one that a killed process did not finish."""
    if not path.exists():
        return
    *lines, _ = path.read_bytes().split(b"\n")
    for line in lines:
        yield line.decode()


def _parsed(model: type[Model], text: str, where: str) -> Model:
    try:
        return model.model_validate(json.loads(text))
    except (ValueError, ValidationError) as error:
        raise VragError(f"{where} cannot be read: {error}") from error


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.rename(path)
