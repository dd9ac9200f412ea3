"""From files to a committed collection, as one streaming Ray Data graph."""

from vrag_ray.ingest.pipeline import ingest
from vrag_ray.ingest.report import FileError, IngestReport, Progress, SpaceReport, StageProgress
from vrag_ray.ingest.sources import Source

__all__ = ["FileError", "IngestReport", "Progress", "Source", "SpaceReport", "StageProgress", "ingest"]
