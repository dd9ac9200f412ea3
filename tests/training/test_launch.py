"""What is checked before Ray starts anything; whole runs are in ``tests/e2e/learning``."""

from __future__ import annotations

import errno
import importlib.util
import json
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError
from ray.exceptions import RayActorError
from ray.train import ControllerError, WorkerGroupError
from ray.train.v2._internal.exceptions import WorkerHealthCheckFailedError

from tests.support.judge_stub import compares, endpoint, judge_stub
from tests.support.object_store import Bucket
from tests.support.train_double import TrainDouble, leave_checkpoints
from tests.support.training_configs import RL, SFT
from vrag_ray.cli.main import main
from vrag_ray.index.storage.collection import Collection
from vrag_ray.training.config import RLConfig, SFTConfig
from vrag_ray.training.launch import train_rl, train_sft
from vrag_ray.training.rollout.environment import with_family
from vrag_ray.training.run.storage import RunStorage, local_copy
from vrag_ray.types import FamilyName, VragError


@pytest.fixture
def without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the base install."""
    known = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "vllm" else known(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)


@pytest.mark.usefixtures("without_vllm")
def test_reinforcement_needs_vllm_and_says_what_to_install():
    with pytest.raises(VragError, match=r"training needs vllm: pip install '\.\[cpu\]' or '\.\[gpu\]' in the checkout"):
        train_rl(RLConfig.model_validate(RL), pytest.fail)


@pytest.mark.usefixtures("without_vllm")
def test_imitation_needs_no_vllm_but_its_data():
    with pytest.raises(VragError, match=r"trajectories: there is no expert"):
        train_sft(SFTConfig.model_validate(SFT), pytest.fail)


def test_what_is_missing_or_cannot_work_is_found_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: Bucket
):
    def refused(**values: object) -> str:
        with pytest.raises(VragError) as caught:
            train_rl(RLConfig.model_validate(RL | values), pytest.fail)
        return str(caught.value)

    monkeypatch.chdir(tmp_path)
    assert "environment.collection: there is no pages in" in refused()
    (tmp_path / "pages").mkdir()
    assert "pages is not a collection: `vrag ingest" in refused()
    assert list((tmp_path / "pages").iterdir()) == []
    monkeypatch.setattr("vrag_ray.training.launch._collection", str)
    monkeypatch.setattr("vrag_ray.training.rollout.environment.documents_of", lambda _: [])
    assert "examples: there is no questions.jsonl in" in refused()
    questions, model = tmp_path / "questions.jsonl", {"model": {"path": model_folder(tmp_path)}}
    questions.touch()
    assert "validation: there is no held-out.jsonl in" in refused(validation="held-out.jsonl", validation_every=1)
    assert "model.path: there is no ~/model".replace("~", str(Path.home())) in refused(model={"path": "~/model"})
    assert "reward.judge_cache: a URI with a password" in refused(reward={"judge_cache": "s3://a:b@c/d"})
    assert "questions.jsonl holds no example" in refused(**model)
    questions.write_text("{oops")
    assert "questions.jsonl: row 1: not JSON" in refused(**model)
    write_questions(questions, gold=[{"file_name": "lost.pdf"}])
    assert "example 'q': gold file 'lost.pdf' is not in the collection: ingest it" in refused(**model)
    write_questions(questions)
    (tmp_path / "held-out.jsonl").write_text('{"uid": "v"}')
    assert "held-out.jsonl: row 1: question" in refused(**model, validation="held-out.jsonl", validation_every=1)
    assert "reward.scorer is judge: set reward.judge.base_url" in refused(**model, reward={"scorer": "judge"})
    assert "reward.scorer is 'os:nothing', but os has no nothing" in refused(**model, reward={"scorer": "os:nothing"})
    boxes = {"answer": 0.5, "grounding": 0.2}
    assert "no question of " in refused(**model, reward=boxes)
    served = {"served": {"model": "that of the run"}}
    uploaded = {"path": bucket.upload(tmp_path / "model", "model")}
    assert "rollout.served loads the model from a folder" in refused(model=uploaded, rollout=served)
    assert "no folder of a Hugging Face model: it has no config.json" in refused(model={"path": bucket.uri("nowhere")})


def write_questions(file: Path, **values: object) -> None:
    file.write_text(json.dumps({"uid": "q", "question": "Who?", "answers": ["me"], **values}), encoding="utf-8")


def model_folder(parent: Path) -> str:
    folder = parent / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen2_5_vl"}', encoding="utf-8")
    return str(folder)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> TrainDouble:
    double = TrainDouble()
    double.install(monkeypatch)
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    return double


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of somebody who trains, with all that a configuration names, and a home of its own."""
    folder = tmp_path / "project"
    folder.mkdir()
    model_folder(folder)
    (folder / "expert").mkdir()
    (folder / "expert/talks.json").write_text("[]")
    Collection.open_or_create(folder / "pages")
    write_questions(folder / "questions.jsonl")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


