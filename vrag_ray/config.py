"""Every setting and its default, once. Values come from YAML, then from ``VRAG_*`` environment variables.

``VRAG_INGEST__COMMIT_PAGES=64`` overrides ``ingest.commit_pages``; nested names are joined by two underscores.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from vrag_ray.types import DENSE, HYBRID, LEXICAL, TEXT, FamilyName, VragError

logger = logging.getLogger(__name__)


class Section(BaseModel):
    """A part of the configuration; unknown names are refused, so that a typo is not a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DecodeLimits(Section):
    """What one decode of untrusted bytes may cost before its child process is killed."""

    memory_mb: int = 2048
    """Address space of the child. Measured peaks: PDF text 0.3 GB, OCR of a page 1.2 GB, of a 50 Mpx picture 1.7 GB."""
    cpu_seconds: int = 20
    wall_seconds: float = 30.0
    ocr_seconds: int = 60
    """Added to the CPU and wall limits of a unit for each picture of it that is read by OCR."""
    max_pixels: int = 50_000_000
    max_pages: int = 20_000
    max_frames: int = 32
    max_file_mb: int = 2048
    max_text_chars_per_page: int = 200_000


class CorpusConfig(Section):
    """How documents become passages."""

    limits: DecodeLimits = DecodeLimits()
    window_words: int = Field(default=150, ge=20)
    window_overlap: int = Field(default=0, ge=0)
    pages_per_item: int = Field(default=16, ge=1)
    clip_seconds: float = Field(default=60.0, gt=0)
    video_fps: float = Field(default=1.0, gt=0)
    ocr: bool = True
    ocr_dpi: int = 150
    ocr_min_chars: int = 8
    """A page or image whose own text is shorter than this is read by OCR."""


class EmbedderConfig(Section):
    """Which embedder makes the vectors. ``minilm`` falls to lexical-only with a notice when weights are absent."""

    name: str = "minilm"
    """``minilm``, ``none`` (lexical only), or a dotted path ``package.module:factory``."""
    weights_dir: str | None = None
    threads: int = Field(default=2, ge=1)
    """Texts embedded at once in one process, each on one core."""
    batch_windows: int = Field(default=256, ge=1)
    """Texts that ingest hands to the embedder in one call, at most."""


class Engine(StrEnum):
    """What computes the vectors of a model; both give the same space."""

    TRANSFORMERS = "transformers"
    VLLM = "vllm"
    """vLLM's pooling runner: for throughput on GPUs."""


class SpaceConfig(Section):
    """One more vector space of a collection, beside the texts' own: which model, and how it is run and searched."""

    model: str
    """A hub id, a folder that every node can read, or a dotted path ``package.module:factory``."""
    revision: str | None = None
    """Of the hub: a tag or commit. None: the newest."""
    engine: Engine = Engine.TRANSFORMERS
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
    num_gpus: float = Field(default=0.0, ge=0.0)
    """GPU share of one embedding actor."""
    token_pooling: int = Field(default=1, ge=1, le=8)
    """Late interaction: neighbouring patches of k x k are averaged into one vector."""
    binary: bool = False
    """Late interaction: one bit a dimension of the passages; queries stay as they are."""
    exhaustive_below: int = Field(default=20_000, ge=0)
    """Late interaction: a shard with at most so many pages scores all of them; a larger one those whose mean vector is
    best, ``candidates`` of them."""
    candidates: int = Field(default=1_000, ge=1)
    weight: float = Field(default=1.0, ge=0.0)
    """In hybrid search, of this leg's say among the vector legs."""

    def with_absolute_model(self) -> SpaceConfig:
        """The same for every process: a folder named relative to this one's is named in full."""
        folder = Path(self.model).expanduser()
        return self.model_copy(update={"model": str(folder.absolute())}) if folder.is_dir() else self


class RerankerConfig(Section):
    """A model that reads question and page together, over the first results of a search."""

    model: str
    """A hub id or a folder: Qwen3-VL-Reranker."""
    revision: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    top_n: int = Field(default=10, ge=1, le=100)
    """Results of each query that are read again."""
    max_pixels: int | None = Field(default=None, ge=1)
    batch: int = Field(default=4, ge=1)


