"""The original's Parquet rows, as its converter makes them and its trainer reads them.

The converter puts ``file_name`` and ``reference_page`` into ``extra_info``, the trainer looks for them as columns of
their own. Written here they stand in both places, together with what the converter drops or merges; read, each is
taken from where it is, and a row whose places disagree is refused. ``prompt`` is the agent's first message: it is made
of the question, and of a row that is read the question is taken.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.questions.rows import DataError, Strict, checked, read_bytes, unique, write_bytes
from vrag_ray.questions.unified import MetaInfo, UnifiedExample

ABILITY, STYLE = "math", "rule"
"""Constants of the original's rows."""


class Spoken(Strict):
    role: str
    content: str


class RewardModel(Strict):
    style: str = STYLE
    ground_truth: str


def _or_none(value: object) -> object:
    return () if value is None else value


def _known(*values: str | None) -> str | None:
    return next((value for value in values if value is not None), None)


Pages = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_or_none)]


class ExtraInfo(Strict):
    split: str
    index: int
    answer: str
    question: str = Field(min_length=1)
    content_type: str | None = None
    reason_type: str | None = None
    file_name: str | None = None
    reference_page: Pages = ()


class TableRow(Strict):
    """One row. The last six columns are ours; the original's files lack them."""

    id: str = Field(min_length=1)
    data_source: str
    prompt: tuple[Spoken, ...]
    ability: str = ABILITY
    reward_model: RewardModel
    extra_info: ExtraInfo
    file_name: str | None = None
    reference_page: Pages = ()
    source_type: str | None = None
    query_type: str | None = None
    doc_type: str | None = None
    answer_format: str | None = None

    @model_validator(mode="after")
    def _places_agree(self) -> TableRow:
        extra = self.extra_info
        pairs: tuple[tuple[str, object, object], ...] = (
            ("reward_model.ground_truth", self.reward_model.ground_truth, extra.answer),
            ("file_name", self.file_name, extra.file_name),
            ("reference_page", self.reference_page or None, extra.reference_page or None),
            ("source_type", self.source_type, extra.content_type),
            ("query_type", _known(self.query_type, self.doc_type), extra.reason_type),
        )
        for name, here, there in pairs:
            if here is not None and there is not None and here != there:
                raise ValueError(f"{name} is {here!r}, but extra_info says {there!r}")
        if (self.reference_page or extra.reference_page) and not (self.file_name or extra.file_name):
            raise ValueError("reference_page needs the file_name that it counts the pages of")
        return self

    @property
    def unified(self) -> UnifiedExample:
        """The example of the row."""
        extra = self.extra_info
        typed = self.query_type is not None or self.doc_type is not None
        return UnifiedExample(
            uid=self.id,
            query=extra.question,
            reference_answer=extra.answer,
            meta_info=MetaInfo(
                file_name=_known(self.file_name, extra.file_name),
                reference_page=self.reference_page or extra.reference_page,
                source_type=_known(self.source_type, extra.content_type),
                query_type=self.query_type if typed else extra.reason_type,
                doc_type=self.doc_type,
                answer_format=self.answer_format,
            ),
            data_source=self.data_source or None,
        )

    @classmethod
    def of(cls, example: UnifiedExample, *, data_source: str, split: str, index: int) -> TableRow:
        meta = example.meta_info
        return cls(
            id=example.uid,
            data_source=example.data_source or data_source,
            prompt=(Spoken(role="user", content=_instruction(example.query)),),
            reward_model=RewardModel(ground_truth=example.reference_answer),
            extra_info=ExtraInfo(
                split=split,
                index=index,
                answer=example.reference_answer,
                question=example.query,
                content_type=meta.source_type,
                reason_type=_known(meta.query_type, meta.doc_type),
                file_name=meta.file_name,
                reference_page=meta.reference_page,
            ),
            **dict(meta),
        )


def table_rows(examples: Iterable[UnifiedExample], *, data_source: str, split: str) -> list[TableRow]:
    """``data_source`` (``slidevqa_train``) is for examples that name none; ``split`` is ``train`` or ``test``."""
    return [
        TableRow.of(example, data_source=data_source, split=split, index=index)
        for index, example in enumerate(examples)
    ]


def read_table(path: Path) -> list[TableRow]:
    """Raises ``DataError`` that names the row (from 1) and the field at fault."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(read_bytes(path)))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not Parquet: {error}") from error
    rows = checked(table.to_pylist(), TableRow, path)
    unique((row.id for row in rows), path)
    return rows


def write_table(path: Path, rows: Sequence[TableRow]) -> None:
    """The inverse of ``read_table``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pages = pa.list_(pa.int64())
    texts = ("split", "answer", "question", "content_type", "reason_type", "file_name")
    extra = [(name, pa.string()) for name in texts]
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("data_source", pa.string()),
            ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct([*extra, ("index", pa.int64()), ("reference_page", pages)])),
            ("file_name", pa.string()),
            ("reference_page", pages),
            *((name, pa.string()) for name in ("source_type", "query_type", "doc_type", "answer_format")),
        ]
    )
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row.model_dump(mode="json") for row in rows], schema=schema), buffer)
    write_bytes(path, buffer.getvalue())


def _instruction(question: str) -> str:
    """The first messages of the ``tags`` agent for this question."""
    prompt = Prompt(question, MemoryGraph.start(question), observation=None, history=(), steps_left=2)
    return TagsProtocol().messages(prompt)[0].text
