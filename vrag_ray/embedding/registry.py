"""From a setting to an embedder, or to a plain statement of why there is none."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.config import EmbedderConfig, SpaceConfig
from vrag_ray.config.embedding import MINILM
from vrag_ray.embedding.base import Embedder, Modality
from vrag_ray.embedding.minilm.weights import REPOSITORY, WeightsError, load_weights
from vrag_ray.embedding.models.catalog import CLASSES
from vrag_ray.embedding.source import CONFIG_FILE
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.dotted_path import load_object

KNOWN = (
    "minilm (all-MiniLM-L6-v2)",
    "a folder with its weights",
    "none (words only)",
    "a hub id (owner/name) or a folder of a text embedder (docs/embedding.md)",
)
_OF_OTHER_MODELS = ("revision", "engine", "dtype", "dims", "max_pixels", "max_frames", "instruction", "token_pooling")
"""Settings of a space that ``minilm`` has no use for."""
AVAILABLE = f"{', '.join(KNOWN)}, or package.module:factory"
MEMBERS = ("id", "dim", "multi_vector", "modalities", "pictures", "readable", "embed_passages", "embed_queries")
"""Of ``Embedder``, in the order a reader would write them."""


@dataclass(frozen=True, slots=True)
class LoadedEmbedder:
    """``embedder`` is ``None`` when search can only be lexical; ``notice`` then says why, for users to see."""

    embedder: Embedder | None
    notice: str = ""


def load_embedder(config: EmbedderConfig) -> LoadedEmbedder:
    """The embedder that ``config.name`` asks for.

    ``minilm`` without trustworthy weights is lexical-only with a notice; a name or factory that cannot work is a
    ``VragError``, because it is a mistake in the configuration and not a state of the machine.
    """
    if config.name == "none":
        return LoadedEmbedder(None, "lexical search only: embedder.name is none")
    if config.name == "minilm":
        return _load_minilm(config)
    if _is_model(config.name):
        return LoadedEmbedder(_text_model(config))
    return LoadedEmbedder(_from_factory(config.name, config, "embedder.name"))


def space_embedder(config: SpaceConfig) -> Embedder:
    """The embedder of a space: ``config.model`` is ``minilm``, a hub id, a folder, or ``package.module:factory``,
    whose factory is called with ``config``.

    The config.json of a model alone decides which class reads it. Raises VragError that names the model, what was tried
    and the remedy: not found offline, an architecture unknown here or to the engine, a package not installed, a
    dimension, instruction or pixel limit that the model was not trained for.
    """
    if ":" in config.model and not Path(config.model).expanduser().is_dir():
        return _from_factory(config.model, config, "spaces: model")
    if config.model == MINILM:
        return _minilm_of_space(config)
    from vrag_ray.embedding.space import model_embedder

    return model_embedder(config)


def model_sees(name: str) -> bool:
    """Whether ``name`` is a hub id or a folder of a model that takes pictures. Its weights are not read.

    Raises VragError where a hub id cannot be had, or its processor cannot be read.
    """
    if ":" in name or not _is_model(name):
        return False
    from vrag_ray.embedding.models.catalog import architecture_of
    from vrag_ray.embedding.runtime import require
    from vrag_ray.embedding.source import find_model

    if name == REPOSITORY:
        return False
    for package in ("torch", "transformers"):
        require(package, name)
    return Modality.PICTURE in architecture_of(find_model(name), SpaceConfig(model=name)).modalities


def named_embedder(name: str, base: EmbedderConfig) -> EmbedderConfig:
    """``base`` with the embedder that a program names: by our name, its name on the hub, a folder of its weights, or
    a factory.

    Raises VragError where ``name`` is none of these or has no weights: another model is never taken in its place.
    """
    folder = Path(name).expanduser()
    if name in ("minilm", REPOSITORY, REPOSITORY.rpartition("/")[2]):
        config = with_changes(base, {"name": "minilm"})
    elif name == "none" or ":" in name or _is_model(name):
        config = with_changes(base, {"name": name})
    elif folder.is_dir():
        config = with_changes(base, {"name": "minilm", "weights_dir": str(folder)})
    else:
        raise VragError(f"there is no embedding model {name!r} here, nor such a folder: use {AVAILABLE}")
    if config.name == "minilm":
        try:
            load_weights(config.weights_dir)
        except WeightsError as error:
            raise VragError(
                f"the embedding model {name!r} cannot be loaded: {error}; available: {AVAILABLE}"
            ) from error
    elif _is_model(config.name):
        _text_model(config)
    elif config.name != "none":
        _from_factory(config.name, config, "embedder.name")
    return config


def _load_minilm(config: EmbedderConfig) -> LoadedEmbedder:
    from vrag_ray.embedding.minilm.text import TextEmbedder

    try:
        weights = load_weights(config.weights_dir)
    except WeightsError as error:
        return LoadedEmbedder(None, f"lexical search only: {error}")
    return LoadedEmbedder(TextEmbedder(weights, threads=config.threads))


def _minilm_of_space(config: SpaceConfig) -> Embedder:
    """Raises VragError for a setting that it does not take, and where its weights are missing."""
    from vrag_ray.embedding.minilm.text import TextEmbedder

    foreign = [name for name in _OF_OTHER_MODELS if getattr(config, name) != SpaceConfig.model_fields[name].default]
    if foreign:
        raise VragError(f"{MINILM} takes no {foreign[0]}: leave it out of the space")
    try:
        weights = load_weights(None)
    except WeightsError as error:
        raise VragError(f"{MINILM}, the model of a space, cannot be loaded: {error}") from error
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return TextEmbedder(weights, threads=max(1, cpus // config.actors))


def _is_model(name: str) -> bool:
    """A hub id, or a folder whose model has a class here; minilm's own folder is none, since it runs on ONNX."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return ":" not in name and name.count("/") == 1 and not name.startswith(("/", ".", "~"))
    try:
        config: object = json.loads((folder / CONFIG_FILE).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") in CLASSES


def _text_model(config: EmbedderConfig) -> Embedder:
    from vrag_ray.embedding.space import model_embedder

    embedder = model_embedder(SpaceConfig(model=config.name, device=config.device))
    if Modality.TEXT not in embedder.modalities or embedder.multi_vector:
        raise VragError(
            f"embedder.name is {config.name!r}, which gives no single vectors of texts: name it under `spaces` instead"
        )
    return embedder


def _from_factory(name: str, config: EmbedderConfig | SpaceConfig, setting: str) -> Embedder:
    embedder = load_object(name, setting, KNOWN, "factory")(config)
    if not isinstance(embedder, Embedder):
        lacking = ", ".join(member for member in MEMBERS if not hasattr(embedder, member))
        raise VragError(
            f"{setting} is {name!r}, but it made a {type(embedder).__name__}, which lacks {lacking}: "
            "see vrag_ray.embedding.base.Embedder"
        )
    if not embedder.id or embedder.dim < 1:
        raise VragError(f"{setting} is {name!r}, but its embedder has no id or a dim below 1")
    return embedder
