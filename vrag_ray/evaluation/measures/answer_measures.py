"""What one finished run is worth: its words, its citations, and what it took. Pure, but for the judges."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from vrag_ray.agent.events import BudgetEvent, SearchDoneEvent
from vrag_ray.agent.record import RunRecord
from vrag_ray.questions import mmlongbench
from vrag_ray.questions.answer_scores import anls, exact_match, f1, normalised, own_answer
from vrag_ray.questions.examples import AnswerFormat, Example
from vrag_ray.questions.gold_places import EVIDENCE_RECALL, GoldPlace, Seen, region_measures
from vrag_ray.questions.grounding import cited_places
from vrag_ray.questions.judge import Judge
from vrag_ray.views.words import without_note

UNANSWERABLE = frozenset({"not answerable", "unanswerable"})
"""References of questions that the documents do not answer, as MMLongBench-Doc writes them: right is to abstain."""
AGREEMENT, MMLONGBENCH = "judges agree", "MMLB"
PAGE_RECALL, SAA = "page recall", "SAA"
SAA_LEAST_RECALL = 0.6
"""Evidence recall from which CiteVQA calls the evidence of an answer right (arXiv 2605.12882, section 4.1)."""
ANSWER_MEASURES = (
    *("right", SAA, AGREEMENT, "EM", "F1", "ANLS", "contains", MMLONGBENCH, "abstained"),
    *("gold found", "cited precision", "cited recall", PAGE_RECALL, "box IoU", "right region"),
    *("evidence recall", "evidence precision", "evidence F1", "steps", "tokens", "pixels"),
)

Judges = Mapping[str, Judge]
"""By name; the first one decides what is right."""


Shorten = Callable[[str, str, AnswerFormat], Awaitable[str]]
"""From question, answer and format to the short answer (``ShortAnswers.of``)."""


async def measured(
    record: RunRecord,
    example: Example,
    gold: Sequence[GoldPlace],
    judges: Judges | None = None,
    shorten: Shorten | None = None,
) -> dict[str, float]:
    """``right`` is the first judge's verdict, or without one whether a reference stands in the answer, word for word.

    Of a question without answer only abstaining is right. Words are compared where there is an answer to compare,
    citations where gold places are known, of answers only, but for ``page recall`` and ``evidence recall``: who
    abstains cites nothing, and recalls nothing. MMLongBench-Doc's rule is applied to what ``shorten`` makes of an
    answer, without it to the answer as it is. Raises JudgeError where a judge gives no verdict.

    ``SAA`` is CiteVQA's strict attributed accuracy, where gold boxes are known: whether the answer is ``right`` and
    ``evidence recall`` at least ``SAA_LEAST_RECALL``. The benchmark's judge grades answers from 0 to 5 and takes those
    from 4 on, and evidence of less recall too where it grades the relevance of its pictures 4 or 5. That grade is not
    taken here, so of the same verdicts ``SAA`` is at most the benchmark's.
    """
    answer = without_note(own_answer(record))
    abstained = record.abstained or not answer
    words = "" if abstained else answer
    ruled = await _ruled(words, example, shorten)
    if is_unanswerable(example):
        return {"right": float(abstained), **ruled, "abstained": float(abstained), **_took(record)}
    by_words = _by_words(words, example) | ruled
    verdicts = {
        name: float(await judge.verdict(example.question, example.answers, words))
        for name, judge in (judges or {}).items()
    }
    judged = {f"right by {name}": verdict for name, verdict in verdicts.items()} if len(verdicts) > 1 else {}
    if judged:
        judged[AGREEMENT] = float(len(set(verdicts.values())) == 1)
    right = next(iter(verdicts.values()), by_words["contains"])
    of_places = _of_places(record, gold, abstained) if gold else {}
    if EVIDENCE_RECALL in of_places:
        of_places[SAA] = float(right == 1.0 and of_places[EVIDENCE_RECALL] >= SAA_LEAST_RECALL)
    return {
        "right": right,
        **judged,
        **by_words,
        "abstained": float(abstained),
        **of_places,
        **_took(record),
    }


def _of_places(record: RunRecord, gold: Sequence[GoldPlace], abstained: bool) -> dict[str, float]:
    recall = {"gold found": _share(gold, places_of_searches(record))}
    if abstained:
        recalled = {EVIDENCE_RECALL: 0.0} if any(place.box is not None for place in gold) else {}
        return recall | _page_recall(gold, []) | recalled
    cited = cited_places(record)
    places = dict.fromkeys(replace(citation, box=None, element=None, value=None) for citation in cited)
    right = [cited_place for cited_place in places if any(place.is_met_by(cited_place) for place in gold)]
    return {
        **recall,
        "cited precision": len(right) / len(places) if places else 0.0,
        "cited recall": _share(gold, cited),
        **_page_recall(gold, cited),
        **region_measures(gold, cited),
    }


def _page_recall(gold: Sequence[GoldPlace], cited: Sequence[Seen]) -> dict[str, float]:
    """The share of gold pages that are cited, each counted once however many places it has; nothing where the gold
    has no pages. CiteVQA's script compares numbers of pages alone; here the document counts too."""
    pages = {(place.doc_id, place.page) for place in gold if place.page is not None}
    met = pages & {(place.doc_id, place.page) for place in cited}
    return {PAGE_RECALL: len(met) / len(pages)} if pages else {}


