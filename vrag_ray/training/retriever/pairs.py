"""What a retriever learns from: queries, the passages that answer them, and passages that look as if they did.

A line of a file of pairs is ``{"query": ..., "positive": ..., "negatives": [...]}``. Each of them is a text, or an
object with some of ``text``, ``picture`` (a file; relative to the file of pairs), ``doc`` and ``page`` (the name of a
document of the collection that the configuration names, and the number of a page) and ``labels``. ``positive`` may be
a list. A query with labels is also answered by every passage that has all of them: such a passage is no negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from vrag_ray.questions.rows import DataError, Strict, checked, json_lines
from vrag_ray.questions.unified import UnifiedExample


@dataclass(frozen=True, slots=True)
class Item:
    """A query or a passage, not yet read. ``picture`` is an absolute path; ``page`` counts from 1, with ``doc``.

    Items are equal by what they show; ``read_pairs`` gives equal passages the labels of all lines that name them.
    """

    text: str = ""
    picture: str = ""
    doc: str = ""
    page: int = 0
    labels: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self.picture or (f"page {self.page} of {self.doc}" if self.doc else f"the text {self.text[:40]!r}")


@dataclass(frozen=True, slots=True)
class Pair:
    """One query, what answers it, and the negatives.

    ``answers`` are the positives of all pairs with this query.
    """

    query: Item
    positives: tuple[Item, ...]
    negatives: tuple[Item, ...] = ()
    answers: frozenset[Item] = field(default=frozenset(), compare=False)

    def answered_by(self, passage: Item) -> bool:
        """Whether ``passage`` is one of the answers, or has all labels that the query asks for."""
        is_answer = passage in self.positives or passage in self.answers
        return is_answer or bool(self.query.labels and self.query.labels <= passage.labels)


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of a file. ``left_out`` counts rated runs of which no page is known."""

    pairs: tuple[Pair, ...]
    left_out: int = 0

    def __str__(self) -> str:
        also = f"; {self.left_out} rated runs are left out, because no page of theirs is known" if self.left_out else ""
        return f"{len(self.pairs)} queries to learn from{also}"


class _ItemRow(Strict):
    text: str = ""
    picture: str = ""
    doc: str = ""
    page: int | None = Field(default=None, ge=1)
    labels: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_one_content(self) -> _ItemRow:
        if not (self.text.strip() or self.picture or self.doc):
            raise ValueError("is empty: give text, picture, or doc and page")
        if self.picture and self.doc:
            raise ValueError("has picture and doc: give one of them")
        if bool(self.doc) != (self.page is not None):
            raise ValueError("doc and page go together")
        return self


def _worded(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


_Row = Annotated[_ItemRow, BeforeValidator(_worded)]


class _PairRow(Strict):
    query: _Row
    positive: Annotated[tuple[_Row, ...], Field(min_length=1), BeforeValidator(_listed)]
    negatives: tuple[_Row, ...] = ()


def read_pairs(path: Path, *, collection: bool) -> Pairs:
    """The pairs of a file; ``collection`` says whether pages of documents can be drawn.

    Raises ``DataError`` that names file, row (from 1) and field for what does not fit, for a picture that is not there,
    and for a file without a pair.
    """
    rows = json_lines(path)
    left_out = 0
    if rows and isinstance(rows[0], dict) and "reference_answer" in rows[0]:
        examples = checked(rows, UnifiedExample, path)
        pairs = [_rated(example) for example in examples]
        left_out = sum(pair is None for pair in pairs)
    else:
        pairs = [_pair(row, path.parent.absolute()) for row in checked(rows, _PairRow, path)]
    known: dict[str, bool] = {}
    for number, pair in enumerate(pairs, start=1):
        for item in (pair.query, *pair.positives, *pair.negatives) if pair is not None else ():
            if item.doc and not collection:
                raise DataError(
                    f"{path}: row {number}: {item.name} is drawn from a collection: name it in the configuration "
                    "(`collection: FOLDER`)"
                )
            if item.picture and not known.setdefault(item.picture, Path(item.picture).is_file()):
                raise DataError(f"{path}: row {number}: there is no picture {item.picture}")
    joined = _joined([pair for pair in pairs if pair is not None])
    if not joined:
        raise DataError(
            f"{path} holds no pair to learn from{f': no page of {left_out} runs is known' * bool(left_out)}"
        )
    return Pairs(joined, left_out)


def _pair(row: _PairRow, folder: Path) -> Pair:
    def items(some: tuple[_ItemRow, ...]) -> tuple[Item, ...]:
        return tuple(_item(item, folder) for item in some)

    return Pair(_item(row.query, folder), items(row.positive), items(row.negatives))


def _joined(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """With all labels of equal passages, and all answers of equal queries: none may be a negative of itself."""
    labels: dict[Item, frozenset[str]] = {}
    answers: dict[Item, frozenset[Item]] = {}
    for pair in pairs:
        answers[pair.query] = answers.get(pair.query, frozenset()) | set(pair.positives)
        for passage in (*pair.positives, *pair.negatives):
            labels[passage] = labels.get(passage, frozenset()) | passage.labels

    def labelled(passages: Sequence[Item]) -> tuple[Item, ...]:
        return tuple(replace(passage, labels=labels[passage]) for passage in passages)

    return tuple(
        replace(
            pair,
            positives=labelled(pair.positives),
            negatives=labelled(pair.negatives),
            answers=answers[pair.query],
        )
        for pair in pairs
    )


def _item(row: _ItemRow, folder: Path) -> Item:
    picture = str(folder / row.picture) if row.picture else ""
    return Item(row.text.strip(), picture, row.doc, row.page or 0, frozenset(row.labels))


def _rated(example: UnifiedExample) -> Pair | None:
    meta = example.meta_info
    pages = tuple(Item(doc=meta.file_name or "", page=page) for page in meta.reference_page)
    return Pair(Item(text=example.query), pages) if pages else None
