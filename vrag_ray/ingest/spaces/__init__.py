"""Filling vector spaces: what a collection holds is drawn, embedded and committed, space by space, resumable."""

from vrag_ray.ingest.report import SpaceReport
from vrag_ray.ingest.spaces.embed import embed_into, embed_spaces

__all__ = ["SpaceReport", "embed_into", "embed_spaces"]
