"""Answer questions over PDF pages, slides, images and videos with cited evidence, on Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vrag_ray.compat.agents import VRAG, VimRAG
    from vrag_ray.compat.search_engine import SearchEngine

__version__ = "0.1.0"
__all__ = ["SearchEngine", "VRAG", "VimRAG", "__version__"]


def __getattr__(name: str) -> object:
    """The classes for programs, imported when they are asked for, so that the package itself imports at once."""
    if name in ("VRAG", "VimRAG"):
        from vrag_ray.compat import agents

        agent: object = getattr(agents, name)
        return agent
    if name == "SearchEngine":
        from vrag_ray.compat.search_engine import SearchEngine

        return SearchEngine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
