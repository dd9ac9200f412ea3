"""A run of an old name: with which settings it goes on, and with which it is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.object_store import Bucket
from tests.support.train_double import leave_checkpoints
from tests.support.training_configs import RL, SFT
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.versions import VersionRecord, write_version
from vrag_ray.training.config import RLConfig, SFTConfig, TrainConfig
from vrag_ray.training.run.folder import RunFolder
from vrag_ray.training.run.same_settings import record_inputs, refuse_other_settings
from vrag_ray.training.run.storage import RunStorage
from vrag_ray.types import VragError

GoOn = Callable[..., None]
JUDGED = {"scorer": "judge", "judge": {"base_url": "http://a:1/v1", "model": "large"}}


@pytest.fixture
def storage(tmp_path: Path) -> RunStorage:
    storage = RunStorage(str(tmp_path), "run")
    storage.create()
    return storage


def begun(storage: RunStorage, config: TrainConfig, *, checkpoint: bool = True) -> None:
    """What a run that was killed leaves."""
    RunFolder(storage, config, config.name, "").close()
    if checkpoint:
        leave_checkpoints(storage, "checkpoint_2026-11-30_08-00-00.000000")


def rl(**values: object) -> RLConfig:
    return RLConfig.model_validate(RL | {"reward": JUDGED} | values)


@pytest.mark.parametrize(
    ("changed", "differing"),
    [
        ({"algorithm": "grpo"}, r"algorithm ggpo \(now grpo\)\. Take"),
        ({"optimizer": {"lr": 1e-4}}, r"optimizer\.lr 1e-06 \(now 0\.0001\)\. Take"),
        ({"model": {"path": "some/model", "lora_rank": 8}}, r"model\.lora_rank 0 \(now 8\)"),
        ({"model": {"path": "other/model"}}, r"model\.path some/model \(now other/model\)"),
        ({"reward": {"scorer": "f1"}}, r"reward\.scorer judge \(now f1\); reward\.judge .* \(now None\)"),
        (
            {"reward": {**JUDGED, "judge": {"base_url": "http://a:1/v1", "model": "small"}}},
            r"reward\.judge\.model large",
        ),
        ({"rollout": {"group": 8}, "seed": 1}, r"seed 0 \(now 1\); .*rollout\.group 5 \(now 8\)"),
        ({"examples": "others.jsonl"}, r"examples questions\.jsonl \(now others\.jsonl\)"),
    ],
)
def test_settings_that_decide_the_weights_cannot_change_once_there_is_a_checkpoint(
    changed: dict[str, object], differing: str, storage: RunStorage
) -> None:
    begun(storage, rl())
    with pytest.raises(VragError, match=rf"run has checkpoints that were made with other settings: {differing}"):
        refuse_other_settings(storage, rl(**changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"examples": "/home/me/questions.jsonl"},
        {"steps": 400, "checkpoint_every": 1, "validation": "held-out.jsonl", "validation_every": 5},
        {"workers": {"count": 4, "max_failures": -1}, "rollout": {"concurrency": 8, "engine": {"max_num_seqs": 8}}},
        {"reward": {**JUDGED, "judge": {"base_url": "http://b:2/v1", "model": "large"}, "judge_cache": "verdicts"}},
        {"examples": "/session/working_dir_files/_ray_pkg_3f/questions.jsonl"},
    ],
)
def test_how_far_a_run_goes_and_where_it_runs_may_change(changed: dict[str, object], storage: RunStorage) -> None:
    submitted = {"examples": "/session/working_dir_files/_ray_pkg_aa/questions.jsonl"}
    begun(storage, rl(**submitted))
    refuse_other_settings(storage, rl(**submitted | changed))


def test_a_run_in_an_object_store_is_compared_too(bucket: Bucket) -> None:
    storage = RunStorage(bucket.uri("compared"), "run")
    refuse_other_settings(storage, rl())
    begun(storage, rl())
    refuse_other_settings(storage, rl(steps=9))
    with pytest.raises(VragError, match=r"seed 0 \(now 1\)\. Take these .* back .*, or give this run another name$"):
        refuse_other_settings(storage, rl(seed=1))


def test_a_run_goes_on_from_a_checkpoint_of_its_own(storage: RunStorage) -> None:
    begun(storage, rl())
    refuse_other_settings(storage, rl(model={"path": storage.uri("checkpoint_2026-11-30_08-00-00.000000")}))
    with pytest.raises(VragError, match=r"model\.path"):
        refuse_other_settings(storage, rl(model={"path": f"{storage.uri()}-other/final"}))


@pytest.mark.parametrize(("algorithm", "rank"), [("grpo", 0), ("ggpo", 8)])
def test_a_run_that_reads_its_first_model_again_does_not_go_on_from_a_checkpoint_of_its_own(
    algorithm: str, rank: int, storage: RunStorage
) -> None:
    """Its reference, or what lies below its adapters, would be another model from then on."""

    def of(path: str) -> RLConfig:
        return rl(algorithm=algorithm, model={"path": path, "lora_rank": rank})

    begun(storage, of("some/model"))
    refuse_other_settings(storage, of("some/model"))
    with pytest.raises(
        VragError,
        match=r"model\.path some/model \(now .*checkpoint_.*\)\. .*; model\.path cannot be one of those checkpoints: "
        r"the run still reads its first model, as the reference of its KL term or below its adapters$",
    ):
        refuse_other_settings(storage, of(storage.uri("checkpoint_2026-11-30_08-00-00.000000")))


def test_a_run_without_a_checkpoint_begins_anew_with_any_settings(storage: RunStorage) -> None:
    refuse_other_settings(storage, rl())
    begun(storage, rl(), checkpoint=False)
    refuse_other_settings(storage, rl(algorithm="grpo", seed=7))


def test_a_sharded_run_goes_on_with_as_many_workers_alone(storage: RunStorage) -> None:
    def sharded(**workers: int) -> SFTConfig:
        return SFTConfig.model_validate(SFT | {"model": {"path": "m", "sharded": True}, "workers": workers})

    begun(storage, sharded(count=2))
    refuse_other_settings(storage, sharded(count=2, threads=4))
    with pytest.raises(VragError, match=r"workers\.count 2 \(now 4\)"):
        refuse_other_settings(storage, sharded(count=4))


def test_a_setting_that_only_the_newer_version_has_is_not_compared(storage: RunStorage) -> None:
    begun(storage, rl())
    written = storage.read("config.yaml").decode()
    storage.write("config.yaml", written.replace("parity_gate", "former_gate").replace("seed: 0\n", "").encode())
    refuse_other_settings(storage, rl(seed=1))


def expert(folder: Path, *replies: str) -> SFTConfig:
    """Imitation of a folder with a file for each of ``replies``."""
    folder.mkdir(exist_ok=True)
    for number, reply in enumerate(replies):
        (folder / f"{number}.json").write_text(reply)
    return SFTConfig.model_validate(SFT | {"trajectories": str(folder)})


def test_a_run_whose_inputs_hold_something_else_is_refused_until_their_record_is_removed(
    storage: RunStorage, tmp_path: Path
) -> None:
    config = expert(tmp_path / "expert", "north", "south")
    record_inputs(storage, config)
    begun(storage, config)
    refuse_other_settings(storage, config)
    expert(tmp_path / "expert", "north", "sauth")
    # What is recorded are the inputs of the checkpoints, however often the run is started.
    record_inputs(storage, config)
    with pytest.raises(
        VragError,
        match=r"other inputs: trajectories had 2 files of 10 bytes, sha256 \w{16} \(now 2 files of 10 bytes, sha256 "
        r"\w{16}\)\. .* or remove .*run/inputs\.yaml to go on with",
    ):
        refuse_other_settings(storage, config)
    Path(storage.uri("inputs.yaml")).unlink()
    refuse_other_settings(storage, config)


def test_a_run_without_a_checkpoint_begins_anew_with_other_inputs(storage: RunStorage, tmp_path: Path) -> None:
    record_inputs(storage, expert(tmp_path / "expert", "north"))
    config = expert(tmp_path / "expert", "south")
    record_inputs(storage, config)
    begun(storage, config)
    refuse_other_settings(storage, config)


def test_the_version_of_the_collection_and_the_questions_are_compared(storage: RunStorage, tmp_path: Path) -> None:
    collection = Collection.open_or_create(tmp_path / "pages")

    def commit(number: int) -> None:
        write_version(collection.files, VersionRecord(number, 1, 1, number, number, f"2026-11-0{number}", ""))

    questions = tmp_path / "questions.jsonl"
    questions.write_text("1")
    commit(1)
    config = rl(examples=str(questions), environment={"collection": str(tmp_path / "pages")})
    record_inputs(storage, config)
    begun(storage, config)
    refuse_other_settings(storage, config)
    commit(2)
    questions.write_text("12")
    with pytest.raises(
        VragError,
        match=r"examples had 1 bytes, .* \(now 2 bytes, .*; environment\.collection had version 1 of 2026-11-01 "
        r"\(now version 2 of 2026-11-02\)\.",
    ):
        refuse_other_settings(storage, config)


def test_the_first_model_is_compared_where_it_is_read_again(storage: RunStorage, tmp_path: Path) -> None:
    def adapted(**model: object) -> SFTConfig:
        return config.model_copy(update={"model": config.model.model_copy(update={"path": str(folder), **model})})

    config = expert(tmp_path / "expert", "north")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_text("weights")
    record_inputs(storage, adapted(lora_rank=8))
    begun(storage, adapted(lora_rank=8))
    (folder / "model.safetensors").write_text("others!")
    with pytest.raises(VragError, match=r"other inputs: model\.path had 1 file of 7 bytes"):
        refuse_other_settings(storage, adapted(lora_rank=8))
    begun(storage, adapted())
    refuse_other_settings(storage, adapted())


def test_inputs_in_an_object_store_are_compared_too(bucket: Bucket, tmp_path: Path) -> None:
    expert(tmp_path / "expert", "north", "south")
    storage = RunStorage(bucket.uri("inputs"), "run")
    config = SFTConfig.model_validate(
        SFT | {"trajectories": bucket.upload(tmp_path / "expert", "data/expert"), "storage": bucket.uri("inputs")}
    )
    record_inputs(storage, config)
    begun(storage, config)
    refuse_other_settings(storage, config)
    expert(tmp_path / "expert", "north", "south", "west")
    bucket.upload(tmp_path / "expert", "data/expert")
    with pytest.raises(VragError, match=r"trajectories had 2 files of 10 bytes.* \(now 3 files of 14 bytes"):
        refuse_other_settings(storage, config)
