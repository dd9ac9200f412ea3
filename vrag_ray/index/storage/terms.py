"""Text to index terms for full-text search.

Every word is indexed twice: as it stands, and as its stem with a ``~`` before it. BM25 then prefers the exact
form and still finds the inflected one. On octave.pdf's 513 outline titles this gave hit@1 .74 where stems alone
gave .68 (`docs/results/search.md`). Lance indexes the result with its whitespace tokenizer, so query and passage meet
the same rules, here. A year that letters lead, as in FY2022, is indexed as the year too. Superscript marks of notes are
no part of a word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from vrag_ray.types.superscripts import without_note_marks

if TYPE_CHECKING:
    import Stemmer

_WORD = re.compile(r"\w+")
_LED_YEAR = re.compile(r"[a-z]{1,3}((?:19|20)\d\d)")
_UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)")


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer.Stemmer:
    import Stemmer

    return Stemmer.Stemmer("english")


def index_terms(text: str) -> list[str]:
    """Lower-cased words, each followed by its ``~stem``; runs of unspaced script become character bigrams."""
    terms: list[str] = []
    for token in _WORD.findall(unicodedata.normalize("NFKC", without_note_marks(text)).lower()):
        terms.extend(_terms_of(token))
    return terms


# Ingest meets the same words again and again, and this is the driver's largest share of the work.
@lru_cache(maxsize=1 << 16)
def _terms_of(token: str) -> tuple[str, ...]:
    terms: list[str] = []
    for part in _UNSPACED.split(token):
        if _UNSPACED.fullmatch(part):
            terms.extend(part[i : i + 2] for i in range(max(1, len(part) - 1)))
        elif part:
            terms += [part, "~" + _stemmer().stemWord(part)]
            if year := _LED_YEAR.fullmatch(part):
                terms += [year[1], f"~{year[1]}"]
    return tuple(terms)
