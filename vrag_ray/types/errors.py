"""The faults that a caller can act on."""

from __future__ import annotations

from collections.abc import Mapping


class VragError(Exception):
    """A fault the caller can act on: the message names the input and the remedy.

    ``status`` is its status over HTTP, ``type`` and ``code`` are its names in the body of that reply, and ``param`` is
    the field of the request at fault: a subclass sets them, and nothing translates an error on its way. The same
    request may succeed after ``retry_after_s`` seconds, where that is set. Errors are pickled between processes, with
    whatever an instance sets.
    """

    status: int = 400
    type: str = "invalid_request_error"
    code: str = "bad_request"
    param: str | None = None
    retry_after_s: int | None = None

    def __init__(self, message: object = "", *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        if param is not None:
            self.param = param
        if code is not None:
            self.code = code


class InvalidError(VragError):
    """A value is of the right shape and still cannot be used; ``param`` names the field."""

    status = 422
    code = "invalid_value"


class NotFoundError(VragError):
    """An id, a page or a time that names nothing; the message says which."""

    status = 404
    type = "not_found_error"
    code = "not_found"


def validation_message(error: Mapping[str, object]) -> str:
    """What is wrong by one of the ``errors()`` of pydantic, in the words of the validator that raised it."""
    if error.get("type") == "json_invalid" and isinstance(place := error.get("loc"), tuple) and place:
        reason = error.get("ctx")
        words = reason.get("error", "") if isinstance(reason, Mapping) else ""
        return f"no JSON from character {place[-1]} on: {words}"
    return str(error["msg"]).removeprefix("Value error, ")
