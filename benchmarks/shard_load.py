"""How long a shard takes to load a collection, and to take in what a later version has more.

    python benchmarks/shard_load.py [--rows 1000000] [--dim 384]

Plants random fp16 vectors in documents of a thousand pages through the real writer, then, each in a process of its own:
loads the first version; loads it and goes on to a second with one hundredth more rows. The files are in the system's
cache in both, as they are after an ingest. The memory is the largest resident set of the process, in which the vectors
themselves need `rows * dim * 2` bytes. Ends with one search, timed, of each.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from vrag_ray.index.storage.spaces import space_table
from vrag_ray.index.storage.writer import CollectionWriter, now_utc
from vrag_ray.types import TEXT, Document, DocumentKind, DocumentStatus

PAGES_PER_DOC, BATCH = 1000, 100_000
EMBEDDER = "planted/random"


def plant(writer: CollectionWriter, first: int, count: int, dim: int) -> None:
    """Rows ``first`` to ``first + count`` of the space of the texts, whole documents of a thousand pages; every 50th
    vector repeats its neighbour, to make ties."""
    import pyarrow as pa

    if writer.spaces.get(TEXT) is None:
        writer.spaces.create(TEXT, embedder_id=EMBEDDER, dim=dim, multi_vector=False, config={})
    for start in range(first, first + count, BATCH):
        rows = min(BATCH, first + count - start)
        vectors = np.random.default_rng(start).standard_normal((rows, dim), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[50::50] = vectors[49:-1:50]
        raw = vectors.astype(np.float16).tobytes()
        numbers = range(start, start + rows)
        docs = {number // PAGES_PER_DOC: _doc_id(number // PAGES_PER_DOC) for number in numbers}
        doc_ids = [docs[number // PAGES_PER_DOC] for number in numbers]
        pages = [number % PAGES_PER_DOC + 1 for number in numbers]
        offsets = np.arange(0, rows + 1, dtype=np.int64) * dim * 2
        columns = {
            "id": pa.array([f"{doc_id[:24]}:p{page}:w0" for doc_id, page in zip(doc_ids, pages, strict=True)]),
            "doc_id": pa.array(doc_ids),
            "kind": pa.array(["page"] * rows),
            "meta": pa.array(["{}"] * rows),
            "count": pa.array([1] * rows, pa.int32()),
            "grid_rows": pa.nulls(rows, pa.int32()),
            "grid_columns": pa.nulls(rows, pa.int32()),
            "phash": pa.nulls(rows, pa.uint64()),
            "error": pa.array([""] * rows),
            "vectors": pa.LargeBinaryArray.from_buffers(
                pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(raw)]
            ),
        }
        writer.spaces.add(TEXT, space_table(columns))
        writer.commit_documents([_document(number) for number in docs])


def _doc_id(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def _document(number: int) -> Document:
    return Document(
        _doc_id(number), (f"{number}.pdf",), str(number), DocumentKind.PDF, DocumentStatus.READY, PAGES_PER_DOC, 1,
        now_utc(),
    )  # fmt: skip


def load(root: str, dim: int, refreshes: bool) -> dict[str, float]:
    from vrag_ray.config import IndexConfig
    from vrag_ray.index.shards.shard_index import SpaceSpec, load_shard
    from vrag_ray.index.storage.files import CollectionFiles

    files, specs, config = CollectionFiles(root), [SpaceSpec(TEXT, EMBEDDER)], IndexConfig()
    import faiss  # noqa: F401  loaded here, so that it is not timed

    began = time.perf_counter()
    index = load_shard(files, 1, specs, config)
    report = {"load_s": time.perf_counter() - began}
    if refreshes:
        began = time.perf_counter()
        index = load_shard(files, 2, specs, config, earlier=index)
        report["refresh_s"] = time.perf_counter() - began
    query = np.random.default_rng(1).standard_normal((1, dim), np.float32)
    index.nearest(TEXT, [query], 10, None)
    began = time.perf_counter()
    assert len(index.nearest(TEXT, [query], 10, None)[0]) == 10
    report |= {"search_ms": (time.perf_counter() - began) * 1e3, "rows": index.statuses[0].size}
    return report | {"peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=384)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "collection"
        began = time.perf_counter()
        more = max(PAGES_PER_DOC, options.rows // 100)
        with CollectionWriter(root) as writer:
            plant(writer, 0, options.rows, options.dim)
            writer.publish("planted")
            plant(writer, options.rows, more, options.dim)
            writer.publish("more")
        print(f"planted {options.rows} and {more} rows in {time.perf_counter() - began:.0f} s", flush=True)
        print(f"vectors alone: {options.rows * options.dim * 2 / 1e9:.2f} GB", flush=True)
        for refreshes in (False, True):
            command = [sys.executable, __file__, "--load", str(root), str(options.dim), str(int(refreshes))]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            print({name: round(value, 2) for name, value in json.loads(done.stdout).items()}, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--load"]:
        print(json.dumps(load(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")))
    else:
        main()
