"""Which stretch of the pages of a search answers a question best: sentences, captions, table rows and cells.

Candidates are ranked by coverage (``coverage.py``), corrected by the kind of answer that the question is for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from textwrap import shorten

from vrag_ray.agent.facts import dates, figures
from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.corpus.model import title_from_name
from vrag_ray.corpus.tables import is_figure
from vrag_ray.policies.extractive.answer_spans import EMAIL, shortest_answer
from vrag_ray.policies.extractive.coverage import MISSING_BELOW, MISSING_MEASURE, PRESENCE, Surroundings, Yardstick
from vrag_ray.policies.extractive.cut_page import Columns, CutPage, cut_page
from vrag_ray.policies.extractive.grid import crossings
from vrag_ray.policies.extractive.layout import LEADERS, Row, Span, box_of, counted_items, introduces, items_below
from vrag_ray.policies.extractive.lexicon import is_informative, is_misspelled, leading_number, stem, stems, tokens
from vrag_ray.policies.extractive.questions import AnswerKind, Part, asks_for_a_cell, is_negated
from vrag_ray.policies.extractive.reckoning import comparison_of, is_counted, is_reckoned, result_of, stated_count
from vrag_ray.policies.extractive.synonyms import is_quantity, without_marks
from vrag_ray.types import Box, PageText, PassageKind
from vrag_ray.types.file_names import names_of
from vrag_ray.types.months import MONTH

OTHER_MEDIUM = 0.7
"""Passages of other kinds count less where the question is about a moment of a video."""
OTHER_PAGE = 0.7
"""Of a question about pages by their numbers: those of another number. Printed numbers differ from those of a file."""
NOT_THERE = 0.4
"""What has no telephone number, address or words of an abbreviation, where the question is for them."""
WRONG_KIND = 0.8
"""A sentence without any number, where the question is for a number; likewise dates and names."""
WITHOUT_FIGURES = 0.5
"""What has no figure at all, in digits or in words, where the question is for a number."""
WITHOUT_TIME = 0.6
"""What has no time at all, where the question is for one."""
NOT_SOUGHT = 0.7
"""What has no word for the kind of thing that the question is for, or for the thing that has it."""
OTHER_QUANTITY = 0.5
"""A figure with the unit of another quantity than the question is for: "6.8 kg" is no price."""
OTHER_SENSE = 0.7
"""A sentence without "not", where the question is about what is not so."""
ANSWERED_QUESTION = 0.97
"""The words of a question on the page count this much for what stands below it."""
MERE_HEADING = 0.85
IN_MARGIN = 0.7
"""A header or a footer says of what the page is, and that it is on every page."""
TITLE_ALONE = 0.5
"""The title of a document says what it is about, and nothing of what else the question is for."""
HEADS_ALONE = 0.4
"""The heads of a table say what its rows answer."""
UNTIMED = 0.9
"""Of two places in a clip, a place whose time is known is preferred."""
CROSSING_BONUS = 0.1
"""Row and column agree on the value, which a sentence with the same words does not show."""
FIRST_BONUS = 0.05
"""What follows its heading tends to say what it is about."""
PHRASE_BONUS = 0.1
CAPTION_BONUS = 0.15
"""A caption says more of a figure than a sentence that refers to it."""
BESIDE_BONUS = 0.2
"""Of tables side by side, a figure belongs to the label before it: breaks ties of equally named rows and columns."""
TITLE_ROWS = 25
"""How many rows above a value its table or chart may begin."""

_CAPTION = re.compile(r"\s*(?:table|figure|fig\.?|chart|exhibit)\b", re.IGNORECASE)
_YEARS = re.compile(r"\W*(?:(?:1[89]|20)\d\d\W*){2,}")
"""The years below a chart or above a table, and nothing else."""
_NUMBER_OF_HEADING = re.compile(r"\s*\d+(?:\.\d+)*[.)]?\s+(?=[^\W\d])")
_TIME_WORD = re.compile(
    r"\b(?:after|before|until|till|since|during|while|when|once|as soon as|every|each|daily|weekly|monthly|quarterly"
    r"|yearly|annual\w*|season\w*|spring|summer|autumn|winter|days?|weeks?|months?|years?|hours?|minutes?|cent\w+"
    r"|decades?|noon|midnight|mornings?|evenings?|afternoons?|nights?|today|yesterday|tomorrow|immediately|later"
    r"|earlier|always|never|last|next|recent\w*|now|(?:up)?on \w+)\b|\bin "
    rf"{MONTH}\b"
    r"|\d\s?[ap]\.?m\b|\d[:.h]\d\d\b",
    re.IGNORECASE,
)
"""Of a time that is no date: "after the harvest", "on arrival"."""
_BARE_COUNT = re.compile(r"\d[\d.,' \u00a0\u202f]*")
_DIGITS = re.compile(r"\d[\d.,' \u00a0\u202f]*(?<=\d)")


LONGEST_NAME = 40
"""Characters of an item of a list that is counted."""
_NO_BRACKETS = str.maketrans("()", "  ")
LEAST_MISSPELLED = 7
"""Letters of the stem of a word that may be misspelled, one fewer of a name: shorter ones are often other words by one
letter, as "profile" and "profit"."""

Cut = Callable[[PageText, PassageKind, str], CutPage]


@dataclass(frozen=True, slots=True)
class Match:
    """A candidate answer: ``quote`` stands in the sighting word for word, ``answer`` is the shortest part that answers.

    ``answer`` is empty where nothing shorter than the quote does. ``density`` breaks ties of ``coverage``. ``box`` is
    the region to look at in page fractions, None without geometry; ``start`` and ``end`` are seconds of a video.
    ``unit`` is what the table of a figure says of all of its figures, as "in millions".
    """

    sighting_id: str
    quote: str
    answer: str
    coverage: float
    density: float
    box: Box | None = None
    start: float | None = None
    end: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class _Page:
    """A sighting, the parts of its page, and which of them hold each word of the question, by its stem."""

    sighting: Sighting
    parts: CutPage
    in_spans: Mapping[str, Mapping[int, float]]
    in_rows: Mapping[str, Mapping[int, float]]

    @classmethod
    def of(cls, sighting: Sighting, part: Part, cut: Cut) -> _Page:
        parts = cut(page_of(sighting), sighting.kind, sighting.passage_text)
        return cls(
            sighting,
            parts,
            {term.stem: parts.in_spans.shares(term) for term in part.terms},
            {term.stem: parts.in_rows.shares(term) for term in part.terms},
        )

    @property
    def tables(self) -> Iterator[int]:
        """The places of the rows of several cells. Cells of any length are cells where the columns have heads or ruling
        lines part them."""
        return (
            place
            for place, row in enumerate(self.parts.rows)
            if len(row.cells) > 1 and (place in self.parts.columns or place in self.parts.ruled or not row.is_prose)
        )


def page_of(sighting: Sighting) -> PageText:
    """The page of a sighting; the passage that matched where the page could not be read."""
    return sighting.page or PageText(sighting.doc_id, sighting.locator, sighting.passage_text, (), 0, 0)


def matches(part: Part, seen: Observation, cut: Cut = cut_page) -> list[Match]:
    """Candidates over all whole pages of ``seen``, best first. Crops are left out: they repeat their page.

    ``cut`` is ``cut_page``, or what remembers its results.
    """
    pages = [_Page.of(sighting, part, cut) for sighting in seen.sightings if not sighting.source]
    if (spelled := _respelled(part, pages)) is not part:
        part = spelled
        pages = [_Page.of(sighting, part, cut) for sighting in seen.sightings if not sighting.source]
    yardstick = _yardstick(part, pages)
    candidates: list[Match] = []
    for page in pages:
        surroundings = yardstick.surroundings(stems(page.sighting.title), page.parts.stems)
        scored = [*_of_spans(part, page, yardstick, surroundings), *_of_rows(part, page, yardstick, surroundings)]
        if asks_for_a_cell(part):
            scored.extend(_of_cells(part, page, yardstick, surroundings))
        if is_reckoned(part):
            scored.extend(_of_sheets(part, page, yardstick, surroundings))
        factor = 1.0
        if part.kind is AnswerKind.MOMENT and page.sighting.kind is not PassageKind.CLIP:
            factor *= OTHER_MEDIUM
        if part.pages and page.sighting.locator.page not in part.pages:
            factor *= OTHER_PAGE
        candidates.extend(replace(match, coverage=match.coverage * factor) for match in scored)
    # Sorting is stable: equals keep the retriever's order.
    candidates.sort(key=lambda match: (-round(match.coverage, 2), -round(match.density, 3)))
    # Not before: bonuses tell apart candidates that hold every word of the question.
    return [replace(match, coverage=min(1.0, match.coverage)) for match in candidates]


def compares(part: Part, seen: Observation, cut: Cut = cut_page) -> bool:
    """Whether a table has both sides of a comparison that ``part`` is for."""
    return is_reckoned(part) and any(
        comparison_of(part, sheet, stems(sighting.title)) is not None
        for sighting in seen.sightings
        if not sighting.source
        for sheet in cut(page_of(sighting), sighting.kind, sighting.passage_text).sheets
    )


def respelled(part: Part, seen: Observation, cut: Cut = cut_page) -> Part:
    """``part`` with the words as ``seen`` spells them where no page and no title of it has those of the question."""
    return _respelled(part, [_Page.of(sighting, part, cut) for sighting in seen.sightings if not sighting.source])


def _respelled(part: Part, pages: Sequence[_Page]) -> Part:
    """``part`` where words that no page and no title has may be misspelled: "Neflix" for "Netflix"."""
    titles = frozenset().union(*(stems(page.sighting.title) for page in pages))
    near_of: dict[str, frozenset[str]] = {}
    for term in part.terms:
        if len(term.stem) < LEAST_MISSPELLED - term.specific or not term.stem.isalpha() or term.presence_in(titles):
            continue
        if not any(page.in_spans[term.stem] or page.in_rows[term.stem] for page in pages):
            known = titles.union(*(page.parts.stems for page in pages))
            if near := frozenset(other for other in known if is_misspelled(term.stem, other)):
                near_of[term.stem] = near
    if not near_of:
        return part
    texts = (text for page in pages for text in (page.sighting.title, page_of(page.sighting).text))
    spelled = {stem(word): word for text in texts for word in tokens(text)}
    return replace(
        part,
        terms=tuple(
            replace(term, surface=spelled.get(min(held), term.surface), others=term.others | held)
            if (held := near_of.get(term.stem, frozenset()))
            else term
            for term in part.terms
        ),
    )


def unread_above(seen: Observation, best: Match | None) -> Sighting | None:
    """The first whole result without words, a page that is only drawn, which rules cannot read. None where the one of
    ``best`` stands above it, and where there is none."""
    for sighting in seen.sightings:
        if not sighting.source and _is_wordless(sighting):
            return sighting
        if best is not None and sighting.id == best.sighting_id:
            return None
    return None


def _is_wordless(sighting: Sighting) -> bool:
    """A picture or clip without words is stored with those of its file name, which do not stand in it."""
    if sighting.kind is PassageKind.TEXT:
        return False
    known = " ".join(sighting.text.split())
    # The title has the folder behind it where another file has the name.
    return known in ("", " ".join(sighting.title.split()), title_from_name(names_of([sighting.uri])[0]))


def has_other_figures(match: Match, quote: str) -> bool:
    """Whether the quote of ``match`` has the words of ``quote`` with other figures."""
    return match.quote != quote and _DIGITS.sub("0", match.quote) == _DIGITS.sub("0", quote)


def _yardstick(part: Part, pages: Sequence[_Page]) -> Yardstick:
    """The words of the question weighed by all sentences and table rows of ``pages``."""
    tables = [frozenset(page.tables) for page in pages]
    holding = {
        term.stem: sum(
            len(page.in_spans[term.stem]) + len(rows.intersection(page.in_rows[term.stem]))
            for page, rows in zip(pages, tables, strict=True)
        )
        for term in part.terms
    }
    return Yardstick.on(part.terms, holding, sum(len(page.parts.spans) for page in pages) + sum(map(len, tables)))


def _of_spans(part: Part, page: _Page, yardstick: Yardstick, surroundings: Surroundings) -> list[Match]:
    candidates: list[Match] = []
    spans, captions, headings = page.parts.spans, page.parts.captions, page.parts.headings
    holding = set().union(*page.in_spans.values())
    if part.is_contact:
        holding |= {place for place, span in enumerate(spans) if shortest_answer(part, span.text)}
    numbers = {term.stem for term in part.terms} if all(term.is_numbered for term in part.terms) else set()
    answered = {place + 1: place for place in holding if _is_answered_below(spans, place, part)}
    headed = {place + 1 for place in holding if _is_fact_below(page, place, part, surroundings.title)}
    for place in sorted(holding | answered.keys() | headed):
        span, heading = spans[place], headings[place]
        caption = captions[place] if place < len(captions) else None
        items = _items(part, page.parts, place) if caption is None else ()
        listed = (span, *items)
        whole = Span(" ".join(line.text for line in listed), tuple(word for line in listed for word in line.words))
        # A cell answers with its row.
        is_cell = bool(page.parts.rows) and span.is_measured
        if is_cell or place in page.parts.led_spans or not (caption or _may_answer(span, part) or items):
            continue
        own = {stem: held.get(place, 0.0) for stem, held in page.in_spans.items()}
        near = {
            stem: max(
                own[stem],
                PRESENCE.heading * held.get(heading, 0.0),
                ANSWERED_QUESTION * held.get(answered.get(place, -1), 0.0),
            )
            for stem, held in page.in_spans.items()
        }
        around = surroundings.of(near)
        presence: dict[str, float] = {}
        for term in part.terms:
            held = page.in_spans[term.stem]
            beside = PRESENCE.around(term, max(held.get(place - 1, 0.0), held.get(place + 1, 0.0)))
            presence[term.stem] = max(near[term.stem], beside, around[term.stem])
        moment = caption is not None and part.kind is AnswerKind.MOMENT
        answer = "" if moment else _shortest(part, span.text)
        if part.is_count and items:
            answer = stated_count(part, span.text) or _count_of(spans, items)
        is_list = bool(items) and (part.kind is AnswerKind.STATEMENT or part.is_count)
        factor = 1.0 if moment or is_list else _fitness(part, span, answer)
        if part.is_count and items and any(t.specific and presence[t.stem] < MISSING_BELOW for t in part.terms):
            # The items of unit 7 are none of unit 8.
            factor *= NOT_THERE
        factor *= MISSING_MEASURE if _lacks_measure(part, presence) else 1.0
        factor *= _share_sought(part, presence, surroundings, span.stems, answer)
        is_looked_for = part.wants_passage or (all(own.values()) and all(term.specific for term in part.terms))
        factor *= TITLE_ALONE if span.stems <= surroundings.title and not is_looked_for else 1.0
        factor *= UNTIMED if captions and caption is None else 1.0
        in_margin = place in page.parts.margins and not (part.wants_passage or part.is_contact)
        factor *= IN_MARGIN if in_margin else 1.0
        factor *= HEADS_ALONE if _are_heads(part, span.stems, page.parts.head_spans.get(place)) else 1.0
        bonus = PHRASE_BONUS if any(phrase.casefold() in span.text.casefold() for phrase in part.phrases) else 0.0
        follows = place > 0 and heading == place - 1
        bonus += FIRST_BONUS if part.kind is AnswerKind.STATEMENT and follows else 0.0
        number, is_set_off = leading_number(span.text)
        bonus += (CAPTION_BONUS if is_set_off else CAPTION_BONUS / 2) if number in numbers else 0.0
        candidates.append(
            Match(
                page.sighting.id,
                whole.text,
                answer,
                yardstick.coverage(presence) * factor + bonus,
                yardstick.weight(own) / (len(span.text.split()) + 6),
                box=whole.box,
                start=caption.start if caption is not None else None,
                end=caption.end if caption is not None else None,
            )
        )
    return candidates


def _of_rows(part: Part, page: _Page, yardstick: Yardstick, surroundings: Surroundings) -> list[Match]:
    candidates: list[Match] = []
    in_heads: dict[Columns, list[dict[str, float]]] = {}
    for place in page.tables:
        row = page.parts.rows[place]
        own = {stem: held.get(place, 0.0) for stem, held in page.in_rows.items()}
        if not any(own.values()):
            continue
        if place in page.parts.contents or not _may_answer(Span(row.text), part):
            continue
        if part.kind is not AnswerKind.DATE and _is_row_of_dates(row.text):
            continue
        titled = _titled(page, place)
        span = Span(row.text)
        # Which of several figures is meant, only a column can say.
        filled = sum(any(is_figure(word.text) for word in (cell.words[0], cell.words[-1])) for cell in row.cells)
        answer = _shortest(part, row.text) if filled < 2 or part.kind is not AnswerKind.NUMBER else ""
        around = surroundings.of(own)
        presence = {name: max(share, titled[name], around[name]) for name, share in own.items()}
        if place in page.parts.columns:
            columns, places = page.parts.columns[place]
            if columns not in in_heads:
                in_heads[columns] = [
                    {t.stem: t.presence_in(head) for t in part.terms if not t.specific} for head in columns.heads
                ]
            shares = [in_heads[columns][at] for at in places]
            for head in shares:
                for name, share in head.items():
                    presence[name] = max(presence[name], PRESENCE.heading * share)
            if part.is_contact:
                # The question's word for what is looked for is none of its terms.
                answer = _called(stem(part.kind), row, [columns.heads[at] for at in places]) or answer
            else:
                named = _named_by_head(part, row, shares, yardstick)
                is_of_kind = part.kind is not AnswerKind.NUMBER or any(figures(named))
                answer = named if named and is_of_kind else answer
        factor = HEADS_ALONE if _are_heads(part, row.stems, page.parts.head_rows.get(place)) else 1.0
        factor *= MISSING_MEASURE if _lacks_measure(part, presence) else 1.0
        factor *= _share_sought(part, presence, surroundings, row.stems, answer)
        candidates.append(
            Match(
                page.sighting.id,
                row.text,
                answer,
                yardstick.coverage(presence) * _fitness(part, span, answer, several=filled > 1) * factor,
                yardstick.weight(own) / (len(row.text.split()) + 6),
                box=row.box,
                unit=page.parts.units.get(place, "") if is_figure(answer) else "",
            )
        )
    return candidates


def _shortest(part: Part, text: str) -> str:
    """The shortest answer in ``text``, in what dots lead to before their name: ``Beer 0.5 l ...... 4.20``."""
    *names, end = LEADERS.split(text)
    return (shortest_answer(part, end) if names else "") or shortest_answer(part, text)


def _are_heads(part: Part, stems: frozenset[str], is_sure: bool | None) -> bool:
    """Whether heads of a table hold ``stems``, and so do not answer; None where no heads are. In a table of words alone
    a name of the question, but for a year, is one of a row that was taken for heads."""
    names = (term for term in part.terms if term.specific and not term.stem.isdigit())
    return not part.wants_passage and (
        is_sure or (is_sure is not None and not any(t.presence_in(stems) for t in names))
    )


def _called(name: str, row: Row, heads: Sequence[frozenset[str]]) -> str:
    """The cell of ``row`` whose head has ``name``, and those behind it with the same head: an area code that all rows
    have stands in a column of its own. "" where no head has the name."""
    first = next((at for at, head in enumerate(heads) if name in head), len(heads))
    under = takewhile(lambda pair: pair[1] == heads[first], zip(row.cells[first:], heads[first:], strict=True))
    return " ".join(cell.text for cell, _ in under)


def _named_by_head(part: Part, row: Row, heads: Sequence[Mapping[str, float]], yardstick: Yardstick) -> str:
    """The cell of ``row`` whose head alone has most of the words of the question that the row lacks; "" where none or
    several have. ``heads`` says for each cell which words its head has. What the question names is no answer to it."""
    weights = [
        yardstick.weight(
            {term.stem: 0.0 if term.presence_in(row.stems) else head.get(term.stem, 0.0) for term in part.terms}
        )
        * (not any(term.presence_in(cell.label_stems) for term in part.terms))
        for cell, head in zip(row.cells, heads, strict=True)
    ]
    most = max(weights)
    return row.cells[weights.index(most)].text if most > 0 and weights.count(most) == 1 else ""


def _of_cells(part: Part, page: _Page, yardstick: Yardstick, surroundings: Surroundings) -> list[Match]:
    candidates: list[Match] = []
    for crossing in crossings(page.parts.rows, part.terms):
        is_no_time = part.kind is AnswerKind.DATE and not _shortest(part, crossing.value)
        if is_no_time or crossing.row in page.parts.contents:
            continue
        titled = _titled(page, crossing.row)
        around = surroundings.of(crossing.aligned)
        presence = {name: max(crossing.aligned.get(name, 0.0), titled[name], around[name]) for name in titled}
        factor = MISSING_MEASURE if _lacks_measure(part, presence) else 1.0
        factor *= _share_sought(part, presence, surroundings, frozenset(crossing.aligned), crossing.value)
        candidates.append(
            Match(
                page.sighting.id,
                crossing.quote,
                crossing.value,
                (yardstick.coverage(presence) + CROSSING_BONUS) * factor,
                # Denser than any sentence: of equals, the cell that row and column point at.
                1000.0 + crossing.named + 0.5 * crossing.nearness + BESIDE_BONUS * crossing.is_beside,
                box=crossing.box,
                unit=page.parts.units.get(crossing.row, ""),
            )
        )
    return candidates


def _of_sheets(part: Part, page: _Page, yardstick: Yardstick, surroundings: Surroundings) -> Iterator[Match]:
    """What follows from several rows of a table."""
    for sheet in page.parts.sheets:
        headed = _titled(page, sheet.place) if sheet.is_laid_out else _headed(page, sheet.place)
        near = surroundings.title.union(name for name, share in headed.items() if share)
        if (result := result_of(part, sheet, near)) is None:
            continue
        around = surroundings.of(dict.fromkeys(result.used, 1.0))
        presence = {name: 1.0 if name in result.used else max(share, around[name]) for name, share in headed.items()}
        words = [word for entry in result.entries for word in entry.words]
        yield Match(
            page.sighting.id,
            " ".join(entry.quote for entry in result.entries),
            result.answer,
            yardstick.coverage(presence) + CROSSING_BONUS,
            # Denser than a cell, which is a part of it.
            2000.0 + len(result.used),
            box=box_of(words) if words else None,
        )


def _headed(page: _Page, place: int) -> dict[str, float]:
    """Presence of each word by virtue of the heading above a table of a text."""
    heading = page.parts.headings[place]
    return {name: PRESENCE.heading * held.get(heading, 0.0) for name, held in page.in_spans.items()}


def _items(part: Part, page: CutPage, place: int) -> Sequence[Span]:
    """The items of a list that answer with the span above them: it introduces them, or is their heading where the
    question is for several things. Their number answers where that or the heading above names them."""
    spans, span, kinds = page.spans, page.spans[place], (AnswerKind.STATEMENT, AnswerKind.DATE, AnswerKind.NAME)
    if part.sentence or part.phrases or not (part.kind in kinds or part.is_count):
        return ()
    if not introduces(span.text) and not ((part.is_for_a_list or part.is_count) and span.is_heading):
        return ()
    items = items_below(spans, place)
    if part.is_count and items:
        above = page.headings[place]
        name = span.stems if span.is_heading or above < 0 else span.stems | spans[above].stems
        return items if is_counted(part, name) and _count_of(spans, items) else ()
    return items


def _count_of(spans: Sequence[Span], items: Sequence[Span]) -> str:
    """The number of the items of a list and how each begins; "" where that is not sure."""
    names = [shorten(name, LONGEST_NAME, placeholder="…") for name in counted_items(spans, items)]
    return f"{len(names)} ({'; '.join(names).translate(_NO_BRACKETS)})" if names else ""


def _lacks_measure(part: Part, presence: Mapping[str, float]) -> bool:
    """Whether the question is for a measure that stands nowhere near, or of which a word does not: "Total current
    assets" is no current ratio, and neither is an equity ratio."""
    names = {part.measure, *part.sought[0]} if part.measure and part.sought else {part.measure}
    return any(presence.get(name, 1.0) < MISSING_BELOW for name in names)


