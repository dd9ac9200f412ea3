"""One question, from the first thought to the answer, without any IO.

An episode says what it ``need``s, is fed the result, and collects events. It never touches a network, a model or a
clock, so answering, evaluation, data construction and RL rollouts share it. Whatever a policy writes leads to an
event; the budget of steps bounds every run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, SummarizeAndMemorize
from vrag_ray.agent.chat import QUESTION, Picture, QuestionPicture
from vrag_ray.agent.citations import Citation
from vrag_ray.agent.entailment import Claim, Verdict, claims, judged
from vrag_ray.agent.events import (
    AnswerEvent,
    CorrectionEvent,
    ErrorEvent,
    Event,
    MaxStepsEvent,
    MemorizeEvent,
    ReadEvent,
    RunStatus,
    SearchEvent,
    ThinkEvent,
    UsageEvent,
    storable,
)
from vrag_ray.agent.images.budget import results_of, within_limits
from vrag_ray.agent.images.crop_source import CropSource, closer_look, source_of_crop
from vrag_ray.agent.images.prompt_images import PromptImages
from vrag_ray.agent.images.remembered import VisualMemory
from vrag_ray.agent.memory.graph import MemoryGraph, MemoryItem, RepeatedSearchError, printable_title
from vrag_ray.agent.memory_items import (
    DIRECT_PRIORITY,
    cited_places,
    elements_of,
    remembered,
    settled,
    sources_of,
    supporting,
    with_cited_elements,
    with_values,
    without_references,
)
from vrag_ray.agent.needs import Done, Need, NeedCompletion, NeedPageText, NeedPictures, NeedSearch, NeedVerdicts
from vrag_ray.agent.observation import Observation, Prompt, Sighting, Turn
from vrag_ray.agent.reports import crop_event, read_pages, search_done
from vrag_ray.agent.seen_pages import SeenPages
from vrag_ray.agent.support import CheckedSentence, checked
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.types import Completion, PageText, SearchAnswer, VragError
from vrag_ray.types.copies import with_changes

SHOWN_REPLY_CHARS = 2000
NOTHING_LEARNT = "Nothing was found."
NOTHING_FOUND = "Nothing was found for this query. Search for something else, or answer."
ALL_SEEN = "Every page found for this query has been shown already. Search for something else, look closer, or answer."
ALL_READ = "Every page found for this query has been given already. Search for something else, or answer."
NOT_JUDGED = "no model has judged whether the sources say what the answer says: {why}"
REFERENCES_LEFT_OUT = "the answer came in the last step, and its references were left out: {why}"
SEARCHED_ONLY = "the picture of the question was used for the first search only: this agent is shown no pictures"


class Episode:
    """The state machine of one run.

    ``reads_pages`` says whether found pages are read for the policy, ``sees_pictures`` whether pictures are drawn, as
    far as the protocol shows any; where it shows them with the numbers of their elements, pages are read in any case.
    ``picture`` came with the question. It is part of every prompt of a policy that sees, and of the first search,
    together with its words. Later searches are made by words alone: they are for what the policy has not found yet, and
    with the picture in them would find what looks like it again and again. ``has_judge``: each sentence of the
    answer is judged by whether its sources say it, if ``agent.entailment`` is on.
    """

    def __init__(
        self,
        question: str,
        config: AgentConfig,
        protocol: WireProtocol,
        *,
        reads_pages: bool = True,
        sees_pictures: bool = False,
        picture: QuestionPicture | None = None,
        has_judge: bool = False,
    ) -> None:
        self.question = " ".join(storable(question).split())
        if not self.question:
            raise VragError("the question is empty: ask something")
        self.graph = MemoryGraph.start(self.question)
        self.steps = 0
        self.corrections = 0
        self.usage: dict[str, int] = {}
        self.answer: AnswerEvent | None = None
        self._config = config
        self._protocol = protocol
        self._sees_pictures = sees_pictures and protocol.evidence.has_pictures
        self._marks_pictures = self._sees_pictures and protocol.marks_pictures
        self._reads_pages = reads_pages or self._marks_pictures
        self.picture = picture
        self._events: list[Event] = []
        self._notices: dict[str, None] = {}
        if picture is not None and not self._sees_pictures:
            self._notices[SEARCHED_ONLY] = None
        self._pending: Observation | None = None
        self._history: list[Observation] = []
        self._pages = SeenPages()
        self._memory = VisualMemory(config, protocol)
        self._showing = PromptImages(protocol)
        self._turns: tuple[Turn, ...] = ()
        self._reply = ""
        self._correction = ""
        self._memorized = False
        self._searched_out = False
        self._searches = self._failed_searches = 0
        self._has_judge = has_judge
        self._claims: tuple[Claim, ...] = ()
        self._drafted: AnswerEvent | None = None
        self._need: Need = self._ask()

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

    def completed(self, completion: Completion, *, streamed: bool = False) -> None:
        """Feed a policy's reply: any text at all. ``streamed``: its thoughts have been reported as they came."""
        if not isinstance(self._need, NeedCompletion):
            raise VragError(f"the episode waits for {type(self._need).__name__}, not for a completion")
        last = self._need.prompt.must_answer
        self.steps += 1
        self._count(completion.usage)
        self._notices |= dict.fromkeys(completion.notices)
        text = self._reply = storable(completion.text)
        reply = self._protocol.parse(text)
        think = "\n".join(thought for thought in (completion.reasoning.strip(), reply.think) if thought)
        if think and not streamed:
            self._events.append(ThinkEvent(step=self.steps, content=storable(think)))
        self._correction = ""
        self._searched_out = False
        try:
            if reply.action is None:
                cut = f"the reply was cut off after {self._config.max_reply_tokens} tokens: write less"
                raise VragError(f"{cut}; {reply.problem}" if completion.finish == "length" else reply.problem)
            if last and not isinstance(reply.action, AddAnswerNode):
                raise VragError(f"this was the last step: only {self._protocol.rules.answer_form} was possible")
            self._act(reply.action)
        except VragError as error:
            self._searched_out = isinstance(error, RepeatedSearchError)
            self._correct(str(error), text)
            bare = without_references(reply.action) if isinstance(reply.action, AddAnswerNode) else None
            if last and bare is not None and storable(bare.answer).strip():
                # No step is left for a correction, and the answer is worth more than its references.
                self._notices[REFERENCES_LEFT_OUT.format(why=storable(str(error)))] = None
                self._finish(bare)
            elif last:
                self._events.append(MaxStepsEvent(step=self.steps, max_steps=self._config.max_steps))
                self._close(f"No answer within the budget of {self._config.max_steps} steps.", RunStatus.MAX_STEPS)
        if isinstance(self._need, NeedCompletion):
            self._need = self._ask()

    def searched(self, answer: SearchAnswer) -> None:
        """Feed the results of the search that was needed."""
        pending = self._awaited_search()
        rules = self._protocol.rules
        hits = answer.results[0] if answer.results else ()
        fresh = self._pages.choose(hits, rules)
        note = "" if fresh else NOTHING_FOUND
        if hits and not fresh:
            note = ALL_SEEN if self._protocol.evidence.has_pictures else ALL_READ
        seen = replace(pending, shards_ok=answer.shards_ok, shards_total=answer.shards_total, notices=answer.notices)
        self._pending = seen = replace(seen, sightings=results_of(seen, fresh, self._protocol))
        for notice in answer.notices:
            self._notices[notice] = None
        if answer.shards_ok < answer.shards_total and not answer.notices:
            self._notices[f"only {answer.shards_ok} of {answer.shards_total} shards answered {pending.query!r}"] = None
        self._events.append(search_done(seen, answer, self.steps))
        unread = self._pages.unread(seen.sightings)
        if unread and self._reads_pages:
            self._need = NeedPageText(unread)
        else:
            self._show(note)

    def search_failed(self, message: str) -> None:
        """Feed that the search could not be made. The run goes on and says so."""
        pending = self._awaited_search()
        notice = f"the search for {pending.query!r} failed: {message}"
        self._failed_searches += 1
        self._notices[notice] = None
        self._pending = replace(pending, notices=(notice,))
        self._events.append(ErrorEvent(step=self.steps, message=storable(notice)))
        self._show(f"{storable(notice)}. Search again, or answer with what you have.")

    def read(self, pages: Sequence[PageText | VragError]) -> None:
        """Feed the pages that were needed, in that order, each read or with the reason why not."""
        if not isinstance(self._need, NeedPageText) or len(pages) != len(self._need.pages):
            raise VragError(f"the episode waits for {self._need}, not for {len(pages)} pages")
        self._pages.put(self._need.pages, pages)
        self._show()

    def pictured(self, pictures: Sequence[Picture | VragError]) -> None:
        """Feed the pictures that were needed, in that order, each drawn or with the reason why not."""
        if not isinstance(self._need, NeedPictures) or len(pictures) != len(self._need.pictures):
            raise VragError(f"the episode waits for {self._need}, not for {len(pictures)} pictures")
        for request, error in self._showing.put(self._need.pictures, pictures):
            what = "the picture of the question" if request.doc_id == QUESTION else str(request.locator)
            self._notices[f"{what} could not be shown: {storable(str(error))}"] = None
        for sighting in self._pending.sightings if self._pending is not None else ():
            self._memory.saw(sighting, self._showing.drawn)
        self._need = self._ask()

    def judged(self, verdicts: Sequence[Verdict | VragError]) -> None:
        """Feed the verdicts on the claims that were needed, in that order, or the reason why there is none."""
        if not isinstance(self._need, NeedVerdicts) or len(verdicts) != len(self._claims):
            raise VragError(f"the episode waits for {self._need}, not for {len(verdicts)} verdicts")
        for verdict in verdicts:
            if isinstance(verdict, VragError):
                self._notices[NOT_JUDGED.format(why=storable(str(verdict)))] = None
            else:
                self._count(verdict.usage)
        entailed = [None if isinstance(verdict, VragError) else verdict.entailed for verdict in verdicts]
        assert self._drafted is not None
        sentences = judged(self._drafted.sentences, self._claims, entailed)
        self._answer(with_changes(self._drafted, {"sentences": sentences}))

    def expire(self, message: str) -> None:
        """End with what is remembered: the time is up. An answer that waits for its judge is given without."""
        if self._drafted is not None and isinstance(self._need, NeedVerdicts):
            self._notices[NOT_JUDGED.format(why=message)] = None
            self._answer(self._drafted)
        elif not isinstance(self._need, Done):
            self._events.append(ErrorEvent(step=self.steps, message=message))
            self._close(f"No answer: {message}.", RunStatus.DEADLINE)

    def fail(self, message: str, *, engine_limited: bool = False) -> None:
        """End with a terminal error: the run cannot go on. ``engine_limited``: its model takes no such prompt. An
        answer that waits for its judge is given without."""
        if self._drafted is not None and isinstance(self._need, NeedVerdicts):
            self._notices[NOT_JUDGED.format(why=storable(message))] = None
            self._answer(self._drafted)
        elif not isinstance(self._need, Done):
            self._events.append(ErrorEvent(step=self.steps, message=storable(message), terminal=True))
            self._need = Done(RunStatus.ERROR, engine_limited)

    def cancel(self) -> None:
        """End without an answer: nobody waits for one."""
        if not isinstance(self._need, Done):
            self._need = Done(RunStatus.CANCELLED)

    # What the policy's actions do -----------------------------------------------------------------------------

    def _act(self, action: Action) -> None:
        if isinstance(action, AddSearchNode):
            self._search(action)
        elif isinstance(action, SummarizeAndMemorize):
            self._memorize(action)
        elif isinstance(action, Crop):
            self._crop(action)
        else:
            self._finish(action)

    def _search(self, action: AddSearchNode) -> None:
        rules = self._protocol.rules
        if self._pending is not None and self._pending.sightings and rules.must_memorize:
            raise VragError(f"first memorise what node {self._pending.node_id!r} found: use summarize_and_memorize")
        node_id, query = printable_title(action.id), " ".join(action.query.split())
        parents = tuple(parent.strip() for parent in action.parent_ids) or (self.graph.nodes[-1].id,)
        if not rules.names_nodes:
            node_id, parents = f"s{self._searches + 1}", (self.graph.nodes[-1].id,)
        elif not node_id or any(node.id == node_id for node in self.graph.nodes):
            # A title that is taken says as plainly as none that a new node is meant.
            node_id = self.graph.free_id(node_id or query)
        # Refused, if it is, before anything has changed.
        grown = self.graph.add_search(node_id, parents, query)
        if self._pending is not None:
            items = tuple(sighting.remembered(DIRECT_PRIORITY) for sighting in self._pending.sightings)
            self._remember(self._pending, "" if items else NOTHING_LEARNT, items)
            grown = self.graph.add_search(node_id, parents, query)
        self.graph = grown
        picture = self.picture.png if self.picture is not None and self._searches == 0 else None
        self._searches += 1
        self._pending = Observation(node_id, query, ())
        self._need = NeedSearch(query, rules.asks_for or self._config.search_top_k, picture)
        self._events.append(SearchEvent(step=self.steps, node_id=node_id, parent_ids=parents, query=query))

    def _memorize(self, action: SummarizeAndMemorize) -> None:
        if self._pending is None:
            raise VragError("there is nothing to memorise: search first")
        items, notes = remembered(action.memorize, self._pending, self._stamps, action.summarize)
        node_id = self._pending.node_id
        self._remember(self._pending, storable(action.summarize).strip(), items, notes)
        if not self._protocol.evidence.has_pictures:
            # A small model without eyes that does not see its own memorise makes the same search again.
            note = f"Remembered in node {node_id}." if items else f"Nothing of it is remembered in node {node_id}."
            self._turns = (*self._turns, Turn(self._reply, note=note, closes_node=True))

    def _crop(self, action: Crop) -> None:
        """A closer look is a new sighting; at a remembered item, it is a new item of the same node."""
        drawn = self._showing.drawn if self._sees_pictures else None
        source = source_of_crop(action, self._prompt(), self._protocol, drawn)
        closer = closer_look(action, source, self._pages.page_of(source.seen), self._protocol.family.codec)
        if source.item is None:
            self._see_closer(closer)
        else:
            self._remember_closer(closer, source)

    def _see_closer(self, closer: Sighting) -> None:
        seen = self._pending
        if seen is None:
            raise VragError("there is no picture to look at: search first")
        again = next((other for other in seen.sightings if other.region is not None and closer.same_place(other)), None)
        if again is not None:
            raise VragError(f"this part is in view already, as {again.id}: look elsewhere, or go on")
        closer = replace(closer, id=seen.next_id(closer.kind))
        self._pending = replace(seen, sightings=(*seen.sightings, closer))
        self._turn(shown=(closer,))
        self._events.append(crop_event(seen.node_id, closer, self.steps))

    def _remember_closer(self, closer: Sighting, source: CropSource) -> None:
        assert source.item is not None
        node = self.graph.node(source.node_id)
        item = with_changes(source.item, {"box": closer.region, "t_frame": source.t_frame, "quote": ""})
        self.graph = self.graph.memorize(node.id, node.summary, (*node.items, item))
        closer = replace(closer, id=f"{node.id}#{len(node.items) + 1}")
        self._turn(shown=(closer,), note=f"This part is remembered as {closer.id}.")
        self._events.append(crop_event(node.id, closer, self.steps))

    def _finish(self, action: AddAnswerNode) -> None:
        text = storable(action.answer).strip()
        if not text:
            raise VragError("the answer is empty: write the answer, or say that the evidence is not sufficient")
        graph, references = settled(self.graph, self._pending, action)
        if self._protocol.rules.cites_elements:
            text, graph, references = with_cited_elements(text, graph, self._seen())
        named = tuple(parent.strip() for parent in action.parent_ids)
        parents = named if named and self._protocol.rules.names_nodes else (graph.nodes[-1].id,)
        graph = graph.add_answer(parents, text)
        if not references and not action.abstain:
            references = supporting(graph, parents)
        citations = with_values(self._cited(references, graph), self._seen(), text, self.question)
        self.graph = graph
        if self._searches and self._failed_searches == self._searches:
            self.fail(f"no search could be made: {next(iter(self._notices))}")
            return
        sources = sources_of(citations, self._seen(), elements_of(references, graph))
        sentences = () if action.abstain else checked(text, sources, self.question)
        self._pending = None
        if self._config.entailment and sentences:
            if self._has_judge:
                self._claims = claims(self.question, text, sentences, sources, self._config.result_chars)
            else:
                self._notices[NOT_JUDGED.format(why="no language model is loaded here")] = None
        self._end(text, RunStatus.ABSTAINED if action.abstain else RunStatus.ANSWERED, citations, sentences)

    # Memory ---------------------------------------------------------------------------------------------------

    def _remember(
        self, seen: Observation, summary: str, items: tuple[MemoryItem, ...], notes: tuple[str, ...] = ()
    ) -> None:
        self.graph = self.graph.memorize(seen.node_id, summary, items)
        self._history.append(seen)
        self._pending = None
        if self._protocol.rules.rebuilds:
            self._turns = ()
        self._events.append(
            MemorizeEvent(step=self.steps, node_id=seen.node_id, summary=summary, items=items, notes=notes)
        )
        self._share_pixels()

    def _share_pixels(self) -> None:
        pruned = self._memory.share(self.graph, self.steps)
        if pruned is not None:
            self._events.append(pruned)
        self._memorized = True

    def _stamps(self, sighting: Sighting) -> tuple[float, ...]:
        """The times of the frames in which a video was shown; none for a policy that sees no pictures."""
        views = self._protocol.views(sighting) if self._sees_pictures else ()
        return tuple(view.t_frame for view in views if view.t_frame is not None)

    # How steps begin and runs end -----------------------------------------------------------------------------

    def _ask(self) -> Need:
        """The policy's next reply is needed, and before it the pictures that the prompt shows."""
        prompt = self._prompt()
        if self._sees_pictures:
            shown = self._showing.illustrated(prompt)
            if not isinstance(shown, Prompt):
                return NeedPictures(shown)
            prompt = shown
        if self._memorized:
            self._memorized = False
            self._events.append(self._memory.report(self.graph, self._showing.drawn, self.steps, prompt.steps_left))
        return NeedCompletion(prompt)

    def _prompt(self) -> Prompt:
        prompt = Prompt(
            question=self.question,
            graph=self.graph,
            observation=self._pending,
            history=tuple(self._history),
            steps_left=self._steps_left(),
            correction=self._correction,
            searched_out=self._searched_out,
            turns=self._turns,
            allotments=self._memory.allotments,
            with_picture=self.picture is not None,
        )
        return within_limits(prompt, self._protocol)

    def _steps_left(self) -> int:
        left = self._config.max_steps - self.steps
        spent = sum(self.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
        over = self._config.token_budget is not None and spent >= self._config.token_budget
        return min(left, 1) if over else left

    def _turn(self, shown: tuple[Sighting, ...] = (), note: str = "") -> None:
        self._turns = (*self._turns, Turn(self._reply, shown, note))

    def _awaited_search(self) -> Observation:
        if not isinstance(self._need, NeedSearch) or self._pending is None:
            raise VragError(f"the episode waits for {type(self._need).__name__}, not for a search")
        return self._pending

    def _show(self, note: str = "") -> None:
        """Put the words of the pages that were read beside the hits, and ask the policy."""
        if self._pending is not None:
            self._pending = replace(self._pending, sightings=tuple(map(self._pages.beside, self._pending.sightings)))
            for unreadable in (sighting for sighting in self._pending.sightings if sighting.read_error):
                where = f"{unreadable.locator} of {unreadable.title}"
                effect = ", and its picture has no numbers" if self._marks_pictures else ""
                self._notices[f"{where} could not be read{effect}: {unreadable.read_error}"] = None
            if self._reads_pages and self._pending.sightings:
                self._events.append(
                    ReadEvent(step=self.steps, node_id=self._pending.node_id, pages=read_pages(self._pending))
                )
        self._turn(self._pending.sightings if self._pending is not None else (), note)
        self._need = self._ask()

    def _correct(self, message: str, reply: str) -> None:
        self.corrections += 1
        # The refused reply leaves the context: a model that reads its own mistake repeats it.
        self._correction = storable(message)
        self._events.append(
            CorrectionEvent(
                step=self.steps, message=self._correction, reply=reply[:SHOWN_REPLY_CHARS], count=self.corrections
            )
        )

    def _close(self, text: str, status: RunStatus) -> None:
        """Answer in the policy's place, with what is remembered as the evidence to look at."""
        parents = tuple(node.id for node in self.graph.nodes)
        citations = self._cited(supporting(self.graph, parents), self.graph)
        self.graph = self.graph.add_answer(parents, text)
        self._end(text, status, citations)

    def _seen(self) -> tuple[Observation, ...]:
        return (*self._history, *([self._pending] if self._pending is not None else []))

    def _cited(self, references: Sequence[str], graph: MemoryGraph) -> tuple[Citation, ...]:
        form = self._protocol.evidence
        # A policy that sees no pictures quotes what it has read, whatever a model would be given.
        by_quote = form.has_text or not self._sees_pictures
        return cited_places(references, graph, self._seen(), by_quote=by_quote, by_passage=not form.has_pictures)

    def _end(
        self,
        text: str,
        status: RunStatus,
        citations: tuple[Citation, ...],
        sentences: tuple[CheckedSentence, ...] = (),
    ) -> None:
        self._drafted = AnswerEvent(
            step=self.steps,
            answer=text,
            abstained=status is not RunStatus.ANSWERED,
            status=status,
            citations=citations,
            sentences=sentences,
        )
        if self._claims:
            self._need = NeedVerdicts(self._claims)
        else:
            self._answer(self._drafted)

    def _answer(self, answer: AnswerEvent) -> None:
        self.answer = with_changes(answer, {"notices": self.notices})
        self._events.append(self.answer)
        self._need = Done(answer.status)

    def _count(self, usage: Mapping[str, int]) -> None:
        for name, amount in usage.items():
            self.usage[name] = self.usage.get(name, 0) + amount
        if usage:
            self._events.append(UsageEvent(step=self.steps, usage=dict(usage)))
