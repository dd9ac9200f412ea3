"""``ModelEmbedder``: one architecture on one engine, as the index sees every embedder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, PictureSpec, Residence
from vrag_ray.embedding.engines.engine import Engine
from vrag_ray.embedding.models.architecture import Architecture, Prompt, TokenVectors, unit_rows
from vrag_ray.embedding.models.decoding import DecodedContent, decoded_content
from vrag_ray.embedding.token_pooling import pool_patches

CALLS_AT_ONCE = 2
"""Of one embedder, for throughput: one is computed while the other is prepared."""
DECODING_THREADS = 4
"""Decoding leaves Python's lock free, and in one thread a GPU waits for it (docs/results/gpu.md)."""


@dataclass(frozen=True, slots=True)
class _Part:
    content: int
    prompt: Prompt


class ModelEmbedder:
    """Contents are embedded in batches of one modality and about one length; every result stands where its content
    stood. Passages have their patches pooled where ``token_pooling`` says so, queries never.

    Thread-safe. A tokenizer and a GPU serve one caller at a time, each on its own: while the model works for one call,
    the next is processed on the CPU, and pictures of several calls are decoded side by side.
    """

    def __init__(self, architecture: Architecture, engine: Engine, config: SpaceConfig) -> None:
        self._architecture = architecture
        self._engine = engine
        self._batch = config.batch_size
        self._pooling = config.token_pooling if architecture.multi_vector else 1
        self._dims = config.dims
        self._preparing, self._computing = threading.Lock(), threading.Lock()
        self._decoders = ThreadPoolExecutor(DECODING_THREADS, "decode-picture")
        self.id = embedder_id(architecture, config)
        self.dim = config.dims or architecture.dim
        self.multi_vector = architecture.multi_vector

    @property
    def modalities(self) -> frozenset[Modality]:
        return self._architecture.modalities - self._engine.lacks

    @property
    def pictures(self) -> PictureSpec | None:
        return self._architecture.pictures

    @property
    def residence(self) -> Residence | None:
        return self._engine.residence

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._preparing:
            return np.array([self._architecture.readable(text) for text in texts], np.float32)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        embedded = self._embed(contents, query=False)
        return [
            pool_patches(vectors, self._pooling) if isinstance(vectors, Embedding) else vectors for vectors in embedded
        ]

    def embed_queries(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return self._embed(contents, query=True)

    def _embed(self, contents: Sequence[Content], *, query: bool) -> list[Embedding | EmbedError]:
        failed: dict[int, EmbedError] = {}
        parts: list[_Part] = []
        decoded = [*self._decoders.map(self._decoded, contents)]
        with self._preparing:
            for place, content in enumerate(decoded):
                try:
                    prompts = self._prompts(content, query=query)
                except EmbedError as error:
                    failed[place] = error
                else:
                    parts.extend(_Part(place, prompt) for prompt in prompts)
        outputs = self._run([part.prompt for part in parts])
        embeddings: dict[int, list[Embedding]] = {place: [] for place in range(len(contents))}
        for part, output in zip(parts, outputs, strict=True):
            # The words of a query are found by the tokenizer once more; pictures do not wait for it.
            with self._preparing if query else nullcontext():
                embedding = output if isinstance(output, EmbedError) else self._finished(part.prompt, output)
            if isinstance(embedding, EmbedError):
                failed.setdefault(part.content, embedding)
            else:
                embeddings[part.content].append(embedding)
        return [failed.get(place) or self._architecture.join(embeddings[place]) for place in range(len(contents))]

    def _decoded(self, content: Content) -> DecodedContent | EmbedError:
        if self._architecture.pictures is None and content.modality is not Modality.TEXT:
            return EmbedError(f"{self._architecture.source.name} reads text only, not a {content.modality}")
        try:
            return decoded_content(content)
        except EmbedError as error:
            return error

    def _prompts(self, content: DecodedContent | EmbedError, *, query: bool) -> tuple[Prompt, ...]:
        if isinstance(content, EmbedError):
            raise content
        if content.modality in self._engine.lacks:
            name = self._architecture.source.name
            raise EmbedError(
                f"a {content.modality} is not embedded by this engine with {name}: set `engine: transformers`"
            )
        return self._architecture.prompts(content, query=query)

    def _run(self, prompts: Sequence[Prompt]) -> list[TokenVectors | EmbedError]:
        """In batches, longest first: what does not fit the memory shows at once, and little is padded."""
        order = sorted(range(len(prompts)), key=lambda place: _size(prompts[place]), reverse=True)
        outputs: dict[int, TokenVectors | EmbedError] = {}
        start = 0
        while start < len(order):
            modality = prompts[order[start]].modality
            batch = [place for place in order[start : start + self._batch] if prompts[place].modality is modality]
            with self._preparing:
                prepared = self._engine.prepare([prompts[place] for place in batch])
            with self._computing:
                outputs.update(zip(batch, self._engine.run(prepared), strict=True))
            start += len(batch)
        return [outputs[place] for place in range(len(prompts))]

    def _finished(self, prompt: Prompt, output: TokenVectors) -> Embedding | EmbedError:
        if not np.isfinite(output.vectors).all():
            return EmbedError("the model gave values that are no numbers: use dtype float32 or bfloat16")
        embedding = self._architecture.embedding(prompt, output)
        return Embedding(unit_rows(embedding.vectors[:, : self._dims]), embedding.grid)


def embedder_id(architecture: Architecture, config: SpaceConfig) -> str:
    """Names the space: model and contents of its files, recipe, prompts, pixels, dims and pooling; no engine, device
    or number format, which all compute the same vectors."""
    source = architecture.source
    parts = [f"{source.name}@{source.identity}", architecture.kind, *architecture.preprocessing]
    if config.dims is not None:
        parts.append(f"dims{config.dims}")
    if architecture.multi_vector and config.token_pooling > 1:
        parts.append(f"pool{config.token_pooling}")
    return "/".join(parts)


def _size(prompt: Prompt) -> tuple[str, int, int]:
    picture = prompt.picture or (prompt.frames[0] if prompt.frames else None)
    pixels = picture.width * picture.height * max(1, len(prompt.frames)) if picture is not None else 0
    return prompt.modality, pixels, len(prompt.text)
