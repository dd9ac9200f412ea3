"""Disks that refuse: a small tmpfs that fills up or turns read-only, and a process that may open no more files."""

from __future__ import annotations

import functools
import gc
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_OWN_MOUNTS = ("unshare", "--map-root-user", "--mount")


class SmallDisk:
    """A tmpfs mounted at ``folder``; sizes in bytes, in whole pages of 4 kB."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self._filler = folder / ".filler"
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)

    @property
    def free(self) -> int:
        return shutil.disk_usage(self.folder).free

    def resize(self, size: int) -> None:
        self._remount(f"size={size}")

    def read_only(self) -> None:
        self._remount("ro")

    def leave_free(self, size: int) -> None:
        """Fill the disk up to ``size`` bytes."""
        self._filler.unlink(missing_ok=True)
        self._filler.write_bytes(b"\0" * max(0, self.free - size))

    def empty_again(self) -> None:
        self._filler.unlink()

    def unmount(self) -> None:
        # Lazily: a test that failed can still hold a file open.
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def _remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[SmallDisk]:
    disk = SmallDisk(folder, size)
    try:
        yield disk
    finally:
        disk.unmount()


def needs_mounts(test: Callable[..., None]) -> Callable[..., None]:
    """For a test that mounts: run it as it is, or in a mount namespace of its own where only that is permitted."""

    @functools.wraps(test)
    def wrapped(*arguments: object, **named: object) -> None:
        if _works(()):
            test(*arguments, **named)
        elif _works(_OWN_MOUNTS):
            node = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0]
            command = [*_OWN_MOUNTS, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", node]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
        else:
            pytest.skip("neither root nor a user namespace may mount a tmpfs here, so NO full disk was tried")

    return wrapped


@functools.cache
def _works(prefix: tuple[str, ...]) -> bool:
    script = 'd=$(mktemp -d) && mount -t tmpfs -o size=64k tmpfs "$d" && umount "$d"; s=$?; rmdir "$d"; exit $s'
    try:
        return subprocess.run([*prefix, "sh", "-c", script], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def few_files(left: int) -> Iterator[None]:
    """This process may open only ``left`` files more while the block runs.

    Nothing is collected meanwhile: an older object that closes its file would leave room that the block has not made.
    """
    gc.disable()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(left):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for handle in taken:
            os.close(handle)
        gc.enable()
