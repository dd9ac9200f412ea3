"""``vrag ingest``: files and folders into a collection."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.console import ray_behind_terminal
from vrag_ray.cli.options import (
    CollectionOption,
    ConfigOption,
    GpusOption,
    JsonFlag,
    echo_line,
    load,
    parse_meta,
    with_gpus,
)
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import listed_names, names_of, shown_name

if TYPE_CHECKING:
    from vrag_ray.ingest import IngestReport, Source, SpaceReport
    from vrag_ray.ingest.report import FileNotice, GoneFile


MOST_NOTICE_LINES = 20
MOST_FILES_NAMED = 10
MOST_GONE_NAMED = 20


def ingest(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Files, folders, patterns ('papers/**/*.pdf') and URIs (s3://bucket/folder); each row of Parquet.",
        ),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            "--manifest",
            exists=True,
            dir_okay=False,
            help="Table of files with their metadata: .jsonl, .csv or .parquet with a column path.",
        ),
    ] = None,
    content_column: Annotated[
        str | None,
        typer.Option(
            "--content-column",
            metavar="NAME",
            help="Column of Parquet files that holds the documents.  [default: detected by name and type]",
        ),
    ] = None,
    collection: CollectionOption = None,
    meta: Annotated[
        list[str] | None, typer.Option("--meta", metavar="K=V", help="Metadata for all the files (repeatable).")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 when a file cannot be read.")] = False,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Read broken files again.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents whose files are no longer in the folders given.")
    ] = False,
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", min=1, help="Embedding workers.  [default: one for two CPUs, or for a GPU]"),
    ] = None,
    config: ConfigOption = None,
    gpus: GpusOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Add files and folders to a collection. Documents it has are skipped; a broken file does not stop the rest."""
    values = parse_meta(meta, "--meta")
    settings = with_gpus(load(config, collection), gpus)
    typed = {
        "strict": strict or None,
        "retry_errors": retry_errors or None,
        "prune": prune or None,
        "concurrency": concurrency,
        "content_column": content_column,
    }
    changes = {name: value for name, value in typed.items() if value is not None}
    settings = with_changes(settings, {"ingest": with_changes(settings.ingest, changes)})

    from vrag_ray.cli.progress import shown_progress
    from vrag_ray.cluster import refuse_lost_output
    from vrag_ray.ingest import ingest as run_ingest
    from vrag_ray.ingest.manifest import read_manifest
    from vrag_ray.ingest.sources import is_missing

    for path in paths or []:
        # Before a Ray is started for it.
        if is_missing(path):
            raise typer.BadParameter(f"{shown_name(path)} does not exist", param_hint="PATH")
    if not paths and manifest is None:
        raise typer.BadParameter("give files, folders or URIs, or a --manifest", param_hint="PATH")
    listed = read_manifest(manifest) if manifest is not None else []
    sources: list[str | Path | Source] = [*(paths or []), *listed]

    refuse_lost_output("--collection", settings.collection)

    with ray_behind_terminal(at_once=False), shown_progress() as on_progress:
        report = run_ingest(sources, settings, meta=values, on_progress=on_progress, on_line=echo_line)
    if as_json:
        typer.echo(json.dumps({"collection": settings.collection, **asdict(report)}))
    else:
        for line in report_lines(report, settings.collection):
            typer.echo(line)
    if report.failed and settings.ingest.strict:
        raise typer.Exit(1)


def report_lines(report: IngestReport, collection: str) -> list[str]:
    seldom = ((report.duplicates, "the same as another"), (report.renamed, "renamed"))
    others = "".join(f"{count} {what}, " for count, what in seldom if count)
    lines = [
        f"{collection}: {report.added} added, {report.replaced} replaced, {report.skipped} unchanged, {others}"
        f"{len(report.failed)} with errors; {report.pages} pages in {report.seconds:.1f} s; version {report.version}"
    ]
    if report.bottleneck and report.pages:
        lines.append(f"bottleneck: {report.bottleneck}")
    for space in report.spaces:
        if space.embedded or space.failed:
            lines += space_lines(space)
    lines += [f"notice: {notice}" for notice in report.notices]
    lines += [f"notice: {notice}" for notice in file_notice_lines(report.file_notices)]
    lines += gone_lines(report.gone, collection)
    # In the order of the folders, not in that in which several processes met them.
    lines += [f"error: {problem.error}" for problem in sorted(report.failed, key=attrgetter("uri"))]
    return lines


def file_notice_lines(notices: Sequence[FileNotice]) -> list[str]:
    """A line a notice with the files that it is about; those of unchanged files are counted."""
    files: dict[str, list[FileNotice]] = {}
    for notice in notices:
        if not notice.known:
            files.setdefault(notice.notice, []).append(notice)
    lines: list[str] = []
    for words, of_files in files.items():
        others = {notice.other: None for notice in of_files if notice.other}
        names = names_of([*(notice.uri for notice in of_files), *others])[: len(of_files)]
        count = "" if len(names) == 1 else f"{len(names)} files: "
        lines.append(f"{count}{listed_names(names, MOST_FILES_NAMED)}: {words}")
    if len(lines) > MOST_NOTICE_LINES:
        lines[MOST_NOTICE_LINES:] = [f"and {len(lines) - MOST_NOTICE_LINES} more: `vrag documents` has them"]
    if known := len({notice.uri for notice in notices if notice.known}):
        count = "1 unchanged file has" if known == 1 else f"{known} unchanged files have"
        lines.append(f"{count} notices from before: `vrag documents` shows them")
    return lines


def gone_lines(gone: Sequence[GoneFile], collection: str) -> list[str]:
    """Which files are not there any more, and what removes their documents."""
    lines: list[str] = []
    if removed := [document.uri for document in gone if document.removed]:
        lines.append(f"removed: {listed_names(names_of(removed), MOST_GONE_NAMED)}, no longer in the folder")
    left = [document for document in gone if not document.removed]
    if not left:
        return lines
    names = listed_names(names_of([document.uri for document in left]), MOST_GONE_NAMED)
    are = "is gone from its folder and is still searched" if len(left) == 1 else "are gone and are still searched"
    lines.append(f"gone: {names} {are}")
    ids = " ".join(document.doc_id[:12] for document in left[:MOST_GONE_NAMED])
    remedy = f"`vrag delete {ids} -c {shlex.quote(collection)}` removes {'it' if len(left) == 1 else 'them'}"
    emptied = sorted({document.folder for document in left if document.folder})
    if emptied:
        remedy += (
            f". Nothing at all is in {', '.join(emptied)}: is it mounted? --prune removes nothing of such a folder"
        )
    else:
        remedy += ", and so does `vrag ingest --prune` with the same folders"
    return [*lines, f"      {remedy}"]


def space_lines(space: SpaceReport) -> list[str]:
    lines = [
        f"space {space.name} ({space.embedder_id}): {space.embedded} embedded, {len(space.failed)} with errors in "
        f"{space.seconds:.1f} s; {space.passages} in all, {space.bytes_per_passage / 1024:.1f} KB each"
    ]
    if space.bottleneck:
        lines.append(f"bottleneck: {space.bottleneck}")
    return [*lines, *(f"error: {problem.error}" for problem in space.failed)]
