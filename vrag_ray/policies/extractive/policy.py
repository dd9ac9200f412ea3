"""The policy without a model: rules that search, read, look closer, remember, and answer with quotes.

It is a pure function of the prompt, so one instance serves any number of runs. The plan is read back from the
memory graph: node ``q1`` is the first part of the question, ``q1-again`` its second search in other words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.images.crop_source import UNKNOWN_SIZE
from vrag_ray.agent.memory.graph import ROOT_ID
from vrag_ray.agent.observation import Observation, Prompt, Sighting
from vrag_ray.agent.ports import Say
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import View
from vrag_ray.policies.extractive.cut_page import cut_page
from vrag_ray.policies.extractive.lexicon import tokens
from vrag_ray.policies.extractive.matching import (
    Match,
    compares,
    has_other_figures,
    matches,
    page_of,
    respelled,
    unread_above,
)
from vrag_ray.policies.extractive.questions import (
    LEAST_WORDS_OF_A_SENTENCE,
    Part,
    ends_in_a_stop,
    has_question_mark,
    part_of,
    parts,
    passage_part,
)
from vrag_ray.policies.extractive.wording import Finding, OtherFigures, abstention_text, answer_text, shown_quote
from vrag_ray.types import FULL_PAGE, Completion

AGAIN = "-again"
STEPS_PER_SEARCH = 3
"""Search, look closer, memorise."""
CACHED_PAGES = 128
"""Pages that are cut are looked at again in every later step of a run, and by other runs."""
CACHED_SEARCHES = 256
MOST_OTHERS = 3
"""Documents with other figures than those of an answer that it names."""


@dataclass(frozen=True, slots=True)
class _Result:
    """A result, and the node of the search that found it."""

    node_id: str
    sighting: Sighting

    @property
    def where(self) -> str:
        return f"{self.sighting.title}, {self.sighting.locator}"


@dataclass(frozen=True, slots=True)
class _Evidence(_Result):
    """The best match of one search, with its result."""

    match: Match


class _Same:
    """An observation as a key by which it is: comparing two would go through every word of their pages."""

    def __init__(self, observation: Observation) -> None:
        self.observation = observation

    def __hash__(self) -> int:
        return id(self.observation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.observation is self.observation


class ExtractivePolicy:
    """Implements ``Policy``. ``config.abstain_below`` is the coverage under which it does not answer.

    ``has_model``: a language model is configured and was not used, which answers say.
    """

    reads_pages: bool = True
    sees_pictures: bool = False

    def __init__(self, config: AgentConfig, *, has_model: bool = False) -> None:
        self._has_model = has_model
        self._abstain_below = config.abstain_below
        self._enough = (1.0 + config.abstain_below) / 2
        self._max_parts = max(1, (config.max_steps - 1) // STEPS_PER_SEARCH)
        self._protocol = GraphProtocol()
        self._cut = cut = lru_cache(CACHED_PAGES)(cut_page)
        self._ranked = lru_cache(CACHED_SEARCHES)(lambda part, seen: matches(part, seen.observation, cut))

    async def complete(self, prompt: Prompt, say: Say) -> Completion:  # noqa: ARG002  it is done at once
        """In a thread: full pages take some tens of milliseconds, which other runs need not wait for."""
        action = await asyncio.to_thread(self._decide, prompt)
        return Completion(text=self._protocol.render(action))

    def _decide(self, prompt: Prompt) -> Action:
        divided = self._parts(prompt)
        # A refusal means that a rule of ours was wrong here: end with what there is rather than repeat it.
        if prompt.must_answer or prompt.correction:
            return self._answer(prompt, divided)
        if prompt.observation is not None:
            number = _number_of(divided, prompt.observation)
            return self._digest(prompt, divided[number - 1], number, prompt.observation)
        return self._next_search(prompt, divided) or self._answer(prompt, divided)

    def _parts(self, prompt: Prompt) -> list[Part]:
        """The parts of the question. Two sides stay together where the search for the first finds a row of figures
        with the name of both, "cash and cash equivalents", or a table that compares them. A text that is a whole
        sentence of a page that the first search found is looked for, and no question, whatever it begins with."""
        if self._is_in_the_documents(prompt):
            return [passage_part(" ".join(prompt.question.split()))]
        divided: list[Part] = []
        for part in parts(prompt.question, limit=self._max_parts):
            if divided and part.undivided and part.undivided == divided[-1].text:
                continue
            searches = _searches(prompt, len(divided) + 1) if part.undivided not in ("", part.text) else []
            whole = part_of(part.undivided)
            is_whole = any(
                (part.joined and self._names_a_row(part.joined, search)) or compares(whole, search, self._cut)
                for search in searches
            )
            divided.append(whole if is_whole else part)
        return divided

    def _is_in_the_documents(self, prompt: Prompt) -> bool:
        words = tokens(prompt.question)
        if has_question_mark(prompt.question) or len(words) < LEAST_WORDS_OF_A_SENTENCE:
            return False
        length = len(" ".join(prompt.question.split()))
        return any(
            # First, as most sentences need not be cut into words then.
            length <= 2 * len(span.text) <= 4 * length
            and not span.is_heading
            and ends_in_a_stop(span.text)
            and tokens(span.text) == words
            for seen in _searches(prompt, 1)
            for sighting in seen.sightings
            if not sighting.source
            for span in self._cut(page_of(sighting), sighting.kind, sighting.passage_text).spans
        )

    def _names_a_row(self, name: str, seen: Observation) -> bool:
        words = f" {' '.join(tokens(name))} "
        pages = (
            self._cut(page_of(sighting), sighting.kind, sighting.passage_text)
            for sighting in seen.sightings
            if not sighting.source
        )
        return any(
            len(row.cells) > 1 and words in f" {' '.join(tokens(row.cells[0].text))} "
            for page in pages
            for row in page.rows
        )

    # Searching ------------------------------------------------------------------------------------------------

    def _next_search(self, prompt: Prompt, parts: Sequence[Part]) -> AddSearchNode | None:
        """The first part not searched yet, else the first whose evidence is weak, in other words; None at the end."""
        if prompt.steps_left < 2:
            return None
        done = {node.id for node in prompt.graph.nodes}
        for number, part in enumerate(parts, start=1):
            if f"q{number}" not in done:
                return AddSearchNode(id=f"q{number}", parent_ids=(ROOT_ID,), query=part.query)
        if prompt.steps_left < STEPS_PER_SEARCH:
            return None
        queries = {" ".join(node.query.casefold().split()) for node in prompt.graph.nodes}
        for number, part in enumerate(parts, start=1):
            evidence = self._best(prompt, part, number)
            strong = evidence is not None and evidence.match.coverage >= self._enough
            if strong or f"q{number}{AGAIN}" in done:
                continue
            found = [seen for seen in _searches(prompt, number) if seen.node_id == f"q{number}"]
            query = (respelled(part, found[0], self._cut) if found else part).other_query
            if " ".join(query.casefold().split()) not in queries:
                return AddSearchNode(id=f"q{number}{AGAIN}", parent_ids=(f"q{number}",), query=query)
        return None

    # Reading --------------------------------------------------------------------------------------------------

    def _digest(self, prompt: Prompt, part: Part, number: int, seen: Observation) -> Action:
        """Look closer at the best region once, then memorise."""
        best, unread = self._weighed(part, seen)
        # One look a search.
        looked = any(sighting.source for sighting in seen.sightings)
        earlier = replace(prompt, observation=None)
        before = self._best(earlier, part, number)
        if self._is_enough(before) or self._unread(earlier, part, number) is not None:
            unread = None
        if before is not None and best is not None and best.coverage <= before.match.coverage:
            return self._memorize(seen, None, unread, nothing=f"Nothing beyond {before.node_id} was found.")
        source = seen.find(best.sighting_id) if best is not None else None
        if (
            best is not None
            and source is not None
            and best.box is not None
            and best.coverage >= self._abstain_below
            and not looked
            and prompt.steps_left >= STEPS_PER_SEARCH
        ):
            x0, y0, x1, y1 = self._protocol.family.codec.encode(
                best.box, View(source.region or FULL_PAGE, UNKNOWN_SIZE)
            )
            return Crop(information_id=source.id, bbox=(x0, y0, x1, y1))
        return self._memorize(seen, best, unread, others=self._others(part, seen, best))

    def _memorize(
        self,
        seen: Observation,
        best: Match | None,
        unread: Sighting | None,
        *,
        others: Sequence[Match] = (),
        nothing: str = "Nothing relevant was found.",
    ) -> SummarizeAndMemorize:
        useful: dict[str, MemorizeEntry] = {}
        summary = nothing if seen.sightings else "The search brought nothing."
        if best is not None:
            closer = next(
                (sighting.id for sighting in seen.sightings if sighting.source == best.sighting_id), best.sighting_id
            )
            useful[closer] = MemorizeEntry(
                information_id=closer,
                is_useful=True,
                priority_score=self._priority(best.coverage),
                key_timestamp=(best.start,) if best.start is not None else (),
                quote=shown_quote(best.quote),
            )
            verdict = "Found" if best.coverage >= self._abstain_below else "Only weak evidence"
            answer = f"{best.answer}: " if best.answer else ""
            summary = f"{verdict} (coverage {best.coverage:.2f}): {answer}{shown_quote(best.quote)}"
        useful |= {
            other.sighting_id: MemorizeEntry(
                information_id=other.sighting_id,
                is_useful=True,
                priority_score=self._priority(other.coverage),
                quote=shown_quote(other.quote),
            )
            for other in others
        }
        if unread is not None:
            useful[unread.id] = MemorizeEntry(information_id=unread.id, is_useful=True, priority_score=1)
            note = f"Found {_Result(seen.node_id, unread).where}, but no words could be read there."
            summary = note if best is None else f"{summary} {note}"
        entries = (
            useful.get(sighting.id) or MemorizeEntry(information_id=sighting.id, is_useful=False)
            for sighting in seen.sightings
        )
        return SummarizeAndMemorize(summarize=summary, memorize=tuple(entries))

    def _priority(self, coverage: float) -> int:
        if coverage >= self._enough:
            return 5
        return 4 if coverage >= self._abstain_below else 1

    # Answering ------------------------------------------------------------------------------------------------

    def _answer(self, prompt: Prompt, parts: Sequence[Part]) -> AddAnswerNode:
        """Quotes for the parts with sufficient evidence; what was searched, and what was not read, for the others."""
        evidence = [self._best(prompt, part, number) for number, part in enumerate(parts, start=1)]
        answered = any(map(self._is_enough, evidence))
        numbers: dict[str, int] = {"": 0}
        parents: list[str] = []
        findings: list[Finding] = []
        unanswered: list[Finding] = []
        for number, (part, item) in enumerate(zip(parts, evidence, strict=True), start=1):
            reference = _reference(prompt, item)
            sufficient = self._is_enough(item) and bool(reference)
            unread = None if sufficient else self._unread(prompt, part, number)
            others = self._remembered_others(prompt, part, number, item) if item is not None and sufficient else []
            finding = Finding(
                part=part,
                match=item.match if item is not None else None,
                where=item.where if item is not None else "",
                number=numbers.setdefault(reference, len(numbers)),
                queries=tuple(node.query for node in prompt.graph.nodes if node.id in _node_ids(number)),
                unread=unread.where if unread is not None else "",
                unread_number=numbers.setdefault(_reference(prompt, unread), len(numbers)),
                others=tuple(
                    OtherFigures(
                        other.match.quote, other.where, numbers.setdefault(_reference(prompt, other), len(numbers))
                    )
                    for other in others
                ),
            )
            (findings if sufficient else unanswered).append(finding)
            named = [result.node_id for result in (item, unread) if result is not None]
            parents.extend(named if sufficient or not answered else [])
        known = [node.id for node in prompt.graph.nodes if node.id != ROOT_ID]
        return AddAnswerNode(
            parent_ids=tuple(dict.fromkeys(parents)) or tuple(known) or (ROOT_ID,),
            answer=(
                answer_text(findings, unanswered, has_model=self._has_model)
                if findings
                else abstention_text(unanswered, has_model=self._has_model)
            ),
            citations=tuple(reference for reference in numbers if reference),
            abstain=not findings,
        )

    def _best(self, prompt: Prompt, part: Part, number: int) -> _Evidence | None:
        """The best match over the searches made for a part, the pending one included; the earlier where equal."""
        best: _Evidence | None = None
        for seen in _searches(prompt, number):
            match, _ = self._weighed(part, seen)
            source = seen.find(match.sighting_id) if match is not None else None
            if match is None or source is None:
                continue
            if best is None or match.coverage > best.match.coverage:
                best = _Evidence(seen.node_id, source, match)
        return best

    def _others(self, part: Part, seen: Observation, best: Match | None) -> list[Match]:
        """The matches in other documents that cover as much as ``best`` and have its words with other figures,
        as a report of another year has: the first match of each document, and each quote once."""
        source = seen.find(best.sighting_id) if best is not None else None
        if best is None or source is None or best.coverage < self._abstain_below:
            return []
        by_document: dict[str, Match] = {}
        for match in self._ranked(part, _Same(seen)):
            if round(match.coverage, 2) < round(best.coverage, 2) or len(by_document) == MOST_OTHERS:
                break
            other = seen.find(match.sighting_id)
            if other is None or other.doc_id == source.doc_id or not has_other_figures(match, best.quote):
                continue
            if all(match.quote != known.quote for known in by_document.values()):
                by_document.setdefault(other.doc_id, match)
        return list(by_document.values())

    def _remembered_others(self, prompt: Prompt, part: Part, number: int, best: _Evidence) -> list[_Evidence]:
        others: list[_Evidence] = []
        for seen in _searches(prompt, number):
            if seen.node_id != best.node_id:
                continue
            for match in self._others(part, seen, best.match):
                sighting = seen.find(match.sighting_id)
                if sighting is not None and _reference(prompt, other := _Evidence(seen.node_id, sighting, match)):
                    others.append(other)
        return others

    def _unread(self, prompt: Prompt, part: Part, number: int) -> _Result | None:
        """The first result without words of the searches for a part, the earliest search first."""
        for seen in _searches(prompt, number):
            _, unread = self._weighed(part, seen)
            if unread is not None:
                return _Result(seen.node_id, unread)
        return None

    def _weighed(self, part: Part, seen: Observation) -> tuple[Match | None, Sighting | None]:
        """The best match of a search and, where that is weak, what the search ranks above it and has no words."""
        ranked = self._ranked(part, _Same(seen))
        best = ranked[0] if ranked else None
        if best is not None and best.coverage >= self._abstain_below:
            return best, None
        unread = unread_above(seen, best)
        # The words of a file name are no evidence of what is in the file.
        if best is not None and unread is not None and best.sighting_id == unread.id:
            best = None
        return best, unread

    def _is_enough(self, evidence: _Evidence | None) -> bool:
        return evidence is not None and evidence.match.coverage >= self._abstain_below


def _node_ids(number: int) -> tuple[str, str]:
    return f"q{number}", f"q{number}{AGAIN}"


def _searches(prompt: Prompt, number: int) -> list[Observation]:
    """The results of the searches for a part, the pending search included."""
    made = (*prompt.history, *([prompt.observation] if prompt.observation is not None else []))
    return [seen for seen in made if seen.node_id in _node_ids(number)]


def _number_of(parts: Sequence[Part], seen: Observation) -> int:
    """Which part, counted from 1, a search was made for."""
    return next((number for number in range(1, len(parts) + 1) if seen.node_id in _node_ids(number)), 1)


def _reference(prompt: Prompt, evidence: _Result | None) -> str:
    """How the answer cites the evidence: as the item remembered for it, or as it lies before us."""
    if evidence is None:
        return ""
    node = prompt.graph.node(evidence.node_id)
    for index, item in enumerate(node.items, start=1):
        if (item.doc_id, item.locator) == (evidence.sighting.doc_id, evidence.sighting.locator):
            return f"{node.id}#{index}"
    pending = prompt.observation
    if pending is None or pending.node_id != evidence.node_id:
        return ""
    crops = (sighting.id for sighting in pending.sightings if sighting.source == evidence.sighting.id)
    return next(crops, evidence.sighting.id)
