"""``vrag ui``: the web interface, which talks to a server that is there already."""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vrag_ray.cli.options import server_url
from vrag_ray.types import VragError

DEFAULT_PORT = 8501


@dataclass(frozen=True, slots=True)
class Launch:
    """The process that serves the interface: its command line, environment and address."""

    command: tuple[str, ...]
    environment: dict[str, str]
    address: str


def ui(
    url: Annotated[
        str,
        typer.Option("--url", metavar="URL", envvar="VRAG_URL", callback=server_url, help="The server to talk to."),
    ] = "http://127.0.0.1:8000",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port.")] = DEFAULT_PORT,
    allow_open: Annotated[
        bool, typer.Option("--allow-open", help="Listen on an address that others can reach, without a login.")
    ] = False,
) -> None:
    """Open the web interface in front of a running server. Stop it with Ctrl-C."""
    launch = launch_of(url, host, port, allow_open=allow_open)
    refuse_taken_port("--port", host, port)
    typer.echo(f"the web interface is at {launch.address}, for the server at {url}; Ctrl-C stops it", err=True)
    sys.stdout.flush()
    os.execve(launch.command[0], launch.command, launch.environment)  # noqa: S606  our own interpreter, no shell


def is_taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def refuse_taken_port(option: str, host: str, port: int | None) -> None:
    """Raises VragError, before anything else is done, where ``port`` was chosen by ``option`` and cannot be used."""
    if port and is_taken(host, port):
        raise VragError(f"port {port} of {host} cannot be used: choose another with {option}")


def launch_of(url: str, host: str, port: int, *, allow_open: bool = False) -> Launch:
    """Raises VragError where the interface is not installed, or would be open to other machines."""
    from vrag_ray.types.loopback import is_loopback

    if not is_loopback(host) and not allow_open:
        raise VragError(
            f"--host {host} can be reached by other machines, and the interface asks nobody who they are: put a proxy "
            "with a login in front of 127.0.0.1, or say --allow-open"
        )
    if importlib.util.find_spec("streamlit") is None:
        raise VragError("the web interface needs streamlit: install the extra `ui`, as in pip install -e '.[ui]'")
    spec = importlib.util.find_spec("ui.app")
    if spec is None or spec.origin is None:
        raise VragError("the folder ui/ of the project is not installed beside vrag_ray: install the project whole")
    app = Path(spec.origin)
    root = str(app.parent.parent)
    options = ("--server.address", host, "--server.port", str(port))
    inherited = os.environ.get("PYTHONPATH")
    environment = (
        os.environ
        | _own_key()
        | {
            "VRAG_URL": url,
            # Streamlit puts the script's own folder on the path, and not the folder that holds the package.
            "PYTHONPATH": root if not inherited else f"{root}{os.pathsep}{inherited}",
        }
    )
    command = (sys.executable, "-m", "streamlit", "run", str(app), *options)
    return Launch(command, environment, f"http://{host}:{port}")


def _own_key() -> dict[str, str]:
    """Where the keys of a server are set and none to send is: one of them, for the interface beside that server."""
    keys = [key.strip() for key in os.environ.get("VRAG_API_KEYS", "").split(",") if key.strip()]
    return {"VRAG_API_KEY": keys[0]} if keys and not os.environ.get("VRAG_API_KEY") else {}
