"""Retrieval quality on PDFs' own outlines: section title → section pages, exactly (±0), in each leg and fused.

    python benchmarks/retrieval_toc.py [PDF …] [--tried]   (octave.pdf by default, see fetch_pdfs.py)

Ingests each PDF through the real pipeline, asks both legs every outline title and every paraphrase there is
(`recorded_legs.py`), and prints hit@1/5/10 and MRR as a table. Pages outside the body (contents, index) are left out of
the results, since they repeat every title. Titles share their words with the section and so flatter the lexical leg;
paraphrases avoid them. `--tried` adds the fusions that were not chosen. "to the better leg" is hit@1 less that of the
better of the two legs.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path[0] = str(Path(__file__).parent.parent)

from benchmarks.fusions import BASELINES, TRIED, Fusion, shipped
from benchmarks.recorded_legs import DATA, Question, Recording, recorded
from vrag_ray.evaluation.metrics import RankMetrics, rank_metrics

HYBRID = "**hybrid**"


def measured(recording: Recording, questions: Sequence[Question], fusion: Fusion) -> RankMetrics:
    relevance = []
    first, last = recording.body
    for question in questions:
        pages = [int(window.split(":")[1].removeprefix("p")) for window in fusion(question)]
        found = [page for page in pages if first <= page <= last]
        relevance.append([any(low <= page <= high for low, high in question.right) for page in found])
    return rank_metrics(relevance)


def rows(recording: Recording, fusions: dict[str, Fusion]) -> Iterator[str]:
    """A Markdown table a kind of question."""
    for kind, paraphrase in (("titles", False), ("paraphrases", True)):
        questions = [question for question in recording.questions if question.paraphrase is paraphrase]
        if not questions:
            continue
        metrics = {name: measured(recording, questions, fusion) for name, fusion in fusions.items()}
        better = max(metrics["lexical"].hit_at[1], metrics["dense"].hit_at[1])
        yield f"\n| {recording.name}: {len(questions)} {kind} | hit@1 | to the better leg | hit@5 | hit@10 | MRR |"
        yield "|---|---|---|---|---|---|"
        for name, found in metrics.items():
            at = {k: f"{value:.3f}" for k, value in found.hit_at.items()}
            yield f"| {name} | {at[1]} | {found.hit_at[1] - better:+.3f} | {at[5]} | {at[10]} | {found.mrr:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdfs", type=Path, nargs="*", metavar="PDF", default=[DATA / "octave.pdf"])
    parser.add_argument("--tried", action="store_true")
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    fusions = {**BASELINES, HYBRID: shipped, **(TRIED if arguments.tried else {})}
    try:
        for pdf in arguments.pdfs:
            for row in rows(recorded(pdf, start_ray), fusions):
                print(row, flush=True)
    finally:
        ray.shutdown()


def start_ray() -> None:
    """For ingest, and only where a recording has to be made."""
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=16, include_dashboard=False, logging_level=logging.WARNING, log_to_driver=False)


if __name__ == "__main__":
    main()
