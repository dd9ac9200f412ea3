"""Which mode a search has: hybrid, or a leg that the collection has; and whether several collections agree in it."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.index.search.served_legs import ServedLegs
from vrag_ray.index.search.snapshot import Snapshot
from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.types import DENSE, HYBRID, LEXICAL, TEXT, InvalidError, Query


class NoSuchLegError(InvalidError):
    """The mode names a leg that this collection does not have, or that cannot be searched; the message says why."""

    param = "mode"


class DisagreeingSpacesError(InvalidError):
    """Collections were to be searched together whose vectors cannot be compared; the message says what can be done."""

    param = "collection"


def common_mode(mode: str, snapshots: Sequence[Snapshot]) -> str:
    """The mode in which the collections are searched as one.

    Raises NoSuchLegError for a leg that one of them does not have, DisagreeingSpacesError where their vectors come from
    different embedders, or are not stored in the same precision.
    """
    if len(snapshots) == 1:
        return used_mode(mode, snapshots[0].legs)
    used = {}
    for snapshot in snapshots:
        try:
            used[snapshot.name] = used_mode(mode, snapshot.legs)
        except NoSuchLegError as error:
            raise NoSuchLegError(f"{snapshot.name}: {error}") from error
    spaces = {snapshot.name: _spaces(snapshot.legs, used[snapshot.name]) for snapshot in snapshots}
    if len(set(spaces.values())) > 1:
        raise DisagreeingSpacesError(_disagreement(mode, snapshots))
    return used[snapshots[0].name]


Space = tuple[str, str, bool]
"""What makes vectors comparable: the leg, its embedder, and whether they are stored in one bit a dimension."""


def _space(leg: VectorLeg) -> Space:
    return leg.name, leg.spec.embedder_id, leg.spec.binary


def _spaces(legs: ServedLegs, mode: str) -> frozenset[Space]:
    return frozenset(_space(leg) for leg in legs.by_name.values() if mode in (HYBRID, leg.name))


def _disagreement(mode: str, snapshots: Sequence[Snapshot]) -> str:
    shared = frozenset.intersection(*(_spaces(snapshot.legs, HYBRID) for snapshot in snapshots))
    common = [LEXICAL, *(name for name in snapshots[0].legs.by_name if any(space[0] == name for space in shared))]
    own = [
        f"{snapshot.name} has " + (", ".join(map(_named, sorted(_spaces(snapshot.legs, HYBRID)))) or "none")
        for snapshot in snapshots
    ]
    return (
        f"the vectors of these collections cannot be compared in mode {mode}: {'; '.join(own)}. Search one at a time, "
        f"or in mode {' or '.join(common)}, or give them the same spaces (`vrag embed`) and the same precision "
        "(spaces.NAME.binary in the configuration)"
    )


def _named(space: Space) -> str:
    name, embedder, is_binary = space
    return f"{name} of {embedder}{' in one bit a dimension' if is_binary else ''}"


def used_mode(mode: str, legs: ServedLegs) -> str:
    """The mode that is used. Raises VragError for a leg that is not there."""
    if mode == DENSE:
        mode = TEXT
    if mode == HYBRID:
        return HYBRID if legs.by_name else LEXICAL
    if mode == LEXICAL or mode in legs.by_name:
        return mode
    if mode == TEXT:
        raise NoSuchLegError(f"search by text vectors is not available: {legs.missing[TEXT]}")
    why = legs.missing.get(mode)
    known = ", ".join((HYBRID, LEXICAL, *legs.by_name))
    raise NoSuchLegError(
        f"the mode {mode} is not available: {why}" if why else f"mode {mode!r} is none of {known} of this collection"
    )


def refuse_unseen(queries: Sequence[Query], mode: str, legs: ServedLegs) -> None:
    """Raise NoSuchLegError where a query is a picture alone and no searched leg takes pictures."""
    if all(query.text.strip() for query in queries):
        return
    if not any(leg.sees for leg in legs.by_name.values() if mode in (HYBRID, leg.name)):
        seeing = ", ".join(leg.name for leg in legs.by_name.values() if leg.sees)
        remedy = f"ask {seeing}" if seeing else "there is no vector space of pictures here: `vrag embed` makes one"
        raise NoSuchLegError(f"a picture without words cannot be searched in mode {mode}: {remedy}")
