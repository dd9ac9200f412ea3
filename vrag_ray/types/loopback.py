"""Hosts that are this machine: who may connect without a key, and which requests no proxy sees."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether ``host`` (name or address) reaches this machine only."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def direct_mounts(url: str) -> dict[str, None]:
    """``mounts`` of an HTTP client of httpx or httpx2 for a server at ``url``.

    Those libraries send requests to this machine through the proxy of ``HTTP_PROXY`` too, unless ``NO_PROXY`` lists its
    name. A proxy elsewhere cannot reach it, and would read the questions and the key.
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        # The client names what is wrong with the address.
        return {}
    if not is_loopback(host):
        return {}
    return {f"all://[{host}]" if ":" in host else f"all://{host}": None}