PLACES = [
    ("verdicts", "{project}/verdicts"),
    ("./my runs", "{project}/my runs"),
    ("~/runs", "{home}/runs"),
    ("{home}/runs", "{home}/runs"),
    ("file://{home}/my%20runs", "{home}/my runs"),
]


@pytest.mark.parametrize(("storage", "folder"), [(None, "{project}/vrag-runs"), *PLACES])
def test_a_run_is_kept_where_its_storage_says(
    storage: str | None, folder: str, project: Path, tmp_path: Path, workers: TrainDouble
):
    home = tmp_path / "home"
    own = {} if storage is None else {"storage": storage.format(home=home)}
    lines: list[str] = []
    final = train_sft(SFTConfig.model_validate(SFT | own | {"model": {"path": "model"}}), lines.append)
    place = folder.format(project=project, home=home)
    assert lines == [f"everything of this run: {place}/run"]
    assert final == f"{place}/run/final"
    assert workers.config["storage"] == workers.storage_path == place
    assert Path(place, "run").is_dir()
    assert (workers.config["trajectories"], workers.config["model"]["path"]) == (
        str(project / "expert"),
        str(project / "model"),
    )


@pytest.mark.usefixtures("workers")
def test_a_run_with_checkpoints_of_other_settings_starts_nothing(project: Path):
    config = SFTConfig.model_validate(SFT | {"model": {"path": "model"}})
    run = Path(train_sft(config, lambda _: None)).parent
    leave_checkpoints(RunStorage(str(run.parent), run.name), "checkpoint_1")
    placed = config.model_dump(mode="json") | {"trajectories": str(project / "expert")}
    (run / "config.yaml").write_text(yaml.safe_dump(placed), encoding="utf-8")
    with pytest.raises(VragError, match=r"run has checkpoints .*: seed 0 \(now 1\)\. Take these settings back"):
        train_sft(config.model_copy(update={"seed": 1}), pytest.fail)
    (project / "expert/talks.json").write_text("[{}]")
    with pytest.raises(VragError, match=r"other inputs: trajectories had 1 file of 2 bytes"):
        train_sft(config, pytest.fail)


