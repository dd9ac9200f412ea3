import hashlib
import io
import os
import time
from pathlib import Path

import pytest

from vrag_ray.index.object_store.blob_cache import BrokenBlobError, cached, make_room


def test_a_blob_is_fetched_once_and_checked(tmp_path: Path):
    name = hashlib.sha256(b"whole").hexdigest()
    fetched: list[int] = []

    def fetch() -> io.BytesIO:
        fetched.append(1)
        return io.BytesIO(b"whole")

    for _ in range(3):
        assert cached(name, fetch, tmp_path).read_bytes() == b"whole"
    assert len(fetched) == 1
    other = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(BrokenBlobError):
        cached(other, lambda: io.BytesIO(b"not it"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_least_recently_used_blob_goes_first_and_blobs_in_use_stay(tmp_path: Path):
    now = time.time()
    for age, name in ((4000, "oldest"), (3000, "older"), (2000, "old"), (1, "new")):
        (tmp_path / name).write_bytes(b"x" * 100)
        os.utime(tmp_path / name, (now - age, now - age))
    make_room(tmp_path, most_bytes=250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]
    make_room(tmp_path, most_bytes=0)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
