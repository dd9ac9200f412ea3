"""What follows from several rows of a table: the extreme of a column, the count of rows, a total, a comparison.

Each rule answers where the question names the column, all figures of it have one unit, and no other word of the
question is for another column; else there is no result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile

from vrag_ray.agent.facts import figures
from vrag_ray.policies.extractive.layout import LONGEST_LIST
from vrag_ray.policies.extractive.lexicon import AUXILIARIES, Term, is_function_word, quantities, stem, stems, tokens
from vrag_ray.policies.extractive.questions import Part, is_negated
from vrag_ray.policies.extractive.sheets import Entry, Sheet, values
from vrag_ray.policies.extractive.synonyms import without_marks

_ORDERS = {
    "price": ("cheap", "dear inexpensive"),
    "high": ("low", "high tall"),
    "large": ("small", "large larg big bigg"),
    "long": ("short", "long"),
    "heavy": ("light", "heavi"),
    "wide": ("narrow", "wid"),
    "deep": ("shallow", "deep"),
    "fast": ("slow", "fast"),
    "loud": ("quiet", "loud"),
    "warm": ("cold cool", "hot hott warm"),
    "begin": ("old", "new young"),
    "": ("few", "great"),
}
"""Of each dimension, the adjectives for less and for more of it, as they stand before "er" and "est"."""
_ORDER_OF = {
    word: (dimension, sign)
    for dimension, groups in _ORDERS.items()
    for sign, group in zip((-1, 1), groups, strict=True)
    for word in group.split()
}
_HEADS_OF = {
    "price": "price cost fee charge fare rent tariff",
    "high": "height altitude elevation",
    "large": "area size surface",
    "long": "length duration",
    "heavy": "weight mass",
    "wide": "width breadth",
    "deep": "depth",
    "fast": "speed velocity",
    "loud": "noise sound loudness",
    "warm": "temperature",
    "begin": "built founded established opened year born since",
    "": "",
}
_VAGUE = ("", "high", "large")
"""Dimensions of adjectives that go with any figure: "the highest price"."""
_ORDERED = re.compile(
    rf"\b(?<!\bat )(?<!\bno )(?:(?P<many>most|more|least|less)(?: (?P<of>expensive|recent))?|"
    rf"(?P<word>{'|'.join(_ORDER_OF)})(?P<form>e?st|e?r))\b",
    re.IGNORECASE,
)
_STOPS = frozenset(
    f"of in at on for to from during that which who than with by as or and {AUXILIARIES.replace('|', ' ')}".split()
)
_KIND = re.compile(
    rf"^\W*(?:(?:in|at|on|for)\s+)?(?:which|what)\s+(?!(?:{AUXILIARIES})\b)(\w+(?:\s+\w+)?)", re.IGNORECASE
)
_IS_FOR_AN_EXTREME = re.compile(r"^\W*(?:and\s+)?(?:(?:in|at|on|for)\s+)?(?:which|what|who)\b", re.IGNORECASE)
_IS_FOR_A_TOTAL = re.compile(r"\b(?:in total|total|altogether|together|in all|overall|combined)\b", re.IGNORECASE)
_IS_FOR_A_DIFFERENCE = re.compile(
    r"\bdifferences?\b|\bby how m(?:uch|any)\b|\bhow m(?:uch|any)(?= \w+er\b| more\b| less\b)", re.IGNORECASE
)
_COUNTED = re.compile(r"\bhow many\s+(?:of\s+)?(?:(?:the|these|all|its|their)\s+)*(\w+(?:\s+\w+){0,2})", re.IGNORECASE)
_IS_LIMITED = re.compile(
    r"\b(?:between|from|since|after|before|until|over|under|above|below|except|besides|least|most|more|less|fewer)\b(?=.*\d)"
    r"|^\W*what\b.*\bof (?:the )?(?:\w+est|most|least)\b"
    r"|\b(?:second|third|fourth|fifth|next|last|2nd|3rd|other)\b",
    re.IGNORECASE,
)
"""Of rows that no cell names, as those since 2015, of another place in their order than the first, or of another column
than that of their order: "the price of the largest room"."""
_NO_SUM = stems("average mean rate ratio share percentage percent year per")
_YES = frozenset(["yes", "y", "x", "✓", "✔", "true", "ja", "oui"])
_NO = frozenset(["no", "n", "-", "–", "—", "✗", "✘", "", "false", "nein", "non"])  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Result:
    """``answer`` follows from ``entries``, which are quoted; ``used`` are the stems of the question that led to it."""

    answer: str
    entries: tuple[Entry, ...]
    used: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Order:
    """A superlative or a comparative: its dimension, 1 for more and -1 for less of it, and the words behind it."""

    dimension: str
    sign: int
    is_superlative: bool
    phrase: tuple[str, ...]
    before: tuple[str, ...]
    own: frozenset[str]


_NO_ORDER = _Order("", 1, False, (), (), frozenset())


def is_reckoned(part: Part) -> bool:
    """Whether a question may be for something that follows from several rows."""
    patterns = (_COUNTED, _IS_FOR_A_TOTAL, _IS_FOR_A_DIFFERENCE)
    return _order(part.text) is not None or any(pattern.search(part.text) for pattern in patterns)


def comparison_of(part: Part, sheet: Sheet, near: Set[str]) -> Result | None:
    """What follows from two rows of ``sheet`` that the question names; arguments as of ``result_of``."""
    return _comparison(_order(part.text), _Reading(part, sheet, near))


def _comparison(order: _Order | None, reading: _Reading) -> Result | None:
    is_difference = _IS_FOR_A_DIFFERENCE.search(reading.part.text) is not None
    if (not is_difference and (order is None or order.is_superlative)) or len(sides := reading.sides()) != 2:
        return None
    return reading.comparison(order or _NO_ORDER, *sides, is_difference=is_difference)


def result_of(part: Part, sheet: Sheet, near: Set[str]) -> Result | None:
    """What follows from the rows of ``sheet``; ``near`` are the words of the title and of the headings above it."""
    order, reading = _order(part.text), _Reading(part, sheet, near)
    if (compared := _comparison(order, reading)) is not None:
        return compared
    if is_negated(part.text) or _IS_LIMITED.search(part.text) is not None:
        return None
    if order is not None and order.is_superlative:
        return reading.extreme(order) if _IS_FOR_AN_EXTREME.match(part.text) else None
    if _IS_FOR_A_TOTAL.search(part.text) is not None:
        return reading.total()
    counted = _COUNTED.search(part.text)
    return reading.count(counted[1].split()) if counted is not None and order is None else None


def is_counted(part: Part, name: frozenset[str]) -> bool:
    """Whether the question is for the number of the things that ``name`` has a word for."""
    words = _COUNTED.findall(part.text)[:1]
    counted = takewhile(lambda word: not is_function_word(word), " ".join(words).split())
    return not stems(" ".join(counted)).isdisjoint(name)


def stated_count(part: Part, text: str) -> str:
    """The figure before the word for what the question counts: "Twelve officers were elected". "" where none is."""
    ends = ((figure.text, text[figure.start + len(figure.text) :].split()[:2]) for figure in figures(text))
    return next((figure for figure, words in ends if is_counted(part, stems(" ".join(words)))), "")


def _order(text: str) -> _Order | None:
    """The only superlative or comparative of a question."""
    matches = list(_ORDERED.finditer(text))
    if len(matches) != 1:
        return None
    [match] = matches
    if many := match["many"]:
        dimension, sign = {"expensive": ("price", 1), "recent": ("begin", 1)}.get((match["of"] or "").lower(), ("", 1))
        sign *= -1 if many.lower() in ("least", "less") else 1
        is_superlative = many.lower() in ("most", "least")
    else:
        dimension, sign = _ORDER_OF[match["word"].lower()]
        is_superlative = match["form"].lower().endswith("st")
    phrase: list[str] = []
    for token in tokens(re.split(r"[,?;:(]", text[match.end() :])[0]):
        if token in _STOPS:
            break
        phrase.append(token)
    if len(phrase) > 1 and (phrase[-1].endswith("ed") or stem(phrase[-1])[:3] != phrase[-1][:3]):
        # "the fewest bottles sold"
        phrase.pop()
    before = tokens(re.sub(r"\bthe\b", " ", text[: match.start()], flags=re.IGNORECASE))
    return _Order(dimension, sign, is_superlative, tuple(phrase), tuple(before), stems(match[0]))


@dataclass(frozen=True, slots=True)
class _Reading:
    """A question read as one to a table."""

    part: Part
    sheet: Sheet
    near: Set[str]

    def extreme(self, order: _Order) -> Result | None:
        """The row with the highest or lowest figure of a column, and that figure."""
        kind = stems(match[1]) if (match := _KIND.match(self.part.text)) is not None else frozenset()
        label = self._label(kind)
        if kind and label is None and kind.isdisjoint(self.near):
            return None
        names = self.sheet.head_stems[label or 0]
        column = self._column(map(stem, order.phrase), order, names)
        if column is None or column == (label or 0):
            return None
        # The word before the adjective is a verb: "which programme uses the least".
        verb = frozenset(map(stem, order.before[-1:])) - self._named_words()
        used = {*order.own, *map(stem, order.phrase), *kind, *names, *verb}
        chosen = self._filtered(column, used)
        numbers, _ = values(chosen, column)
        best = max((order.sign * number for number in numbers), default=Decimal(0))
        held = [entry for entry, n in zip(chosen, numbers, strict=False) if order.sign * n == best]
        if len(numbers) < 2 or len(held) != 1 or not held[0].cells[label or 0]:
            return None
        answer = f"{held[0].cells[label or 0]}, {self.sheet.heads[column]} {held[0].cells[column]}"
        return Result(answer, tuple(held), frozenset(used))

    def sides(self) -> tuple[tuple[str, Entry], ...]:
        """The rows that the question names, with the names, where these stand in one column, in its order."""
        text = f" {' '.join(tokens(self.part.text))} "
        for column in range(len(self.sheet.heads)):
            names = {f" {' '.join(tokens(entry.cells[column]))} ": entry for entry in self.sheet.items}
            held = [name for name in names if name.strip() and name in text]
            held = [name for name in held if not any(name in other for other in held if other != name)]
            if len(held) == 2:
                return tuple((names[name].cells[column], names[name]) for name in sorted(held, key=text.index))
        return ()

    def comparison(
        self, order: _Order, first: tuple[str, Entry], second: tuple[str, Entry], *, is_difference: bool
    ) -> Result | None:
        """Which of two rows has more or less in a column, whether the first has, or by how much they differ."""
        kind = stems(match[1]) if (match := _KIND.match(self.part.text)) is not None else frozenset()
        names = stems(f"{first[0]} {second[0]}") | self.sheet.head_stems[0] | kind
        column = self._column(map(stem, order.phrase), order, names)
        if column is None:
            return None
        used = {
            *order.own,
            *map(stem, order.phrase),
            *names,
            *stems(" ".join(_IS_FOR_A_DIFFERENCE.findall(self.part.text))),
        }
        chosen = self._filtered(column, used)
        pair = (first[1], second[1])
        numbers, unit = values(pair, column)
        if len(numbers) != 2 or not set(pair).issubset(chosen):
            return None
        more = order.sign * (numbers[0] - numbers[1])
        shown = [entry.cells[column] for entry in pair]
        if is_difference:
            answer = f"{abs(more)} {unit}".strip() + f" ({shown[0]} and {shown[1]})"
        elif self.part.is_yes_or_no:
            answer = f"{'Yes' if more > 0 else 'No'}, {self.sheet.heads[column]} {shown[0]} and {shown[1]}"
        elif more and _IS_FOR_AN_EXTREME.match(self.part.text):
            best, other = (0, 1) if more > 0 else (1, 0)
            name = (first, second)[best][0]
            answer = f"{name}, {self.sheet.heads[column]} {shown[best]} against {shown[other]}"
        else:
            return None
        return _quoted(answer, self.sheet, sorted(pair, key=self.sheet.entries.index), used)

    def count(self, words: Sequence[str]) -> Result | None:
        """How many rows have what the question names: a cell, or "yes" in a column."""
        place = next((at for at, word in enumerate(words) if stem(word.casefold()) in self.sheet.head_stems[0]), -1)
        if place < 0:
            return None
        # The word behind is a verb: "how many tools come from Holm".
        used = {stem(word.casefold()) for word in words[: place + 2]} - self._named_words()
        used |= self.sheet.head_stems[0]
        before = len(used)
        chosen = self._filtered(-1, used)
        if len(used) == before or not chosen:
            return None
        names = "; ".join(entry.cells[0] for entry in chosen)
        return _quoted(f"{len(chosen)} ({names})", self.sheet, chosen, used)

    def total(self) -> Result | None:
        """The sum of a column where no row has it."""
        words = stems(" ".join(_IS_FOR_A_TOTAL.findall(self.part.text)))
        if self.sheet.has_total or self.part.kind != "number":
            return None
        column = self._column((), _NO_ORDER, self.sheet.head_stems[0])
        counted = _COUNTED.search(self.part.text)
        if column is None or not self.sheet.head_stems[column].isdisjoint(_NO_SUM):
            return None
        used = {*words, *self.sheet.head_stems[0], *(map(stem, tokens(counted[1])) if counted else ())}
        used -= self._named_words()
        chosen = self._filtered(column, used)
        numbers, unit = values(chosen, column)
        if len(numbers) != len(self.sheet.entries) or "%" in unit:
            return None
        has_commas = any("," in entry.cells[column] for entry in chosen)
        figure = f"{sum(numbers):,}" if has_commas else f"{sum(numbers)}"
        formula = " + ".join(entry.cells[column] for entry in chosen)
        return _quoted(f"{figure} {unit}".strip() + f" = {formula}", self.sheet, chosen, used)

    def _label(self, kind: Set[str]) -> int | None:
        """The column whose head has a word for the kind of thing that the question is for."""
        return next((at for at, head in enumerate(self.sheet.head_stems) if kind & head), None)

    def _column(self, phrase: Iterator[str] | Sequence[str], order: _Order, names: Set[str]) -> int | None:
        """The only column that the question names best. All words of ``phrase`` stand in its head, but for those that
        name the rows or the table; without a phrase, its head has the dimension of the adjective."""
        sought = frozenset(phrase) - names
        heads = self.sheet.head_stems
        terms = [term for term in self.part.terms if term.stem not in names]
        needed = [
            term
            for term in terms
            if term.stem in sought and not (term.stem in self.near and not any(_share(term, head) for head in heads))
        ]
        called = stems(_HEADS_OF[order.dimension])
        scores = [
            sum(_share(term, head) for term in terms) if values(self.sheet.items, at)[0] else -1.0
            for at, head in enumerate(heads)
        ]
        is_for_any = order.dimension in _VAGUE and max(scores) > 0
        for at, head in enumerate(heads):
            has_dimension = not called.isdisjoint(head) or (order.dimension == "price" and "quantity:money" in head)
            is_named = all(_share(term, head) for term in needed) if needed else has_dimension or is_for_any
            scores[at] = (scores[at] + (has_dimension and not is_for_any)) * is_named
        best = max(scores)
        return scores.index(best) if best > 0 and scores.count(best) == 1 else None

    def _filtered(self, column: int, used: set[str]) -> tuple[Entry, ...]:
        """The rows that have all other words of the question which any row has, or "yes" below them; none where such a
        word is for the figures of another column. Adds the words to ``used``."""
        chosen = self.sheet.items
        heads = self.sheet.head_stems
        for term in self.part.terms:
            if term.stem in used or term.stem in self.near:
                continue
            if column >= 0 and _share(term, heads[column]):
                used.add(term.stem)
                continue
            flagged = [at for at, head in enumerate(heads) if _share(term, head)]
            if flagged:
                cells = [[entry.cells[at].strip().casefold() for entry in chosen] for at in flagged]
                if len(flagged) > 1 or not _YES.union(_NO).issuperset(cells[0]):
                    return ()
                chosen = tuple(e for e, cell in zip(chosen, cells[0], strict=True) if cell in _YES)
                used.add(term.stem)
            elif held := [entry for entry in chosen if any(term.presence_in(stems(cell)) for cell in entry.cells)]:
                chosen = tuple(held)
                used.add(term.stem)
        return chosen

    def _named_words(self) -> frozenset[str]:
        """The words of the question that heads or cells have."""
        cells = frozenset().union(*(stems(cell) for entry in self.sheet.entries for cell in entry.cells))
        heads = frozenset().union(*self.sheet.head_stems[1:])
        return frozenset(term.stem for term in self.part.terms if term.presence_in(cells | heads))


def _share(term: Term, head: frozenset[str]) -> float:
    """Presence of a word in the head of a column. A unit stands for it where the head names no other quantity of that
    unit: "Price (EUR)" is no rent, and "Amount (EUR)" may be."""
    words = without_marks(head)
    if share := term.presence_in(words):
        return share
    is_named = any(not term.others.isdisjoint(quantities(word)) for word in words)
    return 0.0 if is_named else term.presence_in(head)


def _quoted(answer: str, sheet: Sheet, chosen: Sequence[Entry], used: Set[str]) -> Result | None:
    """With the rows from the first to the last of ``chosen``, for a quote is one stretch; none where that is long."""
    first, last = sheet.entries.index(chosen[0]), sheet.entries.index(chosen[-1])
    entries = sheet.entries[first : last + 1]
    is_short = sum(len(entry.quote) + 1 for entry in entries) <= LONGEST_LIST
    return Result(answer, entries, frozenset(used)) if is_short else None
