"""``vrag train``: supervised fine-tuning and reinforcement learning from a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vrag_ray.commands.console import ray_behind_terminal

train = typer.Typer(name="train", help="Train the agent's model, supervised or by reinforcement.", no_args_is_help=True)
ConfigFile = Annotated[
    Path, typer.Option("--config", exists=True, dir_okay=False, help="Every setting of the run, in YAML.")
]


@train.command()
def sft(config: ConfigFile) -> None:
    """Learn to say what recorded trajectories say. A run of the same name goes on where it stopped."""
    from vrag_ray.training.config import SFTConfig, load_training
    from vrag_ray.training.launch import train_sft

    run = load_training(config, SFTConfig)
    with ray_behind_terminal() as echo:
        echo(f"trained model: {train_sft(run, echo)}")


@train.command()
def presets() -> None:
    """List the configurations to start from: `preset: NAME` in a configuration takes what it does not set itself."""
    from vrag_ray.training.config import needs_of
    from vrag_ray.training.config import presets as names

    for name in names():
        typer.echo(f"{name}: {needs_of(name)}")


@train.command()
def rl(config: ConfigFile) -> None:
    """Learn from the rewards of sampled runs (GRPO, GSPO, GGPO, …). A run of the same name goes on where it stopped."""
    from vrag_ray.training.config import RLConfig, load_training
    from vrag_ray.training.launch import train_rl

    run = load_training(config, RLConfig)
    with ray_behind_terminal() as echo:
        echo(f"trained model: {train_rl(run, echo)}")
