"""Reading server-sent events of a run, without IO: lines go in, typed events come out."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic import ValidationError

from vrag_ray.agent.events import EVENT, AnswerEvent, ErrorEvent, Event
from vrag_ray.types import VragError


@dataclass(slots=True)
class RunFollower:
    """The state of one run's stream over any number of connections.

    ``last_event_id`` is what the next connection must send; None until an event with an id came. Events that were
    seen already are dropped, so that a reconnect repeats nothing.
    """

    run_id: str
    last_event_id: int | None = None
    finished: bool = False
    _id: str = ""
    _data: list[str] = field(default_factory=list)

    def begin_connection(self) -> None:
        """Forget what a broken connection left half-sent."""
        self._id = ""
        self._data.clear()

    def feed(self, line: str) -> Event | None:
        """One line without its end; an event where the line completes one. Raises VragError for an unreadable one."""
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self._id = value
            elif name == "data":
                self._data.append(value)
            return None
        data, event_id = "\n".join(self._data), self._id
        self.begin_connection()
        return self._take(data, event_id) if data else None

    def _take(self, data: str, event_id: str) -> Event | None:
        if not event_id:
            # Sent where the server lost sight of the run: it may still go on, so the stream is requested again.
            return None
        try:
            event = EVENT.validate_json(data)
            number = int(event_id)
        except (ValidationError, ValueError) as error:
            raise VragError(
                f"run {self.run_id}: the server sent an event that this client cannot read: is it of another version?"
            ) from error
        if self.last_event_id is not None and number <= self.last_event_id:
            return None
        self.last_event_id = number
        self.finished = isinstance(event, AnswerEvent) or (isinstance(event, ErrorEvent) and event.terminal)
        return event
