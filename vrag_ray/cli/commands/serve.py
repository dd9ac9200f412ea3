"""``vrag serve``: the whole service on this machine until it is stopped."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.console import Echo, interruptible, ray_behind_terminal
from vrag_ray.cli.options import GpusOption, JsonFlag, RayFlag, echo_line, with_collections, with_gpus
from vrag_ray.signals import SIGNALS, is_ignored
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from vrag_ray.config import Settings
    from vrag_ray.serving.local import LocalService


def serve(
    config: Annotated[
        Path | None,
        typer.Argument(exists=True, dir_okay=False, metavar="[CONFIG]", help="A Serve config or settings, in YAML."),
    ] = None,
    collection: Annotated[
        list[str] | None,
        typer.Option(
            "--collection",
            "-c",
            metavar="DIR",
            help="Folder of a collection (repeatable; the first is the main collection).  [default: vrag-collection]",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.  [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free port.  [default: 8000]")
    ] = None,
    gpus: GpusOption = None,
    on_ray: RayFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Serve a collection over HTTP. Stop it with Ctrl-C.

    One process serves it, without Ray, unless the settings need Ray Serve: shards, replicas, GPUs of shards, vLLM, or a
    cluster of RAY_ADDRESS.
    """
    from vrag_ray.config.serve_config import read_serve_config

    settings, listed = read_serve_config(config)
    typed = {"host": host, "port": port}
    changes = {name: value for name, value in typed.items() if value is not None}
    settings = with_changes(settings, {"serving": with_changes(settings.serving, changes)})
    settings = with_gpus(with_collections(settings, collection), gpus)
    if listed:
        typer.echo(f"notice: options of {', '.join(listed)} are left to `serve run {config}`", err=True)

    reason = ray_reason(settings, listed, on_ray=on_ray)
    with terminal(reason) as echo, serving(settings, settings.serving.port, reason) as service:
        stop = stop_event()
        if as_json:
            named = {"collection": settings.collection, "collections": settings.served}
            echo(json.dumps({"url": service.base_url, **named}))
        else:
            echo(f"serving {', '.join(settings.served.values())} at {service.base_url}; Ctrl-C stops it")
        stop.wait()


def ray_reason(settings: Settings, deployments: Sequence[str], *, on_ray: bool) -> str:
    """Why Ray Serve is to serve ``settings`` and ``deployments`` with options of their own, in a few words; "" where
    this process serves them."""
    if on_ray:
        return "--ray"
    if deployments:
        return f"options of {', '.join(deployments)} are configured"
    from vrag_ray.serving.here import why_ray

    return why_ray(settings)


@contextmanager
def terminal(reason: str) -> Iterator[Echo]:
    """The terminal of a service that Ray serves for ``reason``, or this process for "": what prints to it."""
    if reason:
        with ray_behind_terminal() as echo:
            yield echo
    else:
        with interruptible():
            yield typer.echo


@contextmanager
def serving(settings: Settings, port: int, reason: str) -> Iterator[LocalService]:
    """The service until the block ends, by Ray for ``reason``, by this process for ""."""
    from vrag_ray.serving.local import start_here, start_serving

    echo_line(f"on Ray Serve: {reason}" if reason else "in this process; --ray serves it on Ray Serve")
    service = (start_serving if reason else start_here)(settings, port, on_line=echo_line)
    try:
        yield service
    finally:
        service.stop()


def stop_event() -> threading.Event:
    """Set at SIGINT, SIGTERM or SIGHUP from now on: to be made before the message that says how to stop the service.

    Where SIGHUP is ignored, as under nohup, it stays so.
    """
    stop = threading.Event()
    for number in SIGNALS:
        if not is_ignored(number):
            signal.signal(number, lambda *_: stop.set())
    return stop