def _share_sought(
    part: Part, presence: Mapping[str, float], surroundings: Surroundings, stems: frozenset[str], answer: str
) -> float:
    """Less for each thing that the question is for which stands nowhere near a candidate with ``stems`` that shares no
    more with the question than the document's title, a kind of thing and a unit: of a sauna, a massage has no price.

    What has neither the word nor the unit of the quantity that the question is for counts less by itself, but for a
    bare figure: "14 place settings" are no price, whatever they are settings of.

    What has another word of the question may have one for the thing that is no synonym here: "The fire destroyed 212
    houses" of the buildings. A count without a noun behind it may be one of anything: "counts 3,400 on its books".
    """
    kind, thing = part.sought or (frozenset(), frozenset())
    groups = (thing,) if _BARE_COUNT.fullmatch(answer) and not part.quantities else part.sought
    lacking = sum(all(presence[name] < MISSING_BELOW for name in group) for group in groups if group)
    quantity = [term.stem for term in part.terms if not part.quantities.isdisjoint(term.others)]
    lacks_quantity = bool(quantity) and all(presence[name] < MISSING_BELOW for name in quantity)
    if lacks_quantity and not _BARE_COUNT.fullmatch(answer):
        return NOT_SOUGHT ** max(1, lacking)
    if not lacking:
        return 1.0
    words = without_marks(stems)
    others = surroundings.not_in_title - kind
    if any(t.presence_in(words) for t in part.terms if t.stem in others and not t.stem.isdigit()):
        return 1.0
    return NOT_SOUGHT**lacking


