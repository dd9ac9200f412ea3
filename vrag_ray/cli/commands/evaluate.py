"""``vrag evaluate``: how good searches are, on a benchmark or on any PDF, and whether a change made them better."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.commands.evaluate_support import (
    FOLDER,
    AtOnceOption,
    HarboursOption,
    ModeOption,
    OutOption,
    SeedOption,
    Suite,
    WorkersOption,
    about,
    asking,
    counting,
    ingesting,
    show,
    suite_name,
)
from vrag_ray.cli.console import ray_behind_terminal
from vrag_ray.cli.options import (
    CollectionOption,
    ConfigOption,
    GpusOption,
    JsonFlag,
    UrlOption,
    load,
    request_fields,
    with_gpus,
)

if TYPE_CHECKING:
    from vrag_ray.config import Settings
    from vrag_ray.evaluation.compare import Difference

evaluate = typer.Typer(name="evaluate", help="Measure how good searches are, and compare.", no_args_is_help=True)


@evaluate.command()
def outline(
    pdfs: Annotated[list[Path], typer.Argument(metavar="PDF...", exists=True, dir_okay=False)],
    paraphrases: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="JSON of questions and section titles; the n-th file belongs to the n-th PDF (repeatable).",
        ),
    ] = None,
    out: OutOption = None,
    mode: ModeOption = None,
    concurrency: AtOnceOption = 4,
    workers: WorkersOption = 0,
    gpus: GpusOption = None,
    config: ConfigOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Search for each title of a PDF's outline; the pages of its section are relevant. Any PDF with bookmarks works."""
    if len(paraphrases or []) > len(pdfs):
        raise typer.BadParameter("there are more files of paraphrases than PDFs", param_hint="--paraphrases")
    from vrag_ray.evaluation.plan import Plan
    from vrag_ray.evaluation.run import run_outline

    name = f"outline-{pdfs[0].stem}" if len(pdfs) == 1 else f"outline-{len(pdfs)}-pdfs"
    plan = Plan(
        out or Path(FOLDER) / name, with_gpus(load(config, None), gpus), tuple(mode or ()), concurrency, workers=workers
    )
    files = {pdf.name: file for pdf, file in zip(pdfs, paraphrases or [], strict=False)}
    with ingesting() as ingest, asking(workers), counting() as on_done:
        folder = run_outline(plan, pdfs, files, ingest, on_done)
    show(folder, as_json)