@pytest.mark.parametrize("kind", ["sft", "rl"])
def test_a_run_that_is_refused_starts_no_ray(
    kind: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("vrag_ray.cluster.is_connected", lambda: False)
    monkeypatch.setattr("vrag_ray.cluster.require_ray", lambda: pytest.fail("Ray was started"))
    (project / "empty").mkdir()
    values = {"sft": SFT | {"trajectories": "empty"}, "rl": RL | {"examples": "nowhere"}}[kind]
    (project / "run.yaml").write_text(yaml.safe_dump(values | {"model": {"path": "model"}}), encoding="utf-8")
    monkeypatch.setattr("vrag_ray.training.launch._collection", str)
    assert main(["train", kind, "--config", "run.yaml"]) == 1
    refusal = {"sft": "empty holds no trajectories", "rl": "there is no nowhere in"}
    assert refusal[kind] in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("workers")
def test_a_check_prints_every_setting_and_what_there_is_and_writes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("vrag_ray.training.launch._collection", lambda root: f"{project}/{root}")
    monkeypatch.setattr("vrag_ray.training.rollout.environment.documents_of", lambda _: [])
    (project / "run.yaml").write_text(yaml.safe_dump(RL | {"model": {"path": "model"}}), encoding="utf-8")
    assert main(["train", "rl", "--config", "run.yaml", "--check"]) == 0
    shown = capsys.readouterr().out
    assert RLConfig.model_validate(yaml.safe_load(shown)).examples == f"{project}/questions.jsonl"
    assert "# 1 questions to train on, 0 of them with gold places; 0 of validation" in shown
    assert not (project / "vrag-runs").exists()
    write_questions(project / "questions.jsonl", uid="")
    assert main(["train", "rl", "--config", "run.yaml", "--check"]) == 1
    assert "questions.jsonl: row 1: uid: " in capsys.readouterr().err


def test_the_judge_is_called_before_anything_is_loaded(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("vrag_ray.training.launch._collection", lambda root: f"{project}/{root}")
    monkeypatch.setattr("vrag_ray.training.rollout.environment.documents_of", lambda _: [])

    def checked(base_url: str) -> int:
        reward = {"scorer": "judge", "judge": {"base_url": base_url, "model": "stub"}, "judge_cache": "verdicts"}
        values = RL | {"model": {"path": "model"}, "reward": reward}
        (project / "run.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        return main(["train", "rl", "--config", "run.yaml", "--check"])

    with judge_stub(compares) as judge:
        assert checked(judge.base_url) == 0
        assert len(judge.requests) == 1
    assert f"the judge stub at {judge.base_url} gives verdicts" in capsys.readouterr().out
    assert not (project / "verdicts").exists()
    assert checked(judge.base_url) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert f"judge stub at {judge.base_url} cannot be called (APIConnectionError)" in shown
    assert "Start the endpoint, or correct reward.judge.base_url, reward.judge.model or the key" in shown
    values = RL | {"model": {"path": "model"}, "reward": {"scorer": "judge", "judge": endpoint(judge.base_url)}}
    with pytest.raises(VragError, match="cannot be called"):
        train_rl(RLConfig.model_validate(values), pytest.fail)


def test_a_finished_run_starts_nothing_until_it_is_to_go_further(project: Path, workers: TrainDouble):
    def trained(**changes: object) -> list[str]:
        lines: list[str] = []
        workers.config = {}
        train_sft(SFTConfig.model_validate(SFT | {"model": {"path": "model"}} | changes), lines.append)
        return lines

    def started(**changes: object) -> bool:
        trained(**changes)
        return bool(workers.config)

    assert started() and started()
    run = project / "vrag-runs/run"
    (run / "final").mkdir()
    (run / "final/config.json").write_text("{}")
    assert started(), "a run without checkpoints begins anew"
    leave_checkpoints(RunStorage(str(run.parent), run.name), "checkpoint_1")
    assert trained() == [f"this run is finished, and nothing is left to do: {run}"]
    assert not workers.config
    assert not started(checkpoint_every=7)
    workers.failure = RuntimeError("out of memory")
    with pytest.raises(VragError, match="out of memory"):
        started(epochs=2)
    workers.failure = None
    assert started() and not started() and started(epochs=2)
    (run / "final/config.json").unlink()
    assert started(epochs=2)


def failure_of(error: Exception, workers: TrainDouble, /, *, checkpoint: bool = False, **values: object) -> str:
    """What a run that ends with ``error`` says, after the name of the run and with its folder as F."""
    folder = Path.cwd() / "vrag-runs/run"
    if checkpoint:
        leave_checkpoints(RunStorage(str(folder.parent), "run"), "checkpoint_1")
    workers.failure = error
    with pytest.raises(VragError) as caught:
        train_sft(SFTConfig.model_validate(SFT | {"model": {"path": "model"}} | values), lambda _: None)
    return str(caught.value).removeprefix("the training run run failed: ").replace(str(folder), "F")


TRACEBACK = "[Rank 0 Error Snippet]:\nTraceback (most recent call last):\n  File 'mine.py', line 3, in assign\n"


@pytest.mark.usefixtures("project")
def test_a_failure_names_its_cause_first_and_then_how_to_go_on(workers: TrainDouble):
    unknown = WorkerGroupError(TRACEBACK, {0: KeyError("weight"), 1: KeyError("weight")})
    assert failure_of(unknown, workers) == (
        "workers 0, 1: KeyError: 'weight'. The same command begins anew. Traceback: F/errors.log"
    )
    assert TRACEBACK in (Path.cwd() / "vrag-runs/run/errors.log").read_text()
    full = WorkerGroupError("", {0: OSError(errno.ENOSPC, "No space left on device")})
    assert failure_of(full, workers, checkpoint=True) == (
        "worker 0: OSError: [Errno 28] No space left on device. Free space on that disk, or use another storage. "
        "The same command goes on from checkpoint_1. Traceback: F/errors.log"
    )


@pytest.mark.usefixtures("project")
def test_a_failure_that_names_its_remedy_says_nothing_else(workers: TrainDouble):
    assert failure_of(WorkerGroupError("", {0: VragError("set it to 0")}), workers) == "worker 0: set it to 0"
    assert not (Path.cwd() / "vrag-runs/run/errors.log").exists()


RAY_OF_A_LOST_PROCESS = (
    "The actor died unexpectedly before finishing this task.\nSome common causes include: (1) the process was killed "
    "by the OOM killer due to high memory usage, (2) ray stop --force was called"
)


@pytest.mark.usefixtures("project")
def test_a_worker_whose_process_was_lost_is_named_with_the_remedy(workers: TrainDouble):
    gone = RayActorError(error_msg=RAY_OF_A_LOST_PROCESS)
    midway = WorkerGroupError("", {0: RuntimeError("connection reset"), 1: WorkerHealthCheckFailedError("no", gone)})
    beginning = ControllerError(gone)
    cause = "its process was killed, mostly because memory had run out, or it crashed. Lower model.tokens_per_batch, "
    for error, who in ((midway, "worker 1"), (beginning, "a worker")):
        shown = failure_of(error, workers)
        assert shown.startswith(f"{who}: {cause}")
        assert "; workers.max_failures above 0 replaces lost workers. The same command begins anew" in shown
        assert "OOM killer" not in shown
    assert "max_failures" not in failure_of(midway, workers, workers={"max_failures": 2})


@pytest.mark.usefixtures("project")
def test_a_failure_is_reported_where_its_traceback_cannot_be_written(workers: TrainDouble):
    folder = Path.cwd() / "vrag-runs/run"
    # What stands in the way of the file that it would be written to first.
    (folder / ".errors.log.partial").mkdir(parents=True)
    shown = failure_of(WorkerGroupError("", {0: KeyError("weight")}), workers)
    assert "The traceback cannot be written to F/errors.log: " in shown


@pytest.mark.usefixtures("project")
def test_ctrl_c_names_how_the_run_goes_on(workers: TrainDouble):
    # Ray Train handles Ctrl-C itself, and leaves the process so.
    workers.failure = SystemExit(0)
    with pytest.raises(KeyboardInterrupt, match=r"the same command goes on after the last checkpoint in .*-runs/run$"):
        train_sft(SFTConfig.model_validate(SFT | {"model": {"path": "model"}}), lambda _: None)


@pytest.mark.usefixtures("project", "workers")
def test_a_folder_that_is_no_model_is_refused():
    with pytest.raises(VragError, match=r"^model\.path: .*/expert is no folder of a .* model: it has no config\.json$"):
        train_sft(SFTConfig.model_validate(SFT | {"model": {"path": "expert"}}), pytest.fail)


@pytest.mark.usefixtures("project", "workers")
def test_a_run_that_computes_in_float32_on_a_gpu_names_what_is_faster():
    def notices(**model: object) -> list[str]:
        lines: list[str] = []
        on_gpus = {"workers": {"gpu": bool(model)}}
        train_sft(SFTConfig.model_validate(SFT | {"model": {"path": "model"} | model} | on_gpus), lines.append)
        return lines[1:]

    (notice,) = notices(gpu=True)
    assert "`model.sharded: true` with `model.compute_dtype: bfloat16`" in notice
    half = {"gpu": True, "dtype": "bfloat16"}
    spread = {"gpu": True, "sharded": True, "compute_dtype": "bfloat16"}
    assert notices() == notices(**half) == notices(**spread) == []


@pytest.mark.parametrize(("cache", "folder"), PLACES)
def test_workers_receive_the_places_of_verdicts_collection_and_questions(
    cache: str,
    folder: str,
    project: Path,
    tmp_path: Path,
    workers: TrainDouble,
    monkeypatch: pytest.MonkeyPatch,
):
    home = tmp_path / "home"
    monkeypatch.setattr("vrag_ray.training.launch._collection", lambda root: f"{project}/{root}")
    monkeypatch.setattr("vrag_ray.training.rollout.environment.documents_of", lambda _: [])
    values = {"model": {"path": "model"}, "reward": {"judge_cache": cache.format(home=home)}}
    train_rl(RLConfig.model_validate(RL | values), lambda _: None)
    given = workers.config
    assert given["reward"]["judge_cache"] == folder.format(project=project, home=home)
    assert given["environment"]["collection"] == f"{project}/pages"
    assert (given["examples"], given["model"]["path"]) == (str(project / "questions.jsonl"), str(project / "model"))
    assert given["storage"] == str(project / "vrag-runs")


ENVIRONMENT = {"collection": "pages"}


def of_model(folder: Path, model_type: str, **values: object) -> RLConfig:
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}), encoding="utf-8")
    return RLConfig.model_validate({**RL, "model": {"path": str(folder)}, **values})


