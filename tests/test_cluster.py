"""What a submitted job may not do: write where nothing outlives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from vrag_ray.cli.main import main
from vrag_ray.cluster import refuse_lost_output


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder and the variable of a job's entrypoint."""
    folder = tmp_path / "session" / "runtime_resources" / "working_dir_files" / "_ray_pkg_0"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    return folder


def test_a_job_does_not_ingest_into_the_copy_of_its_folder(job: Path, capsys: pytest.CaptureFixture[str]):
    (job / "notes.txt").write_text("a note", encoding="utf-8")
    assert main(["ingest", "notes.txt", "--collection", "mine"]) == 1
    assert "--collection mine lies in Ray's copy" in capsys.readouterr().err
    assert [path.name for path in job.iterdir()] == ["notes.txt"]


def test_places_that_outlive_the_job_are_taken(job: Path):
    for place in ("/shared/mine", "~/mine", "s3://bucket/mine"):
        refuse_lost_output("--collection", place)


def test_outside_of_a_job_a_relative_place_is_the_callers_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    refuse_lost_output("--collection", "mine")
