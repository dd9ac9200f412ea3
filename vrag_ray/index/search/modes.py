"""Which mode a search has: hybrid, or a leg that the collection has."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.index.search.served_legs import ServedLegs
from vrag_ray.types import DENSE, HYBRID, LEXICAL, TEXT, Query, VragError


class NoSuchLegError(VragError):
    """The mode names a leg that this collection does not have, or that cannot be asked; the message says why."""


def used_mode(mode: str, legs: ServedLegs) -> str:
    """The mode that is used. Raises VragError for a leg that is not there."""
    if mode == DENSE:
        mode = TEXT
    if mode == HYBRID:
        return HYBRID if legs.by_name else LEXICAL
    if mode == LEXICAL or mode in legs.by_name:
        return mode
    if mode == TEXT:
        raise NoSuchLegError(f"search by text vectors is not available: {legs.text_notice}")
    why = legs.missing.get(mode)
    known = ", ".join((HYBRID, LEXICAL, *legs.by_name))
    raise NoSuchLegError(
        f"the mode {mode} is not available: {why}" if why else f"mode {mode!r} is none of {known} of this collection"
    )


def refuse_unseen(queries: Sequence[Query], mode: str, legs: ServedLegs) -> None:
    """Raise NoSuchLegError where a query is a picture alone and nothing that is asked sees pictures."""
    if all(query.text.strip() for query in queries):
        return
    if not any(leg.sees for leg in legs.by_name.values() if mode in (HYBRID, leg.name)):
        seeing = ", ".join(leg.name for leg in legs.by_name.values() if leg.sees)
        remedy = f"ask {seeing}" if seeing else "there is no vector space of pictures here: `vrag embed` makes one"
        raise NoSuchLegError(f"a picture without words cannot be searched in mode {mode}: {remedy}")
