"""A question of known answer and known gold pages: what training and evaluation are made of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

Corners = tuple[float, float, float, float]
POINTS_PER_INCH = 72.0
LEAST_ON_PAGE = 0.9
"""Share of a box in pixels that must be on its page: a rounded edge may pass the paper's, another paper may not."""


def _as_tuple(value: object) -> object:
    return (value,) if isinstance(value, str | int | float) else value


GroupValues = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
"""Of one division; a text stands for one value."""


class AnswerFormat(StrEnum):
    """What an answer is, in the words of MMLongBench-Doc (arXiv 2407.01523): its rule compares each in its own way."""

    STRING = "Str"
    INTEGER = "Int"
    FLOAT = "Float"
    LIST = "List"
    NONE = "None"


class PixelBox(BaseModel):
    """``corners`` are (x0, y0, x1, y1) in pixels of a PDF's page drawn at ``dpi`` dots per inch, origin top left."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    corners: Corners
    dpi: float = Field(gt=0)

    @model_validator(mode="after")
    def _has_an_area(self) -> PixelBox:
        x0, y0, x1, y1 = self.corners
        if not (x0 < x1 and y0 < y1):
            raise ValueError(f"corners {self.corners} are not (x0, y0, x1, y1) of a box: x1 and y1 must be the greater")
        return self

    def on_page(self, width: float, height: float) -> Corners:
        """The box in fractions of a page of ``width`` by ``height`` points, cut at its edges.

        Raises ValueError where less than ``LEAST_ON_PAGE`` of its area is on the page: then it was drawn on a page of
        another size.
        """
        scale_x, scale_y = (POINTS_PER_INCH / (self.dpi * size) for size in (width, height))
        x0, y0, x1, y1 = self.corners
        whole = (x0 * scale_x, y0 * scale_y, x1 * scale_x, y1 * scale_y)
        cut = (max(0.0, whole[0]), max(0.0, whole[1]), min(1.0, whole[2]), min(1.0, whole[3]))
        left = max(0.0, cut[2] - cut[0]) * max(0.0, cut[3] - cut[1])
        if left < LEAST_ON_PAGE * (whole[2] - whole[0]) * (whole[3] - whole[1]):
            raise ValueError(
                f"box {self.corners} in pixels at {self.dpi:g} dpi reaches beyond a page of {width:g} by {height:g} "
                "points"
            )
        return cut


class GoldPage(BaseModel):
    """A page that the answer stands on, or the seconds of a video. ``file_name`` is the document's.

    ``page`` is 1-based (1 for a picture) and means nothing for a video, whose ``t_start`` to ``t_end`` are seconds.
    ``box`` is where on the page it stands: (x0, y0, x1, y1) in fractions of the page, origin top left; ``pixels`` are
    the same box of a benchmark that counts pixels, until the size of the page is known. ``text`` are the words that
    stand there, as some benchmarks give them beside a box or without one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    file_name: str
    page: int = Field(default=1, ge=1)
    box: Corners | None = None
    pixels: PixelBox | None = None
    text: str = ""
    t_start: float | None = Field(default=None, ge=0)
    t_end: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _is_a_place(self) -> GoldPage:
        if (self.t_start is None) != (self.t_end is None):
            raise ValueError("t_start and t_end go together")
        if self.t_start is not None and self.t_end is not None and self.t_end <= self.t_start:
            raise ValueError(f"t_end {self.t_end} is not after t_start {self.t_start}")
        if self.box is not None and self.pixels is not None:
            raise ValueError("give box or pixels, not both")
        if self.box is not None:
            x0, y0, x1, y1 = self.box
            if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
                raise ValueError(f"box {self.box} is not (x0, y0, x1, y1) in fractions of the page, from 0 to 1")
        return self

    @property
    def seconds(self) -> tuple[float, float] | None:
        return None if self.t_start is None or self.t_end is None else (self.t_start, self.t_end)


class Example(BaseModel):
    """One question. ``answers`` are accepted forms of the same answer, the first one the reference; a text stands for
    one. Numbers, as ids and answers often are, become texts.

    ``gold`` may be empty (nobody annotated the pages); then retrieval earns nothing and no search counts as valuable.
    ``kind`` groups questions in reports, for example ``single_hop``; ``data_source`` names the set that they are from;
    ``groups`` are further divisions, each with the values that the question counts under (``evidence``: Chart, Table).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    uid: str = Field(min_length=1)
    question: str = Field(min_length=1)
    answers: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = Field(min_length=1)
    gold: tuple[GoldPage, ...] = ()
    kind: str = ""
    data_source: str = ""
    answer_format: AnswerFormat | None = None
    groups: Mapping[str, GroupValues] = {}

    def __hash__(self) -> int:
        # Not of all fields: a mapping has no hash of its own.
        return hash((self.uid, self.question, self.answers, self.gold))
