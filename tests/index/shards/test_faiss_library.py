"""One FAISS: two wheels in one folder are noticed, a missing wheel is reported with the remedy."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from vrag_ray.cli.diagnosis import diagnose
from vrag_ray.config import Settings
from vrag_ray.index.shards.faiss_library import FaissWheel, load_faiss, too_many_wheels
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.shard_rows import ShardRows, SpaceRows
from vrag_ray.types import VragError


def wheel(folder: Path, name: str, version: str, *files: str) -> None:
    """The record that pip leaves of an installed wheel."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path on which faiss-cpu and faiss-gpu share one folder, as pip leaves them."""
    wheel(tmp_path, "faiss-cpu", "1.15.1", "faiss/__init__.py", "faiss/libfaiss.so")
    wheel(tmp_path, "faiss-gpu", "1.15.1", "faiss/__init__.py", "faiss/libfaiss.so", "faiss_gpu.libs/a.so")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def shard() -> FlatIndex:
    return FlatIndex(SpaceRows.of(ShardRows.of([], [], [], []), np.zeros((0, 4), np.float16)))


def test_the_doctor_notices_two_wheels_and_says_which_commands_leave_one(two: Path):
    diagnosis = diagnose(Settings())
    (notice,) = [notice for notice in diagnosis.notices if "FAISS" in notice]
    assert "faiss-cpu 1.15.1 and faiss-gpu 1.15.1" in notice
    keep = "faiss-gpu==1.15.1" if diagnosis.machine.gpus else "faiss-cpu==1.15.1"
    assert notice.endswith(f"pip uninstall -y faiss-cpu faiss-gpu && pip install {keep}")
    (package,) = [package for package in diagnosis.packages if package.name == "faiss"]
    assert package.version == "1.15.1 (faiss-cpu) and 1.15.1 (faiss-gpu)"


def test_of_two_wheels_the_one_for_the_machine_is_kept():
    wheels = (FaissWheel("faiss-cpu", "1"), FaissWheel("faiss-gpu", "2"))
    assert too_many_wheels(wheels, gpu=True).endswith("pip install faiss-gpu==2")
    assert too_many_wheels(wheels, gpu=False).endswith("pip install faiss-cpu==1")
    assert too_many_wheels(wheels[:1], gpu=True) == too_many_wheels((), gpu=False) == ""


def test_without_faiss_the_doctor_and_a_shard_say_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("vrag_ray.index.shards.faiss_library._NAMES", ())
    with pytest.raises(VragError, match=r"not installed.*\.\[embedded\]"):
        shard()
    diagnosis = diagnose(Settings())
    assert diagnosis.profile == "broken"
    assert [item for item in diagnosis.missing if ".[embedded]" in item]


def test_the_remains_of_an_uninstalled_second_wheel_are_distinguished_from_faiss(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "faiss", ModuleType("faiss"))
    with pytest.raises(VragError, match=r"incomplete.*--force-reinstall --no-deps faiss-"):
        load_faiss()
