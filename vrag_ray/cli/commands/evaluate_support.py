"""What the commands of ``vrag evaluate`` share: options, a Ray where one is needed, progress, and the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.console import ray_behind_terminal
from vrag_ray.cli.options import api_key
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.config import Settings
    from vrag_ray.evaluation.folder import EvaluationFolder
    from vrag_ray.evaluation.plan import Plan
    from vrag_ray.evaluation.run import Ingest

FOLDER = "vrag-evaluations"


class Suite(StrEnum):
    """Questions that need no file."""

    GENERATED = "generated"


OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help=f"Folder of the results; a killed run goes on in it.  [default: below {FOLDER}]"
    ),
]
ModeOption = Annotated[
    list[str] | None, typer.Option("--mode", help="hybrid, or a leg (repeatable).  [default: all there are]")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of --suite: another seed makes other documents.")]
HarboursOption = Annotated[int, typer.Option(min=2, max=20, help="Harbours of --suite, each with twelve questions.")]
AtOnceOption = Annotated[int, typer.Option("--concurrency", min=1, help="Questions that run concurrently.")]
WorkersOption = Annotated[
    int, typer.Option(min=0, help="Ray actors that ask the questions.  [default: none, this process asks]")
]


def suite_name(seed: int, harbours: int) -> str:
    return f"generated-{harbours}-{seed}"


def about(
    plan: Plan, questions: Path | None, seed: int, harbours: int, collection: str | None, url: str | None
) -> tuple[Plan, Path]:
    """The questions and the system: a file about a collection or a service, or the generated suite about its own."""
    from vrag_ray.evaluation.service import Service
    from vrag_ray.system.here import require_collection

    if questions is None:
        if collection is not None or url is not None:
            raise typer.BadParameter("--suite makes a collection of its own: leave --collection and --url out")
        from vrag_ray.samples.harbours.suite import write_suite

        documents, questions = write_suite(plan.out / "suite", seed, harbours)
        plan = replace(plan, settings=plan.own_settings, name=suite_name(seed, harbours))
        with ingesting() as ingest:
            ingest([documents], plan.settings)
    elif url is not None:
        if plan.workers:
            raise typer.BadParameter("a running service is called from this process: leave --workers out, or --url")
        service = Service(url, api_key(), collection or "")
        return replace(plan, service=service), questions
    elif collection is not None:
        plan = replace(plan, settings=with_changes(plan.settings, {"collection": collection}))
    require_collection(plan.settings.collection)
    return plan, questions


def show(folder: EvaluationFolder, as_json: bool) -> None:
    if as_json:
        from vrag_ray.evaluation.summary import summaries

        result = {"folder": str(folder.root), "summaries": [asdict(summary) for summary in summaries(folder.rows)]}
        typer.echo(json.dumps(result))
        return
    typer.echo((folder.root / "table.md").read_text(encoding="utf-8"))
    typer.echo(f"in {folder.root}; `vrag evaluate report {folder.root}` makes one file of it")


@contextmanager
def ingesting() -> Iterator[Ingest]:
    """``ingest`` with its progress shown. Errors of documents are printed and stop nothing."""
    from vrag_ray.cli.progress import shown_progress
    from vrag_ray.ingest import ingest

    def shown(paths: Sequence[str | Path], settings: Settings) -> None:
        with ray_behind_terminal(at_once=False), shown_progress() as on_progress:
            report = ingest(paths, settings, on_progress=on_progress)
        for line in (*report.notices, *(problem.error for problem in report.failed)):
            typer.echo(line, err=True)

    yield shown


@contextmanager
def asking(workers: int) -> Iterator[None]:
    """With a Ray for the actors that ask, where there are any."""
    if not workers:
        yield
        return
    with ray_behind_terminal():
        yield


@contextmanager
def counting(what: str = "searches") -> Iterator[Callable[[int, int], None]]:
    """A line on standard error now and then."""
    import time

    reported = time.monotonic()

    def on_done(done: int, total: int) -> None:
        nonlocal reported
        if done == total or time.monotonic() - reported > 5.0:
            reported = time.monotonic()
            typer.echo(f"{done:,} of {total:,} {what}", err=True)

    yield on_done