def test_a_family_that_is_not_the_trained_models_is_refused_with_both_names(tmp_path: Path):
    environment = {**ENVIRONMENT, "agent": {"family": "qwen3_vl"}}
    with pytest.raises(VragError, match=r"agent\.family is qwen3_vl, but model\.path .* of the family qwen2_5_vl"):
        with_family(of_model(tmp_path, "qwen2_5_vl", environment=environment))


def test_without_a_family_it_is_the_trained_models(tmp_path: Path):
    for agent in ("vrag", "vimrag"):
        config = of_model(tmp_path, "qwen2_5_vl", environment={**ENVIRONMENT, "agent_name": agent})
        assert with_family(config).environment.agent.family is FamilyName.QWEN2_5_VL


def test_the_family_of_a_model_at_a_uri_is_read_without_its_weights(tmp_path: Path, bucket: Bucket):
    folder = Path(model_folder(tmp_path))
    for name in ("tokenizer.json", "model-00001-of-00002.safetensors", "trainer.pt"):
        (folder / name).write_text("{}")
    place = bucket.upload(folder, "described")
    with local_copy(place, weights=False) as copy:
        assert sorted(file.name for file in copy.iterdir()) == ["config.json", "tokenizer.json"]
    config = RLConfig.model_validate({**RL, "model": {"path": place}})
    assert with_family(config).environment.agent.family is FamilyName.QWEN2_5_VL
    other = {**ENVIRONMENT, "agent": {"family": "qwen3_vl"}}
    with pytest.raises(VragError, match=r"agent\.family is qwen3_vl, but model\.path s3://.* of the family qwen2_5_vl"):
        with_family(RLConfig.model_validate({**RL, "model": {"path": place}, "environment": other}))


@pytest.mark.parametrize(
    ("rollout", "engine"),
    [
        ({"engine": {"max_model_len": 4096}}, "rollout.engine"),
        ({"served": {"model": "m", "max_model_len": 4096, "max_images": 16}}, "rollout.served"),
    ],
)
def test_prompts_that_cannot_fit_the_engine_are_refused_with_their_sum(rollout: dict[str, object], engine: str):
    with pytest.raises(
        ValidationError,
        match=r"vimrag cannot fit: environment\.agent\.search_top_k 3: memory 1280 "
        r"\(environment\.agent\.memory_pixels\) \+ 3 "
        r"pages x 980 .* \+ 2 crops x 980 \+ reply 2048 \(rollout\.max_reply_tokens\) \+ text 1024 .* = 9252 tokens > "
        rf"{engine}\.max_model_len 4096: raise {engine}\.max_model_len",
    ):
        RLConfig.model_validate({**RL, "rollout": rollout})
    with pytest.raises(ValidationError, match=r"= 10 pictures in a prompt > rollout\.engine\.max_images 9"):
        RLConfig.model_validate({**RL, "rollout": {"engine": {"max_images": 9}}})
