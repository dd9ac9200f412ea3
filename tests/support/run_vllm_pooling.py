"""Embeds the same contents by both engines; prints one JSON line: ids and least cosines of each model.

Usage: run_vllm_pooling.py FOLDER... A program of its own, so that vLLM's threads and settings stay out of the tests.
"""

from __future__ import annotations

import json
import sys

from tests.support.embedding_material import BROKEN, clip_content, picture_content
from vrag_ray.config import Engine, SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, Embedding, EmbedError, Modality
from vrag_ray.embedding.registry import space_embedder


def main(folders: list[str]) -> None:
    reports = {}
    # An engine that is collected takes down what the next one of this process shares with it.
    alive: list[Embedder] = []
    for folder in folders:
        engines = [space_embedder(SpaceConfig(model=folder, device="cpu", engine=engine)) for engine in Engine]
        alive += engines
        reports[folder] = {
            "ids": [engine.id for engine in engines],
            "modalities": [sorted(engine.modalities) for engine in engines],
            "cosines": _cosines(*engines),
        }
    print(json.dumps(reports), flush=True)


def _cosines(first: Embedder, second: Embedder) -> dict[str, list[float | str]]:
    contents = [Content("what colour is the circle"), BROKEN, Content("red"), Content("a table " * 30)]
    pages = [BROKEN, picture_content(112, 84, 1), picture_content(448, 320, 2)]
    clips = [clip_content((0.0, 1.0, 2.5)), clip_content((0.0, 2.0, 4.0, 6.0))]
    cosines = {"queries": _compared(first.embed_queries(contents), second.embed_queries(contents))}
    if Modality.PICTURE in first.modalities:
        shown = [*pages, *clips]
        cosines["passages"] = _compared(first.embed_passages(shown), second.embed_passages(shown))
    return cosines


def _compared(first: list[Embedding | EmbedError], second: list[Embedding | EmbedError]) -> list[float | str]:
    rows: list[float | str] = []
    for left, right in zip(first, second, strict=True):
        if isinstance(left, Embedding) and isinstance(right, Embedding):
            assert left.grid == right.grid
            assert left.vectors.shape == right.vectors.shape
            rows.append(float((left.vectors * right.vectors).sum(axis=1).min()))
        else:
            rows.append(f"{type(left).__name__} {type(right).__name__}")
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
