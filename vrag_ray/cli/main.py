"""``vrag``: the command line. Errors are one line on standard error; exit code 1 means failed, 2 wrongly used.

130 means interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from vrag_ray.cli.commands.ask import ask
from vrag_ray.cli.commands.collection import create, delete, documents, verify, versions
from vrag_ray.cli.commands.demo import demo
from vrag_ray.cli.commands.doctor import doctor
from vrag_ray.cli.commands.embed import embed
from vrag_ray.cli.commands.evaluate import evaluate
from vrag_ray.cli.commands.ingest import ingest
from vrag_ray.cli.commands.mcp import mcp
from vrag_ray.cli.commands.plan import plan
from vrag_ray.cli.commands.search import search
from vrag_ray.cli.commands.serve import serve
from vrag_ray.cli.commands.train import train
from vrag_ray.cli.commands.ui import ui
from vrag_ray.cli.commands.up import up
from vrag_ray.cli.console import is_debugging, report_interrupt, show_debug_output
from vrag_ray.types import VragError
from vrag_ray.types.file_names import shown_name

USAGE = 2
COMMANDS = (
    *(up, demo, ingest, embed, search, ask, serve, ui, mcp),
    *(create, documents, delete, versions, verify, doctor, plan),
)


def make_app() -> typer.Typer:
    app = typer.Typer(
        name="vrag",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_top)
    for command in COMMANDS:
        app.command()(command)
    app.add_typer(train)
    app.add_typer(evaluate)
    return app


def _print_version(show: bool) -> None:
    if show:
        from vrag_ray import __version__

        typer.echo(__version__)
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")] = False,
) -> None:
    """Answers over PDF pages, slides, pictures, videos and text, with cited evidence."""
    del version, debug  # the one has its callback; main reads the other, which must hold before this is called


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; the console script ends the process with it."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the terminal cannot write ends no command.
            stream.reconfigure(errors="backslashreplace")
    if "--debug" in given:
        show_debug_output()
    try:
        code = make_app()(given or ["--help"], prog_name="vrag", standalone_mode=False)
    except VragError as error:
        return _fail(error, str(error), 1)
    except typer.TyperException as error:
        return _fail(error, error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort) as error:
        if is_debugging():
            traceback.print_exception(error)
        return report_interrupt(error if isinstance(error, KeyboardInterrupt) else KeyboardInterrupt())
    except Exception as error:  # noqa: BLE001  a fault of this program: reported like any other, traced on request
        return _fail(error, _unforeseen(error), 1)
    if not given:
        return USAGE
    return code if isinstance(code, int) else 0


def _unforeseen(error: Exception) -> str:
    from vrag_ray.index.storage.errors import fault_of

    if fault_of(error) is not None:
        # Of a file that is no collection's: Ray's session folder, a log, a model.
        return f"the system refused: {error}"
    hint = "" if is_debugging() else " (put --debug before the command to see where)"
    return f"internal error: {type(error).__name__}: {error}{hint}"


def _fail(error: BaseException, message: str, code: int) -> int:
    if is_debugging():
        traceback.print_exception(error)
    typer.echo(f"vrag: {shown_name(' '.join(message.split()))}", err=True)
    return code
