"""MMLongBench-Doc's own rule (arXiv 2407.01523, section 4): how near an answer is, by the format that it is to have.

It follows the benchmark's published scorer, so that figures compare. That scorer is given the short answer that a
language model has extracted from the reply; here the answer is taken as it is, so agents that answer in sentences
score less than they would there.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence

from vrag_ray.questions.answer_scores import ANLS_THRESHOLD, edit_distance
from vrag_ray.questions.examples import AnswerFormat

RELATIVE_TOLERANCE = 0.01
_UNITS = ("miles", "mile", "million")
_EXACT = (
    re.compile(r"https?://"),
    re.compile(r"\.(?:py|ipynb)$"),
    re.compile(r"^page"),
    re.compile(r"^\d+(?:[-\s]\d+)?$"),
    re.compile(r"[ap]\.m\."),
    re.compile(r"\b\d{4}[-\s]\d{2}(?:[-\s]\d{2})?\b"),
    re.compile(r"[\w.%+-]+@[\w.-]+\.[a-z]{2,}"),
)
"""Of a reference that must be met letter by letter: addresses, files, pages, numbers, times and dates."""


def score(answer: str, reference: str, form: AnswerFormat) -> float:
    """From 0 to 1."""
    match form:
        case AnswerFormat.INTEGER:
            mine, expected = _number(answer), _number(reference)
            return float(mine is not None and expected is not None and int(mine) == int(expected))
        case AnswerFormat.FLOAT:
            return float(_is_close(_number(cleaned(answer)), _number(cleaned(reference))))
        case AnswerFormat.LIST:
            return _list_score(_listed(answer), _listed(reference))
        case AnswerFormat.STRING | AnswerFormat.NONE:
            return _text_score(cleaned(answer), cleaned(reference))


def cleaned(text: str) -> str:
    """Lower case, without a unit at its end, parentheses, outer quotes, ``$`` and ``%``."""
    bare = text.lower().strip()
    for unit in _UNITS:
        bare = bare.removesuffix(unit).strip()
    bare = re.sub(r"\s*\([^)]*\)", "", bare).strip()
    bare = re.sub(r"^['\"]|['\"]$", "", bare)
    return bare.strip().lstrip("$").strip().rstrip("%").strip()


def f1_of(scores: Sequence[float], answerable: Sequence[bool], abstained: Sequence[bool]) -> float:
    """The benchmark's F1: recall over the questions that have an answer, precision over those that were answered."""
    earned = math.fsum(score for score, has in zip(scores, answerable, strict=True) if has)
    recall = earned / max(1, sum(answerable))
    precision = earned / max(1, sum(not abstention for abstention in abstained))
    return 2 * precision * recall / (precision + recall) if earned else 0.0


def _text_score(answer: str, reference: str) -> float:
    if any(pattern.search(reference) for pattern in _EXACT):
        return float(answer == reference)
    longest = max(len(answer), len(reference))
    similarity = 1 - edit_distance(answer, reference) / longest if longest else 1.0
    return similarity if similarity > ANLS_THRESHOLD else 0.0


def _list_score(answer: Sequence[str], reference: Sequence[str]) -> float:
    """The worst of the pairs in alphabetical order; none where there are more or fewer than there should be."""
    if len(answer) != len(reference):
        return 0.0
    mine, expected = sorted(map(cleaned, answer)), sorted(map(cleaned, reference))
    if not expected:
        return 1.0
    if _number(expected[0]) is not None or any(pattern.search(expected[0]) for pattern in _EXACT):
        return float(mine == expected)
    return min(_text_score(own, other) for own, other in zip(mine, expected, strict=True))


def _listed(text: str) -> list[str]:
    """The members of a list as Python or JSON writes it; anything else is one member."""
    if text.strip().startswith("["):
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            return [text]
        if isinstance(value, list):
            return [str(item) for item in value]
    return [text]


def _is_close(answer: float | None, reference: float | None) -> bool:
    """Within a hundredth, whether a share is written as such or in percent."""
    if answer is None or reference is None:
        return False
    forms = (reference / 100, reference, reference * 100)
    return any(math.isclose(form, answer, rel_tol=RELATIVE_TOLERANCE) for form in forms)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
