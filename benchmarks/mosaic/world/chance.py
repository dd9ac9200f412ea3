"""Where everything drawn in this world comes from."""

from __future__ import annotations

import random


def drawn_from(*what: str | int) -> random.Random:
    """Random numbers that are the same, on every machine, for the same words and numbers."""
    return random.Random("/".join(map(str, what)))
