"""What every part of the configuration is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the configuration; unknown names are refused, so that a typo is not a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True)
