"""How an endpoint is told what form a reply has to have: each server has a field of its own for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vrag_ray.agent.protocols.reply_form import ReplyForm
from vrag_ray.config import ReplyConstraint

if TYPE_CHECKING:
    from openai import AsyncOpenAI

BY_OWNER = {"llamacpp": ReplyConstraint.GRAMMAR, "vllm": ReplyConstraint.STRUCTURED_OUTPUTS}
"""By ``owned_by`` of the server's models."""
FIELDS = ("response_format", "json_schema", "grammar", "structured_outputs")
"""Names by which a server refuses one of the fields below."""
PROBE_TIMEOUT_S = 10.0


async def constraint_of(client: AsyncOpenAI) -> ReplyConstraint:
    """What the server takes, by the owner that it names of its models; a JSON schema where it does not say."""
    import openai

    try:
        models = await client.with_options(timeout=PROBE_TIMEOUT_S, max_retries=0).models.list()
    except openai.OpenAIError:
        return ReplyConstraint.JSON_SCHEMA
    owners = {model.owned_by for model in models.data}
    return next((kind for owner, kind in BY_OWNER.items() if owner in owners), ReplyConstraint.JSON_SCHEMA)


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
