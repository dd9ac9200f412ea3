"""Question files of benchmarks in the form in which they are published, beside the project's own forms.

Known are MMLongBench-Doc (``samples.json``), SlideVQA (annotations of questions, JSON lines or Parquet) and
FinanceBench (JSON lines). ViDoSeek is published in the unified form. Nothing of them is shipped: users download them,
and are shown under which licence.
"""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from vrag_ray.training.data.examples import AnswerFormat, Example, GoldPage
from vrag_ray.training.data.files import load_examples
from vrag_ray.training.data.rows import DataError, checked, json_lines, read_bytes, read_text, unique
from vrag_ray.training.data.unified import EVIDENCE

HOPS = "hops"
MMLONGBENCH_LICENCE = "MMLongBench-Doc: CC BY-NC 4.0, for research only"
SLIDEVQA_LICENCE = "SlideVQA: NTT's evaluation licence, for internal evaluation; no redistribution, no modification"
FINANCEBENCH_LICENCE = "FinanceBench: CC BY-NC 4.0, for research only"
VIDOSEEK_LICENCE = "ViDoSeek: Apache-2.0"
_SLIDEVQA_COLUMNS = ("deck_name", "qa_id", "question", "answer", "evidence_pages", "reasoning_type")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """``licence`` is "" where it is not known."""

    examples: tuple[Example, ...]
    licence: str = ""


def _listed(value: object) -> object:
    """MMLongBench-Doc writes its lists as Python does, in a string."""
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            return ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            return value
    return value


def _text(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) else value


class _Published(BaseModel):
    """More columns than are used may be there."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _MmLongBenchRow(_Published):
    doc_id: str = Field(min_length=1)
    doc_type: str = ""
    question: str = Field(min_length=1)
    answer: Annotated[str, BeforeValidator(_text)]
    evidence_pages: Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_listed)] = ()
    evidence_sources: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    answer_format: AnswerFormat


class _SlideVqaRow(_Published):
    deck_name: str = Field(min_length=1)
    qa_id: int | str
    question: str = Field(min_length=1)
    answer: Annotated[str, BeforeValidator(_text)]
    evidence_pages: tuple[Annotated[int, Field(ge=1)], ...] = ()
    reasoning_type: str = ""


class _FinanceBenchEvidence(_Published):
    evidence_text: str = ""
    doc_name: str = ""
    evidence_page_num: int = Field(ge=0)
    """From 0."""

    def place(self, report: str) -> GoldPage:
        name = f"{self.doc_name or report}.pdf"
        return GoldPage(file_name=name, page=self.evidence_page_num + 1, text=self.evidence_text)


class _FinanceBenchRow(_Published):
    financebench_id: str = Field(min_length=1)
    doc_name: str = Field(min_length=1)
    question: str = Field(min_length=1)
    answer: Annotated[str, BeforeValidator(_text)]
    question_type: str = ""
    question_reasoning: str | None = None
    evidence: tuple[_FinanceBenchEvidence, ...] = ()


def load_questions(path: Path) -> QuestionSet:
    """Of a published form, or of one that ``load_examples`` reads. Raises DataError that names row and field."""
    if path.suffix.lower() == ".json" and isinstance(rows := _json(path), list):
        return QuestionSet(_mmlongbench(rows, path), MMLONGBENCH_LICENCE)
    if path.suffix.lower() == ".jsonl":
        rows = json_lines(path)
        if _has(rows, "deck_name", "qa_id"):
            return QuestionSet(_slidevqa(rows, path), SLIDEVQA_LICENCE)
        if _has(rows, "financebench_id", "doc_name"):
            return QuestionSet(_financebench(rows, path), FINANCEBENCH_LICENCE)
    if path.suffix.lower() == ".parquet" and (rows := _slidevqa_table(path)) is not None:
        return QuestionSet(_slidevqa(rows, path), SLIDEVQA_LICENCE)
    examples = load_examples(path)
    seeks = any("vidoseek" in f"{path.name} {one.data_source}".lower() for one in examples)
    return QuestionSet(examples, VIDOSEEK_LICENCE if seeks else "")


def _mmlongbench(rows: Sequence[object], path: Path) -> tuple[Example, ...]:
    """Uids count the rows: the published file has none."""
    return tuple(
        Example(
            uid=f"mmlongbench-{number}",
            question=row.question,
            answers=(row.answer,),
            gold=tuple(GoldPage(file_name=row.doc_id, page=page) for page in row.evidence_pages),
            kind=row.doc_type,
            data_source="mmlongbench",
            answer_format=row.answer_format,
            groups=_divisions(row.evidence_pages, row.evidence_sources),
        )
        for number, row in enumerate(checked(rows, _MmLongBenchRow, path), start=1)
    )


def _slidevqa(rows: Sequence[object], path: Path) -> tuple[Example, ...]:
    """A deck is a PDF named as the deck is, its slides the pages."""
    found = tuple(
        Example(
            uid=f"slidevqa-{row.deck_name}-{row.qa_id}",
            question=row.question,
            answers=(row.answer,),
            gold=tuple(GoldPage(file_name=f"{row.deck_name}.pdf", page=page) for page in row.evidence_pages),
            kind=row.reasoning_type,
            data_source="slidevqa",
            groups=_divisions(row.evidence_pages, ()),
        )
        for row in checked(rows, _SlideVqaRow, path)
    )
    unique((one.uid for one in found), path)
    return found


def _financebench(rows: Sequence[object], path: Path) -> tuple[Example, ...]:
    """A report is a PDF of its name. Each evidence text is a gold place."""
    found = tuple(
        Example(
            uid=row.financebench_id,
            question=row.question,
            answers=(row.answer,),
            gold=tuple(one.place(row.doc_name) for one in row.evidence),
            kind=row.question_type,
            data_source="financebench",
            groups=_divisions([one.evidence_page_num + 1 for one in row.evidence], ())
            | ({"reasoning": (row.question_reasoning,)} if row.question_reasoning else {}),
        )
        for row in checked(rows, _FinanceBenchRow, path)
    )
    unique((one.uid for one in found), path)
    return found


def _divisions(pages: Sequence[int], sources: Sequence[str]) -> dict[str, tuple[str, ...]]:
    hops = "none" if not pages else "one page" if len(set(pages)) == 1 else "several pages"
    return {HOPS: (hops,)} | ({EVIDENCE: tuple(dict.fromkeys(sources))} if sources else {})


def _json(path: Path) -> object:
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}") from error


def _has(rows: Sequence[object], *columns: str) -> bool:
    return bool(rows) and isinstance(rows[0], dict) and set(columns) <= rows[0].keys()


def _slidevqa_table(path: Path) -> list[object] | None:
    """Rows of a Parquet file with SlideVQA's columns, the pictures of its slides left where they are; None for other
    files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(read_bytes(path)))
        if not {"deck_name", "qa_id"} <= set(file.schema_arrow.names):
            return None
        wanted = [name for name in _SLIDEVQA_COLUMNS if name in file.schema_arrow.names]
        return list(file.read(columns=wanted).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not Parquet: {error}") from error
