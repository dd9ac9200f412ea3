"""The whole service on this machine from a Python process: what `vrag serve`, `vrag demo` and the tests start."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.portable_settings import absolute_settings, with_endpoint_key
from vrag_ray.signals import signals_held
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from ray.serve import Application

logger = logging.getLogger(__name__)
READY_WITHIN_S = 600.0
"""A busy machine takes minutes for what takes ten seconds otherwise; a part that cannot start is reported at once."""
MODEL_READY_WITHIN_S = 1800.0
LOADED_READY_WITHIN_S = 5.0
"""Of parts that have loaded what they could: what is not ready then could not be loaded."""
NOTICE_EVERY_S = 30.0
RUNS_END_WITHIN_S = 5.0
"""When the service stops."""
SERVE_STARTS = 3


@dataclass(frozen=True, slots=True)
class LocalService:
    """A running service. ``stop`` ends it, and Ray too where ``start_serving`` started it."""

    base_url: str
    stop: Callable[[], None]


def start_here(
    settings: Settings,
    port: int | None = None,
    *,
    on_line: Callable[[str], None] | None = None,
) -> LocalService:
    """As ``start_serving``, by this process alone: no Ray, one replica of each part, one shard a collection.

    Raises VragError as it does, and for settings that only Ray can serve (``why_ray``).
    """
    from vrag_ray.policies.registry import ready_settings
    from vrag_ray.serving.here import ServerThread, why_ray
    from vrag_ray.serving.placement import local_placement

    reason = why_ray(settings)
    if reason:
        raise VragError(f"this process alone cannot serve these settings: {reason}")
    settings = absolute_settings(ready_settings(with_endpoint_key(settings)))
    security = Security.from_environment(settings.serving)
    local_placement(settings).report(on_line)
    host = settings.serving.host
    listening = listening_socket(host, settings.serving.port if port is None else port)
    server = ServerThread(settings, security, listening)
    service = LocalService(f"http://{_reachable(host)}:{listening.getsockname()[1]}", server.stop)
    try:
        server.start()
        _wait_ready(service.base_url, LOADED_READY_WITHIN_S)
    except BaseException:
        server.stop()
        listening.close()
        raise
    return service


def start_serving(
    settings: Settings,
    port: int | None = None,
    *,
    ready_timeout_s: float | None = None,
    temp_dir: Path | None = None,
    on_line: Callable[[str], None] | None = None,
) -> LocalService:
    """Serve ``settings.collection`` and wait until it is ready, ``ready_timeout_s`` at most (None: long enough).

    ``port`` 0 takes a free one. ``on_line`` is called with what runs on which device before it does; None: that is
    logged.

    Uses the Ray that this process is connected to, else starts one for this machine alone. Raises VragError when
    the port is taken, Serve runs in that Ray behind another port, the settings cannot be served, or a part is not ready
    in time (it says which and why).
    """
    import ray

    from vrag_ray.cluster import start_ray
    from vrag_ray.policies.registry import ready_settings
    from vrag_ray.serving.app import application
    from vrag_ray.serving.placement import served_placement

    if ready_timeout_s is None:
        ready_timeout_s = MODEL_READY_WITHIN_S if settings.vllm is not None else READY_WITHIN_S
    # Before a cluster is started for settings that cannot be served.
    settings = ready_settings(with_endpoint_key(settings))
    host = settings.serving.host
    security = Security.from_environment(settings.serving)
    with listening_socket(host, settings.serving.port if port is None else port) as probe:
        chosen = int(probe.getsockname()[1])
    owns_ray = not ray.is_initialized()
    runs = ServingPaths.of(settings).runs
    service = LocalService(f"http://{_reachable(host)}:{chosen}", partial(_stop_serve, owns_ray, runs))
    if not owns_ray:
        _require_port_of_serve(chosen)
    try:
        if owns_ray:
            start_ray(temp_dir)
        _require_gpus(settings)
        placement = served_placement(absolute_settings(settings))
        placement.report(on_line)
        with signals_held("Serve has started"):
            # Not before: Serve reads the environment that ``start_ray`` sets when it is imported.
            _start_serve(host, chosen)
            # One replica of each part: nobody sends requests to one while another takes its place.
            _deploy(application(settings, security, drain_check_s=0.1, placement=placement))
        _wait_running(ready_timeout_s)
        _wait_ready(service.base_url, ready_timeout_s)
    except BaseException:
        service.stop()
        raise
    return service


def _start_serve(host: str, port: int) -> None:
    """Start Serve with its HTTP proxy on this machine. Raises VragError where the proxy does not run after all tries.

    Serve waits a minute for its proxy, and its controller kills one that is not ready in time and starts another: on a
    busy machine the call fails although the service comes up.
    """
    from ray import serve
    from ray.exceptions import RayActorError

    http = {"host": host, "port": port, "request_timeout_s": None}
    for _ in range(SERVE_STARTS):
        try:
            serve.start(proxy_location="HeadOnly", http_options=http)
        except (RayActorError, TimeoutError) as error:
            fault = error
            logger.warning("Serve's HTTP proxy did not start in time; it is tried again")
        else:
            return
    raise VragError(
        f"Serve's HTTP proxy did not start, {SERVE_STARTS} times: start the service when the machine is less busy"
    ) from fault


def _require_port_of_serve(port: int) -> None:
    """Raises VragError where Serve runs in this Ray already and does not listen on ``port``: it keeps the HTTP options
    with which it was started, and nobody would ever answer there."""
    from ray import serve
    from ray.serve.context import _get_global_client

    client = _get_global_client(raise_if_no_controller_running=False)
    if client is None:
        return
    if not serve.status().proxies:
        raise VragError(
            "Serve runs in this Ray without HTTP, as a training run with rollout.served leaves it: end it by "
            "`serve shutdown`, or start this service in another Ray"
        )
    if client.http_config.port != port:
        raise VragError(
            f"Serve runs in this Ray already, on port {client.http_config.port}: choose that port, or end it by "
            "`serve shutdown`"
        )


def _require_gpus(settings: Settings) -> None:
    """Raises VragError where the model cannot start on this Ray, which is all of the cluster that there will be."""
    if settings.vllm is None or os.environ.get("RAY_ADDRESS"):
        return
    from vrag_ray.serving.deployments.policy import cluster_gpus, gpu_shortage

    shortage = gpu_shortage(settings.vllm, cluster_gpus())
    if shortage:
        raise VragError(shortage)


def _deploy(application: Application) -> None:
    """Have Serve start the application. Does not wait for it: a wait inside of Serve cannot be interrupted safely."""
    from ray import serve

    from vrag_ray.serving.app import APP_NAME

    target = serve.RunTarget(application, name=APP_NAME, route_prefix="/")
    serve.run_many([target], wait_for_ingress_deployment_creation=False, wait_for_applications_running=False)


def _wait_running(timeout_s: float) -> None:
    """Until every part runs, or for ``timeout_s``. Raises VragError where one did not start.

    While it takes long, a warning says which parts are still missing.
    """
    from ray import serve

    from vrag_ray.serving.app import APP_NAME

    began = noticed = time.monotonic()
    while time.monotonic() < began + timeout_s:
        with signals_held():
            status = serve.status().applications.get(APP_NAME)
        if status is not None and status.status == "RUNNING":
            return
        if status is not None and status.status == "DEPLOY_FAILED":
            parts = status.deployments
            reasons = [
                f"{name}: {_last_line(part.message)}" for name, part in parts.items() if part.status != "HEALTHY"
            ]
            raise VragError(f"the service cannot start: {'; '.join(reasons) or status.message}")
        if time.monotonic() > noticed + NOTICE_EVERY_S:
            noticed = time.monotonic()
            parts = status.deployments if status is not None else {}
            missing = ", ".join(name for name, part in parts.items() if part.status != "HEALTHY") or "Serve"
            logger.warning("the service has been starting for %.0f s; not there yet: %s", noticed - began, missing)
        time.sleep(0.1)


def _last_line(text: str) -> str:
    """Of a stack trace, the fault itself."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def _stop_serve(owns_ray: bool, runs: Path) -> None:
    """``runs`` is the folder of runs: those under way are cancelled and stored first, so that their streams end with an
    event. Serve would wait for them and then cut them off."""
    import ray

    from vrag_ray.cluster import stop_ray
    from vrag_ray.serving.runs.store import end_runs

    with signals_held():
        if ray.is_initialized():
            from ray import serve

            try:
                end_runs(runs, RUNS_END_WITHIN_S)
            except OSError as error:
                logger.warning("the runs under way are not ended before the service stops: %s", error)
            serve.shutdown()
        if owns_ray:
            stop_ray()


def listening_socket(host: str, port: int) -> socket.socket:
    """Bound to ``port``, or to a free one for 0. Raises VragError where it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise VragError(
            f"port {port} of {host} cannot be used ({error.strerror}): choose another with --port or VRAG_SERVING__PORT"
        ) from error
    return listening


def _reachable(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104  compared, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _wait_ready(base_url: str, timeout_s: float) -> None:
    import httpx

    deadline = time.monotonic() + timeout_s
    why = "no reply"
    while time.monotonic() < deadline:
        try:
            reply = httpx.get(f"{base_url}/readyz", timeout=10.0, trust_env=False)
            if reply.status_code == 200:
                return
            parts = reply.json().get("parts", {})
            why = "; ".join(f"{name}: {part['why']}" for name, part in parts.items() if not part["ready"])
        except (httpx.HTTPError, ValueError) as error:
            why = str(error) or type(error).__name__
        time.sleep(0.2)
    raise VragError(f"the service was not ready after {timeout_s:g} s: {why}")
