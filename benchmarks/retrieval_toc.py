"""Retrieval quality on a PDF's own outline: section title → section pages, exactly (±0).

    python benchmarks/retrieval_toc.py [PDF] [--collection DIR]   (octave.pdf by default, see fetch_pdfs.py)

Ingests the PDF through the real pipeline, asks every outline title in each mode, and prints hit@1/5/10 and MRR.
Pages outside the body (contents, index) are left out of the results, since they repeat every title. Titles share their
words with the section; where `<name>_paraphrases.json` lies beside this file (query in other words: part of the title
it is about), those are asked too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.config import DecodeLimits, Settings
from vrag_ray.corpus.sandbox import Sandbox
from vrag_ray.evaluation.metrics import RankMetrics, rank_metrics
from vrag_ray.evaluation.toc import TocQuery, toc_queries
from vrag_ray.index.sharded import ShardedRetriever
from vrag_ray.ingest import ingest
from vrag_ray.types import SearchMode, VragError

DEPTH = 60
BATCH = 64


@dataclass(frozen=True, slots=True)
class Asked:
    """A query and the page ranges that are right for it, 1-based and inclusive."""

    text: str
    right: tuple[tuple[int, int], ...]


def titles(queries: list[TocQuery]) -> list[Asked]:
    return [Asked(query.title, ((query.first_page, query.last_page),)) for query in queries]


def paraphrases(path: Path, queries: list[TocQuery]) -> list[Asked]:
    if not path.exists():
        return []
    asked = []
    for text, title in json.loads(path.read_text(encoding="utf-8")).items():
        right = tuple((q.first_page, q.last_page) for q in queries if title.lower() in q.title.lower())
        if not right:
            raise VragError(f"{path.name}: no section is titled {title!r}")
        asked.append(Asked(text, right))
    return asked


async def evaluate(settings: Settings, queries: list[Asked], body: range) -> dict[SearchMode, RankMetrics]:
    retriever = await ShardedRetriever.start(settings)
    metrics = {}
    for mode in SearchMode:
        relevance = []
        for start in range(0, len(queries), BATCH):
            batch = queries[start : start + BATCH]
            answer = await retriever.search([query.text for query in batch], top_k=DEPTH, mode=mode)
            for query, hits in zip(batch, answer.results, strict=True):
                pages = [hit.passage.locator.page or 0 for hit in hits]
                found = [page for page in pages if page in body]
                relevance.append([any(first <= page <= last for first, last in query.right) for page in found])
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
        other_words = Path(__file__).with_name(f"{arguments.pdf.stem}_paraphrases.json")
        for what, asked in (("titles", titles(queries)), ("paraphrases", paraphrases(other_words, queries))):
            if not asked:
                continue
            began = time.perf_counter()
            found = asyncio.run(evaluate(settings, asked, body))
            print(f"{len(asked)} {what}, {len(found)} modes, {time.perf_counter() - began:.0f} s")
            for mode, metrics in found.items():
                hits = "  ".join(f"hit@{k} {value:.3f}" for k, value in metrics.hit_at.items())
                print(f"  {mode:8s} {hits}  MRR {metrics.mrr:.3f}")
    ray.shutdown()


if __name__ == "__main__":
    main()
