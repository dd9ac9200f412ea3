"""Write ``docs/settings.md``: every setting with its default and its meaning, from the classes of ``vrag_ray.config``.

.venv/bin/python tools/write_settings.py            # a test fails where the page is not what this writes
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vrag_ray.config import Settings
from vrag_ray.types import VragError

PAGE = Path(__file__).parents[1] / "docs/settings.md"
HEAD = """\
# Settings

Every setting, its default and what it means, for `--config FILE`, the `settings` of a Serve config and Python's
`Settings`. A file is YAML (`agent: {max_steps: 8}`); an environment variable wins over it: `VRAG_AGENT__MAX_STEPS=8`,
nested names joined by two underscores. An unknown name is refused, and so is a variable `VRAG_…` with two underscores,
or nearly the name of a setting, that is none. This page is written by `tools/write_settings.py`.
"""
LIMITS = {"ge": "at least {}", "gt": "above {}", "le": "at most {}", "lt": "below {}"}


def page() -> str:
    return "\n".join([HEAD, *_sections("", Settings)]).rstrip() + "\n"


def _sections(prefix: str, section: type[BaseModel], use: str = "") -> Iterator[str]:
    meanings = _meanings(section)
    parts = {name: part for name, field in section.model_fields.items() if (part := _part(field)) is not None}
    rows = [
        f"| `{prefix}{name}` | {_default(field)} | {_meaning(meanings, section, name, field)} |"
        for name, field in section.model_fields.items()
        if name not in parts
    ]
    if rows:
        yield f"## {prefix.rstrip('.') or 'At the top'}\n"
        if prefix:
            yield _flat(f"{section.__doc__} {use}") + "\n"
        yield "| setting | default | meaning |\n|---|---|---|"
        yield from rows
        yield ""
    for name, part in parts.items():
        field = section.model_fields[name]
        between = "NAME." if "dict" in str(field.annotation) else ""
        yield from _sections(f"{prefix}{name}.{between}", part, meanings.get(name, ""))


def _part(field: FieldInfo) -> type[BaseModel] | None:
    """The section that a setting holds, alone, by name, or not at all."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if inspect.isclass(kind) and issubclass(kind, BaseModel) and kind.__module__.startswith("vrag_ray.config"):
            return None if kind.__name__ == "Instruction" else kind
    return None


def _meanings(section: type[BaseModel]) -> dict[str, str]:
    """The docstring behind each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(section))).body[0]
    assert isinstance(body, ast.ClassDef)
    meanings: dict[str, str] = {}
    for field, behind in zip(body.body, body.body[1:], strict=False):
        match field, behind:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                meanings[name] = meaning
    return meanings


def _meaning(meanings: dict[str, str], section: type[BaseModel], name: str, field: FieldInfo) -> str:
    if name not in meanings:
        raise VragError(f"{section.__name__}.{name} has no docstring with its meaning")
    limits = [LIMITS[key].format(f"{value:g}") for limit in field.metadata for key, value in _limits(limit)]
    kinds = (field.annotation, *get_args(field.annotation))
    values = [
        f"`{member.value}`" for kind in kinds if inspect.isclass(kind) and issubclass(kind, StrEnum) for member in kind
    ]
    allowed = "; ".join([*([f"one of {', '.join(values)}"] if values else []), *limits])
    return _flat(meanings[name]).replace("|", "\\|") + (f" ({allowed})" if allowed else "")


def _limits(limit: object) -> Iterator[tuple[str, float]]:
    for key in LIMITS:
        value = getattr(limit, key, None)
        if isinstance(value, int | float):
            yield key, value


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "(required)"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, StrEnum):
        value = value.value
    if value is None or value in ("", (), {}):
        return "none" if value is None else "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _flat(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
