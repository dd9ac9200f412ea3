"""What a search may be narrowed to: documents, kinds and metadata. The same value goes over HTTP and into a shard."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field, field_validator

from vrag_ray.types import Meta, MetaValue, PassageKind


class MetaRange(BaseModel):
    """Bounds on one metadata value; ``any_of`` asks for membership. Values of another type never match."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    gte: float | str | None = None
    gt: float | str | None = None
    lte: float | str | None = None
    lt: float | str | None = None
    any_of: list[MetaValue] | None = None

    def matches(self, value: MetaValue) -> bool:
        if self.any_of is not None and not any(_equal(value, expected) for expected in self.any_of):
            return False
        for bound, sign, strict in (
            (self.gte, 1, False),
            (self.gt, 1, True),
            (self.lte, -1, False),
            (self.lt, -1, True),
        ):
            if bound is None:
                continue
            order = _compare(value, bound)
            if order is None or order * sign < 0 or (strict and order == 0):
                return False
        return True


_BOUNDS = frozenset(MetaRange.model_fields)


class SearchFilter(BaseModel):
    """All the conditions given must hold. ``doc_ids`` and ``kinds`` are alternatives within themselves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    doc_ids: list[str] | None = None
    kinds: list[PassageKind] | None = None
    meta: dict[str, MetaValue | MetaRange] | None = Field(default=None)

    @field_validator("meta", mode="before")
    @classmethod
    def _values_or_ranges(cls, meta: object) -> object:
        """Without this, the refusal of a value would name the first of the types that it might have."""
        for name, value in meta.items() if isinstance(meta, Mapping) else ():
            is_range = isinstance(value, MetaRange) or (isinstance(value, Mapping) and value.keys() <= _BOUNDS)
            if not (is_range or isinstance(value, str | int | float)):
                raise ValueError(
                    f"{str(name)[:80]!r} is a text, a number, true, false, or an object of {', '.join(sorted(_BOUNDS))}"
                )
        return meta

    def matches_meta(self, meta: Meta) -> bool:
        """Whether ``meta`` fulfils the metadata conditions; an absent name never matches."""
        for name, expected in (self.meta or {}).items():
            value = meta.get(name)
            if value is None:
                return False
            if not (expected.matches(value) if isinstance(expected, MetaRange) else _equal(value, expected)):
                return False
        return True


def _equal(value: MetaValue, expected: MetaValue) -> bool:
    # bool is an int in Python: without this, True would match 1.
    return isinstance(value, bool) == isinstance(expected, bool) and value == expected


def _compare(value: MetaValue, bound: float | str) -> int | None:
    """-1, 0 or 1 as ``value`` is below, at or above ``bound``; None when the types cannot be ordered."""
    if isinstance(value, str) and isinstance(bound, str):
        return (value > bound) - (value < bound)
    if isinstance(value, bool | str) or isinstance(bound, str):
        return None
    return (value > bound) - (value < bound)
