"""Contents to embed, and what is checked of every embedder."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vrag_ray.embedding.base import Content, Embedder, Embedding, EmbedError

BROKEN = Content(picture=b"\x89PNG\r\n\x1a\n and then nothing")
TOLERANCE = 1e-5


def picture(width: int, height: int, seed: int) -> Image.Image:
    """Coloured squares of 16 px, so that every patch differs."""
    squares = np.random.default_rng(seed).integers(0, 256, (-(-height // 16), -(-width // 16), 3), dtype=np.uint8)
    whole = np.repeat(np.repeat(squares, 16, axis=0), 16, axis=1)[:height, :width]
    return Image.fromarray(np.ascontiguousarray(whole))


def png(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def picture_content(width: int, height: int, seed: int, text: str = "") -> Content:
    return Content(text, picture=png(picture(width, height, seed)))


def clip_frames(count: int, width: int = 64, height: int = 96) -> tuple[Image.Image, ...]:
    return tuple(picture(width, height, 100 + seed) for seed in range(count))


def clip_content(times: Sequence[float], text: str = "") -> Content:
    frames = tuple(png(frame) for frame in clip_frames(len(times)))
    return Content(text, frames=frames, frame_times=tuple(times))


def vectors(result: Embedding | EmbedError) -> NDArray[np.float32]:
    assert isinstance(result, Embedding), result
    assert result.vectors.dtype == np.float32
    return result.vectors


def assert_agree(result: Embedding | EmbedError, expected: NDArray[np.float32]) -> None:
    """Of length 1, and ``expected`` at length 1."""
    actual = vectors(result)
    unit = expected / np.linalg.norm(expected, axis=-1, keepdims=True)
    assert actual.shape == unit.shape
    np.testing.assert_allclose(np.linalg.norm(actual, axis=-1), 1.0, atol=1e-5)
    np.testing.assert_allclose(actual, unit, atol=TOLERANCE, rtol=0)


def assert_order_and_neighbours_do_not_matter(embedder: Embedder, contents: Sequence[Content]) -> None:
    """A broken content in between fails alone; each of the others is what it is alone, within 1e-5."""
    mixed = [contents[0], BROKEN, *contents[1:], BROKEN]
    for embed in (embedder.embed_passages, embedder.embed_queries):
        results = embed(mixed)
        assert [place for place, result in enumerate(results) if isinstance(result, EmbedError)] == [1, len(mixed) - 1]
        whole = [result for result in results if isinstance(result, Embedding)]
        for content, embedded in zip(contents, whole, strict=True):
            alone = embed([content])[0]
            assert isinstance(alone, Embedding)
            assert embedded.grid == alone.grid
            np.testing.assert_allclose(embedded.vectors, alone.vectors, atol=TOLERANCE, rtol=0)
