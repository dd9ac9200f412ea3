"""Copies of pydantic models that keep what their validators promise, which ``model_copy`` does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def with_changes(model: M, changes: Mapping[str, object]) -> M:
    """A copy of ``model`` with other values of these fields, validated. Fields that were not set stay unset.

    Settings take nothing from the environment here: it would win over the program. Raises ``pydantic.ValidationError``
    for a name or value that the model does not take.
    """
    from pydantic_settings import BaseSettings, InitSettingsSource

    values = {name: getattr(model, name) for name in model.model_fields_set} | dict(changes)
    if isinstance(model, BaseSettings):
        # Parts of the settings as they are: dumped, all of their fields would count as set.
        source = InitSettingsSource(type(model), init_kwargs=values, nested_model_default_partial_update=False)
        return type(model)(_build_sources=((source,), values))
    return type(model).model_validate(values, by_name=True)
