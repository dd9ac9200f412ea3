"""``TextEmbedder``: all-MiniLM-L6-v2 on the CPU, as exact as the fp32 model and as fast as its cores multiply."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, Residence, single_vectors, texts_of
from vrag_ray.embedding.minilm.minilm_graph import HIDDEN, INPUT, MAX_TOKENS, build_session
from vrag_ray.embedding.minilm.weights import MODEL_SHA256, MiniLmWeights
from vrag_ray.embedding.words import encodable, is_latin
from vrag_ray.types import VragError


class TextEmbedder:
    """Mean-pooled, L2-normalised sentence vectors of the first 256 wordpieces of a text.

    A text's vector depends on the text alone, to the last bit: not on its neighbours, their order or ``threads``.
    An empty text has a vector too (that of the two marker tokens), as in the original model. Thread-safe.
    """

    id = f"minilm-l6-v2/onnx/{MODEL_SHA256[:8]}"
    dim = HIDDEN
    multi_vector = False
    modalities = frozenset({Modality.TEXT})
    pictures = None

    def __init__(self, weights: MiniLmWeights, *, threads: int = 1) -> None:
        """``threads`` is how many texts are embedded at once, each on one core, for all callers together."""
        from tokenizers import Tokenizer

        if threads < 1:
            raise VragError(f"threads must be at least 1, not {threads}")
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="embed") if threads > 1 else None
        self._tokenizer = Tokenizer.from_buffer(weights.tokenizer_json)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._unknown = self._tokenizer.token_to_id("[UNK]")
        self._session = build_session(weights.tensors)
        self.residence = Residence("cpu", sum(tensor.nbytes for tensor in weights.tensors.values()))

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Share of the wordpieces that are words to this English model: known wordpieces of Latin letters and digits.

        Of other scripts its vocabulary has single letters only (about 250 of the Chinese characters, the Greek,
        Cyrillic, Arabic … alphabets), so that such a word is spelled or unknown, never read. Pieces without a letter
        or digit count only in a text that has no others.
        """
        return np.array([self._readable(text) for text in texts], np.float32)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return single_vectors(self.vectors(texts_of(contents)))

    def embed_queries(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return single_vectors(self.vectors(texts_of(contents)))

    def token_ids(self, text: str) -> NDArray[np.int64]:
        """The model's input for ``text``: at most 256 ids, the two markers included."""
        # One at a time, on this thread: the batch calls take every core whatever `threads` says.
        return np.asarray(self._tokenizer.encode(encodable(text)).ids, np.int64)

    def _readable(self, text: str) -> float:
        text = encodable(text)
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        known = [piece != self._unknown for piece in encoded.ids]
        written = ["".join(filter(str.isalnum, text[start:stop])) for start, stop in encoded.offsets]
        words = [is_known and all(map(is_latin, t)) for is_known, t in zip(known, written, strict=True) if t]
        counted = words or known
        return sum(counted) / len(counted) if counted else 0.0

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape ``(len(texts), 384)``, of length 1, in input order."""
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
