"""From a setting to an embedder, or to a plain statement of why there is none."""

from __future__ import annotations

import json
import os

from vrag_ray.config import SpaceConfig
from vrag_ray.config.embedding import MINILM
from vrag_ray.embedding.base import Embedder, Modality
from vrag_ray.embedding.minilm.weights import are_pinned, load_weights
from vrag_ray.embedding.models.catalog import is_known
from vrag_ray.embedding.source import CONFIG_FILE
from vrag_ray.types import VragError
from vrag_ray.types.dotted_path import load_object
from vrag_ray.types.file_names import expanded

KNOWN = (
    "minilm (all-MiniLM-L6-v2)",
    "a folder with its weights",
    "a hub id (owner/name) or a folder of a text embedder (docs/embedding.md)",
)
_OF_OTHER_MODELS = (
    "revision", "engine", "dtype", "dims", "max_pixels", "max_frames", "instruction", "passage_instruction",
    "token_pooling",
)  # fmt: skip
"""Settings of a space that ``minilm`` has no use for."""
AVAILABLE = f"{', '.join(KNOWN)}, or package.module:factory"
MEMBERS = ("id", "dim", "multi_vector", "modalities", "pictures", "readable", "embed_passages", "embed_queries")
"""Of ``Embedder``, in the order a reader would write them."""


def space_embedder(config: SpaceConfig) -> Embedder:
    """The embedder of a space: ``config.model`` is ``minilm``, a hub id, a folder, or ``package.module:factory``,
    whose factory is called with ``config``.

    The files of a model alone decide which class reads it. Raises VragError that names the model, what was tried
    and the remedy: not found offline, an architecture unknown here or to the engine, a package not installed, a
    dimension, instruction or pixel limit that the model was not trained for.
    """
    if config.is_factory:
        return _from_factory(config)
    if config.is_minilm and not _is_sister_of_minilm(config):
        return _minilm(config)
    if not _is_model(config.model) and not expanded(config.model).is_dir():
        raise VragError(f"there is no embedding model {config.model!r} here, nor such a folder: use {AVAILABLE}")
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

    if SpaceConfig(model=name).is_minilm:
        return False
    for package in ("torch", "transformers"):
        require(package, name)
    return Modality.PICTURE in architecture_of(find_model(name), SpaceConfig(model=name)).modalities


def _minilm(config: SpaceConfig) -> Embedder:
    """Raises VragError for a setting that it does not take, and where its weights are missing."""
    from vrag_ray.embedding.minilm.text import TextEmbedder

    foreign = [name for name in _OF_OTHER_MODELS if getattr(config, name) != SpaceConfig.model_fields[name].default]
    if foreign:
        raise VragError(f"{MINILM} takes no {foreign[0]}: leave it out of the space")
    folder = config.minilm_folder
    weights = load_weights(str(folder) if folder is not None else None)
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return TextEmbedder(weights, threads=max(1, cpus // (config.actors or 1)))


def _is_sister_of_minilm(config: SpaceConfig) -> bool:
    """Whether the folder of a model that has the shape of minilm holds another one, which describes itself."""
    folder = config.minilm_folder
    return folder is not None and _is_model(config.model) and not are_pinned(folder)


def _is_model(name: str) -> bool:
    """A hub id, or a folder whose model has a class here."""
    folder = expanded(name)
    if not folder.is_dir():
        return ":" not in name and name.count("/") == 1 and not name.startswith(("/", ".", "~"))
    try:
        config: object = json.loads((folder / CONFIG_FILE).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and is_known(str(config.get("model_type", "")), folder)


def _from_factory(config: SpaceConfig) -> Embedder:
    name = config.model
    embedder = load_object(name, "model", KNOWN, "factory")(config)
    if not isinstance(embedder, Embedder):
        lacking = ", ".join(member for member in MEMBERS if not hasattr(embedder, member))
        raise VragError(
            f"the model {name!r} made a {type(embedder).__name__}, which lacks {lacking}: "
            "see vrag_ray.embedding.base.Embedder"
        )
    if not embedder.id or embedder.dim < 1:
        raise VragError(f"the model {name!r} made an embedder with no id or a dim below 1")
    return embedder
