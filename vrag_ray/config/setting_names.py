"""Names of settings that there are not: the nearest that there is."""

from __future__ import annotations

import difflib
import inspect
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError

from vrag_ray.types import VragError
from vrag_ray.types.errors import validation_message

logger = logging.getLogger(__name__)

PREFIX = "VRAG_"
READ_ELSEWHERE = ("VRAG_API_KEY", "VRAG_API_KEYS", "VRAG_CACHE_HOME", "VRAG_URL")
"""Variables of this project that are no settings."""
NESTED = "__"
_NEAR = 0.85
"""Similarity by difflib from which a name is taken for a misspelled one: ``colection``, ``agent_max_steps``."""


def fault_of(model: type[BaseModel], invalid: ValidationError) -> str:
    """Where a configuration of ``model`` is wrong, and how. A misspelled name comes before one that is missing."""
    errors = invalid.errors()
    error = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    place = [str(part) for part in error["loc"]]
    where = ".".join(place) or "the top"
    undecoded = getattr(error.get("ctx", {}).get("error"), "__cause__", None)
    if isinstance(undecoded, json.JSONDecodeError):
        name = next((name for name in os.environ if _is_ours(name) and os.environ[name] == undecoded.doc), where)
        return f'{name}: it is no JSON: write a list as ["a", "b"], and names with values as {{"a": "b"}}'
    if error["type"] != "extra_forbidden":
        return f"{where}: {validation_message(error)}"
    near = _nearest(model, place)
    return f"{where}: there is no such setting" + (f"; did you mean {near}?" if near else "")


def refuse_unknown_variables(model: type[BaseModel], environment: Mapping[str, str]) -> None:
    """Raise VragError for a variable that was meant as a setting and is none: its name has two underscores, or is
    nearly that of a setting or of ``READ_ELSEWHERE``. Others are another program's; one that has the name of a setting
    within a section is reported."""
    variables = {NESTED.join(place) for place in _places(model)}
    known_elsewhere = {name.lower().removeprefix(PREFIX.lower()) for name in READ_ELSEWHERE}
    for name in environment:
        lower = name.lower().removeprefix(PREFIX.lower())
        if not _is_ours(name) or _is_link(environment[name]) or lower in known_elsewhere:
            continue
        if lower.partition(NESTED)[0] in model.model_fields:
            continue
        near = difflib.get_close_matches(lower, variables | known_elsewhere, 1, _NEAR)
        if near or NESTED in lower:
            known = f"did you mean {PREFIX}{near[0].upper()}?" if near else "docs/settings.md lists them"
            raise VragError(f"the variable {name} is no setting: {known}")
        nested = [PREFIX + NESTED.join(place).upper() for place in _places(model) if place[-1] == lower]
        if nested:
            logger.warning("the variable %s is passed over; did you mean %s?", name, " or ".join(nested))


def _is_ours(name: str) -> bool:
    return name.upper().startswith(PREFIX)


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
