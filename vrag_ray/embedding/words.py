"""What a tokenizer can be given, and what of a text a model can read."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def encodable(text: str) -> str:
    """Text layers of broken PDFs hold lone surrogates, which no UTF-8 tokenizer accepts."""
    return text.encode("utf-8", "replace").decode("utf-8")


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[str, ...]:
    """The marks of a model's template: what its tokenizer file calls special, and not only what has a role by name."""
    return tuple(str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)


def without_special(text: str, special: Sequence[str]) -> str:
    """``text`` with the marks of a model's template broken up by a blank.

    A document or a question that spells such a mark would otherwise end its own turn, or ask for a second picture.
    """
    for token in special:
        if len(token) > 1 and token in text:
            text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


@lru_cache(maxsize=4096)
def is_latin(character: str) -> bool:
    """A letter of the Latin alphabet, accents and all, or a digit 0 to 9, in any typographic form."""
    return all(
        part.isascii() or unicodedata.name(part, "").startswith("LATIN ") or unicodedata.combining(part) > 0
        for part in unicodedata.normalize("NFKC", character)
    )


def latin_share(text: str) -> float:
    """Share of the letters and digits that are Latin; 1 for a text without any."""
    letters = [character for character in text if character.isalnum()]
    return sum(map(is_latin, letters)) / len(letters) if letters else 1.0
