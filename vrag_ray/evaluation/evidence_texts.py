"""What only the pages of a collection tell of gold places: boxes of texts and of pixels, and which reading fits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vrag_ray.config import Settings
from vrag_ray.imaging.coordinates import holds_centre
from vrag_ray.library.library import Library
from vrag_ray.questions.examples import Corners, Example
from vrag_ray.questions.gold_places import GoldPlace, gold_places
from vrag_ray.questions.named_pages import NamedDocument
from vrag_ray.types import Box, Locator, PageText, VragError, Word, around

LEAST_MATCHED = 0.8
"""Share of a text's words that its place on the page has; of less, no box is made."""
MOST_COMPARED = 200
"""Gold boxes whose texts are compared with the page to choose a reading: enough to decide, few enough to read."""
_HAN = "\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_HAN}]|[^\W\d_{_HAN}]+|\d[\d,.]*\d|\d")
"""Each Han character is a word: they are written without spaces, and readers break their lines in other places."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to read a file, by which ``held`` of ``compared`` gold boxes hold the words that it gives for them."""

    name: str
    held: int = 0
    compared: int = 0


def location_of_gold(gold: Mapping[str, Sequence[GoldPlace]], *, here: bool) -> dict[str, str]:
    """What results say of gold texts and of gold boxes in pixels: how many have a box, or that a running service
    (``here`` False) locates none. Nothing where no place has a text or pixels."""
    places = [place for several in gold.values() for place in several]
    texts = [place for place in places if place.text]
    facts: dict[str, str] = {}
    if texts:
        with_box = sum(place.box is not None for place in texts)
        facts["gold texts"] = (
            f"{with_box} of {len(texts)} located on their pages"
            if here
            else "not located: a service at --url is evaluated"
        )
    if any(place.pixels is not None for place in places):
        facts["gold boxes"] = "in pixels, not placed on their pages: a service at --url is evaluated"
    return facts


async def located(gold: Mapping[str, Sequence[GoldPlace]], settings: Settings) -> dict[str, tuple[GoldPlace, ...]]:
    """``gold`` with a box for each place that has a text and no box, where its page has the words, and for
    each that has pixels, by the size of its page.

    Pages are read in the collections of ``settings``; places of pages that cannot be read keep their text alone.
    Raises VragError that names question and place for pixels on a page that cannot be read or has another size.
    """
    open_places = [place for several in gold.values() for place in several if _needs_its_page(place)]
    pages = await _pages(open_places, settings)
    return {uid: tuple(_with_box(uid, place, pages) for place in several) for uid, several in gold.items()}


async def reading_that_fits(
    readings: Mapping[str, Sequence[Example]], documents: Sequence[NamedDocument], settings: Settings
) -> Reading:
    """The reading by which most gold boxes hold the words that stand beside them in the file; of equals the first.

    Boxes without a text, texts without words and pages without words (scans) are not compared. A reading that names a
    page which its document does not have does not fit. Raises VragError, that of the first reading, where none fits.
    """
    compared: dict[str, list[tuple[GoldPlace, Corners, str]]] = {}
    refusals: list[VragError] = []
    for name, examples in readings.items():
        try:
            places = gold_places(examples, documents)
        except VragError as error:
            refusals.append(error)
            continue
        compared[name] = [
            (place, place.box, gold.text)
            for example in examples
            for gold, place in zip(example.gold, places[example.uid], strict=True)
            if place.box is not None and _words_of(gold.text)
        ][:MOST_COMPARED]
    if not compared:
        raise refusals[0]
    pages = await _pages([place for several in compared.values() for place, _, _ in several], settings)
    fits: list[Reading] = []
    for name, several in compared.items():
        held = [
            holds_text(page.words, box, text)
            for place, box, text in several
            if isinstance(page := pages[_key(place)], PageText) and page.words
        ]
        fits.append(Reading(name, sum(held), len(held)))
    return max(fits, key=lambda reading: reading.held)


def holds_text(words: Sequence[Word], box: Corners, text: str) -> bool:
    """Whether ``LEAST_MATCHED`` of the words of ``text`` or more are among the words of a page whose centres lie in
    ``box``, in fractions of that page."""
    x0, y0, x1, y1 = box
    inside = [word.text for word in words if holds_centre(Box(x0, y0, x1, y1), word.box)]
    needed = Counter(_words_of(text))
    held = needed & Counter(token for word in inside for token in _words_of(word))
    return held.total() >= LEAST_MATCHED * needed.total()


async def _pages(places: Sequence[GoldPlace], settings: Settings) -> Mapping[tuple[str, Locator], PageText | VragError]:
    """The pages of ``places``, each read once."""
    keys = [*dict.fromkeys(map(_key, places))]
    library = Library(settings)
    try:
        return dict(zip(keys, await library.page_texts(keys), strict=True))
    finally:
        library.close()


def _key(place: GoldPlace) -> tuple[str, Locator]:
    return place.doc_id, Locator(page=place.page)


def _needs_its_page(place: GoldPlace) -> bool:
    return place.box is None and (place.pixels is not None or bool(place.text))


def _with_box(uid: str, place: GoldPlace, pages: Mapping[tuple[str, Locator], PageText | VragError]) -> GoldPlace:
    if not _needs_its_page(place):
        return place
    page = pages[_key(place)]
    if place.pixels is None:
        box = None if isinstance(page, VragError) else box_of_text(page.words, place.text)
        return place if box is None else replace(place, box=box.as_tuple())
    which = f"example {uid!r}: gold place {place.name!r}"
    if isinstance(page, VragError):
        raise VragError(f"{which} is in pixels, and its page cannot be read to know the size: {page}") from page
    try:
        return replace(place, box=place.pixels.on_page(page.width, page.height), pixels=None)
    except ValueError as error:
        raise VragError(f"{which}: {error}: ingest the file that the benchmark names, or correct the box") from error


def box_of_text(words: Sequence[Word], text: str) -> Box | None:
    """The box around the words of a page, in their order, that hold most of the words of ``text``.

    Published texts come from other readers, which order the cells of a table in other ways: words are counted, in a
    window as long as the text, and not compared one after the other. None where a fifth of them or more is missing.
    """
    needed = Counter(_words_of(text))
    length = needed.total()
    tokens = [(token, word.box) for word in words for token in _words_of(word.text)]
    held: Counter[str] = Counter()
    matched = most = start = 0
    for end, (token, _) in enumerate(tokens):
        held[token] += 1
        matched += held[token] <= needed[token]
        if end >= length:
            left = tokens[end - length][0]
            matched -= held[left] <= needed[left]
            held[left] -= 1
        if matched > most:
            most, start = matched, max(0, end - length + 1)
    if not length or most / length < LEAST_MATCHED:
        return None
    return around([box for token, box in tokens[start : start + length] if token in needed])


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]
