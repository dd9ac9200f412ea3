"""Writers that meet on a folder of files: pyarrow's local files stand for the store, whose claims work alike."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyarrow import fs

from tests.support.object_store import Bucket
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.index.object_store import claim as module
from vrag_ray.index.object_store.claim import ClaimedError, LostClaimError, WriterClaim


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "writing").mkdir()
    return str(tmp_path / "writing")


def test_a_second_writer_is_refused_until_the_first_has_left(folder: str):
    store = fs.LocalFileSystem()
    first = WriterClaim(store, folder)
    with pytest.raises(ClaimedError):
        WriterClaim(store, folder)
    first.check()
    first.close()
    WriterClaim(store, folder).close()
    assert list(Path(folder).iterdir()) == []


def test_a_claim_that_nobody_renews_is_void_and_its_writer_learns_of_it(folder: str):
    store = fs.LocalFileSystem()
    paused = WriterClaim(store, folder)
    [path] = Path(folder).iterdir()
    long_ago = time.time() - module.LEASE_S - 5
    os.utime(path, (long_ago, long_ago))
    second = WriterClaim(store, folder)
    with pytest.raises(LostClaimError):
        paused.check()
    paused.close()
    second.check()
    second.close()


def test_a_claim_is_renewed_while_it_is_held(folder: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "RENEW_S", 0.05)
    held = WriterClaim(fs.LocalFileSystem(), folder)
    [path] = Path(folder).iterdir()
    first = path.stat().st_mtime_ns
    deadline = time.monotonic() + HANGS_AFTER_S
    while path.stat().st_mtime_ns == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    held.close()


def test_of_many_that_claim_at_once_on_s3_never_two_hold_it(bucket: Bucket):
    where = bucket.uri("claims")

    def try_it(_: int) -> WriterClaim | None:
        store, base = fs.FileSystem.from_uri(where)
        try:
            return WriterClaim(store, f"{base}/writing")
        except ClaimedError:
            return None

    for _ in range(3):
        with ThreadPoolExecutor(6) as threads:
            held = [claim for claim in threads.map(try_it, range(6)) if claim is not None]
        assert len(held) <= 1
        for claim in held:
            claim.close()
    assert bucket.files("claims") == []
