"""How the pictures of one prompt share what its model takes. Pure functions, the same in every use of the agent.

The room of a prompt is given out in three parts: remembered pictures, ``CROP_ROOM`` closer looks, and the results of
one search. A page takes one picture; what is left is dealt evenly to the videos, as frames. So memory and the newest
results always fit. Where closer looks pile up beyond their part, what was shown longest ago is left out in words,
and what is remembered only after everything that is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vrag_ray.agent.observation import Observation, Prompt, Sighting
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.types import Hit

LEFT_OUT = "no longer shown: the model takes no more pictures"


def even_shares(demands: Sequence[int], room: int) -> tuple[int, ...]:
    """``room`` dealt out evenly, none above what it wants: one each first, in order; odd ones go to the first."""
    given = [0] * len(demands)
    while room > 0 and (unmet := [place for place, want in enumerate(demands) if given[place] < want]):
        share = max(1, room // len(unmet))
        for place in unmet[:room]:
            more = min(share, demands[place] - given[place])
            given[place] += more
            room -= more
    return tuple(given)


def results_of(pending: Observation, hits: Sequence[Hit], protocol: WireProtocol) -> tuple[Sighting, ...]:
    """The results of the search of ``pending``, each with the number of pictures that it may be shown in."""
    for hit in hits:
        label = pending.next_id(hit.passage.kind, in_words=not protocol.evidence.has_pictures)
        sighting = Sighting.of(hit, label, with_figures=protocol.marks_pictures)
        pending = replace(pending, sightings=(*pending.sightings, sighting))
    limits, sightings = protocol.limits, pending.sightings
    if limits is None:
        return sightings
    demands = [len(protocol.views(picture)) for picture in sightings]
    shares = even_shares(demands, limits.results)
    return tuple(
        sighting if share == want else replace(sighting, max_pictures=share)
        for sighting, want, share in zip(sightings, demands, shares, strict=True)
    )


def within_limits(prompt: Prompt, protocol: WireProtocol) -> Prompt:
    """``prompt`` with no more pictures than its model takes.

    Left out, one after the other until the rest fits: what turns showed before the newest one with pictures, the
    oldest turn first and of a turn the last result first; then remembered pictures, the weakest first; then the newest.
    """
    limits = protocol.limits
    if limits is None or limits.hold(protocol.pictures(prompt)):
        return prompt
    return next(fewer for fewer in _with_ever_fewer(prompt, protocol) if limits.hold(protocol.pictures(fewer)))


def _with_ever_fewer(prompt: Prompt, protocol: WireProtocol) -> Iterator[Prompt]:
    """``prompt`` again and again, each time with less to see; the last one shows no picture."""
    shows = [place for place, turn in enumerate(prompt.turns) if any(protocol.views(picture) for picture in turn.shown)]
    fewer = prompt
    for place in shows[:-1]:
        for fewer in _without_turn(fewer, place):  # noqa: B020  the next turn goes on from the last of these
            yield fewer
    for _ in prompt.allotments:
        fewer = replace(fewer, allotments=fewer.allotments[:-1])
        yield fewer
    for place in shows[-1:]:
        yield from _without_turn(fewer, place)


def _without_turn(prompt: Prompt, place: int) -> Iterator[Prompt]:
    turn = prompt.turns[place]
    for sighting in reversed(turn.shown):
        turn = replace(turn, left_out=turn.left_out | {sighting.id})
        yield replace(prompt, turns=(*prompt.turns[:place], turn, *prompt.turns[place + 1 :]))
