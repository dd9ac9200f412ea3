"""Every setting of a retriever's training and its default, once."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from vrag_ray.config import Section
from vrag_ray.training.config import TrainConfig


class Scored(StrEnum):
    """Which tokens of a late-interaction model are scored. Written to ``vrag_embedding.json`` beside the model."""

    ALL = "all"
    """Every token, those of the prompt around the content too, as the published models do."""
    BODY = "body"
    """The visual tokens of a page and the tokens of a query's own words. A small model learns from these alone."""


class LateConfig(Section):
    """A late-interaction model (ColQwen2's form) of a vision-language model (Qwen2-VL, Qwen2.5-VL)."""

    dims: int = Field(default=128, ge=1)
    """Of one token's vector."""
    score: Scored | None = None
    """None: as the folder was trained that training begins with, else all."""
    page_prompt: str | None = None
    query_prefix: str | None = None
    """What stands around a page (with the picture's place) and before a query. None: ColQwen2's own."""


class RetrieverConfig(TrainConfig):
    """Contrastive training of a retriever. ``model.path`` is a retriever, or a vision-language model to make one of.

    A ColQwen2 folder stays what it is; of Qwen2-VL and Qwen2.5-VL ``late`` makes one. Without ``late``, Qwen3-VL models
    (Qwen3-VL-Embedding) and Qwen2.5-VL models (GVE) give a single vector: the last token's state.
    """

    pairs: str
    """Pairs to learn from: JSON lines of ``{"query", "positive", "negatives"}``, or rated runs as
    ``GET /v1/feedback.jsonl`` gives them. A local path, or a URI."""
    collection: str | None = None
    """Where pages that are named by document and number are drawn from."""
    late: LateConfig | None = None
    epochs: int = Field(default=1, ge=1)
    """How often each passage is learnt."""
    steps: int | None = Field(default=None, ge=1)
    """Optimiser steps, instead of ``epochs``."""
    batch: int = Field(default=32, ge=2)
    """Passages that answer in one optimiser step, over all workers; they are negatives of each other's queries."""
    queries: int = Field(default=1, ge=1)
    """Of one passage in one step, at most; the next epoch goes on with its others."""
    hard_negatives: int = Field(default=1, ge=0)
    """Of one query in one step, at most, where its pair names some."""
    temperature: float = Field(default=0.02, gt=0)
    dims: tuple[int, ...] = ()
    """Matryoshka: the mean of the losses at each of these numbers of leading dimensions. Empty: all dimensions
    alone."""
    margin: float | None = Field(default=None, ge=0)
    """Leave a negative out of the loss where it scores above the query's own passage by more than this. None: never."""
    late_weight: float = Field(default=0.0, ge=0)
    """Single-vector models: of the same loss over MaxSim of the token states, added to that of the vectors."""
    max_pixels: int | None = Field(default=None, ge=1)
    """Of one picture. None: as the model's image processor has it."""
    query_instruction: str | None = None
    passage_instruction: str | None = None
    """System prompts of a Qwen3-VL model. None: those of Qwen3-VL-Embedding."""

    @model_validator(mode="after")
    def _fits_together(self) -> RetrieverConfig:
        if self.batch < self.workers.count:
            raise ValueError(f"batch {self.batch} leaves some of {self.workers.count} workers without a passage")
        if any(size < 1 for size in self.dims):
            raise ValueError(f"dims {list(self.dims)}: each must be at least 1")
        if self.late is not None and self.late_weight:
            raise ValueError("late_weight is for single-vector models: a late-interaction model has that loss already")
        return self
