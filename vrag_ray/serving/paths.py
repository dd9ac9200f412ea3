"""Where the service keeps its own files: beside the collection, never inside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vrag_ray.config import Settings
from vrag_ray.types import VragError
from vrag_ray.types.file_names import expanded


@dataclass(frozen=True, slots=True)
class ServingPaths:
    """Local folders of one service; every replica must see the same ones."""

    runs: Path
    uploads: Path

    @classmethod
    def of(cls, settings: Settings) -> ServingPaths:
        return cls(
            _folder(settings.serving.runs_dir, settings.collection, "runs"),
            _folder(settings.serving.uploads_dir, settings.collection, "uploads"),
        )


def _folder(chosen: str | None, collection: str, what: str) -> Path:
    if chosen is not None:
        return expanded(chosen).absolute()
    if "://" in collection:
        raise VragError(f"the collection {collection} is not a local folder: set serving.{what}_dir to one")
    root = Path(collection).absolute()
    return root.with_name(f"{root.name}.{what}")
