"""``vrag demo``: make a small corpus, ingest it, serve it and answer questions, all on this machine."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.commands.up import ingest_new, say, serving_on_free_port, web_interface
from vrag_ray.cli.console import Echo, ray_behind_terminal
from vrag_ray.cli.options import JsonFlag
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.agent.record import RunRecord
    from vrag_ray.samples.demo.questions import DemoQuestion


def demo(
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Folder of the corpus.")] = Path("demo-corpus"),
    collection: Annotated[
        str | None,
        typer.Option("--collection", "-c", metavar="DIR", help="[default: demo-collection beside the corpus]"),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port.  [default: 8000, or a free one if it is taken]")
    ] = None,
    leave: Annotated[bool, typer.Option("--exit", help="Stop after the answers, as without a terminal.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Make a small corpus, ingest it, serve it, ask three questions of it, and open the web interface."""
    from vrag_ray.cli.commands.serve import stop_event
    from vrag_ray.config import load_settings
    from vrag_ray.samples.demo.corpus import make_corpus

    settings = with_changes(
        load_settings(None), {"collection": collection or str(folder.absolute().parent / "demo-collection")}
    )
    stay = not leave and not as_json and sys.stdin.isatty()
    with ray_behind_terminal() as echo:
        paths = make_corpus(folder)
        say(f"corpus of {len(paths)} files in {folder}")
        ingest_new(paths, settings, meta={"corpus": "demo"})
        with serving_on_free_port(settings, port, "the demo shows what a cluster runs") as service:
            say(f"serving at {service.base_url}")
            outcomes = asyncio.run(_ask_all(service.base_url, None if as_json else echo))
            if as_json:
                echo(json.dumps({"url": service.base_url, "answers": outcomes}))
            if stay:
                with web_interface(service.base_url):
                    say("or go on in another terminal, for example:")
                    say(f'  vrag ask "When was crane 2 inspected?" --url {service.base_url}')
                    stop = stop_event()
                    say("Ctrl-C stops both")
                    stop.wait()
            else:
                say(f"\ngo on with: vrag serve --collection {settings.collection} (needs no cluster)")
    if not all(outcome["as_expected"] for outcome in outcomes):
        typer.echo("notice: an answer is not the expected one", err=True)
        raise typer.Exit(1)


async def _ask_all(base_url: str, echo: Echo | None) -> list[dict[str, object]]:
    from vrag_ray.cli.commands.ask import follow
    from vrag_ray.cli.options import api_key
    from vrag_ray.client.http import AsyncClient
    from vrag_ray.client.schemas import RunRequest
    from vrag_ray.config import AgentName
    from vrag_ray.samples.demo.questions import QUESTIONS

    outcomes: list[dict[str, object]] = []
    async with AsyncClient(base_url, api_key=api_key()) as client:
        for number, question in enumerate(QUESTIONS, start=1):
            if echo is not None:
                echo(f"\n{'=' * 78}\nQuestion {number}, {question.label}: {question.question}\n")
            request = RunRequest(question=question.question, agent=AgentName.EXTRACTIVE)
            record = await follow(client, request, base_url, echo)
            right = is_expected(record, question)
            if echo is not None and not right:
                echo(f"\n(expected: {question.answer}, from {question.source})")
            outcomes.append({"as_expected": right, "expected": question.answer, "run": json.loads(record.to_json())})
    return outcomes


def is_expected(record: RunRecord, question: DemoQuestion) -> bool:
    """Whether the answer holds the expected text and its first source is the right place of the right file."""
    if question.answer not in record.answer or not record.citations:
        return False
    cited = record.citations[0]
    if not cited.uri.endswith(question.source):
        return False
    if question.seconds is not None:
        start, end = question.seconds
        return cited.t_start is not None and cited.t_end is not None and cited.t_start < end and start < cited.t_end
    return cited.page == question.page
