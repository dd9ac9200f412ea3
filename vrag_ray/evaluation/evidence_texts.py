"""Gold places that a benchmark gives as texts: where on its page a text stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vrag_ray.config import Settings
from vrag_ray.evaluation.measures.gold import GoldPlace
from vrag_ray.library.library import Library
from vrag_ray.types import Box, Locator, PageText, VragError, Word, around

LEAST_FOUND = 0.8
"""Share of a text's words that its place on the page has; of less, no box is made."""
_WORDS = re.compile(r"[^\W\d_]+|\d[\d,.]*\d|\d")


def location_of_texts(gold: Mapping[str, Sequence[GoldPlace]], *, here: bool) -> dict[str, str]:
    """What results say of gold texts: how many have a box, or that a running service (``here`` False) locates none.
    Nothing where no place has a text."""
    texts = [place for several in gold.values() for place in several if place.text]
    if not texts:
        return {}
    found = sum(place.box is not None for place in texts)
    return {"gold texts": f"{found} of {len(texts)} located on their pages" if here else "not located: asked by --url"}


async def located(gold: Mapping[str, Sequence[GoldPlace]], settings: Settings) -> dict[str, tuple[GoldPlace, ...]]:
    """``gold`` with a box for each place that has a text and no box, where the words of its page are found.

    Pages are read in the collections of ``settings``; places of pages that cannot be read keep their text alone.
    """
    places = [place for several in gold.values() for place in several if place.text and place.box is None]
    pages = dict.fromkeys((place.doc_id, Locator(page=place.page)) for place in places)
    library = Library(settings)
    try:
        texts = dict(zip(pages, await library.page_texts(list(pages)), strict=True))
    finally:
        library.close()
    return {uid: tuple(_with_box(place, texts) for place in several) for uid, several in gold.items()}


def _with_box(place: GoldPlace, texts: Mapping[tuple[str, Locator], PageText | VragError]) -> GoldPlace:
    page = texts.get((place.doc_id, Locator(page=place.page)))
    if place.box is not None or not isinstance(page, PageText):
        return place
    box = box_of_text(page.words, place.text)
    return place if box is None else replace(place, box=box.as_tuple())


def box_of_text(words: Sequence[Word], text: str) -> Box | None:
    """The box around the words of a page, in their order, that hold most of the words of ``text``.

    Published texts come from other readers, which order the cells of a table in other ways: words are counted, in a
    window as long as the text, and not compared one after the other. None where a fifth of them or more is missing.
    """
    needed = Counter(_words_of(text))
    length = needed.total()
    tokens = [(token, word.box) for word in words for token in _words_of(word.text)]
    held: Counter[str] = Counter()
    found = most = start = 0
    for end, (token, _) in enumerate(tokens):
        held[token] += 1
        found += held[token] <= needed[token]
        if end >= length:
            left = tokens[end - length][0]
            found -= held[left] <= needed[left]
            held[left] -= 1
        if found > most:
            most, start = found, max(0, end - length + 1)
    if not length or most / length < LEAST_FOUND:
        return None
    return around([box for token, box in tokens[start : start + length] if token in needed])


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]
