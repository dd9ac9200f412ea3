"""Every setting and its default, once: a file for each section, and ``settings`` for the whole.

The whole is imported where it is used: a child of the sandbox needs one section, and reads no file or variable for it.
"""

from typing import TYPE_CHECKING

from vrag_ray.config.agent import AgentConfig, AgentName, EvidenceForm, Marks
from vrag_ray.config.corpus import CorpusConfig, DecodeLimits, IngestConfig, OfficeUse
from vrag_ray.config.embedding import Engine, RerankerConfig, SpaceConfig
from vrag_ray.config.index import IndexConfig, IndexKind
from vrag_ray.config.model import OpenAiConfig, ReplyConstraint, VllmConfig
from vrag_ray.config.section import Section
from vrag_ray.config.serving import Auth, ServingConfig

if TYPE_CHECKING:
    from vrag_ray.config.settings import Settings, load_settings
else:

    def __getattr__(name: str) -> object:
        if name not in {"Settings", "load_settings"}:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from vrag_ray.config import settings

        return getattr(settings, name)


__all__ = [
    "AgentConfig",
    "AgentName",
    "Auth",
    "CorpusConfig",
    "DecodeLimits",
    "Engine",
    "EvidenceForm",
    "IndexConfig",
    "IndexKind",
    "IngestConfig",
    "Marks",
    "OfficeUse",
    "OpenAiConfig",
    "ReplyConstraint",
    "RerankerConfig",
    "Section",
    "ServingConfig",
    "Settings",
    "SpaceConfig",
    "VllmConfig",
    "load_settings",
]
