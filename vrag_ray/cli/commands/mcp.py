"""``vrag mcp``: a running server's collection as tools for an MCP client."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from vrag_ray.cli.console import is_debugging
from vrag_ray.cli.options import api_key, load, server_url

if TYPE_CHECKING:
    from vrag_ray.mcp.server import LogLevel

HOST = "127.0.0.1"
PORT = 8765


class Transport(StrEnum):
    """How clients reach the MCP server."""

    STDIO = "stdio"
    HTTP = "http"


def mcp(
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="VRAG_URL",
            callback=server_url,
            help="The vrag server to ask.  [default: the configured port, here]",
        ),
    ] = None,
    transport: Annotated[Transport, typer.Option(help="stdio, or streamable HTTP at /mcp.")] = Transport.STDIO,
    host: Annotated[str | None, typer.Option(help=f"Address to listen on, with http.  [default: {HOST}]")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help=f"With http; 0 takes a free one.  [default: {PORT}]")
    ] = None,
) -> None:
    """Offer search, pages and answers of a running server to an MCP client."""
    if transport is Transport.STDIO and (host is not None or port is not None):
        raise typer.BadParameter("--host and --port need --transport http")
    base_url = url or f"http://127.0.0.1:{load(None, None).serving.port}"

    from vrag_ray.mcp.server import serve_http, serve_stdio

    log_level: LogLevel = "DEBUG" if is_debugging() else "WARNING"
    if transport is Transport.STDIO:
        serve_stdio(base_url, api_key(), log_level)
        return

    def say(address: str) -> None:
        typer.echo(f"MCP server for {base_url} at {address}; Ctrl-C stops it")

    serve_http(base_url, api_key(), log_level, host or HOST, PORT if port is None else port, say)
