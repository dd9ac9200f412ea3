"""What a configuration names, as an absolute path or URI, by hand and inside a submitted job."""

from __future__ import annotations

from pathlib import Path

import pytest
from ray.train import RunConfig
from ray.train.constants import DEFAULT_STORAGE_PATH

from tests.support.object_store import Bucket
from vrag_ray.training.run.storage import RunStorage
from vrag_ray.training.run.submitted_paths import input_place, model_place, output_place
from vrag_ray.types import VragError


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that is the working folder as well."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def copy(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ray's copy of the working folder of a job."""
    folder = home / "session/runtime_resources/working_dir_files/_ray_pkg_1"
    folder.mkdir(parents=True)
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("storage", "folder"),
    [
        ("runs", "runs"),
        ("./my runs", "my runs"),
        ("../runs", "../runs"),
        ("~/runs", "runs"),
        ("{home}/runs", "runs"),
        ("file://{home}/my%20runs", "my runs"),
    ],
)
def test_a_local_storage_is_absolute_and_is_the_one_of_ray_train(storage: str, folder: str, home: Path):
    place = output_place("storage", storage.format(home=home))
    assert place == str((home / folder).resolve())
    run = RunStorage(place, "run")
    run.create()
    run.write("metrics.jsonl", b"{}")
    context = RunConfig(name="run", storage_path=place).storage_context
    assert sorted(path.name for path in Path(context.experiment_fs_path).iterdir() if path.name[0] != ".") == [
        "metrics.jsonl"
    ]
    assert run.uri("final") == f"{place}/run/final"


def test_an_object_store_is_the_one_of_ray_train_and_no_folder(bucket: Bucket, home: Path):
    place = output_place("storage", bucket.uri("the-same/runs/"))
    run = RunStorage(place, "run")
    run.create()
    run.write("metrics.jsonl", b"{}")
    context = RunConfig(name="run", storage_path=place).storage_context
    assert context.experiment_fs_path == f"{bucket.name}/the-same/runs/run"
    assert "metrics.jsonl" in bucket.files("the-same/runs/run")
    assert run.uri("final") == bucket.uri("the-same/runs/run/final")
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("place", ["ftp://host/runs", "file://runs", "S3://bucket/runs"])
def test_a_uri_that_no_filesystem_knows_is_refused(place: str):
    with pytest.raises(VragError, match=r"cannot open .*Give a folder or a URI"):
        output_place("storage", place)


def test_a_password_does_not_get_into_logs_and_config():
    with pytest.raises(VragError, match=r"^storage: a URI with a password .*environment of every node$"):
        output_place("storage", "s3://key:secret@bucket/runs")


def test_a_place_that_cannot_be_written_is_found_at_once(bucket: Bucket, tmp_path: Path):
    (tmp_path / "file").touch()
    for storage in (str(tmp_path / "file"), bucket.uri("").replace(bucket.name, "nobodys-bucket")):
        with pytest.raises(VragError, match=r"storage .*/run.* cannot be written"):
            RunStorage(storage, "run").create()


@pytest.mark.parametrize("storage", ["file", "file/runs", "file://{home}/file"])
def test_a_storage_below_a_file_is_refused(storage: str, home: Path) -> None:
    (home / "file").touch()
    with pytest.raises(VragError, match=r"^storage: .* cannot be made, because .*/file is no folder$"):
        output_place("storage", storage.format(home=home))


def test_what_a_job_writes_outlives_its_working_folder(copy: Path):
    assert output_place("storage", "runs") == f"{DEFAULT_STORAGE_PATH}/runs"
    assert output_place("storage", str(copy / "runs")) == str(copy / "runs")
    assert output_place("storage", "~/runs") == str(Path.home() / "runs")


def test_a_job_reads_its_working_folder_and_what_earlier_jobs_have_left(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ray.train.constants.DEFAULT_STORAGE_PATH", str(tmp_path / "ray_results"))
    (copy / "expert").mkdir()
    (tmp_path / "ray_results/runs/first/final").mkdir(parents=True)
    assert input_place("trajectories", "expert") == str(copy / "expert")
    assert model_place("runs/first/final") == str(tmp_path / "ray_results/runs/first/final")
    with pytest.raises(VragError, match=r"examples: there is no q.jsonl in .*_ray_pkg_1 and none in .*ray_results"):
        input_place("examples", "q.jsonl")


def test_what_is_read_is_looked_for_where_the_user_stands(home: Path, bucket: Bucket):
    (home / "expert data").mkdir()
    for place in ("expert data", "./expert data", "~/expert data", f"file://{home}/expert%20data"):
        assert input_place("trajectories", place) == str(home / "expert data")
    assert input_place("trajectories", bucket.uri("expert")) == bucket.uri("expert")


@pytest.mark.parametrize("place", ["questions.jsonl", "~/questions.jsonl", "{home}/questions.jsonl"])
def test_what_is_not_there_is_named(place: str, home: Path):
    with pytest.raises(VragError, match=r"^examples: there is no .*questions\.jsonl"):
        input_place("examples", place.format(home=home))


@pytest.mark.parametrize("name", ["Qwen/Qwen3-VL-4B-Instruct", "gpt2", "org_1/model.v2"])
def test_a_model_may_be_a_hub_id(name: str, home: Path):
    assert model_place(name) == name
    (home / name).mkdir(parents=True)
    assert model_place(name) == str(home / name), "a folder of that name comes first"


@pytest.mark.parametrize("name", ["runs/my-agent/final", "./model", "~/model", "/nowhere/model", "../model"])
def test_a_model_that_is_neither_folder_nor_hub_id_is_named(name: str, home: Path):
    with pytest.raises(VragError, match=r"^model\.path: there is no .*(model|final).* no id of the Hugging Face hub"):
        model_place(name)
