"""Replies of the gateway: parsed, or raised as what they are."""

from __future__ import annotations

from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from vrag_ray.client.schemas import ErrorBody
from vrag_ray.types import VragError

M = TypeVar("M", bound=BaseModel)


class UnreachableError(VragError):
    """No server answers at the address, or the connection broke for good."""


class ServerError(VragError):
    """A reply that is not a success; ``param`` names the field at fault, ``code`` is stable for programs."""

    def __init__(self, status: int, message: str, *, code: str = "", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


def unreachable(base_url: str, error: httpx.TransportError) -> UnreachableError:
    """What a failed connection is to the caller."""
    reason = str(error) or type(error).__name__
    return UnreachableError(f"no server answers at {base_url} ({reason}): start one with `vrag serve`")


def check(reply: httpx.Response) -> None:
    """Raise ServerError unless the reply is a success."""
    if reply.is_success:
        return
    try:
        detail = ErrorBody.model_validate_json(reply.content).error
    except ValidationError:
        raise ServerError(
            reply.status_code, f"{reply.request.url} answered {reply.status_code}, and not as a vrag server does"
        ) from None
    raise ServerError(reply.status_code, detail.message, code=detail.code, param=detail.param)


def parsed(reply: httpx.Response, model: type[M]) -> M:
    """The body as ``model``. Raises ServerError where it is something else."""
    try:
        return model.model_validate_json(reply.content)
    except ValidationError as error:
        raise ServerError(
            reply.status_code,
            f"{reply.request.url} answered with something else than a {model.__name__}: is it a vrag server?",
        ) from error