class IngestConfig(Section):
    """How the Ray Data graph is sized."""

    concurrency: int | None = None
    """Embedding actors; by default one per ``embedder.threads`` CPUs."""
    num_gpus: float = Field(default=0.0, ge=0.0)
    """GPU share of one embedding actor."""
    commit_pages: int = Field(default=128, ge=1)
    retry_errors: bool = False
    """Decode documents again that an earlier run could not read, or not wholly."""
    strict: bool = False


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
    nprobe: int = Field(default=16, ge=1)
    """Lists that a search of an inverted file scans; it has about as many lists as the square root of its vectors."""
    recall_floor: float = Field(default=0.95, ge=0.0, le=1.0)
    """An inverted file that finds less of the exact ten nearest is refused; measured on the collection at each load."""
    gpu_temp_mb: int = Field(default=256, ge=0)
    """Temporary GPU memory of one shard's index, beside its vectors."""

    shards: int = Field(default=1, ge=1)
    replicas: int = Field(default=1, ge=1)
    num_gpus: float = Field(default=0.0, ge=0.0)
    """GPU share of one shard actor."""
    threads: int | None = None
    """Threads that scan one query in a shard actor; by default all cores."""
    shard_timeout_s: float = 10.0
    candidates: int = Field(default=100, ge=1)
    """Windows each leg of a hybrid search brings in before they are fused."""

    @model_validator(mode="before")
    @classmethod
    def _no_rank_fusion(cls, values: object) -> object:
        if isinstance(values, dict) and "rrf_k" in values:
            raise ValueError("rrf_k has no use any more, legs are fused by their scores (docs/retrieval.md): delete it")
        return values


class EvidenceForm(StrEnum):
    """What a language model is given of a page that was found. A text document is given in words in every form."""

    PICTURE = "picture"
    TEXT = "text"
    """Its words, those that OCR read included, and no picture: for models without eyes."""
    BOTH = "both"
    """Its picture, and its words beside it: small print can be read without a crop."""

    @property
    def has_pictures(self) -> bool:
        return self is not EvidenceForm.TEXT

    @property
    def has_text(self) -> bool:
        return self is not EvidenceForm.PICTURE


class AgentConfig(Section):
    """Budgets of one run."""

    evidence: EvidenceForm = EvidenceForm.PICTURE
    """What a language model is given of found pages. ``extractive`` reads words in any case."""
    result_chars: int = Field(default=4_000, ge=300)
    """With ``evidence`` ``text`` or ``both``: most characters of one result's words. Longer ones are cut around the
    passage that matched, and say so."""
    memory_chars: int = Field(default=6_000, ge=0)
    """Of the words of all remembered items together, shared by their energy."""
    prompt_chars: int = Field(default=24_000, ge=300)
    """Of all words of pages in one prompt, those of the memory included."""
    max_steps: int = Field(default=12, ge=2)
    search_top_k: int = Field(default=3, ge=1, le=50)
    deadline_s: float = 60.0
    memory_top_k: int = 5
    memory_pixels: int = 5 * 256 * 32 * 32
    token_budget: int | None = None
    """Tokens read and written in one run; once they are spent, only an answer is accepted."""
    energy_decay: float = 0.1
    energy_feedback: float = 0.3
    family: FamilyName | None = None
    """Of the model that is asked: its patches, and how it writes boxes. None: as the configuration of a served model
    says; of an endpoint's, Qwen3-VL for ``vimrag`` and Qwen2.5-VL for ``vrag``."""
    picture_pixels: int = 1280 * 28 * 28
    frame_pixels: int = 128 * 32 * 32
    """Most pixels of a found picture, and of a frame of a found video."""
    max_reply_tokens: int = Field(default=2048, ge=16)
    tags_results: int = Field(default=1, ge=1)
    """Pages that ``vrag`` is shown a search; the released checkpoint was trained on one."""
    abstain_below: float = 0.5
    """Evidence below this share of the question's informative words (IDF-weighted) is not an answer."""

    @model_validator(mode="after")
    def _a_result_fits_beside_the_memory(self) -> AgentConfig:
        if self.result_chars + self.memory_chars > self.prompt_chars:
            raise ValueError(
                f"result_chars {self.result_chars} + memory_chars {self.memory_chars} > prompt_chars "
                f"{self.prompt_chars}: raise prompt_chars or lower the others"
            )
        return self


class OpenAiConfig(Section):
    """A model behind an OpenAI-compatible endpoint."""

    base_url: str
    model: str
    api_key: str = Field(default="", repr=False)
    """For callers in Python. In a file it would lie open: set the environment variable instead."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key."""
    thinking: bool | None = None
    """The model's own thinking phase: on, off, or as the model has it."""
    native_tools: bool = False
    """Offer the graph protocol's actions as functions, where the endpoint calls functions."""
    temperature: float | None = None
    top_p: float | None = None
    timeout_s: float = Field(default=120.0, gt=0)
    """Without a word from the endpoint."""
    retries: int = Field(default=4, ge=0)
    """Of a request that was refused for the moment (429, 5xx) or did not get through, with back-off."""
    max_images: int = Field(default=32, ge=0)
    """Pictures in one prompt; results, memory and crops share them. 0: the model has no eyes, and needs
    ``agent.evidence`` ``text``."""


