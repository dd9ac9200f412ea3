"""The nouns that every part of vrag_ray shares: frozen values, no IO, no Ray."""

from __future__ import annotations

from vrag_ray.types.documents import (
    NOTES,
    PAGES,
    PREFIX_OF_PASSAGES,
    SECTION,
    Cue,
    Document,
    DocumentKind,
    DocumentStatus,
    Locator,
    Meta,
    MetaValue,
    PageText,
    Passage,
    PassageKind,
    Region,
    document_id,
    named_page,
    passage_id,
)
from vrag_ray.types.errors import InvalidError, NotFoundError, VragError
from vrag_ray.types.geometry import FULL_PAGE, Box, Word, around, joined, undivided, upright
from vrag_ray.types.models import Completion, FamilyName
from vrag_ray.types.search import DENSE, HYBRID, LEXICAL, TEXT, Hit, Query, SearchAnswer

__all__ = [
    "DENSE",
    "HYBRID",
    "LEXICAL",
    "NOTES",
    "PAGES",
    "PREFIX_OF_PASSAGES",
    "SECTION",
    "TEXT",
    "FULL_PAGE",
    "Box",
    "Completion",
    "Cue",
    "Document",
    "DocumentKind",
    "DocumentStatus",
    "FamilyName",
    "Hit",
    "InvalidError",
    "Locator",
    "Meta",
    "MetaValue",
    "NotFoundError",
    "PageText",
    "Passage",
    "PassageKind",
    "Query",
    "Region",
    "SearchAnswer",
    "VragError",
    "Word",
    "around",
    "document_id",
    "joined",
    "named_page",
    "passage_id",
    "undivided",
    "upright",
]
