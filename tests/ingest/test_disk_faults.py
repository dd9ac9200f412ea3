"""Ingest onto a disk that fills up: exit code 1, one sentence, nothing lost, and the same command goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.disks import needs_mounts, small_disk
from tests.support.ingest_material import content, make_pdf, settings_for
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import StorageError, StorageFault
from vrag_ray.index.storage.verify import verify
from vrag_ray.ingest import ingest

pytestmark = pytest.mark.usefixtures("local_ray")
MEGABYTE = 1_000_000
RUN_LIMIT_S = 240


def make_noise(path: Path, size: int) -> Path:
    """A text file that no disk compresses, of few words."""
    path.write_text("harbour\n\n" + os.urandom(size // 2).hex())
    return path


# Quick forms: the test below, in the tests' own process, and ``index/storage/test_errors`` for the messages.
@pytest.mark.exhaustive
@needs_mounts
def test_vrag_ingest_on_a_full_disk_says_what_is_committed_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    import ray

    folder = tmp_path / "in"
    folder.mkdir()
    make_pdf(folder / "a.pdf", 6, "whale")
    make_noise(folder / "b.txt", 4 * MEGABYTE)
    environment = os.environ | {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    with small_disk(tmp_path / "disk", 3 * MEGABYTE) as disk:
        root = disk.folder / "c"
        config = tmp_path / "config.yaml"
        config.write_text(yaml.safe_dump(settings_for(root, concurrency=2).model_dump(mode="json")))
        command = [sys.executable, "-m", "vrag_ray.cli", "ingest", str(folder), "--config", str(config)]

        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                command, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False, env=environment
            )

        failed = run()
        assert failed.returncode == 1, failed.stdout + failed.stderr
        line = failed.stderr.strip().splitlines()[-1]
        assert line.startswith(
            f"vrag: the collection {root} is on a full disk: taking in b.txt failed. Nothing was lost"
        )
        assert "Space needed (an estimate): about 4.0 MB for this step" in line
        assert "for the originals of the files not yet done" in line
        assert "Traceback" not in failed.stderr
        assert "os error" not in failed.stderr
        disk.resize(30 * MEGABYTE)
        again = run()
        assert again.returncode == 0, again.stdout + again.stderr
        assert {document.title for document in Collection.open(root).documents()} == {"a", "b"}
        assert verify(root).is_sound


@needs_mounts
# In steps so small that every kind of write is refused once. Quick forms: ``index/storage/test_errors``.
@pytest.mark.exhaustive
@pytest.mark.parametrize("step", [90_000, 40_000])
def test_with_ever_more_room_ingest_ends_with_the_content_of_an_undisturbed_run(tmp_path: Path, step: int) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    make_pdf(folder / "long.pdf", 30, "whale")
    for name in ("x", "y", "z"):
        (folder / f"{name}.txt").write_text(f"a lighthouse called {name}")
    ingest([folder], settings_for(tmp_path / "expected"))
    refused: list[StorageError] = []
    with small_disk(tmp_path / "disk", 10 * MEGABYTE) as disk:
        root = disk.folder / "c"
        room = 80_000
        while True:
            disk.leave_free(room)
            try:
                ingest([folder], settings_for(root))
                break
            except StorageError as error:
                refused.append(error)
                assert error.failure.fault is StorageFault.FULL
                assert f"the collection {root} is on a full disk" in str(error)
                assert "Nothing was lost" in str(error)
            room += step
        disk.empty_again()
        assert len(refused) >= 2
        assert content(root) == content(tmp_path / "expected")
        assert verify(root).is_sound


@needs_mounts
def test_a_file_is_not_blamed_for_a_collection_that_cannot_be_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 3 * MEGABYTE) as disk:
        root = disk.folder / "c"
        (tmp_path / "a.txt").write_text("a lighthouse")
        ingest([tmp_path / "a.txt"], settings_for(root))
        disk.read_only()
        (tmp_path / "b.txt").write_text("a harbour")
        with pytest.raises(StorageError, match=r"read-only .*version 1 with 1 document stays in service"):
            ingest([tmp_path / "b.txt"], settings_for(root))
