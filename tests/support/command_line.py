"""Whether the command line takes a command. Nothing is run, and files need not be there."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from vrag_ray.cli.main import make_app


def assert_taken(arguments: list[str]) -> None:
    """Of ``vrag``. Raises typer.TyperException where they are not."""
    _parse(typer.main.get_command(make_app()), "vrag", arguments)


def arguments_of(job: Path, given: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a program of ``jobs/`` hands to ``vrag``."""
    handed: list[list[str]] = []

    def main(arguments: list[str]) -> int:
        handed.append(arguments)
        return 0

    with monkeypatch.context() as patch:
        patch.setattr("vrag_ray.cli.main.main", main)
        patch.setattr(sys, "argv", [str(job), *given])
        with pytest.raises(SystemExit):
            runpy.run_path(str(job), run_name="__main__")
    [arguments] = handed
    return arguments


def _parse(command: Any, name: str, arguments: list[str]) -> None:
    assert isinstance(command, TyperGroup | TyperCommand)
    try:
        context = command.make_context(name, list(arguments))
    except typer.Exit:  # --help, --version
        return
    except typer.TyperException as error:
        if "does not exist" in error.format_message():
            return
        raise
    if isinstance(command, TyperGroup):
        chosen, subcommand, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        _parse(subcommand, str(chosen), rest)