def _titled(page: _Page, place: int) -> dict[str, float]:
    """Presence of each word by virtue of the rows above: the header and the title of a table or chart."""
    rows = page.parts.rows
    above = range(max(0, place - TITLE_ROWS), place)
    # A row of figures with a name of its own is no title of this one, but for the row that this one is a part of.
    group = -1
    if rows[place].has_named_figures and _is_part(rows, place):
        group = next((at for at in reversed(above) if rows[at].has_named_figures and not _is_part(rows, at)), -1)
    titles = [
        at
        for at in above
        if at == group or _CAPTION.match(rows[at].text) or not (rows[at].is_prose or rows[at].has_named_figures)
    ]
    prose = [at for at in above if rows[at].is_prose]
    return {
        stem: PRESENCE.beside
        * max(
            max((held.get(at, 0.0) for at in titles), default=0.0),
            0.5 * max((held.get(at, 0.0) for at in prose), default=0.0),
        )
        for stem, held in page.in_rows.items()
    }


def _is_part(rows: Sequence[Row], place: int) -> bool:
    """Whether a row of figures is a part of one above: its name begins with a small letter or a figure, as ``of which
    fish``, or several rows of the page have it."""
    name = rows[place].cells[0].text
    return not name[:1].isalpha() or name[0].islower() or sum(row.cells[0].text == name for row in rows) > 1


