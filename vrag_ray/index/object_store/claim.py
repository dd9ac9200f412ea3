"""One writer at a time on an object store, which has no locks: a claim is a file beside the tables, renewed while held.

A writer puts its claim and then lists all claims. Stores list what has been put (S3, GCS and Azure Blob Storage are
strongly consistent), so of two writers at least one sees the other and steps back; both may, and each tries again.
A claim that its writer no longer renews is void after ``LEASE_S``, by the store's own times alone.
"""

from __future__ import annotations

import logging
import random
import threading
import time
import uuid
from typing import TYPE_CHECKING

from vrag_ray.types import VragError

if TYPE_CHECKING:
    from pyarrow import fs

log = logging.getLogger("vrag_ray.index")
RENEW_S = 10.0
LEASE_S = 60.0
ATTEMPTS = 4
"""Of which each but the first waits up to ``STEP_BACK_S``: writers that met step back for different times."""
STEP_BACK_S = 0.5


class ClaimedError(VragError):
    """Another writer holds the claim."""


class LostClaimError(VragError):
    """The claim was not renewed in time and is another writer's now."""


class WriterClaim:
    """Held from its making until ``close``. Raises ClaimedError where another writer holds it."""

    def __init__(self, store: fs.FileSystem, folder: str) -> None:
        """``folder`` holds the claims and nothing else."""
        self._store, self._folder = store, folder
        self._mine = f"{folder}/{uuid.uuid4().hex}"
        self._over = threading.Event()
        for attempt in range(ATTEMPTS):
            time.sleep(random.uniform(0, STEP_BACK_S) if attempt else 0)  # noqa: S311  no secret
            self._renew()
            if not self._others():
                break
            self._store.delete_file(self._mine)
        else:
            raise ClaimedError("another process is writing to it")
        self._renewal = threading.Thread(target=self._keep, name="writer-claim", daemon=True)
        self._renewal.start()

    def check(self) -> None:
        """Raises LostClaimError where the claim is gone, as after a pause of this machine that was longer than it."""
        from pyarrow import fs

        if self._store.get_file_info(self._mine).type == fs.FileType.NotFound:
            raise LostClaimError("this process paused for too long, and another one has been writing since")

    def close(self) -> None:
        from pyarrow import fs

        self._over.set()
        self._renewal.join()
        if self._store.get_file_info(self._mine).type != fs.FileType.NotFound:
            self._store.delete_file(self._mine)

    def _others(self) -> bool:
        """Whether another claim holds; void ones are removed."""
        from pyarrow import fs

        claims = self._store.get_file_info(fs.FileSelector(self._folder, allow_not_found=True))
        times = {info.path: info.mtime_ns / 1e9 for info in claims if info.type == fs.FileType.File}
        now = times.pop(self._mine, None)
        if now is None:
            return True
        void = [path for path, renewed in times.items() if now - renewed > LEASE_S]
        for path in void:
            self._store.delete_file(path)
        return len(times) > len(void)

    def _renew(self) -> None:
        with self._store.open_output_stream(self._mine) as stream:
            stream.write(b"a process is writing to this collection")

    def _keep(self) -> None:
        while not self._over.wait(RENEW_S):
            try:
                self.check()
                self._renew()
            except LostClaimError:
                return
            except OSError as error:
                log.warning("the claim of this writer cannot be renewed now: %s", error)
