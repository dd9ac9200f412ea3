"""Faults of a request to the service. No web framework."""

from __future__ import annotations

from vrag_ray.types import VragError


class ConflictError(VragError):
    """The request contradicts something that already exists."""

    status = 409
    code = "conflict"


class OverloadedError(VragError):
    """The server is full; the same request may succeed after ``retry_after_s``."""

    status = 429
    type = "rate_limit_error"
    code = "overloaded"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotReadyError(VragError):
    """A part of the server is not there (yet); ``GET /readyz`` says which and why."""

    status = 503
    type = "server_error"
    code = "not_ready"


class NoAnswerError(NotReadyError):
    """A part did not answer in time: it hangs, or has much to do."""


class ReplicaLostError(NotReadyError):
    """The replica that got the call is gone, with its state."""


class UpstreamError(VragError):
    """The language model behind this server refuses or cannot be reached; its owner has to mend that."""

    status = 502
    type = "server_error"
    code = "upstream"
