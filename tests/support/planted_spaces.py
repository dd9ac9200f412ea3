"""Vector spaces with planted vectors, filled through the real writer, and embedders that need no model."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from tests.support.planted import doc_id_of, plant
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, PictureSpec
from vrag_ray.index.storage.spaces import space_table
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import Locator, passage_id

SIDE = 32
GRID = 4
COLOURS = ("red", "green", "blue", "black", "white", "yellow")
RGB = {
    "red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255),
    "black": (0, 0, 0), "white": (255, 255, 255), "yellow": (255, 255, 0),
}  # fmt: skip


class ColourEmbedder:
    """Late interaction without a model: a picture has a vector a cell of a 4 x 4 grid, a text one a colour's name.

    Vectors are the cell's mean colour, shifted so that opposites are opposite, of length 1.
    """

    dim = 4
    multi_vector = True
    modalities = frozenset({Modality.PICTURE})
    pictures = PictureSpec(patch=8, min_pixels=SIDE * SIDE, max_pixels=SIDE * SIDE, side=SIDE)

    def __init__(self, id: str = "colours/1") -> None:
        self.id = id

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        shares = [sum(word in RGB for word in text.split()) / max(1, len(text.split())) for text in texts]
        return np.array(shares, np.float32)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return [self._picture(content.picture) for content in contents]

    def embed_queries(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return [
            self._picture(content.picture) if content.picture is not None else self._words(content.text)
            for content in contents
        ]

    def _words(self, text: str) -> Embedding:
        known = [RGB[word] for word in text.split() if word in RGB] or [(128, 128, 128)]
        return Embedding(_unit(np.array(known, np.float32)))

    def _picture(self, png: bytes | None) -> Embedding | EmbedError:
        if png is None:
            return EmbedError("no picture")
        with Image.open(io.BytesIO(png)) as image:
            cells = np.asarray(image.convert("RGB").resize((GRID, GRID), Image.Resampling.BOX), np.float32)
        return Embedding(_unit(cells.reshape(-1, 3)), (GRID, GRID))


class MeanColourEmbedder(ColourEmbedder):
    """The same with one vector a picture or text: the mean."""

    multi_vector = False

    def _words(self, text: str) -> Embedding:
        return _mean(super()._words(text))

    def _picture(self, png: bytes | None) -> Embedding | EmbedError:
        result = super()._picture(png)
        return result if isinstance(result, EmbedError) else _mean(result)


def colours(config: SpaceConfig) -> ColourEmbedder:
    return ColourEmbedder()


def mean_colours(config: SpaceConfig) -> MeanColourEmbedder:
    return MeanColourEmbedder("mean-colours/1")


def painted(cells: Sequence[str], side: int = 64) -> bytes:
    """A PNG of 4 x 4 cells, given row by row."""
    pixels = np.array([RGB[cell] for cell in cells], np.uint8).reshape(GRID, GRID, 3)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((side, side), Image.Resampling.NEAREST).save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True)
class StoredVectors:
    """A row of a space of pages: ``vectors`` [n, dim]."""

    passage_id: str
    doc_id: str
    vectors: NDArray[np.float16]
    grid: tuple[int, int] | None = None
    phash: int | None = None
    error: str = ""


def stored_vectors(name: str, page: int, vectors: NDArray[np.float32], **more: object) -> StoredVectors:
    """The row of page ``page`` of the planted document ``name``."""
    doc_id = doc_id_of(name)
    grid, phash, error = more.get("grid"), more.get("phash"), more.get("error", "")
    assert grid is None or isinstance(grid, tuple)
    assert phash is None or isinstance(phash, int)
    return StoredVectors(
        passage_id(doc_id, Locator(page=page), 0), doc_id, vectors.astype(np.float16), grid, phash, str(error)
    )


def vectors_table(rows: Sequence[StoredVectors]) -> pa.Table:
    """As ``SpaceWriter.add`` takes it."""
    grids = [row.grid or (None, None) for row in rows]
    return space_table(
        {
            "id": pa.array([row.passage_id for row in rows], pa.string()),
            "doc_id": pa.array([row.doc_id for row in rows], pa.string()),
            "kind": pa.array(["page"] * len(rows), pa.string()),
            "meta": pa.array(["{}"] * len(rows), pa.string()),
            "count": pa.array([len(row.vectors) for row in rows], pa.int32()),
            "grid_rows": pa.array([grid[0] for grid in grids], pa.int32()),
            "grid_columns": pa.array([grid[1] for grid in grids], pa.int32()),
            "phash": pa.array([row.phash for row in rows], pa.uint64()),
            "error": pa.array([row.error for row in rows], pa.string()),
            "vectors": pa.array([row.vectors.tobytes() for row in rows], pa.large_binary()),
        }
    )


def plant_space(root: Path, name: str, rows: Sequence[StoredVectors], *, dim: int, multi_vector: bool = True) -> None:
    """A space ``name`` of ``rows``, published."""
    with CollectionWriter(root) as writer:
        writer.spaces.create(name, embedder_id=f"{name}/1", dim=dim, multi_vector=multi_vector, config={"model": "m"})
        writer.spaces.add(name, vectors_table(rows))
        writer.publish("vectors")


def _mean(embedding: Embedding) -> Embedding:
    return Embedding(_unit(embedding.vectors.mean(axis=0, keepdims=True)))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    if rows.shape[1] == 3:
        rows = np.concatenate([rows / 127.5 - 1, np.full((len(rows), 1), 0.2)], axis=1).astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float32] = rows / np.where(lengths == 0, 1, lengths)
    return unit


class CountedEmbedder(ColourEmbedder):
    """Takes texts and clips too, and refuses pictures whose first cell is yellow."""

    modalities = frozenset(Modality)
    pictures = PictureSpec(patch=8, min_pixels=SIDE * SIDE, max_pixels=SIDE * SIDE, side=SIDE, max_frames=3)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        results: list[Embedding | EmbedError] = []
        for content in contents:
            if content.modality is Modality.TEXT:
                results.append(self._words(content.text))
            elif content.modality is Modality.CLIP:
                frames = [self._picture(frame) for frame in content.frames]
                results.append(
                    Embedding(np.concatenate([frame.vectors for frame in frames if isinstance(frame, Embedding)]))
                )
            else:
                result = self._picture(content.picture)
                yellow = (
                    isinstance(result, Embedding)
                    and float(result.vectors[0] @ _unit(np.array([[255.0, 255, 0]]))[0]) > 0.99
                )
                results.append(EmbedError("a yellow corner") if yellow else result)
        return results


def everything(config: SpaceConfig) -> CountedEmbedder:
    return CountedEmbedder("everything/1")


def another(config: SpaceConfig) -> ColourEmbedder:
    return ColourEmbedder("colours/2")


class BrittleEmbedder(ColourEmbedder):
    """Breaks, as a card that is lost does, at the first blue page."""

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        results = super().embed_passages(contents)
        blue = self._words("blue").vectors[0]
        if any(isinstance(result, Embedding) and float(result.vectors[0] @ blue) > 0.99 for result in results):
            raise RuntimeError("the card is gone")
        return results


def brittle(config: SpaceConfig) -> BrittleEmbedder:
    return BrittleEmbedder()


def unloadable(config: SpaceConfig) -> ColourEmbedder:
    raise ValueError("its weights are gone")


PLANTED = SpaceConfig(model="tests.support.planted:make_planted")
LATE = SpaceConfig(model="tests.support.planted_spaces:colours")
SINGLE = SpaceConfig(model="tests.support.planted_spaces:mean_colours")
WORDS = {"a": "one", "b": "two", "c": "three", "d": "four"}
CELLS = {
    "a": ["white"] * 15 + ["red"],
    "b": ["white"] * 5 + ["green", "green"] + ["white"] * 9,
    "c": ["blue"] * 16,
    "d": ["blue"] * 16,
}


# Two pages that look the same tie in every space of pictures, and stand in the order of their ids.
TWIN, OTHER_TWIN = sorted("cd", key=doc_id_of)
EMBEDDERS = {"late": (LATE, ColourEmbedder()), "mean": (SINGLE, MeanColourEmbedder("mean-colours/1"))}


def picture_of(name: str) -> bytes:
    return painted(CELLS[name])


def add_space(writer: CollectionWriter, name: str, pictures: dict[str, bytes], phashes: dict[str, int]) -> None:
    config, embedder = EMBEDDERS[name]
    writer.spaces.create(
        name,
        embedder_id=embedder.id,
        dim=embedder.dim,
        multi_vector=embedder.multi_vector,
        config=config.model_dump(mode="json"),
    )
    rows = []
    for document, png in pictures.items():
        [embedded] = embedder.embed_passages([Content(picture=png)])
        assert isinstance(embedded, Embedding)
        rows.append(stored_vectors(document, 1, embedded.vectors, grid=embedded.grid, phash=phashes.get(document)))
    writer.spaces.add(name, vectors_table(rows))


def fill(
    root: Path, spaces: tuple[str, ...] = ("late", "mean"), names: str = "abcd", planted: Iterable[str] = "abcd"
) -> None:
    """A collection of the pages ``planted``, whose ``names`` have vectors in ``spaces``."""
    plant(root, {name: [WORDS[name]] for name in planted})
    with CollectionWriter(root) as writer:
        for space in spaces:
            phashes = {name: 0 if name in "cd" else (1 << 10 * (ord(name) - 96)) - 1 for name in names}
            add_space(writer, space, {name: picture_of(name) for name in names}, phashes)
        writer.publish("vectors")
