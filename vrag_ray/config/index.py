"""How a collection is searched from memory."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from vrag_ray.config.section import Section


class IndexKind(StrEnum):
    """How the single vectors of a shard are searched."""

    FLAT = "flat"
    """Exact."""
    IVF_SQ = "ivf_sq"
    """Inverted file of half-precision vectors: a part of them is scanned."""
    IVF_PQ = "ivf_pq"
    """Inverted file of product-quantised vectors: an eighth of the memory, and less exact."""


class IndexConfig(Section):
    """How a collection is served from memory."""

    kind: IndexKind = IndexKind.FLAT
    """How single vectors are searched: `flat` (exact), `ivf_sq` or `ivf_pq` (inverted files)."""
    nprobe: int = Field(default=16, ge=1)
    """Lists that a search of an inverted file scans; it has about as many lists as the square root of its vectors."""
    recall_floor: float = Field(default=0.95, ge=0.0, le=1.0)
    """An inverted file that finds less of the exact ten nearest is refused; measured on the collection at each load."""
    gpu_temp_mb: int = Field(default=256, ge=0)
    """Temporary GPU memory of one shard's index, beside its vectors."""

    shards: int = Field(default=1, ge=1)
    """Parts of the collection, each in an actor of its own."""
    replicas: int = Field(default=1, ge=1)
    """Actors of each shard, on different nodes where there are several."""
    num_gpus: float | None = Field(default=None, ge=0.0)
    """GPU share of one shard actor, in which all vectors are searched on the GPU. None: late interaction alone, on a
    free GPU that its vectors fit; 0: the CPU."""
    threads: int | None = Field(default=None, ge=1)
    """Threads that scan one query in a shard actor; by default all cores."""
    shard_timeout_s: float = Field(default=10.0, gt=0)
    """For one answer of a shard that works. Answers without it are partial, and say so."""
    shard_silence_s: float = Field(default=2.5, gt=0)
    """A shard that does not even say that it is alive for so long is left out until it does: its process is stopped, or
    its node is gone. What waits for it at that moment goes on at once."""
    candidates: int = Field(default=100, ge=1)
    """Windows each leg of a hybrid search brings in before they are fused."""
    title_weight: float = Field(default=0.4, ge=0.0)
    """In hybrid search, of how near the title of a document is to the query, beside 1 for all legs together: a question
    that names a report finds its pages. 0: titles count among the words alone."""

    @model_validator(mode="before")
    @classmethod
    def _no_rank_fusion(cls, values: object) -> object:
        if isinstance(values, dict) and "rrf_k" in values:
            raise ValueError("rrf_k has no use any more, legs are fused by their scores (docs/retrieval.md): delete it")
        return values
