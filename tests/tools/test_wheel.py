"""The wheel as pip builds it from what is committed: what is in it, and that it is enough for the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S

BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "vrag_ray", "ui", "benchmarks", "tests", "tools", "jobs")
HEAVY = ("torch", "vllm", "transformers")


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools leaves folders of its own beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            # Benchmarks fetch their documents into a folder of their own.
            left_out = ("__pycache__", "data") if name == "benchmarks" else ("__pycache__",)
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns(*left_out))
        else:
            shutil.copy(ROOT / name, source)
    # With the setuptools that is here: isolation would ask the package index for one.
    pip("wheel", str(source), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "built"))
    [built] = (folder / "built").iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--no-index", "--target", str(folder), str(wheel))
    return folder


def run_without_torch(installed: Path, *command: str) -> str:
    """What ``command`` prints where the wheel is installed and none of ``HEAVY`` can be imported."""
    blocked = installed.parent / "blocked"
    blocked.mkdir(exist_ok=True)
    for name in HEAVY:
        (blocked / f"{name}.py").write_text(f"raise ImportError('{name} is not installed')\n", encoding="utf-8")
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": f"{blocked}{os.pathsep}{installed}"},
        cwd=blocked,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_the_interface_and_no_study(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"vrag_ray", "ui"}
    assert [name for name in names if "hunt" in name or "benchmark" in name or "/tests/" in name] == []
    there = {"vrag_ray/cli/main.py", "vrag_ray/training/presets/mosaic-cpu.yaml", "ui/.streamlit/config.toml"}
    assert there <= set(names)


def test_the_wheel_is_imported_without_torch(installed: Path) -> None:
    program = (
        "import vrag_ray; print(vrag_ray.__file__); print(vrag_ray.VimRAG, vrag_ray.VRAG, vrag_ray.SearchEngine); "
        "import vrag_ray.serving.app, vrag_ray.ingest, vrag_ray.index.search.retriever, vrag_ray.training.config"
    )
    where, *_ = run_without_torch(installed, sys.executable, "-c", program).splitlines()
    assert Path(where).is_relative_to(installed)


def test_the_wheels_vrag_helps_without_torch(installed: Path) -> None:
    output = run_without_torch(installed, str(installed / "bin" / "vrag"), "--help")
    assert "ingest" in output
    assert "serve" in output