def _is_question(text: str) -> bool:
    return text.rstrip('"”’) *_').endswith(("?", "？"))  # noqa: RUF001


def _is_answered_below(spans: Sequence[Span], place: int, part: Part) -> bool:
    """Whether the span is a question on the page, as in a list of questions and answers, and the next one is none."""
    if part.wants_passage or place + 1 >= len(spans) or not _is_question(spans[place].text):
        return False
    return not _is_question(spans[place + 1].text)


def _is_fact_below(page: _Page, place: int, part: Part, title: frozenset[str]) -> bool:
    """Whether the span is a heading, not the title of the document, and the line below it has what is looked for."""
    spans, kinds = page.parts.spans, (AnswerKind.NUMBER, AnswerKind.DATE, AnswerKind.NAME)
    if part.kind not in kinds or page.parts.headings[place + 1 : place + 2] != (place,) or spans[place].stems <= title:
        return False
    return not spans[place + 1].is_heading and bool(_shortest(part, spans[place + 1].text))


def _may_answer(span: Span, part: Part) -> bool:
    """Whether ``span`` holds what the question does not say already, or is the passage that is looked for; of a
    question for yes or no, whether it is a sentence. A question on the page answers none."""
    if part.wants_passage:
        return True
    if (_is_question(span.text) and not part.sentence) or _YEARS.fullmatch(span.text):
        return False
    if _says_more(span.text, part) or (part.is_yes_or_no and not span.is_heading):
        return True
    return bool(part.sentence) and not span.is_heading and part.sentence in " ".join(tokens(span.text))


