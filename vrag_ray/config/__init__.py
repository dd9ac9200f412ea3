"""Every setting and its default, once: a file for each section, and ``settings`` for the whole."""

from vrag_ray.config.agent import AgentConfig, AgentName, EvidenceForm, Marks
from vrag_ray.config.corpus import CorpusConfig, DecodeLimits, IngestConfig, OfficeUse
from vrag_ray.config.embedding import Engine, RerankerConfig, SpaceConfig
from vrag_ray.config.index import IndexConfig, IndexKind
from vrag_ray.config.model import OpenAiConfig, ReplyConstraint, VllmConfig
from vrag_ray.config.section import Section
from vrag_ray.config.serving import Auth, ServingConfig
from vrag_ray.config.settings import Settings, load_settings

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
