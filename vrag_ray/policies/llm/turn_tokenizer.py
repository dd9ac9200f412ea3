"""Token ids of a chat, turn by turn: a run's next prompt begins with the turns of its last one."""

from __future__ import annotations

from array import array
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenizers import AddedToken, Tokenizer

CACHED_TURNS = 1024


class TurnTokenizer:
    """Gives the ids that ``tokenizer`` gives a whole text, without special tokens added.

    The ids of the last ``CACHED_TURNS`` turns are cached, four bytes a token. A text is cut behind each ``turn_end``;
    it is not cut at all where that token's neighbours decide how it is read, or it how they are. What else it
    does must not depend on where in a text a piece stands, as in the Qwen families. Any thread may call it.
    """

    def __init__(self, tokenizer: Tokenizer, turn_end: str) -> None:
        self._tokenizer = tokenizer
        self._end = turn_end if _stands_alone(turn_end, tokenizer.get_added_tokens_decoder().values()) else ""
        self._cached = lru_cache(CACHED_TURNS)(self._turn)

    def ids(self, text: str) -> tuple[int, ...]:
        if not self._end:
            return tuple(self._turn(text))
        *turns, rest = text.split(self._end)
        return tuple(chain.from_iterable((*(self._cached(turn + self._end) for turn in turns), self._cached(rest))))

    def _turn(self, text: str) -> array[int]:
        # Several times as fast as a transformers tokenizer, which also keeps where in the text each token was.
        return array("I", self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids)


def _stands_alone(token: str, added: Iterable[AddedToken]) -> bool:
    """Whether ``token`` is found wherever it stands, and takes nothing of what is beside it."""
    known = {token.content: token for token in added}
    counted = known.pop(token, None)
    if counted is None or counted.lstrip or counted.rstrip or counted.single_word or counted.normalized:
        return False
    beginnings = tuple(token[:length] for length in range(1, len(token) + 1))
    return not any(token in other or other.endswith(beginnings) for other in known)
