"""Tokenizing turn by turn reads a chat as tokenizing it whole does."""

from __future__ import annotations

import random
from typing import cast

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from vrag_ray.policies.llm.turn_tokenizer import TurnTokenizer

END = "<|im_end|>"
SLASH = "\u0338"
"""Joins the sign before it: with ">" it is one character in the normal form."""
SCRAPS = (END, END, "<|im_start|>", "user\n", "\n", " ", "<|", "<|im_", "|>", "x", "A", SLASH, "é", "a page", "")


def tokenizer(*added: AddedToken) -> Tokenizer:
    """Of bytes, as the tokenizers of the Qwen families are."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(["user asks for a page", "  a page\n\n", "<|im_", "|><|"] * 4, trainer)
    made.add_special_tokens([AddedToken("<|im_start|>", special=True, normalized=False)])
    made.add_tokens(list(added))
    return made


ALONE = AddedToken(END, special=True, normalized=False)


@pytest.mark.parametrize(
    "added",
    [
        (ALONE,),
        (ALONE, AddedToken("user\n", normalized=False), AddedToken("\n ", normalized=True)),
        (AddedToken(END, special=True, normalized=False, lstrip=True, rstrip=True),),
        (AddedToken(END, special=True, normalized=False, single_word=True),),
        (AddedToken(END, special=True, normalized=True),),
        (ALONE, AddedToken(f"{END}\n", normalized=False)),
        (ALONE, AddedToken("x<", normalized=False)),
        (),
    ],
    ids=["alone", "others", "strips", "single-word", "normalized", "part-of-another", "overlapped", "unknown"],
)
def test_any_text_has_the_ids_that_it_has_as_a_whole(added: tuple[AddedToken, ...]) -> None:
    made = tokenizer(*added)
    turns = TurnTokenizer(made, END)
    chance = random.Random(1)
    for _ in range(500):
        text = "".join(chance.choices(SCRAPS, k=12))
        assert turns.ids(text) == tuple(made.encode(text, add_special_tokens=False).ids), repr(text)


def test_a_turn_seen_before_is_not_tokenized_again() -> None:
    class Watched:
        """Keeps what it was given to read."""

        def __init__(self) -> None:
            self.read: list[str] = []
            self._made = tokenizer(ALONE)

        def __getattr__(self, name: str) -> object:
            return getattr(self._made, name)

        def encode_batch_fast(self, texts: list[str], *, add_special_tokens: bool) -> object:
            self.read += texts
            return self._made.encode_batch_fast(texts, add_special_tokens=add_special_tokens)

    watched = Watched()
    turns = TurnTokenizer(cast("Tokenizer", watched), END)
    turns.ids(f"<|im_start|>user\na page{END}\n<|im_start|>")
    watched.read.clear()
    turns.ids(f"<|im_start|>user\na page{END}\n<|im_start|>user\n{END}")
    assert watched.read == [f"\n<|im_start|>user\n{END}", ""]
