"""``vrag up``: from a folder to a running system: ingest what is new, serve, open the web interface, until stopped."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.console import ray_behind_terminal
from vrag_ray.cli.options import GpusOption, RayFlag, request_fields, with_gpus
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import expanded, shown_name

if TYPE_CHECKING:
    from vrag_ray.config import AgentName, Settings
    from vrag_ray.serving.local import LocalService
    from vrag_ray.types import MetaValue

CPU_CONTEXT = 12_288
"""Tokens of prompt and reply that a model on the CPU is given: a longer prompt takes minutes to read."""
INTERFACE_STARTS_WITHIN_S = 60.0
INTERFACE_STOPS_WITHIN_S = 10.0
WATCH_EVERY_S, SETTLED_S, AGAIN_AFTER_S = 2.0, 1.0, 30.0
"""How often a folder is looked at, how long it must rest after a change, and the wait after an ingest that failed."""


def up(
    paths: Annotated[list[Path], typer.Argument(exists=True, metavar="FOLDER", help="Folders and files to ingest.")],
    collection: Annotated[
        str | None,
        typer.Option(
            "--collection", "-c", metavar="DIR", help="Folder of the collection.  [default: FOLDER-collection]"
        ),
    ] = None,
    openai: Annotated[
        str | None, typer.Option("--openai", metavar="URL", help="An OpenAI-compatible endpoint, up to /v1.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="The endpoint's name of the model.")] = None,
    vllm: Annotated[
        str | None, typer.Option("--vllm", metavar="PATH_OR_ID", help="A model to load here: a folder or a hub id.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Default agent: extractive, or with a model vimrag or vrag.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, metavar="FILE", help="A Serve config or settings, in YAML."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port.  [default: 8000, or a free one if it is taken]")
    ] = None,
    ui_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Its port.  [default: 8501, or a free one if it is taken]")
    ] = None,
    gpus: GpusOption = None,
    on_ray: RayFlag = False,
    interface: Annotated[bool, typer.Option("--ui/--no-ui", help="Open the web interface.")] = True,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow FOLDER: ingest what is added or changed while it is served.")
    ] = False,
) -> None:
    """Ingest a folder, serve it and open the web interface. Files that are new or had errors are read; Ctrl-C stops
    everything.

    The collection is FOLDER-collection beside the first folder, unless --collection names another. Without --watch,
    call it again for what came later.
    """
    from vrag_ray.cli.commands.serve import ray_reason, stop_event, terminal
    from vrag_ray.cli.commands.ui import launch_of, refuse_taken_port
    from vrag_ray.config.serve_config import read_serve_config
    from vrag_ray.serving.http.security import Security
    from vrag_ray.serving.placement import refuse_model_on_gpu

    settings, listed = read_serve_config(config)
    settings = with_gpus(settings, gpus)
    settings = with_model(settings, openai, model, vllm)
    refuse_model_on_gpu(settings)
    if collection is not None or "collection" not in settings.model_fields_set:
        settings = with_changes(settings, {"collection": collection or collection_beside(paths[0])})
    first = starting_agent(settings, agent)
    settings = with_changes(settings, {"serving": with_changes(settings.serving, {"agent": first})})
    if interface:
        # A missing package is reported before anything is ingested.
        launch_of("", "127.0.0.1", 1)
        refuse_taken_port("--ui-port", "127.0.0.1", ui_port)
    refuse_taken_port("--port", settings.serving.host, port)
    # Whether it may be served at all, too.
    Security.from_environment(settings.serving)
    reason = ray_reason(settings, listed, on_ray=on_ray)
    # Files that are added while the service starts are ingested by --watch.
    before = files_below(paths)
    with terminal(reason):
        with ray_behind_terminal(at_once=False):
            ingest_new(paths, settings)
        with serving_on_free_port(settings, port, reason) as service:
            say(f"serving {settings.collection} at {service.base_url}")
            with web_interface(service.base_url, ui_port) if interface else _nothing():
                say(f'ask in another terminal: vrag ask --url {service.base_url} "…"')
                stop = stop_event()
                say("Ctrl-C stops everything")
                if watch:
                    follow(paths, settings, stop, before)
                stop.wait()
            say("stopping")


def with_model(settings: Settings, openai: str | None, model: str | None, vllm: str | None) -> Settings:
    """``settings`` with the model that the options name. Raises VragError where they contradict each other,
    typer.BadParameter for what is no address or name of a model."""
    if openai is not None and vllm is not None:
        raise VragError("--openai and --vllm both name a model: give one of them")
    if openai is not None:
        from vrag_ray.config import OpenAiConfig

        if model is None:
            raise VragError(f"--openai {openai} needs --model: what the endpoint calls the model")
        with request_fields():
            endpoint = settings.openai or OpenAiConfig(base_url=openai, model=model)
            endpoint = with_changes(endpoint, {"base_url": openai, "model": model})
        return with_changes(settings, {"openai": endpoint, "vllm": None})
    if model is not None:
        raise VragError(f"--model {model} needs --openai: the endpoint that serves it")
    if vllm is not None:
        from vrag_ray.policies.llm.model_family import require_model

        require_model(vllm, "--vllm")
        settings = with_changes(settings, {"openai": None})
        if settings.vllm is not None:
            return with_changes(settings, {"vllm": with_changes(settings.vllm, {"model": vllm})})
        return fitted_to_model(settings, vllm)
    return settings


def starting_agent(settings: Settings, agent: str | None) -> AgentName:
    """``agent``, or where it is None, what the settings allow. Raises VragError for one that would not be served."""
    from vrag_ray.config import AgentName
    from vrag_ray.policies import registry
    from vrag_ray.policies.llm.prompt_limits import PromptBudgetError, limits_of
    from vrag_ray.policies.registry import agents, ready_settings, wire_protocol

    has_model = settings.language_model is not None
    name = agent if agent is not None else registry.starting_agent(settings)
    if name not in tuple(AgentName):
        raise VragError(f"--agent {name[:60]!r} is no agent: use one of {', '.join(agents(has_model=has_model))}")
    if name != AgentName.EXTRACTIVE and not has_model:
        raise VragError(f"--agent {name} needs a model: name one by --openai URL --model NAME, or by --vllm PATH_OR_ID")
    ready = ready_settings(settings)
    if name != AgentName.EXTRACTIVE:
        try:
            wire_protocol(AgentName(name), ready.agent, ready.corpus, limits_of(ready))
        except PromptBudgetError as error:
            raise VragError(f"--agent {name} cannot be served: {error}") from error
    return AgentName(name)


def fitted_to_model(settings: Settings, model: str) -> Settings:
    """``settings`` that serve ``model`` by vLLM within its context, and without a GPU here, or with ``gpus`` 0, on the
    CPU.

    The agent's budgets that nobody has set are lowered to what the model takes, and the notice says so. Raises
    VragError where even the smallest do not fit.
    """
    from vrag_ray.cli.diagnosis import find_gpus
    from vrag_ray.config import AgentName, VllmConfig
    from vrag_ray.policies.llm.model_family import model_facts
    from vrag_ray.policies.llm.prompt_limits import BUDGETS, ModelLimits, fitted
    from vrag_ray.policies.registry import ready_settings, wire_protocol

    facts = model_facts(model, fetch=True)
    on_gpu = settings.gpus != 0 and bool(find_gpus())
    longest = VllmConfig(model=model).max_model_len if on_gpu else CPU_CONTEXT
    context = min(longest, facts.context or longest)
    if on_gpu:
        vllm = VllmConfig(model=model, max_model_len=context)
    else:
        why = "gpus is 0" if settings.gpus == 0 else "no GPU was found"
        say(f"notice: {why}, the model runs on the CPU: slowly")
        vllm = VllmConfig(model=model, dtype="float32", max_model_len=context, enforce_eager=True, num_gpus=0)
    # What the model sees, and its family; whether the budgets fit is found out below.
    unchecked = ready_settings(with_changes(settings, {"vllm": vllm}), check=False)
    assert unchecked.vllm is not None
    limits = ModelLimits.of_vllm(unchecked.vllm)
    agent = fitted(
        unchecked.agent,
        context,
        lambda tried: wire_protocol(AgentName.VIMRAG, tried, settings.corpus, limits),
    )
    lowered = [
        f"agent.{name} {value}"
        for name, value in agent.model_dump(include=set(BUDGETS)).items()
        if value != getattr(unchecked.agent, name)
    ]
    if lowered:
        say(f"notice: the model takes {context} tokens, so budgets are lowered: {', '.join(lowered)}")
    return with_changes(unchecked, {"agent": agent})


def collection_beside(path: Path) -> str:
    """``papers-collection`` beside ``papers``: folders do not mix, and a second call finds what the first made."""
    path = expanded(path).absolute()
    # Any bytes may name a folder of files, but a collection is named in UTF-8.
    return str(path.with_name(f"{shown_name(path.stem if path.is_file() else path.name)}-collection"))


def ingest_new(paths: Sequence[Path], settings: Settings, meta: Mapping[str, MetaValue] | None = None) -> None:
    """What the collection holds is skipped, what had errors is read again; a broken file is reported and
    does not stop the rest."""
    from vrag_ray.cli.commands.ingest import report_lines
    from vrag_ray.cli.progress import shown_progress
    from vrag_ray.ingest import ingest

    retrying = with_changes(settings.ingest, {"retry_errors": True})
    settings = with_changes(settings, {"ingest": retrying})
    with shown_progress() as on_progress:
        report = ingest(paths, settings, meta=meta or {}, on_progress=on_progress, on_line=say)
    for line in report_lines(report, settings.collection):
        say(line)


def follow(paths: Sequence[Path], settings: Settings, stop: Event, seen: Mapping[str, tuple[int, int]]) -> None:
    """Until ``stop`` is set: whenever files have been added or changed and then rested, ingest them in a child process.
    A fault is reported, and ingest is tried again later. ``seen`` are the files before the first ingest, by
    ``files_below``: what came while it ran is ingested at once."""
    while not stop.wait(WATCH_EVERY_S):
        files = files_below(paths)
        if files == seen or stop.wait(SETTLED_S) or files_below(paths) != files:
            # Unchanged, or a file is still being written.
            continue
        try:
            asyncio.run(_ingest_beside(paths, settings, stop))
        except VragError as error:
            say(f"the folder has changed, and could not be ingested; it is tried again: {error}")
            stop.wait(AGAIN_AFTER_S)
        else:
            seen = files


def files_below(paths: Sequence[Path]) -> Mapping[str, tuple[int, int]]:
    """The files in ``paths``, those of folders in any depth, with time of change (ns) and size; links to folders are
    not followed."""
    states: dict[str, tuple[int, int]] = {}
    for path in paths:
        files = [path]
        if path.is_dir():
            files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
        for file in files:
            # A file may go between the listing and the look.
            with suppress(OSError):
                status = file.stat()
                states[str(file)] = (status.st_mtime_ns, status.st_size)
    return states


async def _ingest_beside(paths: Sequence[Path], settings: Settings, stop: Event) -> None:
    from vrag_ray.cli.commands.ingest import report_lines
    from vrag_ray.ingest import IngestReport
    from vrag_ray.serving.ingest_jobs.child import ingest_in_child

    say("the folder has changed: ingesting")
    async with aclosing(ingest_in_child(settings, list(paths), {})) as messages:
        async for message in messages:
            if stop.is_set():
                return
            if isinstance(message, IngestReport):
                for line in report_lines(message, settings.collection):
                    say(line)


@contextmanager
def serving_on_free_port(settings: Settings, port: int | None, reason: str) -> Iterator[LocalService]:
    """As ``serving``, on ``port``, or on the configured one or a free one if that is taken."""
    from vrag_ray.cli.commands.serve import serving
    from vrag_ray.cli.commands.ui import is_taken

    if port is None:
        port = settings.serving.port
        if is_taken(settings.serving.host, port):
            say(f"port {port} is taken, a free one is used")
            port = 0
    if settings.vllm is not None:
        say(f"loading {settings.vllm.model}")
    with serving(settings, port, reason) as service:
        yield service


@contextmanager
def web_interface(base_url: str, port: int | None = None) -> Iterator[None]:
    """The web interface in a process of its own until the block ends. Raises VragError where it does not start."""
    from vrag_ray.cli.commands.ui import DEFAULT_PORT, is_taken, launch_of

    if port is None:
        port = free_port() if is_taken("127.0.0.1", DEFAULT_PORT) else DEFAULT_PORT
    launch = launch_of(base_url, "127.0.0.1", port)
    shown = subprocess.Popen(launch.command, env=launch.environment, stdout=sys.stderr)  # noqa: S603  our own command
    try:
        _wait_for_interface(shown, launch.address)
        say(f"the web interface is at {launch.address}")
        yield
    finally:
        shown.terminate()
        try:
            shown.wait(INTERFACE_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            shown.kill()
            shown.wait()


def say(text: str) -> None:
    # A terminal that was closed takes no line.
    with suppress(OSError):
        typer.echo(text, err=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_interface(process: subprocess.Popen[bytes], address: str) -> None:
    import httpx

    deadline = time.monotonic() + INTERFACE_STARTS_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise VragError(f"the web interface ended at once with exit code {process.returncode}: see its lines above")
        try:
            if httpx.get(f"{address}/_stcore/health", timeout=5.0, trust_env=False).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    raise VragError(f"the web interface did not answer at {address} within {INTERFACE_STARTS_WITHIN_S:g} s")


@contextmanager
def _nothing() -> Iterator[None]:
    yield
