"""How an endpoint is told what form a reply has to have: each server has a field of its own for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.config import ReplyConstraint
from vrag_ray.policies.llm.endpoint_quirks import KNOWN_SERVERS

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PROBE_TIMEOUT_S = 10.0


async def constraint_of(client: AsyncOpenAI) -> ReplyConstraint:
    """What the server takes, by the owner that it names of its models; a JSON schema where it does not say."""
    import openai
    from httpx import Response

    try:
        reply = await client.with_options(timeout=PROBE_TIMEOUT_S, max_retries=0).get("/models", cast_to=Response)
        listed: object = reply.json()
    except (openai.OpenAIError, ValueError):
        return ReplyConstraint.JSON_SCHEMA
    models = listed.get("data") if isinstance(listed, dict) else None
    owners = {model.get("owned_by") for model in models or () if isinstance(model, dict)}
    known = (server.constraint for server in KNOWN_SERVERS if server.owner in owners)
    return next(known, ReplyConstraint.JSON_SCHEMA)


def constraint_fields(kind: ReplyConstraint, form: ReplyForm) -> Mapping[str, object]:
    """Fields of a chat completion's request; none where the server has no words for ``form``."""
    if kind is ReplyConstraint.GRAMMAR:
        return {"grammar": form.grammar()}
    if kind is ReplyConstraint.STRUCTURED_OUTPUTS:
        return {"structured_outputs": {"grammar": form.grammar()}}
    if kind is ReplyConstraint.JSON_SCHEMA and form.schema is not None:
        schema = {"name": "reply", "schema": form.schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {}