@evaluate.command()
def retrieval(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FOLDER|FILE]",
            exists=True,
            help="A data set in the form of BEIR; or a file of questions with gold pages, about --collection or --url.",
        ),
    ] = None,
    suite: Annotated[Suite | None, typer.Option(help="Generated questions instead of FILE.")] = None,
    seed: SeedOption = 0,
    harbours: HarboursOption = 6,
    collection: CollectionOption = None,
    url: UrlOption = None,
    split: Annotated[str, typer.Option(help="Split of the data set: its judgements are in qrels/SPLIT.tsv.")] = "test",
    run: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="TREC run of any system, to score instead.")
    ] = None,
    qrels: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Judgements for --run.")] = None,
    out: OutOption = None,
    mode: ModeOption = None,
    concurrency: AtOnceOption = 4,
    workers: WorkersOption = 0,
    gpus: GpusOption = None,
    config: ConfigOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Search a benchmark (BEIR), or score a TREC run: nDCG, recall, reciprocal rank, success; each leg and fused."""
    if (run is None) != (qrels is None):
        raise typer.BadParameter("--run and --qrels go together")
    if sum(given is not None for given in (source, run, suite)) != 1:
        raise typer.BadParameter("give a FOLDER or FILE, or --suite, or --run and --qrels")
    if run is not None and qrels is not None:
        if out is not None:
            raise typer.BadParameter(
                "scores of --run are printed and not stored: write `--json > FILE`", param_hint="--out"
            )
        if gpus is not None:
            raise typer.BadParameter("scores of --run need no embedder: leave it out", param_hint="--gpus")
        _score(run, qrels, as_json)
        return
    from vrag_ray.evaluation.plan import Plan

    modes = tuple(mode or ())
    if source is None or source.is_file():
        name = f"searches-{suite_name(seed, harbours) if source is None else source.stem}"
        plan = Plan(
            out or Path(FOLDER) / name, with_gpus(load(config, None), gpus, url), modes, concurrency, workers=workers
        )
        from vrag_ray.evaluation.run_questions import run_question_searches

        plan, questions = about(plan, source, seed, harbours, collection, url)
        with asking(workers), counting() as on_done:
            folder = run_question_searches(plan, questions, on_done)
        show(folder, as_json)
        return
    from vrag_ray.evaluation.run import run_beir
    from vrag_ray.evaluation.suites.beir import is_beir

    if not is_beir(source):
        raise typer.BadParameter(f"{source} has no corpus.jsonl and queries.jsonl", param_hint="FOLDER")
    if collection is not None or url is not None:
        raise typer.BadParameter("a data set in the form of BEIR is searched in a collection of its own")
    plan = Plan(
        out or Path(FOLDER) / f"{source.resolve().name}-{split}",
        with_gpus(load(config, None), gpus, url),
        modes,
        concurrency,
        workers=workers,
    )
    with ingesting() as ingest, asking(workers), counting() as on_done:
        folder = run_beir(plan, source, split, ingest, on_done)
    show(folder, as_json)


@evaluate.command(name="mteb")
def mteb_tasks(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Tasks or benchmarks of mteb: 'ViDoRe(v2)'.")],
    out: OutOption = None,
    mode: ModeOption = None,
    gpus: GpusOption = None,
    config: ConfigOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Run retrieval tasks of mteb, ViDoRe among them, by mteb's own runner over this engine. Data is downloaded."""
    from vrag_ray.cli.progress import shown_progress
    from vrag_ray.evaluation.mteb_search import run_mteb, tasks_named
    from vrag_ray.ingest import ingest

    tasks_named(names)
    settings, target = with_gpus(load(config, None), gpus), out or Path(FOLDER) / "mteb"

    def shown(paths: Sequence[str | Path], chosen: Settings) -> None:
        with shown_progress() as on_progress:
            ingest(paths, chosen, on_progress=on_progress)

    with ray_behind_terminal(at_once=False):
        scores = run_mteb(settings, names, target, shown, mode or ["hybrid"])
    if as_json:
        typer.echo(json.dumps(scores))
        return
    for queries, by_task in scores.items():
        for task, score in by_task.items():
            typer.echo(f"{task:40} {queries:10} {score:.4f}")
    typer.echo(f"mteb's own results and predictions are in {target}")


@evaluate.command()
def answers(
    examples: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            exists=True,
            dir_okay=False,
            help="Questions, answers, gold pages: the original's unified JSON or Parquet, JSON lines, or the files of "
            "MMLongBench-Doc, SlideVQA, FinanceBench, CiteVQA and DocScope.",
        ),
    ] = None,
    suite: Annotated[Suite | None, typer.Option(help="Generated documents and questions instead of FILE.")] = None,
    seed: SeedOption = 0,
    harbours: HarboursOption = 6,
    collection: CollectionOption = None,
    url: UrlOption = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(help="Agent: extractive, or with a model vimrag or vrag (repeatable).  [default: the server's]"),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Runs of each question; the report gives the spread.")] = 1,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Endpoint of a judge, up to /v1 (repeatable; the first decides, the report gives their agreement).",
        ),
    ] = None,
    judge_model: Annotated[
        list[str] | None, typer.Option(help="Name of the judge model; the n-th name belongs to the n-th --judge.")
    ] = None,
    out: OutOption = None,
    concurrency: AtOnceOption = 4,
    workers: WorkersOption = 0,
    gpus: GpusOption = None,
    config: ConfigOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Ask agents questions with known answers: exact match, F1, ANLS, a judge's verdict, abstentions, citations."""
    if len(judge or []) != len(judge_model or []):
        raise typer.BadParameter("--judge and --judge-model go together")
    if (examples is None) == (suite is None):
        raise typer.BadParameter("give a FILE, or --suite")
    from vrag_ray.config import OpenAiConfig
    from vrag_ray.evaluation.plan import Plan
    from vrag_ray.evaluation.run_questions import run_answers

    with request_fields():
        endpoints = tuple(
            OpenAiConfig(base_url=where, model=model, temperature=0.0)
            for where, model in zip(judge or [], judge_model or [], strict=True)
        )
    name = suite_name(seed, harbours) if examples is None else f"answers-{examples.stem}"
    plan = Plan(
        out or Path(FOLDER) / name,
        with_gpus(load(config, None), gpus, url),
        concurrency=concurrency,
        workers=workers,
        samples=samples,
        judges=endpoints,
    )
    plan, questions = about(plan, examples, seed, harbours, collection, url)
    with asking(workers), counting("questions") as on_done:
        folder = run_answers(plan, questions, agent or [], on_done)
    show(folder, as_json)