def _says_more(text: str, part: Part) -> bool:
    """Whether ``text`` holds content beyond the words of the question."""
    stems = {token for term in part.terms for token in term.stem.split()}
    # An address of mail has a name in it, and says nothing of whom it is.
    words = text if part.is_contact else EMAIL.sub(" ", text)
    if part.kind is AnswerKind.STATEMENT:
        # "4. Goals" says nothing of the objectives.
        words = _NUMBER_OF_HEADING.sub("", words, count=1) if _NUMBER_OF_HEADING.match(words) else words
        stems = stems.union(*(term.others for term in part.terms))
    return any(stem(token) not in stems for token in tokens(words) if is_informative(token))


def _is_row_of_dates(text: str) -> bool:
    """Whether ``text`` is the head of columns that each stand for a day: two dates or more, and nothing else."""
    days = dates(text)
    return len(days) > 1 and sum(len(date.text) for date in days) >= len(text) - text.count(" ") - text.count(",")


def _is_bare(part: Part, span: Span, several: bool) -> bool:
    """Whether ``span``, of which nothing was chosen, has no figure or time of the kind that is needed."""
    if part.kind is AnswerKind.DATE:
        return _TIME_WORD.search(span.text) is None
    # Figures in digits were looked at: they are years, dates, or the question's own.
    return part.kind is AnswerKind.NUMBER and not several and all(f.text[0].isdigit() for f in figures(span.text))


