"""How near the words of an answer come to a reference, and which words of a run are its answer. Pure functions.

Sources: SQuAD (arXiv 1606.05250) for exact match and F1; ST-VQA (arXiv 1905.13648) for ANLS.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.support import MARK

ANLS_THRESHOLD = 0.5
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_QUOTES = "“”„‟‘’‚‛«»‹›"  # noqa: RUF001  (they are meant)
_PUNCTUATION = str.maketrans("", "", string.punctuation.replace(".", "").replace("-", "") + _QUOTES)
_MARK = re.compile(rf"\s*{MARK.pattern}")


def own_answer(record: RunRecord) -> str:
    """The answer that the policy gave, without its citation marks; "" where the run ended in any other way.

    What a run says in the policy's place when its steps or its time are up is not an answer to be scored.
    """
    if record.status not in (RunStatus.ANSWERED, RunStatus.ABSTAINED):
        return ""
    numbers = {citation.number for citation in record.citations}

    def unmarked(mark: re.Match[str]) -> str:
        return "" if all(int(number) in numbers for number in mark[1].split(",")) else mark[0]

    return _MARK.sub(unmarked, record.answer).strip() or record.answer.strip()


def exact_match(answer: str, references: Sequence[str]) -> float:
    """1 where the answer is a reference, up to case, articles, punctuation and blanks."""
    return float(normalised(answer) in {normalised(reference) for reference in references})


def f1(answer: str, references: Sequence[str]) -> float:
    """The best token F1 over the references."""
    return _best(_token_f1, answer, references)


def anls(answer: str, references: Sequence[str]) -> float:
    """The best normalised Levenshtein similarity over the references; below 0.5 it counts as 0."""
    return _best(_similarity, answer, references)


def normalised(text: str) -> str:
    """Lower case, without articles and punctuation, single blanks. Dots and hyphens stay: 1.5 is not 15."""
    bare = text.casefold().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split()).strip(".- ")


def _best(score: Callable[[str, str], float], answer: str, references: Sequence[str]) -> float:
    return max((score(normalised(answer), normalised(reference)) for reference in references), default=0.0)


def _token_f1(answer: str, reference: str) -> float:
    mine, theirs = answer.split(), reference.split()
    if not mine or not theirs:
        return float(mine == theirs)
    shared = sum((Counter(mine) & Counter(theirs)).values())
    return 2 * shared / (len(mine) + len(theirs))


def _similarity(answer: str, reference: str) -> float:
    longest = max(len(answer), len(reference))
    similarity = 1 - edit_distance(answer, reference) / longest if longest else 1.0
    return similarity if similarity >= ANLS_THRESHOLD else 0.0


def edit_distance(first: str, other: str) -> int:
    """Levenshtein's: single characters inserted, deleted or replaced."""
    row = list(range(len(other) + 1))
    for i, mine in enumerate(first, start=1):
        corner, row[0] = row[0], i
        for j, theirs in enumerate(other, start=1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (mine != theirs))
    return row[-1]
