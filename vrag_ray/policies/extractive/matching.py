"""Which stretch of the pages that were found answers a question best: sentences, captions, table rows and cells.

Candidates are ranked by coverage (``coverage.py``), corrected by what kind of answer was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.policies.extractive.answer_spans import shortest_answer
from vrag_ray.policies.extractive.captions import Caption
from vrag_ray.policies.extractive.coverage import PRESENCE, Yardstick, found_in_any
from vrag_ray.policies.extractive.cut_page import CutPage, cut_page
from vrag_ray.policies.extractive.grid import crossings
from vrag_ray.policies.extractive.layout import Row, Span, is_numeric
from vrag_ray.policies.extractive.lexicon import is_informative, stem, stems, tokens
from vrag_ray.policies.extractive.questions import AnswerKind, Part, asks_for_a_cell
from vrag_ray.types import Box, PageText, PassageKind

OTHER_MEDIUM = 0.7
"""What is no video counts less where a moment of a video is asked for."""
WRONG_KIND = 0.8
"""A sentence without any number, where a number is asked for; likewise dates and names."""
MERE_HEADING = 0.85
UNTIMED = 0.9
"""Of two places in a clip, the one whose time is known is preferred."""
CROSSING_BONUS = 0.1
"""Row and column agree on the value, which a sentence with the same words does not show."""
FIRST_BONUS = 0.05
"""What follows its heading tends to say what it is about."""
PHRASE_BONUS = 0.1
TITLE_ROWS = 25
"""How many rows above a value its table or chart may begin."""

_CAPTION = re.compile(r"\s*(?:table|figure|fig\.?|chart|exhibit)\b", re.IGNORECASE)
_LEADERS = re.compile(r"(?:\.\s?){4,}|…{2,}|(?:·\s?){4,}")


Cut = Callable[[PageText, PassageKind, str], CutPage]


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate answer: ``quote`` stands in the sighting word for word, ``answer`` is the shortest part that answers.

    ``answer`` is empty where nothing shorter than the quote does. ``density`` breaks ties of ``coverage``. ``box`` is
    the region to look at in page fractions, None without geometry; ``start`` and ``end`` are seconds of a video.
    """

    sighting_id: str
    quote: str
    answer: str
    coverage: float
    density: float
    box: Box | None = None
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, slots=True)
class _Page:
    """A sighting and the parts of its page, see ``CutPage``."""

    sighting: Sighting
    spans: tuple[Span, ...]
    captions: tuple[Caption, ...]
    rows: tuple[Row, ...]
    stems: frozenset[str]


def matches(part: Part, seen: Observation, cut: Cut = cut_page) -> list[Match]:
    """Candidates over all whole pages of ``seen``, best first. Crops are left out: they repeat their page.

    ``cut`` is ``cut_page``, or what remembers its results.
    """
    pages = [_cut(sighting, cut) for sighting in seen.sightings if not sighting.source]
    texts = [span.stems for page in pages for span in page.spans]
    texts.extend(row.stems for page in pages for row in page.rows if _is_tabular(row))
    yardstick = Yardstick.on(part.terms, texts)
    found: list[Match] = []
    for page in pages:
        around = yardstick.surroundings(stems(page.sighting.title), page.stems)
        scored = [*_of_spans(part, page, yardstick, around), *_of_rows(part, page, yardstick, around)]
        if asks_for_a_cell(part):
            scored.extend(_of_cells(part, page, yardstick, around))
        other = part.kind is AnswerKind.MOMENT and page.sighting.kind is not PassageKind.CLIP
        found.extend(
            replace(match, coverage=min(1.0, match.coverage * (OTHER_MEDIUM if other else 1.0))) for match in scored
        )
    # Sorting is stable: equals keep the retriever's order.
    return sorted(found, key=lambda match: (-round(match.coverage, 2), -round(match.density, 3)))


def _cut(sighting: Sighting, cut: Cut) -> _Page:
    page = sighting.page or PageText(sighting.doc_id, sighting.locator, sighting.passage_text, (), 0, 0)
    parts = cut(page, sighting.kind, sighting.passage_text)
    return _Page(sighting, parts.spans, parts.captions, parts.rows, parts.stems)


def _is_tabular(row: Row) -> bool:
    return len(row.cells) > 1 and not row.is_prose


