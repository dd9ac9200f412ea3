"""``vrag embed``: fill, rebuild or drop the vector spaces of a collection."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.console import ray_behind_terminal
from vrag_ray.cli.options import CollectionOption, ConfigOption, GpusOption, JsonFlag, echo_line, load, with_gpus
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.config import Settings


def embed(
    collection: CollectionOption = None,
    space: Annotated[
        list[str] | None,
        typer.Option("--space", metavar="NAME", help="A vector space (repeatable).  [default: all]"),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Model of the one --space: a hub id or a folder.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the vectors anew.")] = False,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Try again what could not be embedded.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the spaces instead.")] = False,
    config: ConfigOption = None,
    gpus: GpusOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Fill a vector space of a collection with a model. Vectors that exist are skipped; no document is read again."""
    if (rebuild or drop) and not space:
        raise typer.BadParameter("--rebuild and --drop need --space: name the vector space")
    if model is not None and (space is None or len(space) != 1):
        raise typer.BadParameter("--model needs exactly one --space, the name that its vectors will have")
    settings = with_gpus(load(config, collection), gpus)
    if model is not None and space is not None:
        settings = with_space(settings, space[0], model)

    from vrag_ray.cli.commands.ingest import space_lines
    from vrag_ray.cli.progress import shown_progress
    from vrag_ray.index.storage.writer import CollectionWriter

    if drop:
        with CollectionWriter(settings.collection) as writer:
            for name in space or ():
                writer.spaces.drop(name)
            version = writer.publish(f"dropped {', '.join(space or ())}")
        typer.echo(f"{settings.collection}: dropped {', '.join(space or ())}; version {version}")
        return
    from vrag_ray.ingest.spaces import embed_spaces

    with ray_behind_terminal(at_once=False), shown_progress() as on_progress:
        reports = embed_spaces(
            settings, space, rebuild=rebuild, retry_errors=retry_errors, on_progress=on_progress, on_line=echo_line
        )
    if as_json:
        typer.echo(json.dumps({"collection": settings.collection, "spaces": [asdict(report) for report in reports]}))
        return
    for report in reports:
        for line in space_lines(report):
            typer.echo(line)


def with_space(settings: Settings, name: str, model: str) -> Settings:
    """``settings`` with the model of one space; whatever else is set of that space stays."""
    from pydantic import ValidationError

    from vrag_ray.config import Settings as Checked
    from vrag_ray.config import SpaceConfig

    known = settings.spaces.get(name)
    config = SpaceConfig(model=model) if known is None else with_changes(known, {"model": model})
    try:
        Checked(spaces={name: config})
    except ValidationError as error:
        from vrag_ray.types.errors import validation_message

        raise typer.BadParameter(f"--space {name}: {validation_message(error.errors()[0])}") from error
    return with_changes(settings, {"spaces": {**settings.spaces, name: config}})
