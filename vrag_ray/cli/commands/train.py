"""``vrag train``: expert trajectories, supervised fine-tuning, reinforcement learning, and retrievers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.console import ray_behind_terminal

if TYPE_CHECKING:
    from pydantic import BaseModel

train = typer.Typer(name="train", help="Train the agent's model, or a retriever.", no_args_is_help=True)
ConfigFile = Annotated[
    Path, typer.Option("--config", exists=True, dir_okay=False, help="Every setting of the run, in YAML.")
]
Check = Annotated[
    bool,
    typer.Option("--check", help="Print every setting, check what the run reads, and start nothing."),
]


@train.command()
def sft(config: ConfigFile, check: Check = False) -> None:
    """Supervised fine-tuning on recorded runs or on an export of `construct`. A run of the same name is resumed."""
    from vrag_ray.training.config import SFTConfig, load_training
    from vrag_ray.training.launch import checked_sft, train_sft

    run = load_training(config, SFTConfig)
    if check:
        _show(*checked_sft(run))
        return
    with ray_behind_terminal(at_once=False) as echo:
        echo(f"trained model: {train_sft(run, echo)}")


@train.command()
def retriever(config: ConfigFile, check: Check = False) -> None:
    """Train a retriever on pairs of a query and its relevant passage. A run of the same name is resumed.

    `model.path` is a retriever (ColQwen2, Qwen3-VL-Embedding) or a vision-language model to make one of.
    """
    from vrag_ray.training.config import load_training
    from vrag_ray.training.launch import checked_retriever, train_retriever
    from vrag_ray.training.retriever.config import RetrieverConfig

    run = load_training(config, RetrieverConfig)
    if check:
        _show(*checked_retriever(run))
        return
    with ray_behind_terminal(at_once=False) as echo:
        echo(f"trained retriever: {train_retriever(run, echo)}")


@train.command()
def presets() -> None:
    """List the presets: `preset: NAME` in a configuration supplies what it does not set itself."""
    from vrag_ray.planning.memory_plan import preset_plan
    from vrag_ray.training.config import preset_config
    from vrag_ray.training.config import presets as names

    for name in names():
        typer.echo(f"{name}: {preset_config(name).made_for}")
        plan = preset_plan(name)
        if plan is not None:
            typer.echo(f"    {plan}")


@train.command()
def rl(config: ConfigFile, check: Check = False) -> None:
    """Reinforcement learning on sampled runs (GRPO, GSPO, GGPO, …). A run of the same name is resumed."""
    from vrag_ray.training.config import RLConfig, load_training
    from vrag_ray.training.launch import checked_rl, train_rl

    run = load_training(config, RLConfig)
    if check:
        _show(*checked_rl(run))
        return
    with ray_behind_terminal(at_once=False) as echo:
        echo(f"trained model: {train_rl(run, echo)}")


@train.command()
def construct(
    config: ConfigFile,
    export: Annotated[
        Path | None, typer.Option("--export", file_okay=False, help="Folder for the balanced mix, which `sft` reads.")
    ] = None,
    check: Check = False,
) -> None:
    """Build training data: a planner and a grounding expert answer; well-formed runs that are judged right stay.

    Started again with the same configuration it goes on where it stopped.
    """
    from vrag_ray.cluster import refuse_lost_output
    from vrag_ray.questions.files import load_examples
    from vrag_ray.training.config import load_training
    from vrag_ray.training.construct.config import ConstructConfig
    from vrag_ray.training.construct.pipeline import Outcome, checked
    from vrag_ray.training.construct.pipeline import construct as run_construct
    from vrag_ray.training.construct.store import ConstructStore, export_sharegpt

    settings = load_training(config, ConstructConfig)
    if check:
        _show(settings, checked(load_examples(settings.examples), settings))
        return
    if export is None:
        raise typer.BadParameter("give the folder for the balanced mix, which `sft` reads", param_hint="--export")
    refuse_lost_output("output", settings.output)
    refuse_lost_output("--export", str(export))
    examples = load_examples(settings.examples)
    with ray_behind_terminal(at_once=False) as echo:

        def tell(outcome: Outcome) -> None:
            echo(f"{outcome.uid}: {outcome.error or outcome.refused or 'kept'}")

        report = run_construct(examples, settings, tell)
        made = export_sharegpt(ConstructStore(settings.output), export, settings.total)
        echo(f"{report.kept} kept, {report.skipped} finished before, {len(report.failed)} failed")
        for reason, count in report.refused.items():
            echo(f"{count} refused: {reason}")
        echo(f"{export}: {made.conversations} conversations, {made.images} pictures")
        echo(f"`vrag train sft` learns from it: trajectories: {export}")
        echo(f"LLaMA-Factory does so with image_max_pixels of at least {made.largest_pixels}")


def _show(config: BaseModel, found: str) -> None:
    import yaml

    typer.echo(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False) + f"# {found}")
