"""What a question is for: "the price of the sauna" is for a price, and for that of a sauna.

The words of a title stand for all of its document, so the name of a hotel and any price on its page cover most of "the
price of the sauna at Hotel Adler". What holds nothing of the sauna most likely is the price of another thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from vrag_ray.policies.extractive.lexicon import AUXILIARIES, Term, stem, tokens

_STOP = (
    rf"(?:{AUXILIARIES}|of|in|at|on|for|by|from|to|with|during|per|between|according|as|under|over|within|into|through"
    r"|until|since|after|before|that|which|who|and|or|may|must|should|there)\b"
)
_ARTICLES = r"(?:(?:the|an?|its|their|his|her|each|every|all|this|that|these|one)\s+)*"
_WORDS = rf"(?:(?!{_STOP})[^\s,?();:]+\s+){{0,5}}?(?!{_STOP})[^\s,?();:]+(?=\s+{_STOP}|\s*[,?();:]|\s*$)"
_IS = r"(?:\s+(?:is|are|was|were|will be)|['\u2019](?:s|re))"
_BEGIN = r"^\W*(?:and\s+)?"
_PATTERNS = tuple(
    re.compile(_BEGIN + pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:what|which){_IS}\s+{_ARTICLES}(?P<kind>{_WORDS})(?:\s+(?:of|for)\s+{_ARTICLES}(?P<thing>{_WORDS}))?",
        r"(?:what|how much)\s+(?:do|does|did|will|would)\s+"
        rf"{_ARTICLES}(?P<thing>(?:(?!{_STOP})[^\s,?();:]+\s+){{0,5}}?(?!{_STOP})[^\s,?();:]+)(?:\s+{_STOP}[^?]*)?"
        r"\s+(?P<kind>cost|weigh|earn)\b",
        rf"how\s+many\s+(?P<kind>{_WORDS})",
        rf"how\s+(?:much|(?P<kind>\w+)){_IS}\s+{_ARTICLES}(?P<thing>{_WORDS})",
        rf"how\s+much\s+(?P<kind>{_WORDS})",
        rf"who{_IS}\s+{_ARTICLES}(?P<kind>{_WORDS})",
        rf"who\s+(?!{_STOP})(?P<kind>\w+)",
    )
)


def sought(question: str, terms: Sequence[Term]) -> tuple[frozenset[str], ...]:
    """Two groups of stems of ``terms``: the words for the kind of thing that the question is for (a price), and the
    word for the thing that has it (a sauna). Either may be empty, and names are in none: they count by themselves. No
    groups where the question is of another form."""
    match = next((match for pattern in _PATTERNS if (match := pattern.match(question)) is not None), None)
    return tuple(_groups(match, terms)) if match is not None else ()


def _groups(match: re.Match[str], terms: Sequence[Term]) -> Iterator[frozenset[str]]:
    common = {term.stem for term in terms if not term.specific}
    named = match.groupdict()
    yield frozenset(map(stem, tokens(named.get("kind") or ""))) & common
    # The last word of a noun phrase is its head: a bus ticket is a ticket.
    yield frozenset(map(stem, tokens(named.get("thing") or "")[-1:])) & common
