"""``vrag ask``: one question, the steps as they happen, the answer with its sources, and the memory graph."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.options import (
    CollectionsOption,
    ConfigOption,
    DocOption,
    GpusOption,
    JsonFlag,
    KindOption,
    UrlOption,
    WhereOption,
    chosen_collections,
    load_several,
    parse_evidence,
    parse_filter,
    picture_url,
    request_fields,
    with_gpus,
)
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.agent.record import RunRecord
    from vrag_ray.cli.console import Echo
    from vrag_ray.client.contract import System
    from vrag_ray.client.schemas import RunRequest


def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="Question, in quotes.")],
    collection: CollectionsOption = None,
    url: UrlOption = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Agent: extractive, or with a model vimrag or vrag.  [default: the server's]"),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=2, max=100, help="Maximum number of steps.")
    ] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, max=50, help="Hits of one search.")] = None,
    thinking: Annotated[
        bool | None, typer.Option("--thinking/--no-thinking", help="The model's own thinking phase.")
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="Deadline of the run.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, metavar="FILE", help="Picture that the question is about."),
    ] = None,
    evidence: Annotated[
        str | None, typer.Option(metavar="FORM", help="What a model is given of pages: picture, text or both.")
    ] = None,
    doc: DocOption = None,
    kind: KindOption = None,
    where: WhereOption = None,
    dot: Annotated[
        Path | None, typer.Option("--dot", metavar="FILE", dir_okay=False, help="Write the graph here, for Graphviz.")
    ] = None,
    config: ConfigOption = None,
    gpus: GpusOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Answer a question with cited evidence. Exits 1 when the run fails; an abstention is an answer."""
    if not question.strip():
        raise typer.BadParameter("the question is empty")
    narrowed = parse_filter(doc, kind, where)
    form = parse_evidence(evidence)
    settings = with_gpus(load_several(config, collection, url), gpus, url)

    from vrag_ray.agent.events import RunStatus
    from vrag_ray.cli.system import with_system
    from vrag_ray.client.schemas import RunRequest

    with request_fields():
        request = RunRequest(
            question=question,
            agent=agent,
            max_steps=max_steps,
            top_k=top_k,
            evidence=form,
            picture=picture_url(picture) if picture is not None else None,
            thinking=thinking,
            deadline_s=deadline,
            collection=chosen_collections(settings, collection, url),
            filter=narrowed,
        )

    async def use(system: System, base_url: str | None, echo: Echo) -> RunRecord:
        return await follow(system, request, base_url, None if as_json else echo)

    record = with_system(url, settings, collection_typed=bool(collection), use=use)
    if dot is not None:
        _write_dot(dot, record)
    if as_json:
        typer.echo(record.to_json())
    if record.status in (RunStatus.ERROR, RunStatus.CANCELLED):
        raise typer.Exit(1)


def _write_dot(path: Path, record: RunRecord) -> None:
    from vrag_ray.agent.memory.graph_dot import dot
    from vrag_ray.types import VragError

    try:
        path.write_text(dot(record.graph), encoding="utf-8")
    except OSError as error:
        raise VragError(f"cannot write the graph to {path}: {error.strerror}") from error


async def follow(system: System, request: RunRequest, base_url: str | None, echo: Echo | None) -> RunRecord:
    """Ask, print the steps as they happen and then the outcome, if at all, and return the record."""
    from vrag_ray.agent.events import ThinkEvent
    from vrag_ray.cli.show import answer_lines, graph_lines
    from vrag_ray.views.words import event_lines

    run_id = uuid.uuid4().hex
    thought: ThinkEvent | None = None
    async for event in system.ask(with_changes(request, {"run_id": run_id})):
        if isinstance(event, ThinkEvent):
            # Thoughts come in pieces: a line for each would be a column of words.
            thoughts = thought.content + event.content if thought is not None else event.content
            thought = with_changes(event, {"content": thoughts})
            continue
        for shown in (thought, event):
            if shown is not None and echo is not None:
                for line in event_lines(shown):
                    echo(line)
        thought = None
    record = await system.run(run_id)
    if echo is not None:
        for line in ("", *answer_lines(record, base_url), "", *graph_lines(record.graph)):
            echo(line)
    return record
