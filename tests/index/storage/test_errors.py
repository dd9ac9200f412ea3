"""What a disk refuses: one sentence that names the collection, says what is committed, and loses nothing."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.disks import few_files, needs_mounts, small_disk
from tests.support.planted import document, plant, stored
from vrag_ray.cli.main import main as cli
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import StorageError, StorageFault, fault_of
from vrag_ray.index.storage.rows import StoredPassage
from vrag_ray.index.storage.verify import verify
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import VragError

MEGABYTE = 1_000_000
LANCE = "LanceError(IO): No space left on device (os error 28), /home/someone/lance/rust/lance-file/src/writer.rs:190:9"


@cache
def pages() -> list[StoredPassage]:
    return [stored("b", page, " ".join(f"w{page}x{word}" for word in range(400))) for page in range(1, 201)]


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), StorageFault.FULL),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), StorageFault.QUOTA),
        (OSError(errno.EROFS, "Read-only file system"), StorageFault.READ_ONLY),
        (PermissionError(errno.EACCES, "Permission denied"), StorageFault.DENIED),
        (OSError(errno.EMFILE, "Too many open files"), StorageFault.TOO_MANY_FILES),
        (OSError(LANCE), StorageFault.FULL),
        (RuntimeError("Read-only file system (os error 30)"), StorageFault.READ_ONLY),
        (OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left"), StorageFault.FULL),
        (caused(VragError("cannot write x"), OSError(errno.ENOSPC, "full")), StorageFault.FULL),
        (FileNotFoundError(errno.ENOENT, "No such file"), None),
        (ValueError("page 28 is damaged"), None),
    ],
)
def test_the_fault_behind_an_error_is_known_from_its_number(error: Exception, fault: StorageFault | None):
    assert fault_of(error) is fault


def message_of(error: StorageError, root: Path) -> str:
    """The message, once it is clear that it has all it should have and nothing of Lance."""
    message = str(error)
    assert f"the collection {root} " in message
    assert "os error" not in message
    assert "lance" not in message.lower()
    assert str(pickle.loads(pickle.dumps(error))) == message
    return message


@needs_mounts
def test_a_batch_on_a_full_disk_reports_what_is_committed_and_can_be_written_later(tmp_path: Path):
    with small_disk(tmp_path / "disk", 3 * MEGABYTE) as disk:
        root = disk.folder / "c"
        plant(root, {"a": ["alpha beta"]})
        with CollectionWriter(root) as writer:
            writer.add_passages(pages()[:5])
            disk.leave_free(100_000)
            with pytest.raises(StorageError) as caught:
                writer.add_passages(pages()[5:])
        message = message_of(caught.value, root)
        assert "is on a full disk: writing 195 pages failed. Nothing was lost: version 1 with 1 document" in message
        assert "and 5 pages committed since then will not be read again" in message
        assert caught.value.failure.needed_bytes is not None
        assert 500_000 < caught.value.failure.needed_bytes < 3 * MEGABYTE
        assert "Space needed (an estimate): about " in message
        assert [listed.title for listed in Collection.open(root).documents()] == ["a"]
        assert verify(root).is_sound
        disk.empty_again()
        with CollectionWriter(root) as writer:
            assert len(writer.unfinished_units()[pages()[0].passage.doc_id]) == 5
            writer.add_passages(pages()[5:])
            writer.commit_documents([document("b", units=200)])
            writer.publish("went on")
        ids = Collection.open(root).table("passages").to_table(columns=["id"])["id"].to_pylist()
        assert sorted(ids) == sorted(row.passage.id for row in [stored("a", 1, ""), *pages()])


STEPS: dict[str, Callable[[CollectionWriter], object]] = {
    "add_passages": lambda writer: writer.add_passages(pages()),
    "commit_documents": lambda writer: writer.commit_documents([document("b")]),
    "delete": lambda writer: writer.delete(document("a").doc_id),
    "publish": lambda writer: writer.publish("again"),
    "add_blob": lambda writer: writer.files.add_blob(Path(__file__)),
}


@needs_mounts
@pytest.mark.parametrize("step", STEPS)
def test_no_step_on_a_full_disk_loses_anything(step: str, tmp_path: Path):
    with small_disk(tmp_path / "disk", 3 * MEGABYTE) as disk:
        root = disk.folder / "c"
        plant(root, {"a": ["alpha beta"]})
        before = Collection.open(root).passages([stored("a", 1, "").passage.id])
        with CollectionWriter(root) as writer:
            disk.leave_free(0)
            with pytest.raises(StorageError) as caught:
                STEPS[step](writer)
        assert "Space needed (an estimate): about " in message_of(caught.value, root)
        assert Collection.open(root).version == 1
        assert Collection.open(root).passages(list(before)) == before
        assert verify(root).is_sound
        disk.empty_again()
        with CollectionWriter(root) as writer:
            STEPS[step](writer)
            writer.publish("again")
        assert Collection.open(root).version >= 2


@needs_mounts
def test_a_read_only_collection_is_read_and_refuses_every_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with small_disk(tmp_path / "disk", 3 * MEGABYTE) as disk:
        root = disk.folder / "c"
        plant(root, {"a": ["alpha beta"]})
        disk.read_only()
        assert len(Collection.open(root).documents()) == 1
        with pytest.raises(StorageError) as caught:
            CollectionWriter(root)
        message = message_of(caught.value, root)
        assert "is on a read-only file system" in message
        assert "version 1 with 1 document stays in service" in message
        with pytest.raises(StorageError, match="read-only"):
            CollectionWriter(disk.folder / "new")
        assert cli(["delete", document("a").doc_id, "-c", str(root)]) == 1
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1
        assert f"vrag: the collection {root} is on a read-only file system" in printed


@pytest.mark.parametrize("left", range(3))
@pytest.mark.parametrize("step", ["add_passages", "commit_documents", "delete", "publish"])
def test_too_many_open_files_is_reported_in_every_step_or_the_step_succeeds(step: str, left: int, tmp_path: Path):
    # A thread of an earlier test may close a file meanwhile, which makes room that the block has not made.
    for attempt in range(5 if left == 0 else 1):
        root = tmp_path / f"c{attempt}"
        plant(root, {"a": ["alpha beta"]})
        caught: StorageError | None = None
        with CollectionWriter(root) as writer, few_files(left):
            try:
                STEPS[step](writer)
            except StorageError as error:
                caught = error
        if caught is not None:
            break
        assert verify(root).is_sound
    if left == 0:
        assert caught is not None
    if caught is not None:
        assert "needs more files open than the system allows" in message_of(caught, root)
        assert "ulimit -n" in str(caught)
    assert verify(root).is_sound


def test_a_collection_that_cannot_be_opened_for_too_many_open_files_is_not_called_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    root = tmp_path / "c"
    plant(root, {"a": ["alpha beta"]})
    assert cli(["documents", "-c", str(root)]) == 0  # what is imported late is imported now
    capsys.readouterr()
    for left in range(3):
        with few_files(left):
            code = cli(["documents", "-c", str(root)])
        printed = capsys.readouterr().err
        assert code == 0 or f"vrag: the collection {root} needs more files open" in printed, printed
        assert code == 1 or left


@pytest.mark.parametrize("written", [b"", b'{"version":1}'], ids=["nothing", "an older version"])
def test_a_hint_that_the_disk_refused_is_corrected_by_the_next_writer(tmp_path: Path, written: bytes) -> None:
    root = tmp_path / "c"
    plant(root, {"a": ["a lighthouse"]})
    hint = root / "passages.lance" / "_versions" / "latest_version_hint.json"
    sound = hint.read_bytes()
    hint.write_bytes(written)
    assert verify(root).damaged == ("passages.lance/_versions/latest_version_hint.json",)
    with CollectionWriter(root):
        pass
    assert hint.read_bytes() == sound
    assert verify(root).is_sound
