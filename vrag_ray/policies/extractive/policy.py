"""The policy without a model: rules that search, read, look closer, remember, and answer with quotes.

It is a pure function of the prompt, so one instance serves any number of runs. The plan is read back from the
memory graph: node ``q1`` is the first part of the question, ``q1-again`` its second search in other words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.images.crop_source import UNKNOWN_SIZE
from vrag_ray.agent.memory.graph import ROOT_ID
from vrag_ray.agent.observation import Observation, Prompt, Sighting
from vrag_ray.agent.ports import Say
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.coordinates import View
from vrag_ray.policies.extractive.matching import Match, matches
from vrag_ray.policies.extractive.questions import Part, parts
from vrag_ray.policies.extractive.wording import Finding, abstention_text, answer_text, shown_quote
from vrag_ray.types import FULL_PAGE, Completion

AGAIN = "-again"
STEPS_PER_SEARCH = 3
"""Search, look closer, memorise."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    """The best match of one search, with what it was found in."""

    node_id: str
    match: Match
    sighting: Sighting


class ExtractivePolicy:
    """Implements ``Policy``. ``config.abstain_below`` is the coverage under which it does not answer."""

    reads_pages: bool = True
    sees_pictures: bool = False

    def __init__(self, config: AgentConfig, protocol: WireProtocol | None = None) -> None:
        self._abstain_below = config.abstain_below
        self._enough = (1.0 + config.abstain_below) / 2
        self._max_parts = max(1, (config.max_steps - 1) // STEPS_PER_SEARCH)
        self._protocol = protocol or GraphProtocol()

    async def complete(self, prompt: Prompt, say: Say) -> Completion:  # noqa: ARG002  it is done at once
        """In a thread: full pages take some tens of milliseconds, which other runs need not wait for."""
        action = await asyncio.to_thread(self._decide, prompt)
        return Completion(text=self._protocol.render(action))

    def _decide(self, prompt: Prompt) -> Action:
        asked = parts(prompt.question, limit=self._max_parts)
        # A refusal means that a rule of ours was wrong here: end with what there is rather than repeat it.
        if prompt.must_answer or prompt.correction:
            return self._answer(prompt, asked)
        if prompt.observation is not None:
            number = _number_of(asked, prompt.observation)
            return self._digest(prompt, asked[number - 1], number, prompt.observation)
        return self._next_search(prompt, asked) or self._answer(prompt, asked)

    # Searching ------------------------------------------------------------------------------------------------

    def _next_search(self, prompt: Prompt, asked: Sequence[Part]) -> AddSearchNode | None:
        """The first part not searched yet, else the first whose evidence is weak, in other words; None at the end."""
        if prompt.steps_left < 2:
            return None
        done = {node.id for node in prompt.graph.nodes}
        for number, part in enumerate(asked, start=1):
            if f"q{number}" not in done:
                return AddSearchNode(id=f"q{number}", parent_ids=(ROOT_ID,), query=part.query)
        if prompt.steps_left < STEPS_PER_SEARCH:
            return None
        queries = {" ".join(node.query.casefold().split()) for node in prompt.graph.nodes}
        for number, part in enumerate(asked, start=1):
            evidence = self._best(prompt, part, number)
            strong = evidence is not None and evidence.match.coverage >= self._enough
            fresh = " ".join(part.other_query.casefold().split()) not in queries
            if not strong and fresh and f"q{number}{AGAIN}" not in done:
                return AddSearchNode(id=f"q{number}{AGAIN}", parent_ids=(f"q{number}",), query=part.other_query)
        return None

    # Reading --------------------------------------------------------------------------------------------------

    def _digest(self, prompt: Prompt, part: Part, number: int, seen: Observation) -> Action:
        """Look closer at the best region once, then memorise."""
        ranked = matches(part, seen)
        best = ranked[0] if ranked else None
        # One look a search.
        looked = any(sighting.source for sighting in seen.sightings)
        before = self._best(replace(prompt, observation=None), part, number)
        if before is not None and best is not None and best.coverage <= before.match.coverage:
            return self._memorize(seen, None, nothing=f"Nothing beyond {before.node_id} was found.")
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
        return self._memorize(seen, best)

    def _memorize(
        self, seen: Observation, best: Match | None, *, nothing: str = "Nothing relevant was found."
    ) -> SummarizeAndMemorize:
        if best is None:
            entries = tuple(MemorizeEntry(information_id=one.id, is_useful=False) for one in seen.sightings)
            found = nothing if seen.sightings else "The search brought nothing."
            return SummarizeAndMemorize(summarize=found, memorize=entries)
        closer = next((one.id for one in seen.sightings if one.source == best.sighting_id), best.sighting_id)
        entries = tuple(
            MemorizeEntry(
                information_id=sighting.id,
                is_useful=True,
                priority_score=self._priority(best.coverage),
                key_timestamp=(best.start,) if best.start is not None else (),
                quote=shown_quote(best.quote),
            )
            if sighting.id == closer
            else MemorizeEntry(information_id=sighting.id, is_useful=False)
            for sighting in seen.sightings
        )
        verdict = "Found" if best.coverage >= self._abstain_below else "Only weak evidence"
        answer = f"{best.answer}: " if best.answer else ""
        summary = f"{verdict} (coverage {best.coverage:.2f}): {answer}{shown_quote(best.quote)}"
        return SummarizeAndMemorize(summarize=summary, memorize=entries)

    def _priority(self, coverage: float) -> int:
        if coverage >= self._enough:
            return 5
        return 4 if coverage >= self._abstain_below else 1

    # Answering ------------------------------------------------------------------------------------------------

    def _answer(self, prompt: Prompt, asked: Sequence[Part]) -> AddAnswerNode:
        """Quotes for the parts with sufficient evidence; what was searched for the others."""
        evidence = [self._best(prompt, part, number) for number, part in enumerate(asked, start=1)]
        answered = any(one is not None and one.match.coverage >= self._abstain_below for one in evidence)
        references: list[str] = []
        parents: list[str] = []
        findings: list[Finding] = []
        unanswered: list[Finding] = []
        for number, (part, one) in enumerate(zip(asked, evidence, strict=True), start=1):
            reference = _reference(prompt, one)
            sufficient = one is not None and one.match.coverage >= self._abstain_below and bool(reference)
            if reference and reference not in references:
                references.append(reference)
            finding = Finding(
                part=part,
                match=one.match if one is not None else None,
                where=f"{one.sighting.title}, {one.sighting.locator}" if one is not None else "",
                number=references.index(reference) + 1 if reference else 0,
                queries=tuple(node.query for node in prompt.graph.nodes if node.id in _node_ids(number)),
            )
            (findings if sufficient else unanswered).append(finding)
            parents.extend([one.node_id] if one is not None and (sufficient or not answered) else [])
        known = [node.id for node in prompt.graph.nodes if node.id != ROOT_ID]
        return AddAnswerNode(
            parent_ids=tuple(dict.fromkeys(parents)) or tuple(known) or (ROOT_ID,),
            answer=answer_text(findings, unanswered) if findings else abstention_text(unanswered),
            citations=tuple(references),
            abstain=not findings,
        )

    def _best(self, prompt: Prompt, part: Part, number: int) -> _Evidence | None:
        """The best match over the searches made for a part, the pending one included; the earlier where equal."""
        best: _Evidence | None = None
        for seen in (*prompt.history, *([prompt.observation] if prompt.observation is not None else [])):
            if seen.node_id not in _node_ids(number):
                continue
            ranked = matches(part, seen)
            source = seen.find(ranked[0].sighting_id) if ranked else None
            if source is not None and (best is None or ranked[0].coverage > best.match.coverage):
                best = _Evidence(seen.node_id, ranked[0], source)
        return best


def _node_ids(number: int) -> tuple[str, str]:
    return f"q{number}", f"q{number}{AGAIN}"


def _number_of(asked: Sequence[Part], seen: Observation) -> int:
    """Which part, counted from 1, a search was made for."""
    return next((number for number in range(1, len(asked) + 1) if seen.node_id in _node_ids(number)), 1)


def _reference(prompt: Prompt, evidence: _Evidence | None) -> str:
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
    crops = (one.id for one in pending.sightings if one.source == evidence.sighting.id)
    return next(crops, evidence.sighting.id)
