"""Decoding that loses the one unit that kills the child, not the range it is in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vrag_ray.corpus.model import (
    PASSAGE_KINDS,
    DecodedUnit,
    DecodeError,
    DecodeOptions,
    KilledError,
    KillReason,
    WorkItem,
)
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.types import DocumentKind, Locator

NEXT_RUN = "the next ingest reads it again by itself"
RETRY = "`vrag ingest --retry-errors` reads it again"


def decode_isolating(
    sandbox: Sandbox, path: Path, item: WorkItem, options: DecodeOptions, *, max_kills: int = 3
) -> list[DecodedUnit]:
    """All units of ``item``, in order. A unit that kills the child carries the reason as its error, and what to do.

    After ``max_kills`` kills the rest is given up, so that a file made of such pages costs no more than
    ``max_kills`` times the limits. It is transient where one of the kills was.

    Raises:
        DecodeError: the document itself cannot be opened.
    """
    units: list[DecodedUnit] = []
    kills: list[KilledError] = []
    while len(units) < item.stop - item.start:
        rest = replace(item, start=item.start + len(units))
        if len(kills) >= max_kills:
            transient = any(kill.transient for kill in kills)
            remedy = NEXT_RUN if transient else RETRY
            reason = f"{item.name}: not tried, the decoder was ended {len(kills)} times before it; {remedy}"
            return units + [
                failed_unit(rest, unit, options, reason, transient=transient) for unit in range(rest.start, rest.stop)
            ]
        try:
            # One by one, not extend(): what came before a kill is kept.
            for unit in sandbox.stream(path, rest, options):
                units.append(unit)
        except KilledError as error:
            kills.append(error)
            ending = item.start + len(units)
            units.append(failed_unit(item, ending, options, with_remedy(error), transient=error.transient))
    return units


def with_remedy(error: DecodeError) -> str:
    """Why something could not be read; where the child was ended, also what brings it into the collection."""
    if not isinstance(error, KilledError):
        return str(error)
    if error.transient:
        return f"{error}; {NEXT_RUN}"
    if error.reason is KillReason.CRASH:
        return f"{error}: save the file anew with another program, or leave it out; {RETRY}"
    if error.reason is KillReason.MEMORY:
        return f"{error}: raise the limit, at which the next ingest reads it again by itself, or split the file"
    return f"{error}: raise the limit, or split the file; {RETRY}"


def failed_unit(
    item: WorkItem, unit: int, options: DecodeOptions, error: str, *, transient: bool = False
) -> DecodedUnit:
    """A unit of which nothing was read. A clip's end is a guess here, since only a decoder knows the duration."""
    locator = _locator(item.kind, unit, options)
    return DecodedUnit(unit, PASSAGE_KINDS[item.kind], locator, error=error, transient=transient)


def _locator(kind: DocumentKind, unit: int, options: DecodeOptions) -> Locator:
    if kind is DocumentKind.VIDEO:
        return Locator(t_start=unit * options.clip_seconds, t_end=(unit + 1) * options.clip_seconds)
    if kind is DocumentKind.TEXT:
        return Locator(span_start=unit, span_end=unit)
    return Locator(page=unit + 1)
