"""The faults that a caller can act on."""

from __future__ import annotations


class VragError(Exception):
    """A fault the caller can act on: the message names the input and the remedy."""


class NotFoundError(VragError):
    """An id, a page or a time that names nothing; the message says which."""
