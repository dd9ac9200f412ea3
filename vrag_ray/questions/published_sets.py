"""Question files of benchmarks in the form in which they are published, beside the project's own forms.

Known are MMLongBench-Doc (``samples.json``), SlideVQA (annotations of questions, JSON lines or Parquet),
FinanceBench (JSON lines), CiteVQA (``CiteVQA.json``, arXiv 2605.12882) and DocScope (``benchmark.json``, arXiv
2605.08888). ViDoSeek is published in the unified form. Nothing of them is shipped: users download them, and are shown
under which licence.

No row of CiteVQA was at hand when its reader was written, and its repository leaves two things open: whether
``source_page_id`` counts from 0 or from 1, and in which order ``bbox`` has its corners. Its prompts count pages from 1,
and their example boxes are those of a page only with y first (a caption as wide as its table, right above it); other
public readers of the set disagree on the pages. So its questions have several ``readings``, the likeliest first, and
the texts of the evidence decide between them (``evidence_texts.reading_that_fits``).
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from vrag_ray.questions.examples import AnswerFormat, Corners, Example, GoldPage, PixelBox
from vrag_ray.questions.files import load_examples
from vrag_ray.questions.named_pages import file_name
from vrag_ray.questions.rows import DataError, checked, json_lines, read_bytes, read_text, unique
from vrag_ray.questions.unified import EVIDENCE

HOPS = "hops"
MMLONGBENCH_LICENCE = "MMLongBench-Doc: CC BY-NC 4.0, for research only"
SLIDEVQA_LICENCE = "SlideVQA: NTT's evaluation licence, for internal evaluation; no redistribution, no modification"
FINANCEBENCH_LICENCE = "FinanceBench: CC BY-NC 4.0, for research only"
VIDOSEEK_LICENCE = "ViDoSeek: Apache-2.0"
CITEVQA_LICENCE = "CiteVQA: MIT, for academic and non-commercial use; the PDFs are their owners'"
DOCSCOPE_LICENCE = "DocScope: CC BY-NC-SA 4.0, for non-commercial use; the PDFs are their owners'"
NECESSARY = "necessary"
"""``necessity`` of the evidence of CiteVQA that an answer must rest on, the only kind that its recall counts."""
CITEVQA_SCALE = 1000.0
"""What CiteVQA's coordinates call the width and the height of a page."""
DOCSCOPE_DPI = 144.0
_SLIDEVQA_COLUMNS = ("deck_name", "qa_id", "question", "answer", "evidence_pages", "reasoning_type")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """``licence`` is "" where it is not known. Where a format leaves open how its gold places are meant, ``readings``
    are the examples by each reading, by its name in words; ``examples`` are then those of the first. ``names_missing``:
    the set is known to name pages that its documents do not have. ``facts`` are what results say of how the file was
    read."""

    examples: tuple[Example, ...]
    licence: str = ""
    readings: Mapping[str, tuple[Example, ...]] = field(default_factory=dict)
    names_missing: bool = False
    facts: Mapping[str, str] = field(default_factory=dict)


class CornerOrder(StrEnum):
    """How four numbers are the corners of a box."""

    Y_FIRST = "(y0, x0, y1, x1)"
    X_FIRST = "(x0, y0, x1, y1)"

    def corners(self, box: Corners) -> Corners:
        """``box`` as (x0, y0, x1, y1)."""
        first, second, third, fourth = box
        return box if self is CornerOrder.X_FIRST else (second, first, fourth, third)


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
    evidence_pages: Annotated[tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_listed)] = ()
    """From 1; some rows of the published file name a page 0, which no document has."""
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


def _with_area(box: Corners) -> Corners:
    first, second, third, fourth = box
    if not (first < third and second < fourth):
        raise ValueError(f"{box} has no area: correct its corners, or leave this evidence out")
    return box


def _present(value: object) -> object:
    if value is None:
        raise ValueError("is missing: add it, or leave this evidence out")
    return value


class _CiteVqaEvidence(_Published):
    """A layout element: a whole paragraph, table, picture or note."""

    type: str = ""
    bbox: Annotated[
        tuple[
            Annotated[float, Field(ge=0, le=CITEVQA_SCALE)],
            Annotated[float, Field(ge=0, le=CITEVQA_SCALE)],
            Annotated[float, Field(ge=0, le=CITEVQA_SCALE)],
            Annotated[float, Field(ge=0, le=CITEVQA_SCALE)],
        ],
        AfterValidator(_with_area),
    ]
    content: str | None = None
    """Its words, those of a table as HTML."""
    necessity: str = NECESSARY
    source_page_id: Annotated[int, BeforeValidator(_present), Field(ge=0)]
    source_pdf_name: str = Field(min_length=1)

    def place(self, first_page: int, order: CornerOrder) -> GoldPage:
        x0, y0, x1, y1 = (corner / CITEVQA_SCALE for corner in order.corners(self.bbox))
        return GoldPage(
            file_name=file_name(self.source_pdf_name),
            page=self.source_page_id + 1 - first_page,
            box=(x0, y0, x1, y1),
            text=re.sub(r"<[^<>]*>", " ", self.content or ""),
        )