def _bareness(part: Part, span: Span, several: bool) -> float:
    """For a span of which nothing was chosen as an answer of the kind that is needed."""
    if not _is_bare(part, span, several):
        return WRONG_KIND
    return WITHOUT_FIGURES if part.kind is AnswerKind.NUMBER else WITHOUT_TIME


def _fitness(part: Part, span: Span, answer: str, *, several: bool = False) -> float:
    """Less than 1 for what does not look like an answer of the kind that is needed; 0 for a heading without any
    figure, in digits or in words, where the question is for a number. ``several``: it has figures of which none is
    chosen."""
    if (
        part.kind is AnswerKind.NUMBER
        and not answer
        and span.is_heading
        and not any(figures(_NUMBER_OF_HEADING.sub("", span.text)))
    ):
        return 0.0
    if part.is_negated and not is_negated(span.text):
        return OTHER_SENSE
    if part.is_contact or part.kind is AnswerKind.EXPANSION or (part.kind is AnswerKind.NAME and span.is_heading):
        return 1.0 if answer else NOT_THERE
    if any(map(is_quantity, stems(answer))) and part.quantities and part.quantities.isdisjoint(span.stems):
        return OTHER_QUANTITY
    if part.kind in (AnswerKind.NUMBER, AnswerKind.DATE, AnswerKind.NAME):
        return 1.0 if answer else _bareness(part, span, several)
    return MERE_HEADING if span.is_heading else 1.0
