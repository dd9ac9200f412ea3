"""One question, from the first thought to the answer, without any IO.

An episode says what it ``need``s, is fed the result, and collects events. It never touches a network, a model or a
clock, so answering, evaluation, data construction and RL rollouts share it. Whatever a policy writes leads to an
event; the budget of steps bounds every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, Crop, SummarizeAndMemorize
from vrag_ray.agent.coordinates import View, snapped_to_words, with_margin
from vrag_ray.agent.energy import energies, pixel_budgets, strongest
from vrag_ray.agent.events import (
    AnswerEvent,
    BudgetEvent,
    CorrectionEvent,
    CropEvent,
    ErrorEvent,
    Event,
    ItemRef,
    MaxStepsEvent,
    MemorizeEvent,
    PruneEvent,
    ReadEvent,
    RunStatus,
    SearchDoneEvent,
    SearchEvent,
    ThinkEvent,
    UsageEvent,
)
from vrag_ray.agent.evidence import Citation
from vrag_ray.agent.graph import MemoryGraph, MemoryItem
from vrag_ray.agent.memory import DIRECT_PRIORITY, cited, item_of, remembered, supporting
from vrag_ray.agent.needs import Done, Need, NeedCompletion, NeedPageText, NeedSearch
from vrag_ray.agent.observation import UNKNOWN_SIZE, Observation, Prompt, Sighting
from vrag_ray.agent.protocols.base import WireProtocol
from vrag_ray.agent.reports import found_items, place_of, read_pages
from vrag_ray.config import AgentConfig
from vrag_ray.types import FULL_PAGE, Box, Completion, PageText, PassageKind, SearchAnswer, VragError

SHOWN_REPLY_CHARS = 2000


class Episode:
    """The state machine of one run. ``reads_pages`` says whether found pages are read for the policy."""

    def __init__(self, question: str, config: AgentConfig, protocol: WireProtocol, *, reads_pages: bool = True) -> None:
        self.question = " ".join(_clean(question).split())
        if not self.question:
            raise VragError("the question is empty: ask something")
        self.graph = MemoryGraph.start(self.question)
        self.steps = 0
        self.corrections = 0
        self.usage: dict[str, int] = {}
        self.answer: AnswerEvent | None = None
        self._config = config
        self._protocol = protocol
        self._reads_pages = reads_pages
        self._events: list[Event] = []
        self._notices: dict[str, None] = {}
        self._pending: Observation | None = None
        self._history: list[Observation] = []
        self._pages: dict[tuple[str, str], PageText | VragError] = {}
        self._dropped: frozenset[tuple[str, int]] = frozenset()
        self._correction = ""
        self._searches = self._failed_searches = 0
        self._need: Need = self._completion()

    @property
    def need(self) -> Need:
        """What the episode waits for. Reading it changes nothing."""
        return self._need

    @property
    def notices(self) -> tuple[str, ...]:
        """Everything that was degraded so far, in words."""
        return tuple(self._notices)

    def drain(self) -> tuple[Event, ...]:
        """The events since the last call."""
        events, self._events = tuple(self._events), []
        return events

    def completed(self, completion: Completion) -> None:
        """Feed a policy's reply: any text at all."""
        if not isinstance(self._need, NeedCompletion):
            raise VragError(f"the episode waits for {type(self._need).__name__}, not for a completion")
        last = self._need.prompt.must_answer
        self.steps += 1
        self._count(completion.usage)
        text = _clean(completion.text)
        reply = self._protocol.parse(text)
        if reply.think:
            self._events.append(ThinkEvent(step=self.steps, content=_clean(reply.think)))
        self._correction = ""
        try:
            if reply.action is None:
                raise VragError(reply.problem)
            if last and not isinstance(reply.action, AddAnswerNode):
                raise VragError("this was the last step: only add_answer_node was possible")
            self._act(reply.action)
        except VragError as error:
            self._correct(str(error), text)
            if last:
                self._events.append(MaxStepsEvent(step=self.steps, max_steps=self._config.max_steps))
                self._close(f"No answer within the budget of {self._config.max_steps} steps.", RunStatus.MAX_STEPS)
        if isinstance(self._need, NeedCompletion):
            self._need = self._completion()

    def searched(self, answer: SearchAnswer) -> None:
        """Feed the results of the search that was needed."""
        pending = self._awaited_search()
        hits = answer.results[0] if answer.results else ()
        seen = replace(pending, shards_ok=answer.shards_ok, shards_total=answer.shards_total, notices=answer.notices)
        for hit in hits:
            seen = replace(seen, sightings=(*seen.sightings, Sighting.of(hit, seen.next_id(hit.passage.kind))))
        self._pending = seen
        for notice in answer.notices:
            self._notices[notice] = None
        if answer.shards_ok < answer.shards_total and not answer.notices:
            self._notices[f"only {answer.shards_ok} of {answer.shards_total} shards answered {pending.query!r}"] = None
        self._events.append(
            SearchDoneEvent(
                step=self.steps,
                node_id=seen.node_id,
                query=seen.query,
                results=found_items(seen),
                shards_ok=answer.shards_ok,
                shards_total=answer.shards_total,
                collection_version=answer.collection_version,
                notices=answer.notices,
            )
        )
        unread = {(one.doc_id, one.locator.key): (one.doc_id, one.locator) for one in seen.sightings}
        wanted = tuple(page for key, page in unread.items() if key not in self._pages)
        if wanted and self._reads_pages:
            self._need = NeedPageText(wanted)
        else:
            self._show()

    def search_failed(self, message: str) -> None:
        """Feed that the search could not be made. The run goes on and says so."""
        pending = self._awaited_search()
        notice = f"the search for {pending.query!r} failed: {message}"
        self._failed_searches += 1
        self._notices[notice] = None
        self._pending = replace(pending, notices=(notice,))
        self._events.append(ErrorEvent(step=self.steps, message=_clean(notice)))
        self._show()

    def read(self, pages: Sequence[PageText | VragError]) -> None:
        """Feed the pages that were needed, in that order, each read or with the reason why not."""
        if not isinstance(self._need, NeedPageText) or len(pages) != len(self._need.pages):
            raise VragError(f"the episode waits for {self._need}, not for {len(pages)} pages")
        for (doc_id, locator), page in zip(self._need.pages, pages, strict=True):
            self._pages[doc_id, locator.key] = page
        self._show()

    def expire(self, message: str) -> None:
        """End with what is remembered: the time is up."""
        if not isinstance(self._need, Done):
            self._events.append(ErrorEvent(step=self.steps, message=message))
            self._close(f"No answer: {message}.", RunStatus.DEADLINE)

    def fail(self, message: str) -> None:
        """End with a terminal error: the run cannot go on."""
        if not isinstance(self._need, Done):
            self._events.append(ErrorEvent(step=self.steps, message=_clean(message), terminal=True))
            self._need = Done(RunStatus.ERROR)

    def cancel(self) -> None:
        """End without an answer: nobody waits for one."""
        if not isinstance(self._need, Done):
            self._need = Done(RunStatus.CANCELLED)

    # What the policy's actions do -----------------------------------------------------------------------------

    def _act(self, action: AddSearchNode | SummarizeAndMemorize | Crop | AddAnswerNode) -> None:
        if isinstance(action, AddSearchNode):
            self._search(action)
        elif isinstance(action, SummarizeAndMemorize):
            self._memorize(action)
        elif isinstance(action, Crop):
            self._crop(action)
        else:
            self._finish(action)

    def _search(self, action: AddSearchNode) -> None:
        if self._pending is not None and self._protocol.must_memorize:
            raise VragError(f"first memorise what node {self._pending.node_id!r} found: use summarize_and_memorize")
        node_id, query = action.id.strip(), " ".join(action.query.split())
        parents = tuple(one.strip() for one in action.parent_ids)
        self.graph.add_search(node_id, parents, query)  # refuses before anything has changed
        if self._pending is not None:
            items = tuple(sighting.remembered(DIRECT_PRIORITY) for sighting in self._pending.sightings)
            self._remember(self._pending, "", items)
        self.graph = self.graph.add_search(node_id, parents, query)
        self._searches += 1
        self._pending = Observation(node_id, query, ())
        self._need = NeedSearch(query, self._config.search_top_k)
        self._events.append(SearchEvent(step=self.steps, node_id=node_id, parent_ids=parents, query=query))

    def _memorize(self, action: SummarizeAndMemorize) -> None:
        if self._pending is None:
            raise VragError("there is nothing to memorise: search first")
        items, notes = remembered(action.memorize, self._pending)
        self._remember(self._pending, _clean(action.summarize).strip(), items, notes)

    def _crop(self, action: Crop) -> None:
        """A closer look is a new sighting; at a remembered item, it is a new item of the same node."""
        seen = self._pending
        source = seen.find(action.information_id) if seen is not None else None
        if seen is not None and source is not None:
            box = self._region(action, source.kind, source.view, source.page)
            closer = replace(source, id=seen.next_id(source.kind), region=box, source=source.id, shown=None)
            self._pending = replace(seen, sightings=(*seen.sightings, closer))
            self._report_crop(seen.node_id, source.id, closer)
            return
        reference = item_of(action.information_id, self.graph)
        if reference is None:
            known = [one.id for one in seen.sightings] if seen is not None else []
            raise VragError(
                f"there is no {action.information_id[:60]!r} to crop: name one of the last results "
                f"({', '.join(known) or 'none'}) or a remembered item as <node id>#<number>"
            )
        node = self.graph.node(reference[0])
        item = node.items[reference[1]]
        page = self._pages.get((item.doc_id, item.locator.key))
        read = page if isinstance(page, PageText) else None
        box = self._region(action, item.kind, View(item.box or FULL_PAGE, UNKNOWN_SIZE), read)
        self.graph = self.graph.memorize(
            node.id, node.summary, (*node.items, item.model_copy(update={"box": box, "quote": ""}))
        )
        closer = Sighting(
            f"{node.id}#{len(node.items) + 1}",
            item.doc_id,
            item.locator,
            item.kind,
            item.title,
            item.uri,
            item.score,
            passage_text="",
            page=read,
            region=box,
        )
        self._report_crop(node.id, action.information_id, closer)

    def _region(self, action: Crop, kind: PassageKind, view: View, page: PageText | None) -> Box:
        if kind is PassageKind.TEXT:
            raise VragError(f"{action.information_id} is text: only a picture or a video frame can be cropped")
        exact = self._protocol.codec.decode(action.bbox, view)
        return snapped_to_words(with_margin(exact), page.words if page is not None else ())

    def _finish(self, action: AddAnswerNode) -> None:
        text = _clean(action.answer).strip()
        if not text:
            raise VragError("the answer is empty: write the answer, or say that the evidence is not sufficient")
        graph, references = self._settled(action)
        parents = tuple(one.strip() for one in action.parent_ids)
        graph = graph.add_answer(parents, text)
        if not action.citations and not action.abstain:
            references = supporting(graph, parents)
        citations = cited(references, graph)
        self.graph = graph
        if self._searches and self._failed_searches == self._searches:
            self.fail(f"no search could be made: {next(iter(self._notices))}")
            return
        self._pending = None
        self._end(text, RunStatus.ABSTAINED if action.abstain else RunStatus.ANSWERED, citations)

    def _settled(self, action: AddAnswerNode) -> tuple[MemoryGraph, tuple[str, ...]]:
        """A search answered directly keeps what the answer cites of it, or all of it where nothing is cited."""
        seen = self._pending
        if seen is None:
            return self.graph, action.citations
        named = {found.id: found for one in action.citations if (found := seen.find(one)) is not None}
        if not action.citations and not action.abstain:
            named = {sighting.id: sighting for sighting in seen.sightings}
        items = tuple(sighting.remembered(DIRECT_PRIORITY) for sighting in named.values())
        place = {known.casefold(): f"{seen.node_id}#{number}" for number, known in enumerate(named, start=1)}
        graph = self.graph.memorize(seen.node_id, "", items)
        return graph, tuple(place.get(one.strip().casefold(), one) for one in action.citations)

    # Memory ---------------------------------------------------------------------------------------------------

    def _remember(
        self, seen: Observation, summary: str, items: tuple[MemoryItem, ...], notes: tuple[str, ...] = ()
    ) -> None:
        self.graph = self.graph.memorize(seen.node_id, summary, items)
        self._history.append(seen)
        self._pending = None
        self._events.append(
            MemorizeEvent(step=self.steps, node_id=seen.node_id, summary=summary, items=items, notes=notes)
        )
        self._share_pixels()

    def _share_pixels(self) -> None:
        config = self._config
        everything = energies(self.graph, decay=config.energy_decay, feedback=config.energy_feedback)
        best = strongest(everything, config.memory_top_k)
        places = frozenset((one.node_id, one.index) for one in everything)
        out = places - {(one.node_id, one.index) for one in best}
        # What was dropped before is not told again.
        dropped = tuple(ItemRef(node_id=node_id, index=index) for node_id, index in sorted(out - self._dropped))
        if dropped:
            self._events.append(PruneEvent(step=self.steps, dropped=dropped))
        self._dropped = out
        self._events.append(
            BudgetEvent(
                step=self.steps,
                total_pixels=config.memory_pixels,
                kept=pixel_budgets(best, config.memory_pixels),
                steps_left=config.max_steps - self.steps,
            )
        )

    # How steps begin and runs end -----------------------------------------------------------------------------

    def _completion(self) -> NeedCompletion:
        return NeedCompletion(
            Prompt(
                question=self.question,
                graph=self.graph,
                observation=self._pending,
                history=tuple(self._history),
                steps_left=self._config.max_steps - self.steps,
                correction=self._correction,
            )
        )

    def _awaited_search(self) -> Observation:
        if not isinstance(self._need, NeedSearch) or self._pending is None:
            raise VragError(f"the episode waits for {type(self._need).__name__}, not for a search")
        return self._pending

    def _show(self) -> None:
        """Put the words of the pages that were read beside the hits, and ask the policy."""
        if self._pending is not None:
            self._pending = replace(self._pending, sightings=tuple(map(self._with_page, self._pending.sightings)))
            if self._reads_pages and self._pending.sightings:
                self._events.append(
                    ReadEvent(step=self.steps, node_id=self._pending.node_id, pages=read_pages(self._pending))
                )
        self._need = self._completion()

    def _with_page(self, sighting: Sighting) -> Sighting:
        page = self._pages.get((sighting.doc_id, sighting.locator.key))
        if isinstance(page, VragError):
            self._notices[f"{sighting.locator} of {sighting.title} could not be read: {_clean(str(page))}"] = None
            return replace(sighting, read_error=_clean(str(page)))
        return replace(sighting, page=page)

    def _report_crop(self, node_id: str, source_id: str, closer: Sighting) -> None:
        self._events.append(
            CropEvent(step=self.steps, node_id=node_id, source_id=source_id, place=place_of(closer), text=closer.text)
        )

    def _correct(self, message: str, reply: str) -> None:
        self.corrections += 1
        self._correction = _clean(message)
        self._events.append(
            CorrectionEvent(
                step=self.steps, message=self._correction, reply=reply[:SHOWN_REPLY_CHARS], count=self.corrections
            )
        )

    def _close(self, text: str, status: RunStatus) -> None:
        """Answer in the policy's place, with what is remembered as the evidence to look at."""
        parents = tuple(node.id for node in self.graph.nodes)
        citations = cited(supporting(self.graph, parents), self.graph)
        self.graph = self.graph.add_answer(parents, text)
        self._end(text, status, citations)

    def _end(self, text: str, status: RunStatus, citations: tuple[Citation, ...]) -> None:
        self.answer = AnswerEvent(
            step=self.steps,
            answer=text,
            abstained=status is not RunStatus.ANSWERED,
            status=status,
            citations=citations,
            notices=self.notices,
        )
        self._events.append(self.answer)
        self._need = Done(status)

    def _count(self, usage: Mapping[str, int]) -> None:
        for name, amount in usage.items():
            self.usage[name] = self.usage.get(name, 0) + amount
        if usage:
            self._events.append(UsageEvent(step=self.steps, usage=dict(usage)))


def _clean(text: str) -> str:
    """Without lone surrogates, which JSON cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
