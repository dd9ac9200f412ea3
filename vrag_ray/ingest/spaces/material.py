"""What of a passage an embedder is given: its words, its picture or its frames."""

from __future__ import annotations

import json
from collections.abc import Collection as AbstractCollection
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from vrag_ray.embedding.base import Embedder, Modality, PictureSpec
from vrag_ray.types import Locator, PassageKind

PLACE_COLUMNS = ("page", "t_start", "t_end", "span_start", "span_end")


class Material(StrEnum):
    """How a passage is turned into contents."""

    TEXT = "text"
    PICTURE = "picture"
    FRAMES = "frames"
    """The frames of a clip as one content, or, for an embedder of pictures alone, as one content each."""


@dataclass(frozen=True, slots=True)
class EmbedderTraits:
    """What the driver needs to know of an embedder, without holding its weights."""

    id: str
    dim: int
    multi_vector: bool
    modalities: frozenset[Modality]
    pictures: PictureSpec | None

    @classmethod
    def of(cls, embedder: Embedder) -> EmbedderTraits:
        return cls(embedder.id, embedder.dim, embedder.multi_vector, embedder.modalities, embedder.pictures)

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"modalities": sorted(self.modalities)}

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> EmbedderTraits:
        """Raises KeyError, TypeError or ValueError where ``values`` are no traits."""
        modalities, pictures = values["modalities"], values["pictures"]
        if not isinstance(modalities, list) or not isinstance(pictures, dict | None):
            raise TypeError("these are no traits of an embedder")
        return cls(
            id=str(values["id"]),
            dim=int(str(values["dim"])),
            multi_vector=bool(values["multi_vector"]),
            modalities=frozenset(map(Modality, modalities)),
            pictures=None if pictures is None else PictureSpec(**pictures),
        )


def material_of(kind: PassageKind, window: int, modalities: AbstractCollection[Modality]) -> Material | None:
    """None where the embedder has nothing to do with the passage.

    A page that can be embedded as a picture is, once, under its first window; otherwise each window by its words.
    """
    sees = Modality.PICTURE in modalities
    if kind is PassageKind.CLIP and (sees or Modality.CLIP in modalities):
        return Material.FRAMES if window == 0 else None
    if kind in (PassageKind.PAGE, PassageKind.IMAGE) and sees:
        return Material.PICTURE if window == 0 else None
    return Material.TEXT if Modality.TEXT in modalities else None


def place_to_json(row: Mapping[str, object]) -> str:
    """The locator of a row of ``passages.lance``."""
    return json.dumps({name: row[name] for name in PLACE_COLUMNS})


def place_from_json(text: str) -> Locator:
    return Locator(**json.loads(text))
