"""Checkpoints that a full disk or a kill left half written, and Ray Train's record of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.disks import needs_mounts, small_disk
from tests.support.object_store import Bucket
from tests.support.train_double import leave_checkpoints
from vrag_ray.training.run.checkpoints import RECORD, checkpoints, list_files, mend_record, new_name
from vrag_ray.training.run.storage import RunStorage

# Ray's own call of pydantic.
pytestmark = pytest.mark.filterwarnings("ignore:The `parse_obj` method is deprecated")
FIRST, SECOND, THIRD = (f"checkpoint_2026-11-30_08-0{number}-00.000000" for number in range(3))


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> RunStorage:
    """A run on a local disk and in an object store, in turn, with two checkpoints."""
    if request.param == "local":
        storage = RunStorage(str(tmp_path), "run")
    else:
        bucket: Bucket = request.getfixturevalue("bucket")
        storage = RunStorage(bucket.uri(tmp_path.name), "run")
    leave_checkpoints(storage, FIRST, SECOND)
    return storage


def write(storage: RunStorage, name: str, folder: Path, *, ranks: int = 1) -> None:
    """A checkpoint of ``ranks`` parts, as the workers write it."""
    for rank in range(ranks):
        part = folder / f"part-{rank}"
        part.mkdir()
        (part / f"weights-{rank}.pt").write_bytes(b"weights" * (rank + 1))
        list_files(part, rank, ranks)
        for file in part.iterdir():
            storage.write(f"{name}/{file.name}", file.read_bytes())


def read_by_ray(storage: RunStorage) -> list[str]:
    """The names of the checkpoints that Ray Train itself finds; the last is that which it goes on from."""
    from ray.train import CheckpointConfig
    from ray.train.v2._internal.execution.checkpoint.checkpoint_manager import CheckpointManager
    from ray.train.v2._internal.execution.storage import StorageContext

    manager = CheckpointManager(CheckpointConfig(), StorageContext(storage.uri().replace("/run", "", 1), "run"))
    results, last = manager._checkpoint_results, manager.latest_checkpoint_result
    assert last is (results[-1] if results else None)
    return [Path(result.checkpoint.path).name for result in results]


def test_half_a_checkpoint_is_none_and_the_run_goes_on_from_the_checkpoint_before(
    storage: RunStorage, tmp_path: Path
) -> None:
    write(storage, THIRD, tmp_path)
    assert checkpoints(storage) == [FIRST, SECOND, THIRD]
    storage.write(f"{THIRD}/weights-0.pt", b"wei")
    assert checkpoints(storage) == [FIRST, SECOND]
    (notice,) = mend_record(storage)
    assert notice.startswith(f"notice: {storage.uri(THIRD)} does not count, because it is not whole")
    assert notice.endswith(f"may be removed; this run goes on from {SECOND}")
    assert read_by_ray(storage) == [FIRST, SECOND]


@pytest.mark.parametrize("left", [b"", b'{"ray_version": "2.60.0", "checkpoint_res'])
def test_a_record_that_was_half_written_is_made_again_of_what_is_whole(
    left: bytes, storage: RunStorage, tmp_path: Path
) -> None:
    write(storage, THIRD, tmp_path, ranks=2)
    storage.write(RECORD, left)
    assert checkpoints(storage) == [THIRD], "of those without a list only a record tells"
    assert sum("does not count" in notice for notice in mend_record(storage)) == 2
    assert read_by_ray(storage) == [THIRD]


def test_a_checkpoint_counts_when_every_worker_has_written_its_part(storage: RunStorage, tmp_path: Path) -> None:
    write(storage, THIRD, tmp_path, ranks=2)
    assert THIRD in checkpoints(storage)
    storage.write(f"{THIRD}/files-1-of-2.json", b'{"weights-1')
    assert THIRD not in checkpoints(storage)


def test_a_run_without_a_whole_checkpoint_begins_anew(storage: RunStorage) -> None:
    storage.write(RECORD, b"")
    assert checkpoints(storage) == []
    assert all("begins anew" in notice for notice in mend_record(storage))
    assert read_by_ray(storage) == []


def test_a_checkpoint_that_was_removed_by_hand_is_forgotten(storage: RunStorage) -> None:
    storage.delete_folder(SECOND)
    assert mend_record(storage) == [f"notice: {storage.uri(SECOND)} was removed: this run goes on from {FIRST}"]
    assert read_by_ray(storage) == [FIRST]
    assert mend_record(storage) == []


def test_a_record_of_whole_checkpoints_stays_as_it_is(storage: RunStorage) -> None:
    before = storage.read(RECORD)
    assert mend_record(storage) == []
    assert storage.read(RECORD) == before


def test_names_sort_by_their_age() -> None:
    names = [FIRST, new_name(), new_name()]
    assert names == sorted(names)


@needs_mounts
def test_what_a_full_disk_leaves_of_a_checkpoint_does_not_count(tmp_path: Path) -> None:
    from pyarrow import fs

    saved = tmp_path / "saved"
    saved.mkdir()
    for number in range(3):
        (saved / f"weights-{number}.safetensors").write_bytes(bytes(60_000))
    list_files(saved, 0, 1)
    with small_disk(tmp_path / "disk", 300_000) as disk:
        storage = RunStorage(str(disk.folder), "run")
        for name in (FIRST, SECOND):
            (disk.folder / "run" / name).mkdir(parents=True)
            try:
                # As Ray Train copies them.
                fs.copy_files(str(saved), str(disk.folder / "run" / name))
            except OSError as error:
                assert name == SECOND and "No space left" in str(error)
        assert len(storage.listing(SECOND)) > 1
        assert checkpoints(storage) == [FIRST]
