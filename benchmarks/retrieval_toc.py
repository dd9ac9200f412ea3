"""Retrieval quality on a PDF's own outline: section title → section pages, exactly (±0).

    python benchmarks/retrieval_toc.py [PDF] [--collection DIR]   (octave.pdf by default, see fetch_pdfs.py)

Ingests the PDF through the real pipeline, asks every outline title in each mode, and prints hit@1/5/10 and MRR.
Pages outside the body (contents, index) are left out of the results, since they repeat every title.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from vrag_ray.config import DecodeLimits, Settings
from vrag_ray.corpus.sandbox import Sandbox
from vrag_ray.evaluation.metrics import RankMetrics, rank_metrics
from vrag_ray.evaluation.toc import TocQuery, toc_queries
from vrag_ray.index.sharded import ShardedRetriever
from vrag_ray.ingest import ingest
from vrag_ray.types import SearchMode

DEPTH = 60
BATCH = 64


async def evaluate(settings: Settings, queries: list[TocQuery], body: range) -> dict[SearchMode, RankMetrics]:
    retriever = await ShardedRetriever.start(settings)
    metrics = {}
    for mode in SearchMode:
        relevance = []
        for start in range(0, len(queries), BATCH):
            batch = queries[start : start + BATCH]
            answer = await retriever.search([query.title for query in batch], top_k=DEPTH, mode=mode)
            for query, hits in zip(batch, answer.results, strict=True):
                pages = [hit.passage.locator.page or 0 for hit in hits]
                relevance.append([query.first_page <= page <= query.last_page for page in pages if page in body])
        metrics[mode] = rank_metrics(relevance)
    await retriever.close()
    return metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path, nargs="?", default=Path(__file__).parent / "data/octave.pdf")
    parser.add_argument("--collection", help="keep the collection here and use it again on the next run")
    arguments = parser.parse_args()
    with Sandbox(DecodeLimits()) as sandbox:
        probe = sandbox.probe(arguments.pdf, arguments.pdf.name)
    queries, body = toc_queries(probe.outline, probe.units)
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    ray.init(num_cpus=16, include_dashboard=False, logging_level="WARNING", log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(collection=arguments.collection or f"{folder}/collection")
        report = ingest([arguments.pdf], settings)
        print(f"{arguments.pdf.name}: {len(queries)} titles, body pages {body.start}-{body.stop - 1}, ", end="")
        print(f"ingested {report.pages} pages in {report.seconds:.0f} s; {' '.join(report.notices)}")
        began = time.perf_counter()
        for mode, metrics in asyncio.run(evaluate(settings, queries, body)).items():
            hits = "  ".join(f"hit@{k} {value:.3f}" for k, value in metrics.hit_at.items())
            print(f"{mode:8s} {hits}  MRR {metrics.mrr:.3f}")
        print(f"{3 * len(queries)} queries in {time.perf_counter() - began:.0f} s")
    ray.shutdown()


if __name__ == "__main__":
    main()
