"""The language model: behind an endpoint, or served on this cluster."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from vrag_ray.config.section import Choice, Section

PATH = "/chat/completions"
"""What is added to the address of an endpoint."""


class ReplyConstraint(Choice):
    """The field of a request that holds a reply to its form (``agent.constrained``)."""

    AUTO = "auto"
    """Chosen once for a server, from the owner that it names of its models."""
    GRAMMAR = "grammar"
    """llama.cpp's field, in GBNF."""
    STRUCTURED_OUTPUTS = "structured_outputs"
    """vLLM's field."""
    JSON_SCHEMA = "json_schema"
    """OpenAI's ``response_format``. The tags protocol is no JSON and goes without."""
    OFF = "off"


class OpenAiConfig(Section):
    """A model behind an OpenAI-compatible endpoint."""

    base_url: str
    """Address of the endpoint, up to `/v1`."""
    model: str
    """The name that the endpoint has for the model."""
    api_key: str = Field(default="", repr=False)
    """For callers in Python. In a file it would lie open: set the environment variable instead."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key."""
    thinking: bool | None = None
    """The model's own thinking phase: on, off, or as the model has it."""
    native_tools: bool = False
    """Offer the graph protocol's actions as functions, where the endpoint calls functions."""
    constraint: ReplyConstraint = ReplyConstraint.AUTO
    """The field of a request that holds a reply to its form."""
    temperature: float | None = Field(default=None, ge=0)
    """None: as the endpoint has it."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """None: as the endpoint has it."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Without a word from the endpoint."""
    retries: int = Field(default=4, ge=0)
    """Of a request that was refused for the moment (429, 5xx) or did not get through, with back-off."""
    max_images: int = Field(default=32, ge=0)
    """Pictures in one prompt; results, memory and crops share them. 0: the model has no eyes, and needs
    ``agent.evidence`` ``text``."""

    @field_validator("base_url")
    @classmethod
    def _is_address(cls, base_url: str) -> str:
        where = urlsplit(base_url)
        if where.scheme not in ("http", "https") or not where.hostname:
            raise ValueError(f"{base_url!r} is no address: write it as https://HOST/v1")
        if PATH in where.path:
            raise ValueError(f"{base_url} goes on to {PATH}: write it up to there, as https://HOST/v1")
        return base_url

    @field_validator("model")
    @classmethod
    def _is_name(cls, model: str) -> str:
        if not model.strip():
            raise ValueError("the name is empty: write the one that the endpoint has for the model")
        return model


class VllmConfig(Section):
    """A language model that vLLM serves on this cluster: one that sees, or with ``agent.evidence`` ``text`` any."""

    model: str
    """A folder that every node can read, or a hub id."""
    served_name: str = "policy"
    """The name under which OpenAI's clients ask for the model."""
    dtype: str = "auto"
    """``auto`` (as the model has it), ``bfloat16``, ``float16`` or ``float32``."""
    max_model_len: int = Field(default=32_768, ge=16)
    """Tokens of prompt and reply together; the pictures count with their visual tokens."""
    tensor_parallel: int = Field(default=1, ge=1)
    """GPUs that share one replica."""
    replicas: int = Field(default=1, ge=1)
    """Copies of the model."""
    max_num_seqs: int = Field(default=64, ge=1)
    """Replies that one replica generates at once; more wait."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of a card that vLLM takes."""
    max_images: int = Field(default=32, ge=0)
    """Pictures in one prompt; results, memory and crops share them. 0 for a model without eyes."""
    adapters: dict[str, str] = Field(default={})
    """LoRA adapters: the name that a request gives, and the folder on every node."""
    enforce_eager: bool = False
    """Start without CUDA graphs: sooner, and slower."""
    num_cpus: float = Field(default=1.0, gt=0)
    """Logical CPUs of one replica."""
    num_gpus: float = Field(default=1.0, ge=0)
    """GPU share of each of the ``tensor_parallel`` ranks; 0 serves on the CPU."""
    engine_args: dict[str, str | int | float | bool] = Field(default={})
    """More arguments of vLLM's ``AsyncEngineArgs``, by their own names."""
