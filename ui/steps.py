"""The steps of a run on screen, one block each, brought up to date as its events come."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Literal

from ui.inert import inert, plain
from ui.pictures import PAGE_DPI, Pictures, Shot, shot_of
from ui.words import clock, step_title, where
from vrag_ray.agent.events import (
    BudgetEvent,
    CorrectionEvent,
    CropEvent,
    ErrorEvent,
    Event,
    MaxStepsEvent,
    MemorizeEvent,
    PruneEvent,
    ReadEvent,
    SearchDoneEvent,
    SearchEvent,
)
from vrag_ray.types import Box, VragError
from vrag_ray.views.graph_picture import megapixels
from vrag_ray.views.run_view import RunView, Step, StepState
from vrag_ray.views.words import counted

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

THUMBNAIL_PX, CROP_PX = 104, 320
_STATES: dict[StepState, Literal["running", "complete", "error"]] = {
    StepState.RUNNING: "running",
    StepState.DONE: "complete",
    StepState.REFUSED: "error",
    StepState.FAILED: "error",
}


class Gallery:
    """Puts pictures into places on the page, several being fetched at once, when ``fill`` finds that they have come."""

    def __init__(self, pictures: Pictures) -> None:
        self._pictures = pictures
        self._coming: list[tuple[Future[bytes], Callable[[bytes], None], DeltaGenerator]] = []

    def put(self, place: DeltaGenerator, shot: Shot, show: Callable[[bytes], None]) -> None:
        self._coming.append((self._pictures.later(shot), show, place))

    def finish(self) -> None:
        """Wait for all of them."""
        wait([coming for coming, _, _ in self._coming])
        self.fill()

    def fill(self) -> None:
        """Show what has come."""
        still = []
        for coming, show, place in self._coming:
            if not coming.done():
                still.append((coming, show, place))
                continue
            try:
                show(coming.result())
            except VragError as error:
                place.caption(f"No picture: {plain(str(error))}")
        self._coming = still


class StepsPanel:
    """The blocks of a run, ``opened`` or closed at first. ``show`` adds what is new; views of one run come in order."""

    def __init__(self, container: DeltaGenerator, gallery: Gallery, *, opened: bool) -> None:
        self._container = container
        self._gallery = gallery
        self._opened = opened
        self._blocks: list[_Block] = []
        self._shown: list[Step] = []

    def show(self, view: RunView) -> None:
        for at, step in enumerate(view.steps):
            if at == len(self._blocks):
                self._blocks.append(_Block(self._container, self._gallery, opened=self._opened))
                self._shown.append(Step(-1, 0.0, 0.0))
            if self._shown[at] is not step:
                self._blocks[at].show(step)
                self._shown[at] = step


class _Block:
    def __init__(self, container: DeltaGenerator, gallery: Gallery, *, opened: bool) -> None:
        self._gallery = gallery
        self._opened = opened
        self._status = container.status("…", expanded=opened)
        self._speech = self._status.empty()
        self._events_shown = 0
        self._speech_shown = ""

    def show(self, step: Step) -> None:
        # Said again each time: an update without it closes the block.
        self._status.update(label=_label(step), state=_STATES[step.state], expanded=self._opened)
        speech = step.thoughts or step.reply
        if speech != self._speech_shown:
            self._speech_shown = speech
            # What a model says on the way is data: shown as it is, without any markup.
            self._speech.text(speech[-4000:])
        for event in step.events[self._events_shown :]:
            self._show(event)
        self._events_shown = len(step.events)

    def _show(self, event: Event) -> None:
        match event:
            case SearchEvent():
                self._status.markdown(f"**Search** {plain(event.query)}")
            case SearchDoneEvent():
                self._results(event)
            case ReadEvent():
                self._read(event)
            case CropEvent():
                self._crop(event)
            case MemorizeEvent():
                self._status.markdown(f"**Remember** {inert(event.summary)}")
                for note in event.notes:
                    self._status.caption(plain(note))
            case PruneEvent():
                names = ", ".join(f"{picture.node_id} picture {picture.index + 1}" for picture in event.dropped)
                self._status.caption(f"Dropped from the context: {plain(names)}")
            case BudgetEvent():
                self._budget(event)
            case CorrectionEvent():
                self._status.warning(f"Refused ({event.count}): {plain(event.message)}")
            case ErrorEvent():
                self._status.error(plain(event.message))
            case MaxStepsEvent():
                self._status.warning(f"All {event.max_steps} steps are used up: the next reply is the answer")
            case _:
                pass

    def _results(self, event: SearchDoneEvent) -> None:
        count = len(event.results)
        self._status.caption(f"{count} found, {event.shards_ok} of {event.shards_total} shards" if count else "Nothing")
        for notice in event.notices:
            self._status.warning(plain(notice))
        row = self._status.container(horizontal=True, gap="small")
        for result in event.results:
            cell = row.container(width=THUMBNAIL_PX + 24)
            slot = cell.empty()
            name = f"{result.title}, {where(result)}"
            shot = shot_of(result)
            if shot is None:
                slot.caption("text")
            else:
                slot.skeleton(height=140, width=THUMBNAIL_PX)
                self._gallery.put(slot, shot, _shower(slot, f"Thumbnail of {name}", THUMBNAIL_PX))
            cell.caption(f"{plain(name)} · {result.score:.3f}")

    def _read(self, event: ReadEvent) -> None:
        for page in event.pages:
            amount = f"{page.words} words" if page.words else f"{page.characters} characters"
            self._status.caption(f"Read {plain(page.title)}, {where(page)}: {plain(page.error) or amount}")

    def _crop(self, event: CropEvent) -> None:
        place = event.place
        self._status.markdown(f"**Look closer** {plain(place.title)}, {where(place)}")
        shot = shot_of(place, PAGE_DPI * 1.5)
        if shot is not None:
            slot = self._status.empty()
            if shot.page is not None and place.bbox is not None:
                shot = Shot(shot.doc_id, shot.page, None, shot.dpi, Box(*place.bbox))
            self._gallery.put(slot, shot, _shower(slot, f"Region of {place.title}, {where(place)}", CROP_PX))
        if event.text:
            self._status.text(event.text[:600])

    def _budget(self, event: BudgetEvent) -> None:
        tokens = (
            f", {event.tokens_before} visual tokens before, {event.tokens_after} after" if event.tokens_after else ""
        )
        self._status.caption(
            f"{counted(len(event.kept), 'picture')} kept within {megapixels(event.total_pixels)}{tokens}; "
            f"{event.steps_left} steps left"
        )


def _label(step: Step) -> str:
    tokens = sum(step.usage.values())
    parts = [plain(step_title(step.events)[:100]), f"{max(0.0, step.ended - step.begun):.1f} s"]
    return " · ".join([*parts, f"{tokens} tokens"] if tokens else parts)


def _shower(slot: DeltaGenerator, alt: str, width: int) -> Callable[[bytes], None]:
    def show(png: bytes) -> None:
        slot.image(png, width=width, alt=alt)

    return show


def run_line(view: RunView) -> str:
    """How long and how far a run is, for under its steps."""
    tokens = sum(view.usage.values())
    steps = view.steps[-1].number if view.steps else 0
    progress = f"{clock(view.seconds)} · {steps} of {view.max_steps} steps"
    return f"{progress} · {tokens} tokens" if tokens else progress
