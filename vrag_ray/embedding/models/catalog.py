"""Which class reads which model: by what its config.json says it is, never by its name."""

from __future__ import annotations

import importlib

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.models.architecture import Architecture
from vrag_ray.embedding.source import ModelSource
from vrag_ray.types import VragError

CLASSES = {
    "qwen3_vl": "qwen3_vl_embedding:Qwen3VlEmbedding",
    "qwen2_5_vl": "gve:Gve",
    "xlm-roberta": "bge_m3:BgeM3",
    "siglip": "siglip:Siglip",
    "siglip2": "siglip:Siglip2",
    "colqwen2": "colqwen2:ColQwen2",
    "colpali": "colpali:ColPali",
    "colmodernvbert": "colmodernvbert:ColModernVBert",
}
"""By ``model_type``."""
KNOWN = (
    "qwen3_vl (Qwen3-VL-Embedding), qwen2_5_vl (GVE), xlm-roberta (bge-m3), siglip, siglip2, colqwen2, colpali, "
    "colmodernvbert"
)


def is_known(source: ModelSource) -> bool:
    return source.model_type in CLASSES


def architecture_of(source: ModelSource, config: SpaceConfig) -> Architecture:
    """Its processor is read, its weights are not. Raises VragError for a model that nothing here reads, and where
    ``config`` asks for what the model was not trained for."""
    if not is_known(source):
        raise VragError(
            f"{source.name} is a {source.model_type or 'model of no stated type'} "
            f"({', '.join(source.architectures) or 'no architecture named'}), which is no embedder known here: use one "
            f"of {KNOWN}, or package.module:factory"
        )
    module, _, name = CLASSES[source.model_type].partition(":")
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
