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
from statistics import fmean

sys.path[0] = str(Path(__file__).parent.parent)

from benchmarks.fusions import BASELINES, TRIED, Fusion, shipped
from benchmarks.recorded_legs import DATA, Question, Recording, recorded
from vrag_ray.evaluation.measures.ranking import rank_measures

HYBRID = "**hybrid**"


MEASURES = ("Success@1", "Success@5", "Success@10", "RR")


def measured(recording: Recording, questions: Sequence[Question], fusion: Fusion) -> dict[str, float]:
    """The means of ``MEASURES``."""
    first, last = recording.body
    scored = []
    for question in questions:
        pages = [int(window.split(":")[1].removeprefix("p")) for window in fusion(question)]
        grades = {str(page): 1 for low, high in question.right for page in range(low, high + 1)}
        scored.append(rank_measures([str(page) for page in pages if first <= page <= last], grades, MEASURES))
    return {name: fmean(values[name] for values in scored) for name in MEASURES}


def rows(recording: Recording, fusions: dict[str, Fusion]) -> Iterator[str]:
    """A Markdown table a kind of question."""
    for kind, paraphrase in (("titles", False), ("paraphrases", True)):
        questions = [question for question in recording.questions if question.paraphrase is paraphrase]
        if not questions:
            continue
        metrics = {name: measured(recording, questions, fusion) for name, fusion in fusions.items()}
        better = max(metrics[leg]["Success@1"] for leg in ("lexical", "dense"))
        yield f"\n| {recording.name}: {len(questions)} {kind} | hit@1 | to the better leg | hit@5 | hit@10 | MRR |"
        yield "|---|---|---|---|---|---|"
        for name, means in metrics.items():
            first, fifth, tenth, reciprocal = (means[measure] for measure in MEASURES)
            yield f"| {name} | {first:.3f} | {first - better:+.3f} | {fifth:.3f} | {tenth:.3f} | {reciprocal:.3f} |"


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
