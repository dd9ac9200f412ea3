"""Which places a run has been shown, and the words of the pages read for it: a page is read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vrag_ray.agent.events import storable
from vrag_ray.agent.observation import Sighting
from vrag_ray.agent.wire_protocol import Rules
from vrag_ray.types import Hit, Locator, PageText, Passage, VragError

PageRef = tuple[str, Locator]
"""A document's id and a place in it."""


class SeenPages:
    """What one run has come across so far."""

    def __init__(self) -> None:
        self._shown: set[tuple[str, str]] = set()
        self._read: dict[tuple[str, str], PageText | VragError] = {}

    def choose(self, hits: Sequence[Hit], rules: Rules) -> list[Hit]:
        """The hits that ``rules`` show, best first; they count as shown from now on."""
        fresh = [hit for hit in hits if not rules.skips_seen or _place(hit.passage) not in self._shown][: rules.shows]
        self._shown.update(_place(sighting.passage) for sighting in fresh)
        return fresh

    def unread(self, sightings: Sequence[Sighting]) -> tuple[PageRef, ...]:
        """The pages of ``sightings`` that are still to be read, once each."""
        pages = {(sighting.doc_id, sighting.locator.key): (sighting.doc_id, sighting.locator) for sighting in sightings}
        return tuple(page for key, page in pages.items() if key not in self._read)

    def put(self, pages: Sequence[PageRef], results: Sequence[PageText | VragError]) -> None:
        """``results`` of reading ``pages``, in that order: the words, or why there are none."""
        for (doc_id, locator), result in zip(pages, results, strict=True):
            self._read[doc_id, locator.key] = result

    def page_of(self, sighting: Sighting) -> PageText | None:
        """None where it was not read, or could not be."""
        page = self._read.get((sighting.doc_id, sighting.locator.key))
        return page if isinstance(page, PageText) else None

    def beside(self, sighting: Sighting) -> Sighting:
        """``sighting`` with the words of its page, or with the reason why it could not be read."""
        page = self._read.get((sighting.doc_id, sighting.locator.key))
        if isinstance(page, VragError):
            return replace(sighting, read_error=storable(str(page)))
        return replace(sighting, page=page)


def _place(passage: Passage) -> tuple[str, str]:
    return passage.doc_id, passage.locator.key
