"""What the service allows, and where it keeps its own files."""

from __future__ import annotations

import logging
from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from vrag_ray.config.agent import AgentName
from vrag_ray.config.section import Section

logger = logging.getLogger(__name__)
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Auth(StrEnum):
    """Who may connect to a service. Keys that are set are required in every case."""

    KEYS = "keys"
    """Callers with a key of ``VRAG_API_KEYS``; without keys the service does not start."""
    LOOPBACK = "loopback"
    """Without keys: callers on this machine."""
    OPEN = "open"
    """Without keys: everyone who reaches ``serving.host``."""


class ServingConfig(Section):
    """What the gateway allows."""

    host: str = "127.0.0.1"
    """Address that the service listens on."""
    port: int = Field(default=8000, ge=0, le=65535)
    """Port that it listens on."""
    agent: AgentName | None = None
    """Who answers where a request names no agent. None: ``vimrag`` where there is a language model, else
    ``extractive``."""
    num_gpus: float | None = Field(default=None, ge=0.0)
    """GPU share of one replica of the retriever, which embeds queries and runs the reranker. None: up to half of a GPU,
    where a model of pages or a reranker is served and a GPU is left; 0: the CPU."""
    max_upload_mb: int = Field(default=512, ge=1)
    """Of one upload, all its files together."""
    max_concurrent_runs: int = Field(default=64, ge=1)
    """Runs of agents at once: more are answered 429."""
    max_concurrent_requests: int = Field(default=256, ge=1)
    """Of one gateway replica, runs and chats apart: more are answered 429 at once."""
    kept_runs: int = Field(default=1000, ge=0)
    """Finished runs that are stored, the newest."""
    heartbeat_s: float = Field(default=15.0, gt=0)
    """After so long without an event a stream says that it is alive."""
    refresh_s: float = Field(default=2.0, gt=0)
    """How often the retriever looks for a newer collection version made by another process."""
    auth: Auth | None = None
    """Who may connect (see ``Auth``). By default: callers with a key where ``VRAG_API_KEYS`` is set, else this machine.
    A Serve config must say it where no key is set: on a running cluster the variables of the shell that calls `serve
    run` do not arrive, and lost keys must not open the service."""
    cors_origins: tuple[str, ...] = ()
    """Origins (``https://chat.example.org``) whose pages may send requests and read the replies."""
    footnotes: bool = False
    """Answers over OpenAI's interface end with their sources as links, for clients that show no annotations."""
    link_seconds: int = Field(default=3_600, ge=0)
    """Where keys are set: how long the address of a citation is good in a browser, which sends no key. 0: never."""
    runs_dir: str | None = None
    """Where finished runs are stored; by default ``<collection>.runs``."""
    uploads_dir: str | None = None
    """Where uploads wait for ingest, and the states of ingest jobs are stored; by default ``<collection>.uploads``."""
    max_waiting_jobs: int = Field(default=32, ge=1)
    """Uploads that wait for ingest: more are answered 429."""
    kept_jobs: int = Field(default=1000, ge=1)
    """States of finished ingest jobs that are stored, the newest."""
    render_threads: int = Field(default=2, ge=1)
    """Each has one decoding child process of its own."""
    render_cache_mb: int = Field(default=128, ge=0)
    """Pictures of pages that are held in memory."""
    max_render_pixels: int = Field(default=16_000_000, ge=1)
    """Of one picture of a page: a larger one is drawn at a lower resolution."""

    @field_validator("cors_origins")
    @classmethod
    def _as_browsers_write_them(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_origin, origins))

    @model_validator(mode="before")
    @classmethod
    def _take_former_name(cls, values: object) -> object:
        if isinstance(values, dict) and "allow_open" in values:
            logger.warning("serving.allow_open is called serving.auth now: true is `auth: open`")
            values = dict(values)
            if values.pop("allow_open"):
                values.setdefault("auth", Auth.OPEN)
        return values


def _origin(text: str) -> str:
    """An origin as a browser sends it: scheme and host in lower case, no default port and nothing behind. ``*`` means
    all. Raises ValueError for what no browser sends, as letters beyond ASCII, in place of which it sends ``xn--…``."""
    if text in ("*", "null"):
        return text
    parts = urlsplit(text.strip())
    host, port = parts.hostname or "", parts.port
    behind = parts.path.rstrip("/") or parts.query or parts.fragment or parts.username is not None
    if not parts.scheme or not host or "*" in host or not host.isascii() or behind:
        raise ValueError(f"{text!r} is no origin: write it as https://chat.example.org or http://localhost:3000")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port not in (None, _DEFAULT_PORTS.get(parts.scheme)) else "")
