"""The Ray that this process works on: started for it, joined, or known to be that of a submitted job."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.ha_proxy import choose_ha_proxy, forget_ha_proxy
from vrag_ray.signals import HeldSignals, signals_held
from vrag_ray.types import VragError
from vrag_ray.types.file_names import expanded, shown_name

if TYPE_CHECKING:
    import psutil

MIN_LOGICAL_CPUS = 8
"""Ray Data and the parts wait for each other for good on fewer; logical CPUs are only counters."""
OBJECT_STORE_BYTES = 512 << 20
WORKERS_END_WITHIN_S = 2.0
"""After Ray has shut down; most take a tenth of it. As long again for those that are killed then."""
START_WITHIN_S = 120.0
"""Of one attempt. A machine under load takes a minute for what takes three seconds otherwise, and gets there."""
NOTICE_EVERY_S = 10.0
LOOK_EVERY_S = 0.2
SLOW_START = "timed out during startup"
"""What Ray raises, in a bare Exception, for a node that is not up in time."""
ENVIRONMENT = {
    # Ray decides by it at every entry point; unset, each one decides differently.
    "RAY_AUTH_MODE": "disabled",
    # What every Ray process gathers for a dashboard, which this Ray has not: it took 2 % of an ingest on two cores.
    "RAY_enable_metrics_collection": "0",
    "RAY_task_events_report_interval_ms": "0",
    # Ray starts its workers 15 nicer than itself: beside another busy process they then get a thirtieth of a core, and
    # next to nothing where the caller itself runs under `nice`. This way, they have the caller's own priority.
    "RAY_worker_niceness": "0",
    # The first of the waits of a start, for the port of Ray's head; 30 s by default.
    "RAY_gcs_server_port_wait_time_s": str(int(START_WITHIN_S)),
    # Calls between deployments go by gRPC, from the thread of the user's code: a fifth more searches a second. HTTP
    # ports of the replicas themselves, which come with it, stay closed, but for those of the gateway behind HAProxy.
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
    "RAY_SERVE_ENABLE_DIRECT_INGRESS": "0",
    # 4 MB by default, and a picture of a question or of a page may be larger.
    "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(256 << 20),
    # 5 and 10 s by default: on a busy machine, a proxy that takes longer to start or to answer is killed.
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "30",
}
_WORKER = "ray::"
"""How Ray names its workers' processes."""
_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""What Ray's job manager sets for an entrypoint, and nothing else does."""
_COPIES = "working_dir_files"
"""The folder of a Ray session that holds the copies of working folders."""


