"""Trajectories of two experts as a Ray job: ``ray job submit --working-dir . -- python jobs/construct.py --config …``.

Runs on the cluster that it was submitted to, so ``output`` must be writable from every node, and the endpoints' keys
must be in every node's environment. Started again with the same configuration it goes on where it stopped.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vrag_ray.types import VragError


def construct(
    config: Annotated[
        Path, typer.Option("--config", exists=True, dir_okay=False, help="Every setting of the run, in YAML.")
    ],
    export: Annotated[
        Path, typer.Option("--export", file_okay=False, help="Folder for the balanced mix in sharegpt form.")
    ],
) -> None:
    """Let a planner and a grounding expert answer questions, and keep what is well-formed and judged right."""
    from vrag_ray.commands.console import ray_behind_terminal
    from vrag_ray.training.config import load_training
    from vrag_ray.training.construct import Outcome
    from vrag_ray.training.construct import construct as run_construct
    from vrag_ray.training.construct_config import ConstructConfig
    from vrag_ray.training.construct_store import ConstructStore, export_sharegpt
    from vrag_ray.training.data import load_examples

    settings = load_training(config, ConstructConfig)
    examples = load_examples(settings.examples)
    with ray_behind_terminal() as echo:

        def tell(outcome: Outcome) -> None:
            echo(f"{outcome.uid}: {outcome.error or outcome.refused or 'kept'}")

        report = run_construct(examples, settings, tell)
        made = export_sharegpt(ConstructStore(settings.output), export, settings.total)
        echo(f"{report.kept} kept, {report.skipped} finished before, {len(report.failed)} failed")
        for reason, count in report.refused.items():
            echo(f"{count} refused: {reason}")
        echo(
            f"{export}: {made.conversations} conversations, {made.images} pictures; "
            f"train with image_max_pixels of at least {made.largest_pixels}"
        )


if __name__ == "__main__":
    try:
        typer.run(construct)
    except VragError as error:
        typer.echo(f"construct: {' '.join(str(error).split())}", err=True)
        sys.exit(1)
