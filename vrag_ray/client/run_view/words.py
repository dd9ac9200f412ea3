"""The few words that pictures of a run share with the app around them. Pure."""

from __future__ import annotations

NO_MODEL_NOTE = "(no language model configured: extractive answer)"


def counted(number: int, thing: str) -> str:
    """``1 picture``, ``2 pictures``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
