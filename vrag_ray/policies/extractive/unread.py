"""Results of a search without words: pages that are only drawn, found by what they show. Rules cannot read them."""

from __future__ import annotations

from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.corpus.model import title_from_name
from vrag_ray.policies.extractive.matching import Match
from vrag_ray.types import PassageKind
from vrag_ray.types.file_names import names_of


def unread_above(seen: Observation, best: Match | None) -> Sighting | None:
    """The first whole result without words, unless the one of ``best`` stands above it; None where there is none."""
    for sighting in seen.sightings:
        if not sighting.source and _is_wordless(sighting):
            return sighting
        if best is not None and sighting.id == best.sighting_id:
            return None
    return None


def _is_wordless(sighting: Sighting) -> bool:
    """A picture or clip without words is stored with those of its file name, which do not stand in it."""
    if sighting.kind is PassageKind.TEXT:
        return False
    known = " ".join(sighting.text.split())
    # The title has the folder behind it where another file has the name.
    return known in ("", " ".join(sighting.title.split()), title_from_name(names_of([sighting.uri])[0]))
