"""How contents are prepared for a model, and what an embedder of the trained folder has to know to do the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.embedding.base import PictureSpec
from vrag_ray.embedding.models import gve
from vrag_ray.embedding.models.qwen3_vl_embedding import PASSAGE_INSTRUCTION, QUERY_INSTRUCTION, sentence
from vrag_ray.training.retriever.config import RetrieverConfig, Scored
from vrag_ray.training.retriever.inputs import (
    Form,
    LateForm,
    SingleForm,
    picture_spec,
)
from vrag_ray.training.retriever.model import is_late
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, ProcessorMixin

EMBEDDING_FILE = "vrag_embedding.json"
"""Beside ``config.json``."""


def form_of(model: PretrainedConfig, processor: ProcessorMixin, config: RetrieverConfig, folder: str) -> Form:
    """How contents of this model are prepared; which tokens count is what the configuration or the folder says."""
    if is_late(model) or config.late is not None:
        if config.query_instruction or config.passage_instruction:
            raise VragError("query_instruction and passage_instruction are for single vectors: leave them out")
        return LateForm(processor, scored_of(config, folder))
    if not instructed(model):
        if config.query_instruction or config.passage_instruction:
            raise VragError("query_instruction and passage_instruction are for Qwen3-VL models: leave them out")
        return SingleForm(processor, "", "", gve.END)
    return SingleForm(processor, *instructions_of(config, folder))


def scored_of(config: RetrieverConfig, folder: str) -> Scored:
    """Which tokens are scored: as configured, else as the folder was trained, else all."""
    if config.late is not None and config.late.score is not None:
        return config.late.score
    return Scored(str(embedding_file(folder).get("score", Scored.ALL)))


def instructed(model: PretrainedConfig) -> bool:
    return str(model.model_type) == "qwen3_vl"


def instructions_of(config: RetrieverConfig, folder: str) -> tuple[str, str]:
    """Of queries and of passages: as configured, else as the folder was trained, else Qwen3-VL-Embedding's own."""
    known = embedding_file(folder)
    query = config.query_instruction or str(known.get("query_instruction") or QUERY_INSTRUCTION)
    passage = config.passage_instruction or str(known.get("instruction") or PASSAGE_INSTRUCTION)
    return _sentence(query), _sentence(passage)


def spec_of(processor: ProcessorMixin, config: RetrieverConfig, folder: str) -> PictureSpec:
    """How large pictures are: at most as configured, else as the folder was trained, else as its processor has it."""
    known = embedding_file(folder).get("max_pixels")
    return picture_spec(processor, config.max_pixels or (known if isinstance(known, int) else None))


def embedding_file(folder: str) -> dict[str, object]:
    """What ``vrag_embedding.json`` in ``folder`` says; nothing where there is none."""
    file = Path(folder) / EMBEDDING_FILE
    values: object = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return values if isinstance(values, dict) else {}


def write_embedding_file(
    folder: Path, model: PretrainedConfig, processor: ProcessorMixin, config: RetrieverConfig, source: str
) -> None:
    """What an embedder of ``folder`` must do as the trainer did: pixels, prompts, and which tokens are scored.

    ``source`` is the folder that training began with.
    """
    spec = spec_of(processor, config, source)
    values: dict[str, object] = {"min_pixels": spec.min_pixels, "max_pixels": spec.max_pixels, "mrl": bool(config.dims)}
    if is_late(model):
        values["score"] = scored_of(config, source).value
    elif instructed(model):
        values["query_instruction"], values["instruction"] = instructions_of(config, source)
    (folder / EMBEDDING_FILE).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _sentence(instruction: str) -> str:
    """As the embedder writes it."""
    if not instruction.strip():
        raise VragError("query_instruction and passage_instruction are sentences: leave them out, or write one")
    return sentence(instruction)
