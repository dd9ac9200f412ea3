"""Faults that have an HTTP status. No web framework."""

from __future__ import annotations

from vrag_ray.index.storage.errors import StorageError, fault_of
from vrag_ray.library.newest import UnreadableError
from vrag_ray.types import NotFoundError, VragError


class ApiError(VragError):
    """A fault with a status of its own. Picklable, because it crosses from one deployment to another."""

    status = 400
    type = "invalid_request_error"
    default_code = "bad_request"

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code or self.default_code


class InvalidError(ApiError):
    """A value is of the right shape and still cannot be used; ``param`` names the field."""

    status = 422
    default_code = "invalid_value"


class ConflictError(ApiError):
    """The request contradicts something that already exists."""

    status = 409
    default_code = "conflict"


class TooLargeError(ApiError):
    """The body is larger than the server takes."""

    status = 413
    default_code = "too_large"


class OverloadedError(ApiError):
    """The server is full; the same request may succeed after ``retry_after_s``."""

    status = 429
    type = "rate_limit_error"
    default_code = "overloaded"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotReadyError(ApiError):
    """A part of the server is not there (yet); ``GET /readyz`` says which and why."""

    status = 503
    type = "server_error"
    default_code = "not_ready"


class NoAnswerError(NotReadyError):
    """A part did not answer in time: it hangs, or has much to do."""


class ReplicaLostError(NotReadyError):
    """The replica that was asked is gone, and whatever it knew."""


class UpstreamError(ApiError):
    """The language model behind this server refuses or cannot be reached; its owner has to mend that."""

    status = 502
    type = "server_error"
    default_code = "upstream"


class DamagedError(ApiError):
    """Stored data failed its check; nothing that the caller sends can mend it."""

    status = 500
    type = "server_error"
    default_code = "damaged"


class StorageRefusedError(ApiError):
    """The server's disk is full or cannot be written or read; its owner has to mend that."""

    status = 503
    type = "server_error"
    default_code = "storage_unavailable"


class StorageFullError(StorageRefusedError):
    """507 Insufficient Storage, RFC 4918."""

    status = 507
    default_code = "storage_full"


def storage_refusal(error: Exception) -> StorageRefusedError | None:
    """``error`` as what the client is told, where it is one that the disk caused; None for any other."""
    fault = fault_of(error)
    if fault is None:
        return None
    said = str(error) if isinstance(error, StorageError) else f"the storage of this server {fault}"
    return (StorageFullError if fault.needs_space else StorageRefusedError)(said)


def status_of(error: VragError) -> int:
    """The HTTP status of any fault of this package."""
    if isinstance(error, ApiError):
        return error.status
    if isinstance(error, UnreadableError):
        return NotReadyError.status
    return 404 if isinstance(error, NotFoundError) else 400