class _CiteVqaRow(_Published):
    index: int | str
    question: str = Field(min_length=1, alias="Question")
    answer: Annotated[str, BeforeValidator(_text), Field(min_length=1, alias="Standard_Answer")]
    question_type: str = Field(default="", alias="Question_Type")
    dataset_type: str = ""
    language: str = ""
    description: str = ""
    evidence: tuple[_CiteVqaEvidence, ...] = Field(default=(), alias="Evidence")

    @model_validator(mode="after")
    def _has_what_recall_counts(self) -> _CiteVqaRow:
        values = sorted({element.necessity for element in self.evidence})
        if values and NECESSARY not in values:
            raise ValueError(
                f"Evidence: no necessity is {NECESSARY!r} (but {', '.join(map(repr, values))}), so no evidence counts: "
                f"mark what the answer must rest on as {NECESSARY!r}"
            )
        return self

    @property
    def necessary(self) -> tuple[_CiteVqaEvidence, ...]:
        return tuple(element for element in self.evidence if element.necessity == NECESSARY)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        pages = [(element.source_pdf_name, element.source_page_id) for element in self.necessary]
        single = {"documents": self.dataset_type, "language": self.language, "domain": self.description}
        necessity = tuple(dict.fromkeys(element.necessity for element in self.evidence))
        return {
            **_divisions(pages, [element.type for element in self.necessary if element.type]),
            **{division: (value,) for division, value in single.items() if value},
            **({"necessity": necessity} if necessity else {}),
        }


def _ordered(box: Corners) -> Corners:
    """DocScope's own drawing takes corners in either order."""
    x0, y0, x1, y1 = box
    return _with_area((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))


class _DocScopeEvidence(_Published):
    bbox: Annotated[Corners, AfterValidator(_ordered)]
    element_type: str = ""
    page: Annotated[int, BeforeValidator(_present), Field(ge=1)]


class _DocScopeAnswer(_Published):
    answer_text: Annotated[str, BeforeValidator(_text)] = ""
    is_answerable: bool = True


class _DocScopeDocument(_Published):
    doc_id_str: str = Field(min_length=1)


class _DocScopeRow(_Published):
    id: str = Field(min_length=1)
    split: str = ""
    question: str = Field(min_length=1)
    answer: _DocScopeAnswer
    pdf: _DocScopeDocument
    evidences: tuple[_DocScopeEvidence, ...] = ()
    extract_class: str | None = None

    @model_validator(mode="after")
    def _has_an_answer(self) -> _DocScopeRow:
        if self.answer.is_answerable and not self.answer.answer_text.strip():
            raise ValueError("answer.answer_text is empty: give the answer, or set answer.is_answerable to false")
        return self


def load_questions(path: Path) -> QuestionSet:
    """Of a published form, or of a form that ``load_examples`` reads. Raises DataError that names row and field."""
    if path.suffix.lower() == ".json" and isinstance(rows := _json(path), list):
        return _from_list(rows, path)
    if path.suffix.lower() == ".jsonl":
        rows = json_lines(path)
        if _has(rows, "deck_name", "qa_id"):
            return QuestionSet(_slidevqa(rows, path), SLIDEVQA_LICENCE)
        if _has(rows, "financebench_id", "doc_name"):
            return QuestionSet(_financebench(rows, path), FINANCEBENCH_LICENCE)
    if path.suffix.lower() == ".parquet" and (rows := _slidevqa_table(path)) is not None:
        return QuestionSet(_slidevqa(rows, path), SLIDEVQA_LICENCE)
    examples = load_examples(path)
    seeks = any("vidoseek" in f"{path.name} {example.data_source}".lower() for example in examples)
    return QuestionSet(examples, VIDOSEEK_LICENCE if seeks else "")


def _from_list(rows: Sequence[object], path: Path) -> QuestionSet:
    """Of the three sets that are one JSON list."""
    if _has(rows, "Standard_Answer", "Evidence"):
        return _citevqa(rows, path)
    if _has(rows, "pdf", "evidences"):
        return QuestionSet(_docscope(rows, path), DOCSCOPE_LICENCE)
    return _mmlongbench(rows, path)


