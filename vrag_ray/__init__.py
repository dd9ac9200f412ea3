"""Answer questions over PDF pages, slides, images and videos with cited evidence, on Ray."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vrag_ray.compat.agents import VRAG, VimRAG
    from vrag_ray.compat.search_engine import SearchEngine
    from vrag_ray.system.opening import connect, ingest_files
    from vrag_ray.system.opening import open_collection as open  # noqa: A004  as vrag_ray.open

__version__ = "0.1.0"
__all__ = ["SearchEngine", "VRAG", "VimRAG", "__version__", "connect", "ingest_files", "open"]

_PLACES = {
    "SearchEngine": ("vrag_ray.compat.search_engine", "SearchEngine"),
    "VRAG": ("vrag_ray.compat.agents", "VRAG"),
    "VimRAG": ("vrag_ray.compat.agents", "VimRAG"),
    "connect": ("vrag_ray.system.opening", "connect"),
    "ingest_files": ("vrag_ray.system.opening", "ingest_files"),
    "open": ("vrag_ray.system.opening", "open_collection"),
}


def __getattr__(name: str) -> object:
    """What programs use, imported at its first use, so that the package itself imports at once."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _PLACES[name]
    value: object = getattr(import_module(module), attribute)
    return value
