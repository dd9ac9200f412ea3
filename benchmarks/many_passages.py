"""The memory of the process that ingests, where there are many passages: committed, published, a space filled.

    python benchmarks/many_passages.py --passages 1000000

Made-up pages of 200 words go through the committer of ingest with vectors of random numbers, and Ray Data fills a space
of 32 dimensions with an embedder that computes next to nothing: what is measured is the way of the rows.
For each step the script prints its seconds, the peak of this process's memory in it, and what it has at the end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path[0] = str(Path(__file__).parents[1])

from vrag_ray.cluster import start_ray
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.corpus.passages import Holds
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, single_vectors, texts_of
from vrag_ray.index.storage.rows import passage_to_json
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest.committer import Committer
from vrag_ray.ingest.graph import Rows
from vrag_ray.ingest.plan import DocumentPlan
from vrag_ray.ingest.sources import Listing
from vrag_ray.ingest.spaces import embed_spaces
from vrag_ray.types import DocumentKind, Locator, Passage, PassageKind, passage_id

PAGES = 100
"""Of one document."""
WORDS_OF_A_PAGE = 200
DIM = 32
EMBEDDER = "made-up/1"


class LengthEmbedder:
    """Words in one vector each, which depends on the length of the text alone."""

    id = "lengths/1"
    dim = DIM
    multi_vector = False
    modalities = frozenset({Modality.TEXT})
    pictures = None

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones(len(texts), np.float32)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        angles = np.array([len(text) for text in texts_of(contents)])[:, None] + np.arange(DIM)
        vectors = np.cos(angles).astype(np.float32)
        return single_vectors(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    embed_queries = embed_passages


def lengths(_config: SpaceConfig) -> LengthEmbedder:
    return LengthEmbedder()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=100_000)
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    os.environ["PYTHONPATH"] = sys.path[0]
    with tempfile.TemporaryDirectory(prefix="vrag-many-") as root:
        began = _step(f"{arguments.passages:,} passages, at start", time.perf_counter())
        with CollectionWriter(root) as writer:
            committer = Committer(writer, 2048)
            for block in _blocks(arguments.passages):
                committer.add_block(block)
            began = _step("committed", began)
            committer.close(Listing())
            committer.publish("ingest")
            began = _step("published, with the index of words", began)
        spaces = {"lengths": SpaceConfig(model="benchmarks.many_passages:lengths", batch=256)}
        start_ray(None)
        began = _step("Ray started", began)
        [report] = embed_spaces(Settings(collection=root, spaces={**spaces, "text": SpaceConfig(model="none")}))
        _step(f"space filled, {report.embedded:,} vectors", began)


def _step(name: str, began: float) -> float:
    now = time.perf_counter()
    sizes = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak, size = (int(sizes[field].split()[0]) / 1e6 for field in ("VmHWM", "RssAnon"))
    print(f"{name}: {now - began:.1f} s, peak {peak:.2f} GB, at its end {size:.2f} GB of its own", flush=True)
    # The next step has a peak of its own.
    Path("/proc/self/clear_refs").write_text("5")
    return now


def _blocks(passages: int) -> Iterator[Rows]:
    """Documents as the decode stage gives them."""
    chance = random.Random(3)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(20_000)]
    for number in range(passages // PAGES):
        doc_id = hashlib.sha256(str(number).encode()).hexdigest()
        plan = DocumentPlan(
            f"{number}.pdf", f"{number}.pdf", doc_id, DocumentKind.PDF, 1, PAGES, f"Report {number}", pending=PAGES
        ).to_json()
        rows: list[dict[str, object]] = []
        for unit in range(PAGES):
            place = Locator(page=unit + 1)
            passage = Passage(passage_id(doc_id, place, 0), doc_id, PassageKind.PAGE, place, 0, "")
            rows.append(
                {
                    "plan": plan,
                    "unit": unit,
                    "error": "",
                    "notices": "[]",
                    "transient": False,
                    "holds": str(Holds.WORDS),
                    "passages": json.dumps([passage_to_json(passage)]),
                    "texts": [" ".join(chance.choices(words, k=WORDS_OF_A_PAGE))],
                }
            )
        yield rows


if __name__ == "__main__":
    main()
