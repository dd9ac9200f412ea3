"""TREC's files, so that any tool can score the results from here, and results from elsewhere can be scored here.

A run has lines of ``query Q0 item rank score tag``, qrels of ``query 0 item grade``. Names with blanks are not possible
in either: blanks, and the percent sign that stands for them, are percent-encoded.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from vrag_ray.types import VragError

_ENCODED = {"%": "%25", " ": "%20", "\t": "%09", "\n": "%0A", "\r": "%0D"}
Qrels = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


def read_run(path: Path) -> Run:
    """Score by item, by query. Raises VragError that names file and line."""
    run: Run = defaultdict(dict)
    for where, fields in _lines(path, 6, "query Q0 item rank score tag"):
        run[_decoded(fields[0])][_decoded(fields[2])] = _number(where, fields[4])
    return dict(run)


def read_qrels(path: Path) -> Qrels:
    """Grade by item, by query. Raises VragError that names file and line."""
    qrels: Qrels = defaultdict(dict)
    for where, fields in _lines(path, 4, "query 0 item grade"):
        qrels[_decoded(fields[0])][_decoded(fields[2])] = int(_number(where, fields[3]))
    return dict(qrels)


def write_run(path: Path, ranked: Mapping[str, Sequence[str]], tag: str) -> None:
    """Scores fall with the rank, so that every tool has the items in this order."""
    lines = (
        f"{_named(query)} Q0 {_named(item)} {rank} {1 / rank:.9f} {_named(tag)}"
        for query, items in ranked.items()
        for rank, item in enumerate(items, start=1)
    )
    _write(path, lines)


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    lines = (
        f"{_named(query)} 0 {_named(item)} {grade}" for query, grades in qrels.items() for item, grade in grades.items()
    )
    _write(path, lines)


def _lines(path: Path, count: int, form: str) -> Iterator[tuple[str, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise VragError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != count:
            raise VragError(f"{path}, line {number}: it has {len(fields)} fields, not those of `{form}`")
        yield f"{path}, line {number}", fields


def _number(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise VragError(f"{where}: {text} is no number")
    return value


def _named(name: str) -> str:
    return re.sub(r"[%\s]", lambda match: _ENCODED.get(match[0], "%20"), name)


def _decoded(name: str) -> str:
    back = {code: character for character, code in _ENCODED.items()}
    return re.sub("|".join(_ENCODED.values()), lambda match: back[match[0]], name)


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
