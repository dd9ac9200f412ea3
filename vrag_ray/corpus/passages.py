"""Decoded units become passages: the rows of a collection."""

from __future__ import annotations

from vrag_ray.config import CorpusConfig
from vrag_ray.corpus.model import DecodedUnit
from vrag_ray.corpus.windows import split_windows, without_leaders
from vrag_ray.types import Meta, Passage, passage_id

UNIT_ERROR = "error"
"""The metadata name under which a passage says what of its page or clip could not be read."""


def passages_of(doc_id: str, unit: DecodedUnit, config: CorpusConfig, doc_meta: Meta) -> list[Passage]:
    """The windows of one unit, in order; at least one, with the text ``""`` where the unit has none. Dotted lines go.

    OCR words are of the whole unit and stand in its first window only, so that no word is stored twice.
    The unit's own metadata wins over the document's; its error, if any, is the metadata ``error``.
    """
    meta = {**doc_meta, **unit.meta, **({UNIT_ERROR: unit.error} if unit.error else {})}
    return [
        Passage(
            id=passage_id(doc_id, unit.locator, window),
            doc_id=doc_id,
            kind=unit.kind,
            locator=unit.locator,
            window=window,
            text=text,
            words=unit.words if window == 0 else (),
            meta=meta,
        )
        for window, text in enumerate(
            split_windows(without_leaders(unit.text), config.window_words, config.window_overlap)
        )
    ]
