"""``TextEmbedder``: all-MiniLM-L6-v2 on the CPU, as exact as the fp32 model and as fast as its cores multiply."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from vrag_ray.embedding.minilm_graph import HIDDEN, INPUT, MAX_TOKENS, build_session
from vrag_ray.embedding.weights import MODEL_SHA256, MiniLmWeights
from vrag_ray.types import PassageKind, VragError


class TextEmbedder:
    """Mean-pooled, L2-normalised sentence vectors of the first 256 wordpieces of a text.

    A text's vector depends on the text alone, to the last bit: not on its neighbours, their order or ``threads``.
    An empty text has a vector too (that of the two marker tokens), as in the original model. Thread-safe.
    """

    id = f"minilm-l6-v2/onnx/{MODEL_SHA256[:8]}"
    dim = HIDDEN
    modalities = frozenset(PassageKind)
    """Every kind: what is embedded is the passage's text, never its pixels."""

    def __init__(self, weights: MiniLmWeights, *, threads: int = 1) -> None:
        """``threads`` is how many texts are embedded at once, each on one core, whoever calls."""
        from tokenizers import Tokenizer

        if threads < 1:
            raise VragError(f"embedder.threads must be at least 1, not {threads}")
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="embed") if threads > 1 else None
        self._tokenizer = Tokenizer.from_buffer(weights.tokenizer_json)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._session = build_session(weights.tensors)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float16]:
        return self._embed(texts).astype(np.float16)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._embed(texts)

    def token_ids(self, text: str) -> NDArray[np.int64]:
        """The model's input for ``text``: at most 256 ids, the two markers included."""
        # Text layers of broken PDFs hold lone surrogates, which no UTF-8 tokenizer accepts.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        # One at a time, on this thread: the batch calls take every core whatever `threads` says.
        return np.asarray(self._tokenizer.encode(clean).ids, np.int64)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), HIDDEN), np.float32)

        def embed(index: int) -> None:
            vectors[index] = self._session.run(None, {INPUT: self.token_ids(texts[index])})[0]

        if self._pool is None or len(texts) == 1:
            for index in range(len(texts)):
                embed(index)
            return vectors
        # Longest first, so that no thread is left alone with a long text at the end.
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        for _ in self._pool.map(embed, order):
            pass
        return vectors
