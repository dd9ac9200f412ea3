"""A question of known answer and known gold pages: what training and evaluation are made of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Corners = tuple[float, float, float, float]


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


GroupValues = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
"""Of one division; a text stands for one value."""


class AnswerFormat(StrEnum):
    """What an answer is, in the words of MMLongBench-Doc (arXiv 2407.01523): its rule compares each in its own way."""

    STRING = "Str"
    INTEGER = "Int"
    FLOAT = "Float"
    LIST = "List"
    NONE = "None"


class GoldPage(BaseModel):
    """A page that the answer stands on, or the seconds of a video. ``file_name`` is the document's.

    ``page`` is 1-based (1 for a picture) and means nothing for a video, whose ``t_start`` to ``t_end`` are seconds.
    ``box`` is where on the page it stands: (x0, y0, x1, y1) in fractions of the page, origin top left. ``text`` are the
    words that stand there, as benchmarks give them that know no boxes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file_name: str
    page: int = Field(default=1, ge=1)
    box: Corners | None = None
    text: str = ""
    t_start: float | None = Field(default=None, ge=0)
    t_end: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _is_a_place(self) -> GoldPage:
        if (self.t_start is None) != (self.t_end is None):
            raise ValueError("t_start and t_end go together")
        if self.t_start is not None and self.t_end is not None and self.t_end <= self.t_start:
            raise ValueError(f"t_end {self.t_end} is not after t_start {self.t_start}")
        if self.box is not None:
            x0, y0, x1, y1 = self.box
            if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
                raise ValueError(f"box {self.box} is not (x0, y0, x1, y1) in fractions of the page, from 0 to 1")
        return self

    @property
    def seconds(self) -> tuple[float, float] | None:
        return None if self.t_start is None or self.t_end is None else (self.t_start, self.t_end)


class Example(BaseModel):
    """One question. ``answers`` are accepted forms of the same answer, the first one the reference.

    ``gold`` may be empty (nobody annotated the pages); then retrieval earns nothing and no search counts as valuable.
    ``kind`` groups questions in reports, for example ``single_hop``; ``data_source`` names the set that they are from;
    ``groups`` are further divisions, each with the values that the question counts under (``evidence``: Chart, Table).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uid: str = Field(min_length=1)
    question: str = Field(min_length=1)
    answers: tuple[str, ...] = Field(min_length=1)
    gold: tuple[GoldPage, ...] = ()
    kind: str = ""
    data_source: str = ""
    answer_format: AnswerFormat | None = None
    groups: Mapping[str, GroupValues] = {}

    def __hash__(self) -> int:
        # Not of all fields: a mapping has no hash of its own.
        return hash((self.uid, self.question, self.answers, self.gold))
