"""Following a run while it goes on: its events are read in a thread of their own and shown by the page's.

The page's thread must come back to Streamlit often, because only there it learns that somebody pressed a button.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest
from vrag_ray.types import VragError
from vrag_ray.views.run_view import RunView

TICK_S = 0.1


@dataclass(slots=True)
class Watched:
    """A run as this session knows it. ``request`` is there where this session started it, ``record`` at its end."""

    run_id: str
    request: RunRequest | None = None
    events: list[Event] = field(default_factory=list)
    view: RunView = field(default_factory=RunView)
    record: RunRecord | None = None

    def take(self, event: Event) -> None:
        self.events.append(event)
        self.view = self.view.after(event)


def events_of(client: Client, run: Watched) -> Iterable[Event]:
    """What has not been seen of ``run``; starts it where nothing has and this session has its request."""
    if run.request is not None and not run.events:
        return client.events(run.request)
    return client.follow(run.run_id, after=run.events[-1].seq if run.events else -1)


def watch(client: Client, run: Watched, show: Callable[[RunView], None], tick: Callable[[], None]) -> None:
    """Take in events until the run is over; ``show`` what there is now after each lot, ``tick`` often.

    Raises VragError where the gateway is lost. Whatever ends this early leaves ``run`` as far as it was shown: another
    call goes on there.
    """
    inbox: queue.SimpleQueue[Event | VragError | None] = queue.SimpleQueue()
    given_up = threading.Event()

    def read() -> None:
        try:
            for event in events_of(client, run_as_it_was):
                inbox.put(event)
                if given_up.is_set():
                    return
            inbox.put(None)
        except VragError as error:
            inbox.put(error)

    run_as_it_was = Watched(run.run_id, run.request, list(run.events[-1:]))
    threading.Thread(target=read, name=f"read-{run.run_id[:8]}", daemon=True).start()
    try:
        while True:
            arrived = _arrived(inbox)
            before = len(run.events)
            ended = False
            for event in arrived:
                if isinstance(event, VragError):
                    raise event
                if event is None:
                    ended = True
                else:
                    run.take(event)
            if len(run.events) > before:
                show(run.view)
            if ended:
                return
            tick()
    finally:
        given_up.set()


def _arrived(inbox: queue.SimpleQueue[Event | VragError | None]) -> list[Event | VragError | None]:
    """All that is there, after a wait of ``TICK_S`` at most: tokens come faster than a page can be drawn."""
    try:
        arrived = [inbox.get(timeout=TICK_S)]
    except queue.Empty:
        return []
    while not inbox.empty():
        arrived.append(inbox.get_nowait())
    return arrived
