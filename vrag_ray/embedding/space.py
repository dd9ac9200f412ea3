"""From a space's settings to its embedder."""

from __future__ import annotations

from vrag_ray.config import Engine, SpaceConfig
from vrag_ray.embedding.model_embedder import ModelEmbedder
from vrag_ray.embedding.models.catalog import architecture_of
from vrag_ray.embedding.runtime import require
from vrag_ray.embedding.source import find_model
from vrag_ray.types import VragError


def model_embedder(config: SpaceConfig) -> ModelEmbedder:
    """The model that ``config`` names, loaded on the engine that it asks for.

    Raises VragError naming the model, what was tried and the remedy.
    """
    for package in ("torch", "transformers"):
        require(package, config.model)
    source = find_model(config.model, config.revision)
    architecture = architecture_of(source, config)
    if config.engine is Engine.VLLM:
        from vrag_ray.embedding.engines.vllm_pooling import VllmEngine

        require("vllm", f"{source.name} by engine: vllm")
        return ModelEmbedder(architecture, VllmEngine(architecture, config), config)
    from safetensors import SafetensorError

    from vrag_ray.embedding.engines.engine import TransformersEngine

    try:
        engine = TransformersEngine(architecture, config)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise VragError(f"the weights of {source.name} in {source.folder} cannot be loaded: {error}") from error
    return ModelEmbedder(architecture, engine, config)
