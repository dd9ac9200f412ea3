"""Which models make vectors, and which reads results again."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from vrag_ray.config.section import Section
from vrag_ray.types import TEXT
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import expanded

logger = logging.getLogger(__name__)

MINILM = "minilm"
"""The embedder of texts that has a package of its own, and runs on every machine."""
_OTHER_NAMES_OF_MINILM = ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")
_SHAPE_OF_MINILM = {"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6, "vocab_size": 30522}
"""In its config.json."""
NO_MODEL = "none"
"""In place of a model: texts have no vectors, and are searched by their words."""
WITHOUT_GPU_CODE = {MINILM: "minilm has no GPU code", NO_MODEL: "texts are not embedded"}
"""Names in place of a hub id, and why each is given no GPU."""


class Engine(StrEnum):
    """What computes the vectors of a model; both give the same space."""

    TRANSFORMERS = "transformers"
    VLLM = "vllm"
    """vLLM's pooling runner: for throughput on GPUs."""


class SpaceConfig(Section):
    """One vector space of a collection: which model makes its vectors, and how it is run and searched."""

    model: str
    """``minilm``, a folder with its weights, a hub id, a folder that every node can read, or a dotted path
    ``package.module:factory``. ``none``, of the space ``text`` alone: texts are searched by their words only."""
    revision: str | None = None
    """Of the hub: a tag or commit. None: the newest."""
    engine: Engine = Engine.TRANSFORMERS
    """``transformers``, or ``vllm`` for throughput on GPUs."""
    device: str = "auto"
    """``auto`` (a GPU where this process has one), ``cpu`` or ``cuda``."""
    dtype: str = "auto"
    """``auto`` (float32 on a CPU, bfloat16 on a GPU), ``float32``, ``bfloat16`` or ``float16``."""
    dims: int | None = Field(default=None, ge=1)
    """Dimensions used of a model trained for that (MRL: truncated and normalised again). None: all."""
    max_pixels: int | None = Field(default=None, ge=1)
    """Of one picture. None: as the model's authors have it."""
    max_frames: int = Field(default=8, ge=1)
    """Of one clip, for a model that takes clips."""
    instruction: str | None = None
    """Of queries, for a model that is instructed. None: as its authors have it."""
    passage_instruction: str | None = None
    """Of passages, before their words, for a text embedder that has one (of E5: ``"passage: "``, with ``instruction``
    ``"query: "``). None: as its folder has it."""
    batch: int | None = Field(default=None, ge=1)
    """Contents embedded in one call, at most. None: 8, and 256 for ``minilm``."""
    actors: int | None = Field(default=None, ge=1)
    """Embedding actors of an ingest. None: ``ingest.concurrency``, else one a GPU, or one without a GPU; for ``minilm``
    one for two CPUs."""
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
        folder = expanded(self.model)
        return with_changes(self, {"model": str(folder.absolute())}) if folder.is_dir() else self

    @property
    def is_factory(self) -> bool:
        """Whether ``model`` is ``package.module:factory``."""
        return ":" in self.model and not expanded(self.model).is_dir()

    @property
    def is_minilm(self) -> bool:
        """Whether ``model`` is ``minilm``, by its own name, its name on the hub, or a folder with its weights."""
        return self.model in (MINILM, *_OTHER_NAMES_OF_MINILM) or self.minilm_folder is not None

    @property
    def minilm_folder(self) -> Path | None:
        """``model``, where it is a folder with weights of the shape that ``minilm`` has."""
        folder = expanded(self.model)
        if not all((folder / name).is_file() for name in ("model.safetensors", "tokenizer.json")):
            return None
        described = folder / "config.json"
        try:
            config: object = json.loads(described.read_bytes()) if described.is_file() else {}
        except (OSError, ValueError):
            return None
        shape = config if isinstance(config, dict) else {"model_type": ""}
        return folder if all(shape.get(name, value) == value for name, value in _SHAPE_OF_MINILM.items()) else None

    @property
    def batch_size(self) -> int:
        """Contents embedded in one call, at most."""
        return self.batch or (_BATCH_OF_MINILM if self.is_minilm else _BATCH)

    def actor_count(self, cpus: int, requested: int | None = None) -> int:
        """Embedding actors of an ingest on ``cpus`` CPUs, ``requested`` where the space does not say so itself."""
        return self.actors or requested or (math.ceil(cpus / _CPUS_OF_AN_ACTOR) if self.is_minilm else 1)

    @property
    def without_gpu_code(self) -> str:
        """Why the model has no use for a GPU; "" where it has one."""
        return WITHOUT_GPU_CODE[MINILM] if self.is_minilm else WITHOUT_GPU_CODE.get(self.model, "")

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


_BATCH, _BATCH_OF_MINILM = 8, 256
_CPUS_OF_AN_ACTOR = 2
_OF_THE_MACHINE = ("device", "num_gpus", "actors")


def with_text_space(values: Mapping[str, object]) -> dict[str, object]:
    """A section with ``spaces``, whose space ``text`` need not name its model, and has what older configurations say of
    texts elsewhere: as ``embedder`` and as ``ingest.num_gpus``. Raises ValueError for a name that ``embedder`` never
    had."""
    embedder, ingest = values.get("embedder"), values.get("ingest")
    spaces = values.get("spaces") or {}
    others = {name: value for name, value in values.items() if name != "embedder"}
    if not isinstance(spaces, Mapping) or not isinstance(embedder, Mapping | None):
        return dict(values)
    texts = spaces.get(TEXT)
    if embedder is not None and texts is None:
        texts = _text_space_of(embedder)
    if isinstance(ingest, Mapping) and "num_gpus" in ingest:
        logger.warning("`ingest.num_gpus` of the configuration is read as `spaces.text.num_gpus`: name it so")
        others["ingest"] = {name: value for name, value in ingest.items() if name != "num_gpus"}
        if isinstance(texts, Mapping | None):
            texts = {"num_gpus": ingest["num_gpus"], **(texts or {})}
    if isinstance(texts, Mapping):
        texts = {"model": MINILM, **texts}
    return others if texts is None else others | {"spaces": {**spaces, TEXT: texts}}


def _text_space_of(embedder: Mapping[str, object]) -> dict[str, object]:
    unknown = sorted(embedder.keys() - {"name", "weights_dir", "device", "threads", "batch_windows"})
    if unknown:
        raise ValueError(f"embedder.{unknown[0]} is no setting: the model of texts is named as spaces.text.model")
    threads = "; `threads` are all cores of the machine now" if "threads" in embedder else ""
    logger.warning("the section `embedder` of the configuration is read as `spaces.text`: name it so%s", threads)
    model = embedder.get("name", MINILM)
    if model == MINILM and embedder.get("weights_dir") is not None:
        model = embedder["weights_dir"]
    renamed = {"model": model, "device": embedder.get("device"), "batch": embedder.get("batch_windows")}
    return {name: value for name, value in renamed.items() if value is not None}


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
