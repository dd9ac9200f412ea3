"""An evaluation from files to a folder of results: ingest the documents, run the questions, write the results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vrag_ray.config import Settings
from vrag_ray.corpus.model import DecodeOptions
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.evaluation.folder import EvaluationFolder, Header, Kind
from vrag_ray.evaluation.plan import COLLECTION, Plan, environment
from vrag_ray.evaluation.retrieval import evaluate_retrieval
from vrag_ray.evaluation.service import evaluated
from vrag_ray.evaluation.side_by_side import OnDone
from vrag_ray.evaluation.suites.beir import CORPUS, TABLE, beir_suite, corpus_table, judged_queries
from vrag_ray.evaluation.suites.outline import outline_suite
from vrag_ray.evaluation.suites.suite import RetrievalSuite
from vrag_ray.evaluation.suites.trec import write_qrels, write_run
from vrag_ray.evaluation.summary import summaries, table
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.files import digest_of
from vrag_ray.types import HYBRID, VragError
from vrag_ray.types.copies import with_changes

TABLE_MEASURES = (
    *("nDCG@5", "nDCG@10", "R@10", "R@100", "RR", "Success@1", "Success@10"),
    *("box IoU", "right region"),
)

Ingest = Callable[[Sequence[str | Path], Settings], object]
"""``vrag_ray.ingest.ingest``, with what shows its progress."""


def run_outline(
    plan: Plan, pdfs: Sequence[Path], paraphrases: Mapping[str, Path], ingest: Ingest, on_done: OnDone | None
) -> EvaluationFolder:
    """Raises VragError for two PDFs of one name, and as ``outline_suite``."""
    names = [pdf.name for pdf in pdfs]
    if len(set(names)) < len(names):
        raise VragError(f"two of the PDFs have the same name: {', '.join(sorted(names))}")
    settings = plan.own_settings
    options = DecodeOptions.from_config(settings.corpus)
    with Sandbox(settings.corpus.limits) as sandbox:
        probes = {pdf.name: (digest_of(pdf)[0], sandbox.probe(pdf, pdf.name, options)) for pdf in pdfs}
    suite = outline_suite(probes, paraphrases)
    ingest(list(pdfs), settings)
    return asyncio.run(run_suite(plan, settings, suite, on_done, {}))


def run_beir(plan: Plan, folder: Path, split: str, ingest: Ingest, on_done: OnDone | None) -> EvaluationFolder:
    """Raises VragError as ``judged_queries``, before anything is ingested."""
    queries = judged_queries(folder, split)
    # Another corpus of the same name is another collection, and no continuation of this evaluation.
    digest = digest_of(folder / CORPUS)[0][:12]
    place = plan.out / f"corpus-{digest}"
    settings = with_changes(plan.settings, {"collection": str(place / COLLECTION), "collections": {}})
    place.mkdir(parents=True, exist_ok=True)
    corpus = place / TABLE
    if not corpus.exists():
        corpus_table(folder, corpus)
    chosen = with_changes(settings.ingest, {"content_column": "text"})
    ingest([corpus], with_changes(settings, {"ingest": chosen}))
    documents = Collection.open(settings.collection).documents()
    suite = beir_suite(f"{folder.resolve().name}/{split}", queries, documents)
    return asyncio.run(run_suite(plan, settings, suite, on_done, {"corpus": digest}))


async def run_suite(
    plan: Plan, settings: Settings, suite: RetrievalSuite, on_done: OnDone | None, more: Mapping[str, str]
) -> EvaluationFolder:
    """Ask it of the service of ``plan``, else of the collection of ``settings``. ``more`` receives the subject."""
    async with evaluated(settings, plan.service, plan.workers) as (systems, subject):
        modes = plan.modes or (*dict.fromkeys((HYBRID, *subject.legs)),)
        header = Header(
            kind=Kind.RETRIEVAL,
            suite=suite.name,
            suite_hash=suite.digest,
            questions=len(suite.queries),
            subject={**subject.facts, **more},
            systems=modes,
            environment=environment(),
        )
        folder = EvaluationFolder.begin(plan.out, header)
        await evaluate_retrieval(
            systems,
            suite,
            folder,
            concurrency=plan.concurrency,
            collection="" if plan.service is None else plan.service.collection,
            on_done=on_done,
        )
    write_results(folder, {query.uid: query.grades for query in suite.queries})
    return folder


def write_results(folder: EvaluationFolder, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """The table, and TREC's files for other tools."""
    write_table(folder, TABLE_MEASURES)
    write_qrels(folder.root / "qrels.trec", qrels)
    for system in folder.header.systems:
        ranked = {row.uid: row.found for row in folder.rows if row.system == system}
        write_run(folder.root / f"{system}.run.trec", ranked, f"vrag-{system}")


def write_table(folder: EvaluationFolder, measures: Sequence[str]) -> None:
    """Of those of ``measures`` that were taken."""
    there = {name for summary in summaries(folder.rows) for name in summary.means}
    measures = [name for name in measures if name in there]
    text = "\n".join((f"# {folder.header.suite}", "", *table(folder.rows, measures), ""))
    (folder.root / "table.md").write_text(text, encoding="utf-8")