def start_ray(temp_dir: Path | None = None) -> None:
    """A Ray of this machine alone for this process: no dashboard, no token file left in the home folder.

    Its own ports are bound to every interface, whatever address it is given: see docs/serving.md, "Who may connect".
    While the start takes long, a warning says so every ten seconds; one that takes longer than two minutes is tried
    once more. Ctrl-C and SIGTERM end it between its steps, and nothing of it is left then.

    Raises:
        VragError: the second start took too long as well.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    choose_ha_proxy()
    try:
        with signals_held("this step of Ray's start is done") as held:
            _start(temp_dir, held)
    except KeyboardInterrupt:
        stop_ray()
        raise


def _start(temp_dir: Path | None, held: HeldSignals) -> None:
    log = logging.getLogger(__name__)
    for last in (False, True):
        older = frozenset(_children())
        try:
            with _notices(log), _patient_start(lambda: bool(held.received)):
                _init_local(temp_dir)
            return
        except Exception as error:
            if held.received:
                _kill(_started_by_ray(older))
                return
            if SLOW_START not in str(error):
                raise
            _kill(_started_by_ray(older))
            if last:
                raise VragError(
                    f"Ray did not start within {START_WITHIN_S:g} s, twice ({_load()}): the machine is too busy or "
                    "short of memory; end other work or free memory, and try again"
                ) from error
            log.warning("Ray did not start within %g s; trying once more", START_WITHIN_S)


@contextmanager
def _notices(log: logging.Logger) -> Iterator[None]:
    """A warning every ten seconds as long as the block takes."""
    began, done = time.monotonic(), threading.Event()

    def report() -> None:
        while not done.wait(NOTICE_EVERY_S):
            log.warning("Ray has been starting for %.0f s (%s)", time.monotonic() - began, _load())

    thread = threading.Thread(target=report, name="ray-start", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _patient_start(given_up: Callable[[], bool]) -> Iterator[None]:
    """Ray waits for its node as long as ``START_WITHIN_S``, and no longer than until ``given_up``.

    Ray 2.60 looks for the node for 30 s and has no setting for it; here the function that looks for it is called for
    longer.
    """
    from ray._private import services

    look = services.get_node
    deadline = time.monotonic() + START_WITHIN_S

    def look_for_long(gcs_address: str, node_id: str) -> object:
        while True:
            try:
                return look(gcs_address, node_id)
            except RuntimeError as error:
                if given_up() or time.monotonic() > deadline:
                    raise Exception(SLOW_START) from error  # noqa: TRY002  Ray's own type: it asks again after others
            time.sleep(LOOK_EVERY_S)

    services.get_node = look_for_long
    try:
        yield
    finally:
        services.get_node = look


def _load() -> str:
    """How busy the machine is, in words."""
    import psutil

    free_gb = psutil.virtual_memory().available / 1e9
    return f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} CPUs, {free_gb:.1f} GB of memory available"


def _init_local(temp_dir: Path | None) -> None:
    import ray

    with _described_in_utf8(), warnings.catch_warnings():
        # Ray forks to start its programs, which replace themselves at once: nothing of Lance runs in between.
        warnings.filterwarnings("ignore", "lance is not fork-safe")
        ray.init(
            # Without it, Ray would join a cluster that `ray start` made on this machine, and refuse what follows.
            address="local",
            num_cpus=max(MIN_LOGICAL_CPUS, os.cpu_count() or 1),
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            log_to_driver=False,
            logging_level=logging.WARNING,
            _temp_dir=str(temp_dir) if temp_dir else None,
        )


@contextmanager
def _described_in_utf8() -> Iterator[None]:
    """Ray 2.60 does not start where the command line or the working folder of its driver is not UTF-8, as with the name
    of a file or folder on the command line. It receives the one percent-encoded, and started in another folder."""
    here = str(Path.cwd())
    if all(map(_is_utf8, (*sys.argv, here))):
        yield
        return
    import ray._private.utils as described

    entrypoint = described.get_entrypoint_name
    described.get_entrypoint_name = lambda: shown_name(entrypoint())
    try:
        with nullcontext() if _is_utf8(here) else chdir("/"):
            yield
    finally:
        described.get_entrypoint_name = entrypoint


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def stop_ray() -> None:
    """Leave Ray; of one that this process started, end every process. Signals that come meanwhile wait for the end.

    Ray 2.60 can lock a worker up in its own exit handler: destroying the event loop, it destroys a publisher that posts
    to that loop, whose mutex is held. Such a worker outlives its session with 200 MB, and nothing else would end it.
    """
    with signals_held():
        import ray

        # The agents of a node end by themselves once it is gone, within seconds that nobody waits for.
        own = _started_by_ray(frozenset())
        own += [child for child in _children() if _is_worker(child) and child not in own]
        ray.shutdown()
        _kill(left_running(own, WORKERS_END_WITHIN_S))
        forget_ha_proxy()


def _children() -> list[psutil.Process]:
    import psutil

    return psutil.Process().children(recursive=True)


def _started_by_ray(older: frozenset[psutil.Process]) -> list[psutil.Process]:
    """The programs of Ray's package among this process's children, but for ``older`` ones, and all that they started.

    Whatever else this process has started meanwhile, a decoder or a web interface, is left alone.
    """
    import psutil
    import ray

    package = str(Path(ray.__file__).parent)
    processes: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if child not in older and any(package in argument for argument in child.cmdline()):
                processes += [child, *child.children(recursive=True)]
    return processes


def _kill(processes: list[psutil.Process]) -> None:
    """Kill ``processes`` and wait until the system has taken them down."""
    import psutil

    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    left_running(processes, WORKERS_END_WITHIN_S)


def left_running(processes: list[psutil.Process], within_s: float) -> list[psutil.Process]:
    """Those of ``processes`` that run after ``within_s``.

    ``psutil.wait_procs`` opens each by its number, and raises FileNotFoundError where it ends in that moment.
    """
    deadline = time.monotonic() + within_s
    while left := [process for process in processes if _runs(process)]:
        if time.monotonic() >= deadline:
            return left
        time.sleep(WORKERS_END_WITHIN_S / 40)
    return []


def _runs(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_worker(child: psutil.Process) -> bool:
    import psutil

    try:
        return child.name().startswith(_WORKER)
    except psutil.Error:
        return False


@contextmanager
def ray_session(*, at_once: bool = True) -> Iterator[None]:
    """A Ray to work on: the one of ``RAY_ADDRESS`` or of this process, else one started for the block.

    ``at_once`` False leaves the start to the first ``require_ray`` in the block, which may need none.
    """
    if is_connected():
        yield
        return
    try:
        if at_once:
            require_ray()
        yield
    finally:
        if is_connected():
            stop_ray()


def require_ray() -> None:
    """Connect to the Ray of ``RAY_ADDRESS``, or start one, where this process has none.

    It ends with the ``ray_session`` that this is called in, else with the process.
    """
    if is_connected():
        return
    # Ray decides by this variable at every entry point; unset, each one decides differently.
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    with signals_held():
        import ray
    if os.environ.get("RAY_ADDRESS"):
        with signals_held(), _described_in_utf8():
            ray.init(log_to_driver=False, logging_level=logging.WARNING)
    else:
        start_ray()


def is_connected() -> bool:
    """Whether this process has a Ray. Does not import it: that takes a second."""
    if "ray" not in sys.modules:
        return False
    import ray

    return bool(ray.is_initialized())


def in_job_copy() -> bool:
    """Whether this process is a submitted job that works in Ray's copy of ``--working-dir``, which is removed later."""
    return _JOB in os.environ and _COPIES in Path.cwd().parts


def refuse_lost_output(option: str, place: str) -> None:
    """Raise VragError for a relative ``place`` to write to in a job: it would be removed with the job's copy."""
    if "://" not in place and not expanded(place).is_absolute() and in_job_copy():
        raise VragError(
            f"{option} {place} lies in Ray's copy of --working-dir, which does not outlive the job: give an absolute "
            "path or a URI that every node can write to"
        )
