"""One child process: its start, its pipes, its clock and its end."""

from __future__ import annotations

import errno
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import vrag_ray
from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.model import KilledError, KillReason
from vrag_ray.corpus.sandbox.wire import ChildReply, ReplyBuffer, Request, Start, pack

CHUNK = 2**20
STDERR_BYTES = 4096
LOOK_SECONDS = 0.25
"""How often the memory of a working child is looked at."""
BYTES_PER_PIXEL = 4
"""A PNG of noise is a little longer than its pixels; three bytes a pixel plus slack."""
ENDS_WITHIN_S = 5.0
"""How long a child that has closed its pipe may take to end."""
MUCH_CPU = 0.5
"""Share of the granted CPU time above which a decode that ran out of wall time is called slow itself."""
_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that no decoder raises by itself."""
_BUSY = frozenset({errno.EAGAIN, errno.ENOMEM})
_OF_MEMORY_LIMIT = " (limit corpus.limits.memory_mb)"
_NEEDED = re.compile(rf"needed more than (\d+) MB of memory{re.escape(_OF_MEMORY_LIMIT)}")
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


class ChildProcess:
    """A started child. ``end`` must be called; nothing else may be called after it.

    Raises KilledError where the system has no process or memory for it.
    """

    def __init__(self, limits: DecodeLimits) -> None:
        self._limits = limits
        self._buffer = ReplyBuffer(limits.max_pixels * BYTES_PER_PIXEL + CHUNK)
        self._stderr = b""
        self._is_closed = False
        self._peak_memory_mb = 0.0
        self._next_look = 0.0
        self._began = self._deadline = 0.0
        self._cpu_at_begin = self._cpu_granted = 0.0
        # -P keeps the working directory off the import path; its own session keeps terminal signals away.
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "vrag_ray.corpus.sandbox.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=child_environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            raise KilledError(
                f"no process could be started to read it ({os.strerror(error.errno)}): the machine is short of memory "
                "or processes",
                KillReason.CRASH,
                transient=True,
            ) from error
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin = self._process.stdin
        self._out = self._process.stdout.fileno()
        self._err = self._process.stderr.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)
        self._write(pack(Start(limits=limits)))

    def send(self, request: Request) -> bool:
        """Start the clock and hand over ``request``; False where the child is no longer there to take it."""
        self.begin_unit()
        return self._write(pack(request))

    def begin_unit(self) -> None:
        """Start the clock anew: each unit has the limits to itself."""
        self._began = time.monotonic()
        self._deadline = self._began + self._limits.wall_limit_s
        self._cpu_at_begin, self._cpu_granted = self._cpu_seconds() or 0.0, self._limits.cpu_seconds

    def grant_ocr(self) -> None:
        """Grant the unit the time in which one picture is read."""
        self._deadline = max(self._deadline, time.monotonic() + self._limits.ocr_wall_limit_s)
        self._cpu_granted += self._limits.ocr_seconds

    def receive(self) -> tuple[ChildReply, bytes]:
        """The next reply.

        Raises:
            KilledError: the child ran out of time, or died.
            DecodeError: its reply breaks the protocol.
        """
        while (reply := self._buffer.take()) is None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                used = (self._cpu_seconds() or 0.0) - self._cpu_at_begin
                raise out_of_time(time.monotonic() - self._began, used, self._cpu_granted)
            self._look_at_memory()
            for key, _ in self._selector.select(min(left, LOOK_SECONDS)):
                data = os.read(key.fd, CHUNK)
                if key.fd == self._err:
                    self._keep(data)
                elif data:
                    self._buffer.feed(data)
                else:
                    raise self.died()
        return reply

    def died(self) -> KilledError:
        """Why the child is gone, derived from its exit status and its last words."""
        with suppress(subprocess.TimeoutExpired):
            # It is ending: a kill now would hide what ended it.
            self._process.wait(ENDS_WITHIN_S)
        ended = self._process.poll() is not None
        self.end()
        code = self._process.returncode
        if ended and -code in _FROM_OUTSIDE:
            return KilledError(
                f"the process that reads it was ended from outside ({signal.Signals(-code).name}), as a system short "
                "of memory does",
                KillReason.CRASH,
                transient=True,
            )
        last = self._stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        if code == -signal.SIGXCPU:
            return KilledError(
                f"took more than {self._limits.cpu_seconds} s of CPU (limit corpus.limits.cpu_seconds)", KillReason.CPU
            )
        if any(word in line for line in last for word in ("MemoryError", "bad_alloc", "memory")):
            return self.out_of_memory()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return KilledError(f"crashed the decoder ({': '.join([how, *last])[:300]})", KillReason.CRASH)

    def out_of_memory(self) -> KilledError:
        return KilledError(
            f"needed more than {self._limits.memory_mb} MB of memory{_OF_MEMORY_LIMIT}",
            KillReason.MEMORY,
        )

    def _cpu_seconds(self) -> float | None:
        """CPU time of the child so far; None where the system does not say."""
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        # The name of the program, in brackets, may hold blanks. After it: state, ten numbers, user and system ticks.
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """From any thread; the thread that waits for a reply then finds the child gone."""
        self._process.kill()

    def end(self) -> None:
        """Kill and reap the child and close the pipes. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self._selector.close()
        self._next_look = 0.0
        self._look_at_memory()
        self._process.kill()
        self._drain()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    @property
    def peak_memory_mb(self) -> float:
        """The most resident memory the child has had, as seen four times a second while it worked."""
        self._look_at_memory()
        return self._peak_memory_mb

    def _look_at_memory(self) -> None:
        # Not the usage that waiting for a process returns: that counts the parent's own size before exec.
        if self._process.returncode is not None or time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_SECONDS
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        except (FileNotFoundError, ProcessLookupError):
            # Gone, or a system without /proc: what was seen so far stands.
            return
        if (peak := re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)) is not None:
            self._peak_memory_mb = max(self._peak_memory_mb, int(peak[1]) / 1024)

    def _write(self, data: bytes) -> bool:
        try:
            view = memoryview(data)
            while view:
                view = view[self._stdin.write(view) or 0 :]
        except BrokenPipeError:
            return False
        return True

    def _keep(self, data: bytes) -> None:
        if not data:
            self._selector.unregister(self._err)
        self._stderr = (self._stderr + data)[-STDERR_BYTES:]

    def _drain(self) -> None:
        """Read the last output of a dead child, up to its end."""
        os.set_blocking(self._err, False)
        try:
            while data := os.read(self._err, CHUNK):
                self._stderr = (self._stderr + data)[-STDERR_BYTES:]
        except BlockingIOError:
            return


