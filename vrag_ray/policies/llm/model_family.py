"""What a served model's own configuration says: its family (how it writes boxes, its patches), eyes and context."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.types import FamilyName, VragError
from vrag_ray.types.file_names import expanded

FAMILY_OF_TYPE = {
    "qwen2_5_vl": FamilyName.QWEN2_5_VL,
    "qwen3_vl": FamilyName.QWEN3_VL,
    "qwen3_vl_moe": FamilyName.QWEN3_VL,
}
"""By ``model_type`` in a checkpoint's ``config.json``."""
CONFIG = "config.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
CACHE_VALUE_BYTES = 4
"""Of a key or value that is cached in float32, the widest type."""
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Under which names configurations keep that of the language model."""
_EYES = (
    "vision_config",
    "visual_config",
    "vision_tower",
    "mm_vision_tower",
    "vision_model",
    "visual",
    "image_token_id",
)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """``model_type`` is "" where the configuration cannot be read here; the other facts are then None.

    ``sees``: whether it takes pictures. ``context``: most tokens that it has positions for. ``cache_bytes``: of the
    keys and values of one token in float32.
    """

    model_type: str = ""
    sees: bool | None = None
    context: int | None = None
    cache_bytes: int | None = None

    @property
    def family(self) -> FamilyName | None:
        return FAMILY_OF_TYPE.get(self.model_type)


def model_facts(model: str, *, fetch: bool) -> ModelFacts:
    """Of a folder or a hub id; ``fetch``: its configuration may be had from the hub.

    Raises VragError for a configuration that cannot be read as JSON.
    """
    path = _config_file(model, fetch=fetch)
    if path is None:
        return ModelFacts()
    try:
        config: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VragError(f"the configuration of the model {model} cannot be read: {error}") from error
    if not isinstance(config, dict):
        return ModelFacts()
    model_type = str(config.get("model_type") or "")
    text = next((config[name] for name in _NESTED if isinstance(config.get(name), dict)), config)
    sees = model_type in FAMILY_OF_TYPE or any(config.get(name) not in (None, "") for name in _EYES)
    return ModelFacts(model_type, sees, _number(text, "max_position_embeddings"), _cache_bytes(text))


def require_model(model: str, setting: str) -> None:
    """Raises VragError for a name that is no folder on this machine, and cannot be one of a model hub.

    Asking a hub for it would take its retries, and end in a complaint about something else.
    """
    folder = expanded(model)
    if folder.is_dir() or _HUB_ID.fullmatch(model):
        return
    here = "" if folder.is_absolute() else f" in {Path.cwd()}"
    form = "" if folder.is_absolute() else ", and a hub id has the form org/name"
    raise VragError(f"{setting}: the folder {model} does not exist{here} on this machine{form}")


def served_family(
    family: FamilyName | None, model: str, setting: str, *, shows_pictures: bool = True, folder: str = ""
) -> FamilyName | None:
    """The family of ``model``, a folder or a hub id, or what ``folder`` has a copy of; ``family`` is what the settings
    say, None for nothing.

    ``setting`` names where the model is set, for messages. A model whose configuration is not on this machine is
    believed to be of the family that the settings say; without that its configuration is fetched from the hub. None
    where the model is shown no pictures, so that it writes no boxes, and neither says a family.

    Raises VragError where the two differ, and where it is shown pictures and neither says a family that is known.
    """
    place = folder or model
    facts = model_facts(place, fetch=family is None)
    known = " or ".join(FamilyName)
    if family is None:
        if facts.family is None and shows_pictures:
            kind = f"its model_type is {facts.model_type!r}"
            missing = "" if expanded(place).is_dir() else f"there is no such folder in {Path.cwd()}, and "
            why = kind if facts.model_type else f"{missing}its {CONFIG} cannot be read here"
            raise VragError(
                f"{setting} {model}: {why}, so how it writes boxes is unknown: set agent.family to {known}, or "
                "agent.evidence to text, where it is shown no pictures"
            )
        return facts.family
    if facts.family is not None and facts.family is not family:
        raise VragError(
            f"agent.family is {family}, but {setting} {model} is of the family {facts.family} (model_type "
            f"{facts.model_type!r}): its boxes would be misread. Leave agent.family out, or serve another model"
        )
    return family


def _number(config: dict[str, object], name: str) -> int | None:
    value = config.get(name)
    return value if isinstance(value, int) and value > 0 else None


def _cache_bytes(text: dict[str, object]) -> int | None:
    layers, heads = _number(text, "num_hidden_layers"), _number(text, "num_attention_heads")
    hidden = _number(text, "hidden_size")
    width = _number(text, "head_dim") or (hidden // heads if hidden and heads else None)
    if layers is None or heads is None or width is None:
        return None
    return 2 * layers * (_number(text, "num_key_value_heads") or heads) * width * CACHE_VALUE_BYTES


def _config_file(model: str, *, fetch: bool) -> Path | None:
    folder = expanded(model)
    if folder.is_dir():
        file = folder / CONFIG
        return file if file.is_file() else None
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    try:
        path = hf_hub_download(model, CONFIG) if fetch else try_to_load_from_cache(model, CONFIG)
    except (OSError, ValueError):
        # Not on the hub, not a name of it, or no way there: the node that serves the model may know it.
        return None
    return Path(path) if isinstance(path, str) else None