class VllmConfig(Section):
    """A vision-language model that vLLM serves on this cluster."""

    model: str
    """A folder that every node can read, or a hub id."""
    served_name: str = "policy"
    dtype: str = "auto"
    max_model_len: int = Field(default=32_768, ge=16)
    """Tokens of prompt and reply together; the pictures count with their visual tokens."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share one replica."""
    replicas: int = Field(default=1, ge=1)
    max_num_seqs: int = Field(default=64, ge=1)
    """Replies that one replica generates at once; more wait."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    max_images: int = Field(default=32, ge=1)
    """Pictures in one prompt; results, memory and crops share them."""
    adapters: dict[str, str] = {}
    """LoRA adapters: the name that a request gives, and the folder on every node."""
    enforce_eager: bool = False
    num_cpus: float = Field(default=1.0, gt=0)
    """Logical CPUs of one replica."""
    num_gpus: float = Field(default=1.0, ge=0)
    """GPU share of each of the ``tensor_parallel`` ranks; 0 serves on the CPU."""
    engine_args: dict[str, str | int | float | bool] = {}
    """More arguments of vLLM's ``AsyncEngineArgs``, by their own names."""


class Auth(StrEnum):
    """Who may connect to a service. Keys that are set are asked for in every case."""

    KEYS = "keys"
    """Callers with a key of ``VRAG_API_KEYS``; without keys the service does not start."""
    LOOPBACK = "loopback"
    """Without keys: callers on this machine."""
    OPEN = "open"
    """Without keys: everyone who reaches ``serving.host``."""


class ServingConfig(Section):
    """What the gateway allows."""

    host: str = "127.0.0.1"
    port: int = 8000
    max_upload_mb: int = 512
    max_concurrent_runs: int = 64
    kept_runs: int = 1000
    heartbeat_s: float = 15.0
    refresh_s: float = 2.0
    """How often the retriever looks for a newer collection version made by another process."""
    auth: Auth | None = None
    """Who may connect (see ``Auth``). By default: callers with a key where ``VRAG_API_KEYS`` is set, else this machine.
    A Serve config must say it where no key is set: on a running cluster the variables of whoever calls `serve run` do
    not arrive, and lost keys must not open the service."""
    runs_dir: str | None = None
    """Where finished runs are kept; by default ``<collection>.runs``."""
    uploads_dir: str | None = None
    """Where uploads wait for ingest, and the states of ingest jobs are kept; by default ``<collection>.uploads``."""
    max_waiting_jobs: int = Field(default=32, ge=1)
    kept_jobs: int = Field(default=1000, ge=1)
    render_threads: int = Field(default=2, ge=1)
    """Each has one decoding child process of its own."""
    render_cache_mb: int = Field(default=128, ge=0)
    max_render_pixels: int = Field(default=16_000_000, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _take_former_name(cls, values: object) -> object:
        if isinstance(values, dict) and "allow_open" in values:
            logger.warning("serving.allow_open is called serving.auth now: true is `auth: open`")
            values = dict(values)
            if values.pop("allow_open"):
                values.setdefault("auth", Auth.OPEN)
        return values


class Settings(BaseSettings):
    """The whole configuration of one process."""

    model_config = SettingsConfigDict(
        env_prefix="VRAG_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    collection: str = "vrag-collection"
    corpus: CorpusConfig = CorpusConfig()
    embedder: EmbedderConfig = EmbedderConfig()
    spaces: dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")], SpaceConfig] = {}
    """Vector spaces beside that of the texts, by name: ingest fills them, and search has a leg for each. A space that a
    collection has is searched without being named here, by the settings that it was made with."""
    reranker: RerankerConfig | None = None
    """None: results stay in the order of the search."""
    ingest: IngestConfig = IngestConfig()
    index: IndexConfig = IndexConfig()
    agent: AgentConfig = AgentConfig()
    openai: OpenAiConfig | None = None
    """None: no endpoint is asked. Where ``vllm`` is set too, that one answers."""
    vllm: VllmConfig | None = None
    """None: no model is served here."""
    serving: ServingConfig = ServingConfig()

    @field_validator("spaces")
    @classmethod
    def _no_mode_as_a_name(cls, spaces: dict[str, SpaceConfig]) -> dict[str, SpaceConfig]:
        for name in (HYBRID, LEXICAL, TEXT, DENSE):
            if name in spaces:
                raise ValueError(f"a space cannot be called {name}, which is a mode of search: choose another name")
        return spaces

    @classmethod
    def settings_customise_sources(  # the signature is pydantic's
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over what a YAML file or a caller passes in."""
        return env_settings, init_settings


def load_settings(path: Path | None = None) -> Settings:
    """Read ``path`` (YAML, optional) under the environment. Errors name the file and the field."""
    values: object = {}
    if path is not None:
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, yaml.YAMLError) as error:
            raise VragError(f"cannot read the configuration {path}: {error}") from error
        if not isinstance(values, dict):
            raise VragError(f"the configuration {path} must be a mapping of names to values")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise VragError(f"the configuration {path or '(environment)'} is wrong at {where}: {first['msg']}") from error
