"""``vrag demo``: a small corpus, made, ingested, served and asked, all on this machine."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.commands.console import Echo, ray_behind_terminal
from vrag_ray.commands.options import JsonFlag

if TYPE_CHECKING:
    from vrag_ray.agent.record import RunRecord
    from vrag_ray.config import Settings
    from vrag_ray.demo.questions import DemoQuestion


def demo(
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Where the corpus goes.")] = Path("demo-corpus"),
    collection: Annotated[
        str | None,
        typer.Option("--collection", "-c", metavar="DIR", help="[default: demo-collection beside the corpus]"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port.  [default: 8000, or a free one if it is taken]")
    ] = None,
    leave: Annotated[
        bool, typer.Option("--exit", help="Stop after the answers. So it does without a terminal.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a small corpus, ingest it, serve it, ask three questions of it, and open the web interface."""
    from vrag_ray.config import load_settings

    settings = load_settings(None).model_copy(
        update={"collection": collection or str(folder.absolute().parent / "demo-collection")}
    )
    stay = not leave and not as_json and sys.stdin.isatty()
    with ray_behind_terminal() as echo:
        _ingest(folder, settings)
        _serve_and_ask(settings, port, echo, stay=stay, as_json=as_json)


def _ingest(folder: Path, settings: Settings) -> None:
    from vrag_ray.commands.ingest import report_lines
    from vrag_ray.commands.progress import shown_progress
    from vrag_ray.demo.corpus import make_corpus
    from vrag_ray.ingest import ingest

    paths = make_corpus(folder)
    _say(f"corpus of {len(paths)} files in {folder}")
    with shown_progress() as on_progress:
        report = ingest(paths, settings, meta={"corpus": "demo"}, on_progress=on_progress)
    for line in report_lines(report, settings.collection):
        _say(line)


def _serve_and_ask(settings: Settings, port: int | None, echo: Echo, *, stay: bool, as_json: bool) -> None:
    from vrag_ray.serving.local import start_serving

    if port is None:
        port = settings.serving.port
        if _is_taken(settings.serving.host, port):
            _say(f"port {port} is taken, a free one is used")
            port = 0
    service = start_serving(settings, port)
    try:
        _say(f"serving at {service.base_url}")
        outcomes = asyncio.run(_ask_all(service.base_url, None if as_json else echo))
        if as_json:
            echo(json.dumps({"url": service.base_url, "answers": outcomes}))
        if stay:
            _stay(service.base_url)
        else:
            _say(f"\ngo on with: vrag serve --collection {settings.collection}")
    finally:
        service.stop()
    if not all(outcome["as_expected"] for outcome in outcomes):
        typer.echo("notice: an answer is not the expected one", err=True)
        raise typer.Exit(1)


def _stay(base_url: str) -> None:
    """With the web interface beside the server, until a signal comes."""
    from vrag_ray.commands.serve import wait_for_signal
    from vrag_ray.commands.ui import DEFAULT_PORT, launch_of

    port = _free_port() if _is_taken("127.0.0.1", DEFAULT_PORT) else DEFAULT_PORT
    launch = launch_of(base_url, "127.0.0.1", port)
    shown = subprocess.Popen(launch.command, env=launch.environment, stdout=sys.stderr)  # noqa: S603  our own command
    try:
        _say(f"\nthe web interface is at {launch.address}")
        _say("or go on in another terminal, for example:")
        _say(f'  vrag ask "When was crane 2 inspected?" --url {base_url}')
        _say("Ctrl-C stops both")
        wait_for_signal()
    finally:
        shown.terminate()
        shown.wait()


async def _ask_all(base_url: str, echo: Echo | None) -> list[dict[str, object]]:
    from vrag_ray.api import RunRequest
    from vrag_ray.client import AsyncClient
    from vrag_ray.commands.ask import follow
    from vrag_ray.commands.options import api_key
    from vrag_ray.demo.questions import QUESTIONS

    outcomes: list[dict[str, object]] = []
    async with AsyncClient(base_url, api_key=api_key()) as client:
        for number, asked in enumerate(QUESTIONS, start=1):
            if echo is not None:
                echo(f"\n{'=' * 78}\nQuestion {number}, {asked.label}: {asked.question}\n")
            record = await follow(client, RunRequest(question=asked.question), base_url, echo)
            right = is_expected(record, asked)
            if echo is not None and not right:
                echo(f"\n(expected: {asked.answer}, from {asked.source})")
            outcomes.append({"as_expected": right, "expected": asked.answer, "run": json.loads(record.to_json())})
    return outcomes


def is_expected(record: RunRecord, asked: DemoQuestion) -> bool:
    """Whether the answer holds the expected text and its first source is the right place of the right file."""
    if asked.answer not in record.answer or not record.citations:
        return False
    cited = record.citations[0]
    if not cited.uri.endswith(asked.source):
        return False
    if asked.seconds is not None:
        start, end = asked.seconds
        return cited.t_start is not None and cited.t_end is not None and cited.t_start < end and start < cited.t_end
    return cited.page == asked.page


def _is_taken(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _say(text: str) -> None:
    typer.echo(text, err=True)
