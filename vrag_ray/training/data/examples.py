"""A question of known answer and known gold pages: what training and evaluation are made of."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class GoldPage(BaseModel):
    """A page that the answer stands on. ``file_name`` is the document's; ``page`` is 1-based (1 for a picture)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file_name: str
    page: int = Field(default=1, ge=1)


class Example(BaseModel):
    """One question. ``answers`` are accepted forms of the same answer, the first one the reference.

    ``gold`` may be empty (nobody annotated the pages); then retrieval earns nothing and no search counts as valuable.
    ``kind`` groups questions in reports, for example ``single_hop``; ``data_source`` names the set that they are from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    uid: str = Field(min_length=1)
    question: str = Field(min_length=1)
    answers: tuple[str, ...] = Field(min_length=1)
    gold: tuple[GoldPage, ...] = ()
    kind: str = ""
    data_source: str = ""
