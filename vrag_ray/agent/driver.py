"""The asyncio driver of an episode: it does the IO that the episode asks for, within a deadline."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TypeVar

from vrag_ray.agent.chat import QUESTION, Picture, PictureRequest, QuestionPicture
from vrag_ray.agent.delta_buffer import DeltaBuffer
from vrag_ray.agent.entailment import Claim, Verdict
from vrag_ray.agent.episode import Episode
from vrag_ray.agent.events import ErrorEvent, Event, PictureRef, StartEvent, stamped
from vrag_ray.agent.images.element_marks import with_marks
from vrag_ray.agent.needs import Done, NeedCompletion, NeedPageText, NeedPictures, NeedSearch, NeedVerdicts
from vrag_ray.agent.ports import EvidenceSource, Judge, Policy, PromptRefusedError
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.fitting import resized
from vrag_ray.types import Query, VragError
from vrag_ray.types.filters import SearchFilter

__all__ = ["EvidenceSource", "Policy", "Run", "RunRecord"]

logger = logging.getLogger(__name__)
T = TypeVar("T")
JUDGED_AT_ONCE = 4
"""Sentences of one answer: they share their source, and the model others' runs."""


class Run:
    """One question answered once. ``clock`` gives seconds that only ever grow; the agent reads no other clock."""

    def __init__(
        self,
        run_id: str,
        question: str,
        *,
        policy: Policy,
        source: EvidenceSource,
        config: AgentConfig,
        clock: Callable[[], float],
        agent: str = "extractive",
        filter: SearchFilter | None = None,
        protocol: WireProtocol | None = None,
        picture: QuestionPicture | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.run_id = run_id
        self.agent = agent
        self._policy = policy
        self._source = source
        self._config = config
        self._clock = clock
        self._filter = filter
        self._episode = Episode(
            question,
            config,
            protocol or GraphProtocol(),
            reads_pages=policy.reads_pages,
            sees_pictures=policy.sees_pictures,
            picture=picture,
            has_judge=judge is not None,
        )
        self._judge = judge
        self._judging = asyncio.Semaphore(JUDGED_AT_ONCE)
        self._picture = picture
        self._events: list[Event] = []
        self._deltas = DeltaBuffer()
        self._speaking = 1
        self._started: float | None = None
        self._total = 0.0
        self._spent = {"policy": 0.0, "search": 0.0, "read": 0.0}

    async def events(self) -> AsyncGenerator[Event]:
        """What happens, as it happens; ends after one ``answer`` or one terminal ``error``.

        To cancel, close the generator or cancel the task that reads it: what is under way is cancelled with it.
        """
        with self._started_once():
            yield self._stamp(self._start_event())
            while not isinstance(self._episode.need, Done):
                if isinstance(self._episode.need, NeedCompletion):
                    self._speaking = self._episode.steps + 1
                    async with aclosing(self._spoken(asyncio.create_task(self._advance()))) as spoken:
                        async for event in spoken:
                            yield self._stamp(event)
                else:
                    await self._advance()
                # All are recorded before the first is handed out: the reader may leave in between.
                for event in [self._stamp(event) for event in self._episode.drain()]:
                    yield event

    async def finish(self) -> RunRecord:
        """Run to the end, for whom the record is enough.

        To cancel, cancel the task that waits: what is under way is cancelled with it.
        """
        async with aclosing(self.events()) as events:
            async for _ in events:
                pass
        return self.record()

    def record(self) -> RunRecord:
        """The finished run. Raises ``VragError`` while it goes on."""
        if not isinstance(self._episode.need, Done):
            raise VragError(f"run {self.run_id} is not over: read its events to the end first")
        answer = self._episode.answer
        errors = [event.message for event in self._events if isinstance(event, ErrorEvent) and event.terminal]
        return RunRecord(
            run_id=self.run_id,
            question=self._episode.question,
            picture=self._picture_ref,
            agent=self.agent,
            status=self._episode.need.status,
            answer=answer.answer if answer is not None else "",
            abstained=answer.abstained if answer is not None else False,
            citations=answer.citations if answer is not None else (),
            sentences=answer.sentences if answer is not None else (),
            notices=self._episode.notices,
            error=errors[0] if errors else "",
            engine_limited=self._episode.need.engine_limited,
            graph=self._episode.graph,
            steps=self._episode.steps,
            corrections=self._episode.corrections,
            events=tuple(self._events),
            timings=Timings(total=self._total, **self._spent),
            usage=self._episode.usage,
        )

    @contextmanager
    def _started_once(self) -> Iterator[None]:
        if self._started is not None:
            raise VragError(f"run {self.run_id} has been started already: it can be run once")
        self._started = self._clock()
        try:
            yield
        finally:
            self._episode.cancel()
            self._total = self._elapsed()

    def _start_event(self) -> StartEvent:
        return StartEvent(
            run_id=self.run_id,
            question=self._episode.question,
            agent=self.agent,
            max_steps=self._config.max_steps,
            picture=self._picture_ref,
        )

    @property
    def _picture_ref(self) -> PictureRef | None:
        sent = self._picture
        return PictureRef(sha256=sent.sha256, size=sent.size) if sent is not None else None

    async def _advance(self) -> None:
        """Serve one need, or end the run because the time is up or the policy is gone.

        What waits longer than the run may take is cancelled, and the run ends.
        """
        try:
            async with asyncio.timeout(self._left()):
                await self._attempt()
        except TimeoutError:
            self._expire()

    async def _attempt(self) -> None:
        """Serve one need, or end the run because the time was up before or the policy is gone."""
        if self._left() <= 0:
            self._expire()
            return
        try:
            await self._serve()
        except TimeoutError:
            logger.exception("run %s: a time limit below the run's own", self.run_id)
            self._episode.fail("a part of the system did not reply in time")
        except VragError as error:
            self._episode.fail(str(error), engine_limited=isinstance(error, PromptRefusedError))
        except Exception as error:
            # A fault of a policy or source: the reader of the events gets an end, the log gets the trace.
            logger.exception("run %s failed", self.run_id)
            self._episode.fail(f"internal error ({type(error).__name__})")

    def _left(self) -> float:
        return self._config.deadline_s - self._elapsed()

    def _expire(self) -> None:
        self._episode.expire(f"the deadline of {self._config.deadline_s:g} s has passed")

    async def _spoken(self, work: asyncio.Task[None]) -> AsyncGenerator[Event]:
        """What the policy says while ``work`` goes on, as it comes. Ends with ``work``."""
        work.add_done_callback(self._deltas.over)
        try:
            while not work.done():
                await self._deltas.gathered(work)
                for event in self._deltas.take(self._speaking):
                    yield event
            # What came while the reader was busy with the last of them.
            for event in self._deltas.take(self._speaking):
                yield event
            work.result()
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    async def _serve(self) -> None:
        need = self._episode.need
        if isinstance(need, NeedCompletion):
            with self._timed("policy"):
                completion = await self._policy.complete(need.prompt, self._deltas.say)
            self._episode.completed(completion, streamed=self._deltas.thoughts_sent)
            self._deltas.thoughts_sent = False
        elif isinstance(need, NeedSearch):
            try:
                with self._timed("search"):
                    query = Query(need.query, need.picture)
                    answer = await self._source.retriever.search([query], top_k=need.top_k, filter=self._filter)
            except VragError as error:
                self._episode.search_failed(str(error))
            else:
                self._episode.searched(answer)
        elif isinstance(need, NeedPageText):
            with self._timed("read"):
                pages = await self._each(self._source.pages.page_texts(need.pages), len(need.pages))
            self._episode.read(pages)
        elif isinstance(need, NeedPictures):
            with self._timed("read"):
                pictures = await self._pictures(need.pictures)
            self._episode.pictured(pictures)
        elif isinstance(need, NeedVerdicts):
            with self._timed("policy"):
                verdicts = await asyncio.gather(*map(self._verdict, need.claims))
            self._episode.judged(verdicts)

    async def _verdict(self, claim: Claim) -> Verdict | VragError:
        assert self._judge is not None, "an episode asks for verdicts where there is a judge"
        async with self._judging:
            try:
                return await self._judge.judge(claim)
            except VragError as error:
                return error

    async def _pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        """The question's own picture is at hand; all others are the source's."""
        unmarked = [request.unmarked for request in requests if request.doc_id != QUESTION]
        drawn = iter(await self._each(self._source.pages.pictures(unmarked), len(unmarked)) if unmarked else ())
        return [
            await self._question_picture(request)
            if request.doc_id == QUESTION
            else await self._marked(next(drawn), request)
            for request in requests
        ]

    async def _marked(self, picture: Picture | VragError, request: PictureRequest) -> Picture | VragError:
        if request.marks is None or isinstance(picture, VragError):
            return picture
        return await asyncio.to_thread(with_marks, picture, request)

    async def _question_picture(self, request: PictureRequest) -> Picture | VragError:
        assert self._picture is not None, "an episode asks for the picture that it was given"
        size = (request.patch, request.min_pixels, request.max_pixels)
        try:
            png, fitted = await asyncio.to_thread(resized, self._picture.png, *size)
        except (OSError, ValueError, VragError) as error:
            return VragError(f"it cannot be resized: {error}")
        return Picture(png, fitted)

    async def _each(self, replies: Awaitable[Sequence[T | VragError]], count: int) -> Sequence[T | VragError]:
        """The result of each of ``count`` requests; a source that fails as a whole fails for each."""
        try:
            return await replies
        except VragError as error:
            return [error] * count

    def _stamp(self, event: Event) -> Event:
        done = stamped(event, len(self._events), self._elapsed())
        self._events.append(done)
        return done

    def _elapsed(self) -> float:
        return self._clock() - self._started if self._started is not None else 0.0

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        begun = self._clock()
        try:
            yield
        finally:
            self._spent[part] += self._clock() - begun
