"""``vrag_embedding.json``: what a model folder says of itself beyond what its authors' classes know."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vrag_ray.types import VragError

RECIPE_FILE = "vrag_embedding.json"


class Score(StrEnum):
    """Which tokens of a late-interaction model become vectors."""

    ALL = "all"
    """All but padding: the published models were trained so."""
    BODY = "body"
    """Of a page the visual tokens, of a query those of its own words: no template, no augmentation tokens."""


class Recipe(BaseModel):
    """The file's contents; without a file, all defaults: as the model's authors have it. Names unknown here are read
    over, since a trainer may write more for its own use."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    score: Score = Score.ALL
    mrl: bool | None = None
    """Whether the model was trained to be truncated (``SpaceConfig.dims``). None: as its architecture is known for."""
    min_pixels: int | None = Field(default=None, ge=1)
    max_pixels: int | None = Field(default=None, ge=1)
    instruction: str | None = None
    query_instruction: str | None = None


def read_recipe(folder: Path) -> Recipe:
    """Raises VragError naming the file where it is there but cannot be used."""
    path = folder / RECIPE_FILE
    if not path.is_file():
        return Recipe()
    try:
        return Recipe.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise VragError(f"{path} is not a description of an embedding model: {error}") from error