def _took(record: RunRecord) -> dict[str, float]:
    took = {"steps": float(record.steps), "tokens": float(_tokens(record))}
    budgets = [event for event in record.events if isinstance(event, BudgetEvent)]
    # A policy that is shown no pictures has a budget, and spends none of it.
    if budgets and budgets[-1].tokens_after:
        took["pixels"] = float(sum(picture.pixels for picture in budgets[-1].kept))
    return took


async def _ruled(words: str, example: Example, shorten: Shorten | None) -> dict[str, float]:
    """By MMLongBench-Doc's rule, where the form of the answer is known. No answer stands for ``Not answerable``."""
    form = example.answer_format
    if form is None:
        return {}
    short = words if shorten is None or not words else await shorten(example.question, words, form)
    refused = not short or normalised(short) in UNANSWERABLE
    if refused or is_unanswerable(example):
        return {MMLONGBENCH: float(refused and is_unanswerable(example))}
    return {MMLONGBENCH: max(mmlongbench.score(short, answer, form) for answer in example.answers)}


def is_unanswerable(example: Example) -> bool:
    return normalised(example.answers[0]) in UNANSWERABLE


def places_of_searches(record: RunRecord) -> list[Seen]:
    """That the run's searches brought into view."""
    return [
        Seen(item.doc_id, item.page, item.t_start, item.t_end)
        for event in record.events
        if isinstance(event, SearchDoneEvent)
        for item in event.results
    ]


def _share(gold: Sequence[GoldPlace], seen: Sequence[Seen]) -> float:
    return sum(any(place.is_met_by(place_seen) for place_seen in seen) for place in gold) / len(gold)


def _by_words(words: str, example: Example) -> dict[str, float]:
    return {
        "EM": exact_match(words, example.answers) if words else 0.0,
        "F1": f1(words, example.answers) if words else 0.0,
        "ANLS": anls(words, example.answers) if words else 0.0,
        "contains": float(any(_holds(words, reference) for reference in example.answers)),
    }


def _holds(answer: str, reference: str) -> bool:
    """Whether the words of the reference follow one another in the answer."""
    words, expected = _words(answer), _words(reference)
    starts = range(len(words) - len(expected) + 1)
    return bool(expected) and any(words[start : start + len(expected)] == expected for start in starts)


def _words(text: str) -> list[str]:
    """Without the dots that end a sentence: those within a number stay."""
    return [word for part in normalised(text).split() if (word := part.strip(".-"))]


def _tokens(record: RunRecord) -> int:
    return sum(record.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