def _of_spans(part: Part, page: _Page, yardstick: Yardstick, around: Mapping[str, float]) -> list[Match]:
    found: list[Match] = []
    heading = Span("")
    for place, span in enumerate(page.spans):
        above, heading = heading, span if _is_heading(span) else heading
        caption = page.captions[place] if place < len(page.captions) else None
        own = {term.stem: term.found_in(span.stems) for term in part.terms}
        if not any(own.values()) or _LEADERS.search(span.text) or not (caption or _says_more(span.text, part)):
            continue
        beside = [page.spans[other].stems for other in (place - 1, place + 1) if 0 <= other < len(page.spans)]
        presence = {
            term.stem: max(
                own[term.stem],
                PRESENCE.heading * term.found_in(above.stems),
                PRESENCE.around(term, beside),
                around[term.stem],
            )
            for term in part.terms
        }
        moment = caption is not None and part.kind is AnswerKind.MOMENT
        answer = "" if moment else shortest_answer(part, span.text)
        factor = 1.0 if moment else _fitness(part, span, answer)
        factor *= UNTIMED if page.captions and caption is None else 1.0
        bonus = PHRASE_BONUS if any(phrase.casefold() in span.text.casefold() for phrase in part.phrases) else 0.0
        follows = place > 0 and _is_heading(page.spans[place - 1])
        bonus += FIRST_BONUS if part.kind is AnswerKind.STATEMENT and follows else 0.0
        found.append(
            Match(
                page.sighting.id,
                span.text,
                answer,
                yardstick.coverage(presence) * factor + bonus,
                yardstick.weight(own) / (len(span.text.split()) + 6),
                box=span.box,
                start=caption.start if caption is not None else None,
                end=caption.end if caption is not None else None,
            )
        )
    return found


def _of_rows(part: Part, page: _Page, yardstick: Yardstick, around: Mapping[str, float]) -> list[Match]:
    found: list[Match] = []
    for place, row in enumerate(page.rows):
        own = {term.stem: term.found_in(row.stems) for term in part.terms}
        if not _is_tabular(row) or not any(own.values()):
            continue
        if _LEADERS.search(row.text) or not _says_more(row.text, part):
            continue
        titled = _titled(page, place, part)
        span = Span(row.text)
        # Which of several figures is meant, only a column can say.
        figures = sum(is_numeric(cell.words[0].text) for cell in row.cells)
        answer = shortest_answer(part, row.text) if figures < 2 or part.kind is not AnswerKind.NUMBER else ""
        presence = {name: max(share, titled[name], around[name]) for name, share in own.items()}
        found.append(
            Match(
                page.sighting.id,
                row.text,
                answer,
                yardstick.coverage(presence) * _fitness(part, span, answer),
                yardstick.weight(own) / (len(row.text.split()) + 6),
                box=row.box,
            )
        )
    return found


def _of_cells(part: Part, page: _Page, yardstick: Yardstick, around: Mapping[str, float]) -> list[Match]:
    found: list[Match] = []
    for crossing in crossings(page.rows, part.terms):
        titled = _titled(page, crossing.row, part)
        presence = {name: max(crossing.aligned.get(name, 0.0), titled[name], around[name]) for name in titled}
        found.append(
            Match(
                page.sighting.id,
                crossing.quote,
                crossing.value,
                yardstick.coverage(presence) + CROSSING_BONUS,
                # Denser than any sentence: of equals, the one that row and column point at.
                1000.0 + crossing.nearness,
                box=crossing.box,
            )
        )
    return found


def _titled(page: _Page, place: int, part: Part) -> dict[str, float]:
    """Presence of each word by virtue of the rows above: the header and the title of a table or chart."""
    above = page.rows[max(0, place - TITLE_ROWS) : place]
    titles = [row.stems for row in above if not row.is_prose or _CAPTION.match(row.text)]
    prose = [row.stems for row in above if row.is_prose]
    return {
        term.stem: PRESENCE.beside * max(found_in_any(term, titles), 0.5 * found_in_any(term, prose))
        for term in part.terms
    }


def _says_more(text: str, part: Part) -> bool:
    """Whether ``text`` holds content beyond the words of the question."""
    asked = {term.stem for term in part.terms}
    return any(stem(token) not in asked for token in tokens(text) if is_informative(token))


def _is_heading(span: Span) -> bool:
    words = span.text.split()
    return (
        0 < len(words) <= 10
        and not re.search(r"[.!?,;:]$", span.text)
        and not words[0][0].islower()
        and not any(is_numeric(word) for word in words[1:])
    )


def _fitness(part: Part, span: Span, answer: str) -> float:
    """Less than 1 for what does not look like an answer of the kind that was asked for."""
    if part.kind in (AnswerKind.NUMBER, AnswerKind.DATE, AnswerKind.NAME):
        return 1.0 if answer else WRONG_KIND
    return MERE_HEADING if _is_heading(span) else 1.0
