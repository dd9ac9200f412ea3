"""Decoding that loses the one unit that kills the child, not the range it is in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vrag_ray.corpus.model import (
    PASSAGE_KINDS,
    DecodedUnit,
    DecodeOptions,
    KilledError,
    WorkItem,
)
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.types import DocumentKind, Locator


def decode_isolating(
    sandbox: Sandbox, path: Path, item: WorkItem, options: DecodeOptions, *, max_kills: int = 3
) -> list[DecodedUnit]:
    """All units of ``item``, in order. A unit that kills the child carries the reason as its error.

    After ``max_kills`` kills the rest is given up, so that a file made of such pages costs no more than
    ``max_kills`` times the limits.

    Raises:
        DecodeError: the document itself cannot be opened.
    """
    units: list[DecodedUnit] = []
    kills = 0
    while len(units) < item.stop - item.start:
        rest = replace(item, start=item.start + len(units))
        if kills >= max_kills:
            return units + [
                failed_unit(rest, unit, options, f"{item.name}: not tried after {kills} kills in this range")
                for unit in range(rest.start, rest.stop)
            ]
        try:
            # One by one, not extend(): what came before a kill is kept.
            for unit in sandbox.stream(path, rest, options):
                units.append(unit)
        except KilledError as error:
            kills += 1
            units.append(failed_unit(item, item.start + len(units), options, str(error)))
    return units


def failed_unit(item: WorkItem, unit: int, options: DecodeOptions, error: str) -> DecodedUnit:
    """A unit of which nothing was read. A clip's end is a guess here, since only a decoder knows the duration."""
    return DecodedUnit(unit, PASSAGE_KINDS[item.kind], _locator(item.kind, unit, options), error=error)


def _locator(kind: DocumentKind, unit: int, options: DecodeOptions) -> Locator:
    if kind is DocumentKind.VIDEO:
        return Locator(t_start=unit * options.clip_seconds, t_end=(unit + 1) * options.clip_seconds)
    if kind is DocumentKind.TEXT:
        return Locator(span_start=unit, span_end=unit)
    return Locator(page=unit + 1)
