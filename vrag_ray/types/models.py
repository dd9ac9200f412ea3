"""What the whole package knows of language models: the families it can serve, and what one says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FamilyName(StrEnum):
    """Families of vision-language models that differ in how they cut pictures up and write boxes."""

    QWEN2_5_VL = "qwen2_5_vl"
    QWEN3_VL = "qwen3_vl"


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply of a policy. ``token_ids`` and ``logprobs`` are empty where the policy has no tokens.

    ``reasoning`` holds thoughts that a server reports apart from the text. ``weights`` is the version of the weights
    that spoke, "" where there are none to speak of. ``finish`` is ``stop``, ``length`` or ``content_filter``.
    ``notices`` say what of the request its server did not take.
    """

    text: str
    reasoning: str = ""
    finish: str = "stop"
    weights: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
