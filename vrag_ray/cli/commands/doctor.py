"""``vrag doctor``: what is installed, what would run, what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.options import ConfigOption, JsonFlag, load

if TYPE_CHECKING:
    from vrag_ray.cli.diagnosis import Diagnosis
    from vrag_ray.config import Settings


EmbedderOption = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="Try this embedder instead: a space of the settings, a hub id, a folder, or package.module:factory.",
    ),
]
CompareFlag = Annotated[
    bool, typer.Option("--engine-compare", help="With --embedder: embed by its other engine too, and compare.")
]


def doctor(
    config: ConfigOption = None,
    as_json: JsonFlag = False,
    embedder: EmbedderOption = None,
    engine_compare: CompareFlag = False,
) -> None:
    """Show what is installed, which profile would run and what is missing. Exits 1 when nothing would run.

    With ``--embedder``, embed a text, a page and a clip made for it, and tell dimensions, norms, vectors, bytes a page,
    speed, memory and what it can read.
    """
    from vrag_ray.cli.diagnosis import diagnose

    if engine_compare and embedder is None:
        raise typer.BadParameter("--engine-compare needs --embedder: which one is to be compared?")
    settings = load(config, None)
    if embedder is not None:
        _try_embedder(embedder, settings, compare=engine_compare, as_json=as_json)
        return
    diagnosis = diagnose(settings)
    if as_json:
        typer.echo(json.dumps(diagnosis.as_dict()))
    else:
        for line in _lines(diagnosis):
            typer.echo(line)
    if diagnosis.missing:
        raise typer.Exit(1)


def _try_embedder(name: str, settings: Settings, *, compare: bool, as_json: bool) -> None:
    from vrag_ray.cli.embedder_check import check_embedder, report_lines

    check = check_embedder(name, settings, compare=compare)
    for line in [json.dumps(check.as_dict())] if as_json else report_lines(check):
        typer.echo(line)


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    machine = diagnosis.machine
    yield f"vrag_ray {diagnosis.vrag_ray}, Python {diagnosis.python}"
    yield f"profile: {diagnosis.profile}"
    yield ""
    shared = "none" if machine.shared_memory_mb is None else f"{machine.shared_memory_mb:,} MiB"
    yield f"machine: {machine.cpus} CPUs, {machine.memory_mb:,} MiB memory, {shared} shared memory"
    yield f"GPUs:    {'; '.join(machine.gpus) or 'none'} (FAISS can use {machine.faiss_gpus})"
    yield ""
    yield "packages"
    for package in diagnosis.packages:
        yield f"  {package.name:14} {package.version or 'absent':22} {package.needed_by:28} {package.licence}"
    yield ""
    yield "models"
    for model in diagnosis.models:
        yield f"  {model.name}: {model.use}, {model.size_mb:g} MB, {model.licence}"
        yield f"    {model.state}"
    yield ""
    yield "licences"
    yield "  vrag_ray is Apache-2.0. PyMuPDF, which reads PDF, is AGPL-3.0 or commercial (Artifex): who offers a"
    yield "  service with it to others must publish its source under the AGPL, or buy the commercial licence."
    for heading, items in (
        ("missing", diagnosis.missing),
        ("lacking for the visual-gpu profile", diagnosis.for_visual_gpu),
        ("notices", diagnosis.notices),
    ):
        if items:
            yield ""
            yield heading
            for item in items:
                yield f"  {item}"
