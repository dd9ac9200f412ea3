"""What a setting names by ``package.module:name``: a function or factory of the user's own."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterable

from vrag_ray.types.errors import VragError


def load_object(path: str, setting: str, known: Iterable[str] = (), what: str = "function") -> Callable[..., object]:
    """What ``path`` names, which can be called. The module is imported.

    Raises VragError, with the name of the ``setting``, where there is no such thing. ``known`` are the values that the
    setting takes beside paths, ``what`` is what a path leads to.
    """
    module_name, colon, attribute = path.partition(":")
    if not (module_name and colon and attribute):
        names = ", ".join(known)
        raise VragError(f"{setting} is {path!r}; use {names + ' or ' if names else ''}package.module:{what}")
    try:
        target: object = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]
        remedy = ". Install it, or put its folder on PYTHONPATH, here and on every node" if missing else ""
        raise VragError(f"{setting} is {path!r}, but {module_name} does not import: {error}{remedy}") from error
    except AttributeError as error:
        raise VragError(f"{setting} is {path!r}, but {module_name} has no {attribute}") from error
    if not callable(target):
        raise VragError(f"{setting} is {path!r}, but {attribute} cannot be called")
    return target


def raised_by(error: Exception) -> str:
    """What a function of the user's own raised, and in which line: ``KeyError: 'x' (rewards.py, line 12)``."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})"
