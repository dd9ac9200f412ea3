"""Of which family a served model is, read from its own configuration: how it writes boxes, and its patches."""

from __future__ import annotations

import json
from pathlib import Path

from vrag_ray.types import FamilyName, VragError

FAMILY_OF_TYPE = {
    "qwen2_5_vl": FamilyName.QWEN2_5_VL,
    "qwen3_vl": FamilyName.QWEN3_VL,
    "qwen3_vl_moe": FamilyName.QWEN3_VL,
}
"""By ``model_type`` in a checkpoint's ``config.json``."""
CONFIG = "config.json"


def served_family(asked: FamilyName | None, model: str, setting: str) -> FamilyName:
    """The family of ``model``, a folder or a hub id; ``asked`` is what the settings say, None for nothing.

    ``setting`` names where the model is set, for messages. A model whose configuration is not on this machine is
    believed to be of the family asked for; without one its configuration is fetched from the hub. Raises VragError
    where the two differ, and where neither says a family that is known.
    """
    model_type = _model_type(model, fetch=asked is None)
    found = FAMILY_OF_TYPE.get(model_type)
    known = " or ".join(FamilyName)
    if asked is None:
        if found is None:
            why = f"its model_type is {model_type!r}" if model_type else f"its {CONFIG} cannot be read here"
            raise VragError(f"{setting} {model}: {why}, so how it writes boxes is unknown: set agent.family to {known}")
        return found
    if found is not None and found is not asked:
        raise VragError(
            f"agent.family is {asked}, but {setting} {model} is of the family {found} (model_type {model_type!r}): "
            "its boxes would be misread. Leave agent.family out, or serve another model"
        )
    return asked


def _model_type(model: str, *, fetch: bool) -> str:
    """ "" where the configuration cannot be read, or says none."""
    path = _config_file(model, fetch=fetch)
    if path is None:
        return ""
    try:
        config: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VragError(f"the configuration of the model {model} cannot be read: {error}") from error
    return str(config.get("model_type") or "") if isinstance(config, dict) else ""


def _config_file(model: str, *, fetch: bool) -> Path | None:
    folder = Path(model).expanduser()
    if folder.is_dir():
        file = folder / CONFIG
        return file if file.is_file() else None
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    try:
        found = hf_hub_download(model, CONFIG) if fetch else try_to_load_from_cache(model, CONFIG)
    except (OSError, ValueError):
        # Not on the hub, not a name of it, or no way there: the node that serves the model may know it.
        return None
    return Path(found) if isinstance(found, str) else None