def _mmlongbench(rows: Sequence[object], path: Path) -> QuestionSet:
    """Uids count the rows: the published file has none. A page 0 is left out, and results say in how many questions."""
    parsed = checked(rows, _MmLongBenchRow, path)
    pages = [tuple(page for page in row.evidence_pages if page) for row in parsed]
    examples = tuple(
        Example(
            uid=f"mmlongbench-{number}",
            question=row.question,
            answers=(row.answer,),
            gold=tuple(GoldPage(file_name=row.doc_id, page=page) for page in known),
            kind=row.doc_type,
            data_source="mmlongbench",
            answer_format=row.answer_format,
            groups=_divisions(known, row.evidence_sources),
        )
        for number, (row, known) in enumerate(zip(parsed, pages, strict=True), start=1)
    )
    zeros = sum(0 in row.evidence_pages for row in parsed)
    facts = {"gold pages 0": f"left out, of {zeros} questions: pages count from 1"} if zeros else {}
    return QuestionSet(examples, MMLONGBENCH_LICENCE, names_missing=True, facts=facts)


def _slidevqa(rows: Sequence[object], path: Path) -> tuple[Example, ...]:
    """A deck is a PDF named as the deck is, its slides the pages."""
    examples = tuple(
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
    unique((example.uid for example in examples), path)
    return examples


def _financebench(rows: Sequence[object], path: Path) -> tuple[Example, ...]:
    """A report is a PDF of its name. Each evidence text is a gold place."""
    examples = tuple(
        Example(
            uid=row.financebench_id,
            question=row.question,
            answers=(row.answer,),
            gold=tuple(element.place(row.doc_name) for element in row.evidence),
            kind=row.question_type,
            data_source="financebench",
            groups=_divisions([element.evidence_page_num + 1 for element in row.evidence], ())
            | ({"reasoning": (row.question_reasoning,)} if row.question_reasoning else {}),
        )
        for row in checked(rows, _FinanceBenchRow, path)
    )
    unique((example.uid for example in examples), path)
    return examples


def _citevqa(rows: Sequence[object], path: Path) -> QuestionSet:
    """Gold places are the necessary evidence; citing other evidence is a citation beside the gold, as in the
    benchmark. A page 0 leaves only the readings that count pages from 0."""
    parsed = checked(rows, _CiteVqaRow, path)
    unique((str(row.index) for row in parsed), path)
    has_page_0 = any(element.source_page_id == 0 for row in parsed for element in row.evidence)
    readings = {
        f"pages from {first_page}, corners {order.value}": tuple(
            Example(
                uid=f"citevqa-{row.index}",
                question=row.question,
                answers=(row.answer,),
                gold=tuple(element.place(first_page, order) for element in row.necessary),
                kind=row.question_type,
                data_source="citevqa",
                groups=row.groups,
            )
            for row in parsed
        )
        for first_page in ((0,) if has_page_0 else (1, 0))
        for order in CornerOrder
    }
    return QuestionSet(next(iter(readings.values())), CITEVQA_LICENCE, readings)


def _docscope(rows: Sequence[object], path: Path) -> tuple[Example, ...]:
    """A document is a PDF named by its id, and its pages count from 1. Boxes are pixels at 144 dpi; the benchmark's
    scorer draws them on whole sheets (``pdftoppm``), so those of a page that shows a part of its sheet (a crop box) may
    be shifted here. ``facts`` are not read."""
    examples = tuple(
        Example(
            uid=row.id,
            question=row.question,
            answers=(row.answer.answer_text if row.answer.is_answerable else "Unanswerable",),
            gold=tuple(
                GoldPage(
                    file_name=f"{row.pdf.doc_id_str}.pdf",
                    page=evidence.page,
                    pixels=PixelBox(corners=evidence.bbox, dpi=DOCSCOPE_DPI),
                )
                for evidence in row.evidences
            ),
            kind=row.extract_class or "",
            data_source="docscope",
            groups=_divisions(
                [evidence.page for evidence in row.evidences],
                [evidence.element_type for evidence in row.evidences if evidence.element_type],
            )
            | ({"split": (row.split,)} if row.split else {}),
        )
        for row in checked(rows, _DocScopeRow, path)
    )
    unique((example.uid for example in examples), path)
    return examples


def _divisions(pages: Sequence[Hashable], sources: Sequence[str]) -> dict[str, tuple[str, ...]]:
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
        columns = [name for name in _SLIDEVQA_COLUMNS if name in file.schema_arrow.names]
        return list(file.read(columns=columns).to_pylist())
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not Parquet: {error}") from error
