"""Which processes own something in a folder that they share, and which of them are still alive.

A replica that is killed cannot say so. Each owner keeps a file whose time it renews; another process of the same
machine looks for the process itself, one of another machine watches whether the time goes on. No clocks are compared.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.serving.files import write_atomically

RENEW_S = 2.0
LEASE_S = 20.0
"""An owner on another machine whose file did not change for so long is dead. Ten renewals: a full disk or a slow
network file system delays some of them."""


class _Process(BaseModel):
    """Where an owner runs. ``pids`` is the namespace in which ``pid`` means anything; ``started``, in ticks, tells it
    from a later process of that number."""

    model_config = ConfigDict(frozen=True)

    host: str
    pids: str
    pid: int
    started: int


@dataclass(slots=True)
class _Watch:
    renewed_ns: int
    seen_at: float


class Owners:
    """This process as an owner, called ``me``, and what it knows of the others."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError where ``folder`` cannot be written."""
        folder.mkdir(parents=True, exist_ok=True)
        self.me = uuid.uuid4().hex
        self._folder = folder
        self._here = _this_process()
        self._watched: dict[str, _Watch] = {}
        self._over = threading.Event()
        self._write()
        # A thread, so that an event loop that is held up does not look like a dead process.
        threading.Thread(target=self._renew, name="owner-lease", daemon=True).start()

    def is_alive(self, owner: str) -> bool:
        """False for one that has left, whose process is gone, or whose file stands still for ``LEASE_S``."""
        if owner == self.me:
            return not self._over.is_set()
        path = self._path(owner)
        try:
            renewed_ns = path.stat().st_mtime_ns
            process = _Process.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return False
        if (process.host, process.pids) == (self._here.host, self._here.pids):
            alive = _runs(process)
        else:
            alive = self._goes_on(owner, renewed_ns)
        if not alive:
            path.unlink(missing_ok=True)
        return alive

    def close(self) -> None:
        """Leave: what is owned may be taken over at once."""
        self._over.set()
        self._path(self.me).unlink(missing_ok=True)

    def _goes_on(self, owner: str, renewed_ns: int) -> bool:
        watch = self._watched.get(owner)
        if watch is None or watch.renewed_ns != renewed_ns:
            self._watched[owner] = _Watch(renewed_ns, time.monotonic())
            return True
        return time.monotonic() - watch.seen_at < LEASE_S

    def _renew(self) -> None:
        path = self._path(self.me)
        while not self._over.wait(RENEW_S):
            with suppress(OSError):
                try:
                    os.utime(path)
                except FileNotFoundError:
                    # Taken for dead, after a pause longer than the lease, or the folder was removed.
                    self._folder.parent.mkdir(exist_ok=True)
                    self._folder.mkdir(exist_ok=True)
                    self._write()
        path.unlink(missing_ok=True)

    def _write(self) -> None:
        write_atomically(self._path(self.me), self._here.model_dump_json())

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}.owner"


class Seat:
    """A place that one owner at a time holds: the one that the link with the highest number names."""

    def __init__(self, folder: Path, owners: Owners) -> None:
        self._folder = folder
        self._owners = owners

    def take(self) -> bool:
        """Whether this process holds the place, now or already; False while a living owner does."""
        number, holder = self._last()
        if holder == self._owners.me:
            return True
        if holder and self._owners.is_alive(holder):
            return False
        # A link that points nowhere: it is made whole or not at all, by one of several that try, on a full disk too.
        try:
            self._path(number + 1).symlink_to(self._owners.me)
        except FileExistsError:
            return False
        for former in self._folder.glob(".seat.*"):
            if int(former.suffix[1:]) <= number:
                former.unlink(missing_ok=True)
        return True

    def _last(self) -> tuple[int, str]:
        numbers = sorted(int(path.suffix[1:]) for path in self._folder.glob(".seat.*"))
        if not numbers:
            return 0, ""
        try:
            return numbers[-1], str(self._path(numbers[-1]).readlink())
        except FileNotFoundError:
            # Removed for a higher one in between.
            return self._last()

    def _path(self, number: int) -> Path:
        return self._folder / f".seat.{number:08d}"


def _this_process() -> _Process:
    pid = os.getpid()
    started, _ = _stat(pid)
    return _Process(host=socket.gethostname(), pids=str(Path("/proc/self/ns/pid").readlink()), pid=pid, started=started)


def _runs(process: _Process) -> bool:
    try:
        started, state = _stat(process.pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return started == process.started and state not in "ZX"


def _stat(pid: int) -> tuple[int, str]:
    """When a process started, in ticks since the machine did, and its state: proc_pid_stat(5).

    Not the time of day: the kernel's idea of when the machine started shifts with its clock.
    """
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return int(fields[19]), fields[0]
