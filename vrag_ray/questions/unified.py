"""The original's unified JSON: ``{"examples": [{uid, query, reference_answer, meta_info}]}``, without loss."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from vrag_ray.questions.examples import AnswerFormat, Example, GoldPage
from vrag_ray.questions.rows import DataError, Strict, checked, read_text, unique, write_bytes

EVIDENCE = "evidence"
"""The group of an example whose values are kinds of sources: text, table, chart."""


def _pages(value: object) -> object:
    """One page stands for a list of one; none for none."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (int, str)) else value


class MetaInfo(Strict):
    """What the original says of an example beside question and answer. ``reference_page`` counts from 1.

    ``query_type`` is what most of its sources have, ``doc_type`` what MMLongBench has in its place.
    """

    file_name: str | None = None
    reference_page: Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_pages)] = ()
    source_type: str | None = None
    query_type: str | None = None
    doc_type: str | None = None
    answer_format: str | None = None

    @model_validator(mode="after")
    def _pages_are_of_a_file(self) -> MetaInfo:
        if self.reference_page and not self.file_name:
            raise ValueError("reference_page needs the file_name that it counts the pages of")
        return self


class UnifiedExample(Strict):
    """One example of the unified form. ``data_source`` names its set; in the original only the Parquet rows have it."""

    uid: str = Field(min_length=1)
    query: str = Field(min_length=1)
    reference_answer: str
    meta_info: MetaInfo = MetaInfo()
    data_source: str | None = None

    @property
    def example(self) -> Example:
        """What training and evaluation need of it: ``kind`` is the query type, else the document type; the source type
        is a group, ``evidence``. Answer formats that MMLongBench-Doc has not are left out."""
        meta = self.meta_info
        answer_format = next((form for form in AnswerFormat if form.value == meta.answer_format), None)
        return Example(
            uid=self.uid,
            question=self.query,
            answers=(self.reference_answer,),
            gold=tuple(GoldPage(file_name=meta.file_name or "", page=page) for page in meta.reference_page),
            kind=meta.query_type or meta.doc_type or "",
            data_source=self.data_source or "",
            answer_format=answer_format,
            groups={EVIDENCE: (meta.source_type,)} if meta.source_type else {},
        )

    @classmethod
    def of(cls, example: Example) -> UnifiedExample:
        """Raises ``DataError`` for what the unified form cannot hold: a second answer, gold file or kind of evidence,
        places on pages, other groups."""
        files = list(dict.fromkeys(page.file_name for page in example.gold))
        evidence = example.groups.get(EVIDENCE, ())
        others = [name for name in example.groups if name != EVIDENCE]
        if any(page.box or page.pixels or page.text or page.seconds is not None for page in example.gold):
            others.append("boxes, texts or seconds")
        if others:
            raise DataError(
                f"example {example.uid!r} has {others[0]}, which the unified form does not hold: write JSON lines"
                " (.jsonl)"
            )
        counts = (("answers", len(example.answers)), ("gold files", len(files)), ("kinds of evidence", len(evidence)))
        for what, count in counts:
            if count > 1:
                raise DataError(
                    f"example {example.uid!r} has {count} {what}, the unified form holds one: write JSON lines (.jsonl)"
                )
        if files == [""]:
            raise DataError(f"example {example.uid!r} has a gold page without a file_name")
        meta = MetaInfo(
            file_name=files[0] if files else None,
            reference_page=tuple(page.page for page in example.gold),
            source_type=evidence[0] if evidence else None,
            query_type=example.kind or None,
            answer_format=example.answer_format.value if example.answer_format else None,
        )
        return cls(
            uid=example.uid,
            query=example.question,
            reference_answer=example.answers[0],
            meta_info=meta,
            data_source=example.data_source or None,
        )


def read_unified(path: Path) -> list[UnifiedExample]:
    """Raises ``DataError`` that names the row (from 1) and the field at fault."""
    try:
        whole = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    rows = whole.get("examples") if isinstance(whole, dict) else None
    if not isinstance(rows, list):
        raise DataError(f'{path} is not of the unified form, {{"examples": [...]}}')
    more = [name for name in whole if name != "examples"]
    if more:
        raise DataError(f"{path}: unknown field {more[0]!r} beside examples")
    examples = checked(rows, UnifiedExample, path)
    unique((example.uid for example in examples), path)
    return examples


def write_unified(path: Path, examples: Iterable[UnifiedExample]) -> None:
    """The inverse of ``read_unified``; fields that are not known are left out."""
    rows = [example.model_dump(mode="json", exclude_none=True) for example in examples]
    write_bytes(path, json.dumps({"examples": rows}, ensure_ascii=False, indent=1).encode())
