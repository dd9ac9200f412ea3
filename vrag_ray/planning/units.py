"""What one page, one vector and one request cost: each figure with its source, so that it can be replaced."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vrag_ray.types import VragError


class Figure(BaseModel):
    """A number above 0, and where it comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float = Field(gt=0)
    source: str


class SpaceSize(BaseModel):
    """What a page becomes: n vectors of d dimensions, 2 bytes each (fp16)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vectors_per_page: float = Field(gt=0)
    dims: int = Field(gt=0)
    late: bool = False
    """Whether the vectors of a page make one row, compared by MaxSim with each of the query's."""
    source: str
    is_measured_on_cores: bool = False
    """Whether ``Units.pages_per_core_s`` is the speed of its embedder."""
    embedder: str = ""
    """The published model that embeds its pages on a GPU, where its size is known."""
    pages_per_gpu_s: Figure | None = None
    """How fast that is, where somebody measured it."""

    @property
    def rows_per_page(self) -> float:
        return 1.0 if self.late else self.vectors_per_page

    @property
    def vector_bytes_per_page(self) -> float:
        return self.vectors_per_page * self.dims * 2


class Units(BaseModel):
    """``…_per_core`` are of a single core of the machine that was measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pages_per_core_s: Figure = Figure(
        value=5.15, source="docs/results/ingest.md: 10.3 pages/s of octave.pdf on two cores, text space"
    )
    pages_per_gpu_s: Figure | None = None
    """Of the space's own embedder, in place of ``SpaceSize.pages_per_gpu_s``."""
    row_overhead_bytes: Figure = Figure(
        value=880, source="docs/results/search.md: 13.9 GB for ten million rows of 256 dimensions, less their vectors"
    )
    rows_loaded_s: Figure = Figure(
        value=180_000, source="docs/results/search.md: ten million rows in 55 s, one shard on two cores"
    )
    products_per_core_s: Figure = Figure(
        value=8.0e9,
        source="docs/results/search.md: a query over ten million rows of 256 dimensions in 0.16 s on two cores",
    )
    products_trained_per_core_s: Figure = Figure(
        value=3.7e10, source="docs/results/search.md: ivf_sq of 100,000 rows of 1,024 dimensions in 4 s on two cores"
    )
    request_core_s: Figure = Figure(
        value=0.0097, source="docs/results/serving.md: retriever, gateway, proxy and shard of one dense search"
    )
    query_vectors: Figure = Figure(value=20, source="given: vectors of a query in late interaction")
    original_bytes_per_page: Figure = Figure(value=100_000, source="given: originals of 100 kB a page")
    row_disk_bytes: Figure = Figure(value=2_000, source="given: text, words and metadata of a row, compressed")

    def on_gpu(self, space: SpaceSize) -> Figure | None:
        """Pages a second of ``space``'s embedder on one GPU: the caller's figure, or the measured one."""
        return self.pages_per_gpu_s or space.pages_per_gpu_s


def _on_h100(pages_per_s: float) -> Figure:
    return Figure(value=pages_per_s, source="docs/results/gpu.md: A4 pages, random weights of this size, one H100")


SPACES: dict[str, SpaceSize] = {
    "text-384": SpaceSize(
        vectors_per_page=2.67,
        dims=384,
        source="docs/results/ingest.md: 3,087 windows of 1,158 pages",
        is_measured_on_cores=True,
    ),
    "bge-m3": SpaceSize(vectors_per_page=2.67, dims=1024, source="model card: 1,024 dimensions; windows as text-384"),
    "qwen3-vl-2b": SpaceSize(
        vectors_per_page=1,
        dims=2048,
        source="model card: one vector of 2,048 dimensions",
        embedder="Qwen/Qwen3-VL-Embedding-2B",
        pages_per_gpu_s=_on_h100(14.3),
    ),
    "qwen3-vl-8b": SpaceSize(
        vectors_per_page=1,
        dims=4096,
        source="model card: one vector of 4,096 dimensions",
        embedder="Qwen/Qwen3-VL-Embedding-8B",
        pages_per_gpu_s=_on_h100(7.0),
    ),
    "gve-7b": SpaceSize(
        vectors_per_page=1,
        dims=3584,
        source="model card: one vector of 3,584 dimensions",
        embedder="Alibaba-NLP/GVE-7B",
        pages_per_gpu_s=_on_h100(16.7),
    ),
    "colqwen2": SpaceSize(
        vectors_per_page=768,
        dims=128,
        late=True,
        source="model card: at most 768 vectors of 128 dimensions",
        embedder="vidore/colqwen2-v1.0-hf",
        pages_per_gpu_s=_on_h100(29.1),
    ),
}


def read_units(path: Path | None) -> Units:
    """The measured figures, those in the JSON file in their place. Raises VragError for a file that is none."""
    if path is None:
        return Units()
    try:
        return Units.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise VragError(
            f"{path} holds no unit figures: {error}. It is JSON, for example "
            '{"pages_per_gpu_s": {"value": 20, "source": "measured on our card"}}'
        ) from error