@evaluate.command()
def compare(
    first: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Evaluation before the change.")],
    second: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Evaluation after the change.")],
    measure: Annotated[
        list[str] | None, typer.Option(help="Measure to compare (repeatable).  [default: all that both have]")
    ] = None,
    system: Annotated[str, typer.Option(help="Mode or agent of the first evaluation.  [default: the only one]")] = "",
    second_system: Annotated[
        str, typer.Option(help="Mode or agent of the second evaluation.  [default: that of the first]")
    ] = "",
    not_worse_than: Annotated[
        float | None,
        typer.Option(metavar="POINTS", min=0, help="Exit 1 if a mean fell by more than this many hundredths."),
    ] = None,
    listed: Annotated[int, typer.Option(min=0, help="Won and lost questions to list.")] = 5,
    as_json: JsonFlag = False,
) -> None:
    """Compare two evaluations of the same questions: paired differences with 95 % intervals, and who won where."""
    from vrag_ray.evaluation.compare import compared, refuse_other_questions, rows_of
    from vrag_ray.evaluation.folder import EvaluationFolder
    from vrag_ray.evaluation.summary import measure_names

    before, after = EvaluationFolder.open(first), EvaluationFolder.open(second)
    refuse_other_questions(before, after)
    old, new = rows_of(before, system), rows_of(after, second_system or system)
    names = measure or [name for name in measure_names(old) if name in measure_names(new)]
    differences = [compared(old, new, name) for name in names]
    changed = [field for field in after.header.differs_from(before.header) if not field.startswith("systems:")]
    if as_json:
        typer.echo(json.dumps({"changed": changed, "differences": [asdict(difference) for difference in differences]}))
    else:
        for line in _difference_lines(differences, changed, {row.uid: row.question for row in new}, listed):
            typer.echo(line)
    fallen = [
        difference.measure
        for difference in differences
        if not_worse_than is not None and difference.mean * 100 < -not_worse_than
    ]
    if fallen:
        typer.echo(f"worse by more than {not_worse_than:g} points: {', '.join(fallen)}", err=True)
        raise typer.Exit(1)


@evaluate.command()
def report(
    evaluation: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of an evaluation.")],
    out: Annotated[
        Path | None, typer.Option("--out", dir_okay=False, help="[default: report.html in the folder]")
    ] = None,
) -> None:
    """Write an evaluation as one HTML file: tables, curves, every question. It loads nothing, so it can be sent on."""
    from vrag_ray.evaluation.folder import EvaluationFolder
    from vrag_ray.evaluation.report.page import report_page

    target = out or evaluation / "report.html"
    target.write_text(report_page(EvaluationFolder.open(evaluation)), encoding="utf-8")
    typer.echo(target)


def _difference_lines(
    differences: Sequence[Difference], changed: Sequence[str], questions: dict[str, str], listed: int
) -> Iterator[str]:
    for name in changed:
        yield f"changed: {name}"
    for difference in differences:
        verdict = (
            ("better" if difference.mean > 0 else "worse")
            if difference.is_there
            else "no difference that is more than chance"
        )
        yield (
            f"{difference.measure:12} {difference.first:.3f} -> {difference.second:.3f}  {difference.mean:+.3f} "
            f"[{difference.low:+.3f}, {difference.high:+.3f}]  "
            f"{len(difference.wins)} won, {len(difference.losses)} lost of {difference.questions}: {verdict}"
        )
    for difference in differences[:1]:
        for name, uids in (("won", difference.wins), ("lost", difference.losses)):
            for uid in uids[:listed]:
                yield f"  {name} ({difference.measure}): {questions[uid]}  [{uid}]"


def _score(run: Path, qrels: Path, as_json: bool) -> None:
    from vrag_ray.evaluation.measures.ranking import in_order, rank_measures
    from vrag_ray.evaluation.suites.trec import read_qrels, read_run

    scores, grades = read_run(run), read_qrels(qrels)
    measured = [rank_measures(in_order(scores.get(query, {})), judged) for query, judged in grades.items()]
    if not measured:
        raise typer.BadParameter(f"{qrels} judges nothing", param_hint="--qrels")
    means = {name: sum(values[name] for values in measured) / len(measured) for name in measured[0]}
    if as_json:
        typer.echo(json.dumps({"queries": len(measured), "means": means}))
        return
    typer.echo(f"{len(measured)} queries")
    for name, value in means.items():
        typer.echo(f"{name:12} {value:.4f}")
