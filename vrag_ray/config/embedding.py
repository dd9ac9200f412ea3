"""Which models make vectors, and which reads results again."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from vrag_ray.config.section import Section
from vrag_ray.types.copies import with_changes


class EmbedderConfig(Section):
    """Which embedder makes the vectors. ``minilm`` falls to lexical-only with a notice when weights are absent."""

    name: str = "minilm"
    """``minilm``, ``none`` (lexical only), or a dotted path ``package.module:factory``."""
    weights_dir: str | None = None
    """The folder with the weights of ``minilm``. None: its package, or the cache of the hub."""
    device: str = "auto"
    """Of a hub id or folder: ``auto`` (a GPU where this process has one), ``cpu`` or ``cuda``. ``minilm`` has no GPU
    code."""
    threads: int = Field(default=2, ge=1)
    """Texts embedded at once in one process, each on one core."""
    batch_windows: int = Field(default=256, ge=1)
    """Texts that ingest hands to the embedder in one call, at most."""


MINILM = "minilm"
"""The embedder of texts that has a package of its own, and runs on every machine."""
WITHOUT_GPU_CODE = {MINILM: "minilm has no GPU code", "none": "texts are not embedded"}
"""Names of text embedders, and why each is given no GPU."""


class Engine(StrEnum):
    """What computes the vectors of a model; both give the same space."""

    TRANSFORMERS = "transformers"
    VLLM = "vllm"
    """vLLM's pooling runner: for throughput on GPUs."""


class SpaceConfig(Section):
    """One more vector space of a collection, beside the texts' own: which model, and how it is run and searched."""

    model: str
    """``minilm``, a hub id, a folder that every node can read, or a dotted path ``package.module:factory``."""
    revision: str | None = None
    """Of the hub: a tag or commit. None: the newest."""
    engine: Engine = Engine.TRANSFORMERS
    """``transformers``, or ``vllm`` for throughput on GPUs."""
    device: str = "auto"
    """``auto`` (a GPU where this process has one), ``cpu`` or ``cuda``."""
    dtype: str = "auto"
    """``auto`` (float32 on a CPU, bfloat16 on a GPU), ``float32``, ``bfloat16`` or ``float16``."""
    dims: int | None = Field(default=None, ge=1)
    """Dimensions kept of a model trained for that (MRL: truncated and normalised again). None: all."""
    max_pixels: int | None = Field(default=None, ge=1)
    """Of one picture. None: as the model's authors have it."""
    max_frames: int = Field(default=8, ge=1)
    """Of one clip, for a model that takes clips."""
    instruction: str | None = None
    """Of queries, for a model that is instructed. None: as its authors have it."""
    batch: int = Field(default=8, ge=1)
    """Contents embedded in one call, at most."""
    actors: int = Field(default=1, ge=1)
    """Embedding actors of an ingest."""
    num_gpus: float | None = Field(default=None, ge=0.0)
    """GPU share of one embedding actor. None: a free GPU, or an even share of it; 0: the CPU. For a factory: 0, unless
    it is set."""
    token_pooling: int = Field(default=1, ge=1, le=8)
    """Late interaction: neighbouring patches of k x k are averaged into one vector."""
    binary: bool = False
    """Late interaction: one bit a dimension of the passages; queries stay as they are."""
    exhaustive_below: int = Field(default=20_000, ge=0)
    """Late interaction: a shard with at most this number of pages scores all of them; a larger one those whose mean
    vector is best, ``candidates`` of them."""
    candidates: int = Field(default=1_000, ge=1)
    """Late interaction: pages of a larger shard that are scored."""
    weight: float = Field(default=1.0, ge=0.0)
    """In hybrid search, of this leg's say among the vector legs."""

    def with_absolute_model(self) -> SpaceConfig:
        """The same for every process: a folder named relative to this one's is named in full."""
        folder = Path(self.model).expanduser()
        return with_changes(self, {"model": str(folder.absolute())}) if folder.is_dir() else self

    @property
    def is_factory(self) -> bool:
        """Whether ``model`` is ``package.module:factory``."""
        return ":" in self.model and not Path(self.model).expanduser().is_dir()

    @property
    def without_gpu_code(self) -> str:
        """Why the model has no use for a GPU; "" where it has one."""
        return WITHOUT_GPU_CODE.get(self.model, "")

    @property
    def anywhere(self) -> SpaceConfig:
        """What of the settings a collection remembers: all but where they are computed, which is each machine's own
        affair."""
        fields = type(self).model_fields
        return with_changes(self, {name: fields[name].default for name in _OF_THE_MACHINE})

    @classmethod
    def from_record(cls, values: Mapping[str, object]) -> SpaceConfig:
        """The settings that a collection remembers. Raises ValidationError."""
        return cls.model_validate(dict(values)).anywhere


_OF_THE_MACHINE = ("device", "num_gpus")


class RerankerConfig(Section):
    """A model that reads question and page together, over the first results of a search."""

    model: str
    """A hub id or a folder: Qwen3-VL-Reranker."""
    revision: str | None = None
    """Of the hub: a tag or commit. None: the newest."""
    device: str = "auto"
    """``auto`` (a GPU where this process has one), ``cpu`` or ``cuda``."""
    dtype: str = "auto"
    """``auto`` (float32 on a CPU, bfloat16 on a GPU), ``float32``, ``bfloat16`` or ``float16``."""
    top_n: int = Field(default=10, ge=1, le=100)
    """Results of each query that are read again."""
    max_pixels: int | None = Field(default=None, ge=1)
    """Of one picture. None: as the model's authors have it."""
    batch: int = Field(default=4, ge=1)
    """Results that the model reads in one call."""
