"""Text as events can carry it."""

from __future__ import annotations


def storable(text: str) -> str:
    """Without lone surrogates, which JSON cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
