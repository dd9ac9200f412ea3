"""What every part of the configuration is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo


class Choice(StrEnum):
    """Values that a setting may have. YAML, ours and that of Serve, reads a bare ``off`` as false."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return next((choice for choice in cls if choice == "off"), None) if value is False else None


class Section(BaseModel):
    """A part of the configuration; unknown names are refused, so that a typo is not a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _nothing_written(cls, values: object) -> object:
        return without_empty(cls.model_fields, values)

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_as_number(cls, value: object, info: ValidationInfo) -> object:
        refuse_switch(cls.model_fields, value, info)
        return value


def without_empty(fields: Mapping[str, FieldInfo], values: object) -> object:
    """``values`` without names that nothing follows, as of a section whose lines are all comments: their defaults hold.
    Where None is the default, it means the same already."""
    if not isinstance(values, Mapping):
        return values
    return {
        name: value
        for name, value in values.items()
        if value is not None or name not in fields or fields[name].default is None
    }


def refuse_switch(fields: Mapping[str, FieldInfo], value: object, info: ValidationInfo) -> None:
    """Raise ValueError for true or false in place of a number: Python would take them for 1 and 0."""
    types = _types(fields[info.field_name or ""].annotation)
    if isinstance(value, bool) and bool not in types and types & {int, float}:
        raise ValueError(f"Input should be a number, not {str(value).lower()}")


def _types(annotation: object) -> set[object]:
    """What a value may be, without the types of values inside."""
    parts = get_args(annotation)
    return {annotation} if isinstance(annotation, type) else {kind for part in parts for kind in _types(part)}
