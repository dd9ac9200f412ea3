"""Which class reads which model: by the files of its folder, never by its name."""

from __future__ import annotations

import importlib
from pathlib import Path

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.models.architecture import Architecture
from vrag_ray.embedding.models.text_encoder import is_described, read_description
from vrag_ray.embedding.source import ModelSource
from vrag_ray.types import VragError

CLASSES = {
    "qwen3_vl": "qwen3_vl_embedding:Qwen3VlEmbedding",
    "qwen2_5_vl": "gve:Gve",
    "xlm-roberta": "text_encoder:BgeM3",
    "siglip": "siglip:Siglip",
    "siglip2": "siglip:Siglip2",
    "colqwen2": "colqwen2:ColQwen2",
    "colpali": "colpali:ColPali",
    "colmodernvbert": "colmodernvbert:ColModernVBert",
}
"""By ``model_type``."""
DESCRIBED = "text_encoder:TextEncoder"
"""Where the model's folder has a ``modules.json``."""
KNOWN = (
    "qwen3_vl (Qwen3-VL-Embedding), qwen2_5_vl (GVE), xlm-roberta (bge-m3), siglip, siglip2, colqwen2, colpali, "
    "colmodernvbert, or a text embedder with a modules.json (sentence-transformers)"
)


def is_known(model_type: str, folder: Path) -> bool:
    """Whether a class here reads the model of this ``model_type`` in ``folder``."""
    return model_type in CLASSES or is_described(folder)


def _class_path(source: ModelSource) -> str | None:
    own = CLASSES.get(source.model_type)
    if not is_described(source.folder) or own not in (None, CLASSES["xlm-roberta"]):
        return own
    is_bge_m3 = own is not None and read_description(source.name, source.folder).is_bge_m3
    return own if is_bge_m3 else DESCRIBED


def architecture_of(source: ModelSource, config: SpaceConfig) -> Architecture:
    """Its processor is read, its weights are not. Raises VragError for a model that nothing here reads, and where
    ``config`` asks for what the model was not trained for."""
    path = _class_path(source)
    if path is None:
        raise VragError(
            f"{source.name} is a {source.model_type or 'model of no stated type'} "
            f"({', '.join(source.architectures) or 'no architecture named'}), which is no embedder known here: use one "
            f"of {KNOWN}, or package.module:factory"
        )
    module, _, name = path.partition(":")
    make: type[Architecture] = getattr(importlib.import_module(f"vrag_ray.embedding.models.{module}"), name)
    try:
        architecture = make(source, config)
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise VragError(f"{source.name}: its processor or tokenizer in {source.folder} is unusable: {error}") from error
    _check_dims(architecture, config)
    return architecture


def _check_dims(architecture: Architecture, config: SpaceConfig) -> None:
    if config.dims is None:
        return
    source = architecture.source
    if config.dims > architecture.dim:
        raise VragError(f"{source.name} has vectors of {architecture.dim} dimensions: set `dims` to at most that")
    trained = source.recipe.mrl if source.recipe.mrl is not None else architecture.trained_for_mrl
    stated = source.config.get("is_matryoshka") or source.config.get("matryoshka_dimensions")
    if config.dims < architecture.dim and not (trained or stated):
        raise VragError(
            f"{source.name} ({architecture.kind}) was not trained to be truncated (MRL), and {config.dims} of its "
            f"{architecture.dim} dimensions would rank at random: leave `dims` out; a model that was trained so says "
            '"mrl": true in its vrag_embedding.json'
        )