def out_of_time(took_s: float, cpu_s: float, granted_s: float) -> KilledError:
    """A decode that got little CPU waited for the machine; one that used much of what was granted is slow itself."""
    reason = f"was not decoded within {took_s:.3g} s, in which it got {max(0.0, cpu_s):.1f} s of CPU"
    if cpu_s < granted_s * MUCH_CPU:
        return KilledError(f"{reason}: the machine was busy, or the decoder hung", KillReason.WALL, transient=True)
    return KilledError(f"{reason} (limit corpus.limits.wall_seconds)", KillReason.WALL)


def memory_limits_in(error: str) -> list[int]:
    """The memory limits, in MB, that the stored errors of a document name as too low for it."""
    return [int(match[1]) for match in _NEEDED.finditer(error)]


def child_environment() -> dict[str, str]:
    """What a child may know of the parent's environment, and how its libraries behave."""
    package_root = str(Path(vrag_ray.__file__).parents[1])
    return {
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        # The same modules as here, also where Ray has put the code on sys.path by hand.
        "PYTHONPATH": os.pathsep.join([package_root, *(entry for entry in sys.path if entry)]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # Pydantic would look through all installed packages for plug-ins.
        "PYDANTIC_DISABLE_PLUGINS": "__all__",
        # Every thread's arena would reserve 64 MB of the limited address space.
        "MALLOC_ARENA_MAX": "2",
    }
