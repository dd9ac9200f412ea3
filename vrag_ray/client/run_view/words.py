"""The few words that an answer, pictures of a run and the app around them share. Pure."""

from __future__ import annotations

EXTRACTIVE_NOTES = (
    "(no language model configured: extractive answer)",
    "(extractive answer: the configured language model was not asked)",
)
"""The last line of an answer by rules: where there is no model, and where there is a model that was not asked."""


def without_note(answer: str) -> str:
    """``answer`` without the line that says how it was made."""
    for note in EXTRACTIVE_NOTES:
        answer = answer.replace(note, "")
    return answer.strip()


def counted(number: int, thing: str) -> str:
    """``1 picture``, ``2 pictures``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
