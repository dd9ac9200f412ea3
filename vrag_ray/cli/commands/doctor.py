"""``vrag doctor``: what is installed, what would run, what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from vrag_ray.cli.options import ConfigOption, JsonFlag, load

if TYPE_CHECKING:
    from vrag_ray.cli.diagnosis import Diagnosis


def doctor(config: ConfigOption = None, as_json: JsonFlag = False) -> None:
    """Tell what is installed, which profile would run and what is missing. Exits 1 when nothing would run."""
    from vrag_ray.cli.diagnosis import diagnose

    diagnosis = diagnose(load(config, None))
    if as_json:
        typer.echo(json.dumps(diagnosis.as_dict()))
    else:
        for line in _lines(diagnosis):
            typer.echo(line)
    if diagnosis.missing:
        raise typer.Exit(1)


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
    yield "  vrag_ray is Apache-2.0. PyMuPDF, which reads PDF, is AGPL-3.0 or commercial (Artifex): whoever offers a"
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
