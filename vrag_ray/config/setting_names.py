"""Names of settings that there are not: the nearest that there is."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError

from vrag_ray.types import VragError
from vrag_ray.types.errors import validation_message

PREFIX = "VRAG_"
NESTED = "__"
_NEAR = 0.85
"""Similarity by difflib from which a name is taken for a misspelled one: ``colection``, ``agent_max_steps``."""


def fault_of(model: type[BaseModel], invalid: ValidationError) -> str:
    """Where a configuration of ``model`` is wrong, and how. A misspelled name comes before one that is missing."""
    errors = invalid.errors()
    error = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    place = [str(part) for part in error["loc"]]
    where = ".".join(place) or "the top"
    if error["type"] != "extra_forbidden":
        return f"{where}: {validation_message(error)}"
    near = _nearest(model, place)
    return f"{where}: there is no such setting" + (f"; did you mean {near}?" if near else "")


def refuse_unknown_variables(model: type[BaseModel], environment: Mapping[str, str]) -> None:
    """Raise VragError for a variable that was meant as a setting and is none: its name has two underscores, or is
    nearly that of a setting. Others are read elsewhere, as VRAG_API_KEYS, or are another program's."""
    variables = {NESTED.join(place) for place in _places(model)}
    for name in environment:
        lower = name.lower().removeprefix(PREFIX.lower())
        if not name.upper().startswith(PREFIX) or _is_link(environment[name]):
            continue
        if lower.partition(NESTED)[0] in model.model_fields:
            continue
        near = difflib.get_close_matches(lower, variables, 1, _NEAR)
        if near or NESTED in lower:
            known = f"did you mean {PREFIX}{near[0].upper()}?" if near else "docs/settings.md lists them"
            raise VragError(f"the variable {name} is no setting: {known}")


def _is_link(value: str) -> bool:
    """Kubernetes sets ``VRAG_SERVING_PORT`` to such an address in pods beside a Service ``vrag-serving``."""
    return value.startswith(("tcp://", "udp://", "sctp://"))


def _nearest(model: type[BaseModel], place: Sequence[str]) -> str:
    """The setting that was meant with ``place``: one of its section, else one elsewhere with the same last name."""
    section = _section(model, place[:-1])
    siblings = list(section.model_fields) if section is not None else []
    near = difflib.get_close_matches(place[-1], siblings, 1, 0.6)
    elsewhere = [".".join(each) for each in _places(model) if each[-1] == place[-1]]
    return ".".join([*place[:-1], near[0]]) if near else next(iter(elsewhere), "")


def _places(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The names from the top to each setting and section, without those whose names a user chooses."""
    for name, field in model.model_fields.items():
        yield (*above, name)
        inner, named_by_user = _inner(field.annotation)
        if inner is not None and not named_by_user:
            yield from _places(inner, (*above, name))


def _section(model: type[BaseModel], place: Sequence[str]) -> type[BaseModel] | None:
    """The class of the section at ``place``; None where it has no names of its own."""
    if not place:
        return model
    field = model.model_fields.get(place[0])
    inner, named_by_user = _inner(field.annotation) if field is not None else (None, False)
    return _section(inner, place[2 if named_by_user else 1 :]) if inner is not None else None


def _inner(annotation: object) -> tuple[type[BaseModel] | None, bool]:
    """The section that a setting holds, and whether it holds several by name."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation, False
    for part in get_args(annotation):
        inner, _ = _inner(part)
        if inner is not None:
            return inner, get_origin(annotation) is dict
    return None, False
