"""Training from a collection to a folder that can be served: SFT and RL on Ray Train with colocated vLLM, and a kill.

One Ray, one world of twelve mosaics, and one run each: nothing here is large enough to learn more than its form.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.processes import children_called
from tests.vllm.tiny import needs_vllm
from vrag_ray.agent.chat import PictureRequest
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import CorpusConfig, Settings
from vrag_ray.ingest import ingest
from vrag_ray.policies.vllm_prompt import ChatFormat
from vrag_ray.serving.local import start_ray
from vrag_ray.training.batch import parts
from vrag_ray.training.config import RewardConfig, RLConfig, SFTConfig, WorldConfig
from vrag_ray.training.evidence import CollectionEvidence
from vrag_ray.training.examples import Example
from vrag_ray.training.launch import train_rl, train_sft
from vrag_ray.training.pixels import Pixels
from vrag_ray.training.rewards import Page, Reward, exact_match
from vrag_ray.training.rollout import expert_runs
from vrag_ray.training.scoring import own_answer
from vrag_ray.training.sft import batch_of
from vrag_ray.training.store import read_calls, read_trajectories, write_trajectories
from vrag_ray.training.trajectory import Trajectory
from vrag_ray.training.world import World
from vrag_ray.types import Locator, VragError
from vrag_ray.worlds.mosaic.agent import mosaic_agent
from vrag_ray.worlds.mosaic.drawing import draw, page_pixels
from vrag_ray.worlds.mosaic.expert import MosaicExpert
from vrag_ray.worlds.mosaic.generate import MosaicSize
from vrag_ray.worlds.mosaic.model import ModelShape, save_mosaic_model
from vrag_ray.worlds.mosaic.questions import Kind
from vrag_ray.worlds.mosaic.world import Mosaic

pytestmark = needs_vllm
SIZE = MosaicSize(pages=12, train=16, validation=4, kinds=(Kind.SINGLE_HOP, Kind.MULTI_HOP))
SHAPE = ModelShape(layers=2, heads=2, mlp=256, vision_depth=1, vision_heads=1, vision_mlp=32)
STEPS, WORKERS, QUESTIONS, GROUP = 3, 2, 4, 4
RUNS_A_WORKER = QUESTIONS * GROUP // WORKERS
GAP = 1e-4
SHARDING_TOLERANCE = 1e-4
KILLED = "killed"


# What the runs of the tests earn; the workers import it by its dotted path. ------------------------------------------


def earned(record: RunRecord, example: Example, gold: Sequence[Page]) -> Reward:
    """Hardly any two runs of a group the same, so that every group teaches something."""
    right = exact_match(own_answer(record), example.answers)
    return Reward(right + record.steps / 100 + len(record.answer) / 1000, right, 0.0, 0.0, success=right == 1.0)


@dataclass
class Executioner:
    """Pays the same, and kills the worker that keeps the log in the middle of its second step. Once: the run's folder,
    which outlives the worker, tells."""

    graded: list[str] = field(default_factory=list)

    def __call__(self, record: RunRecord, example: Example, gold: Sequence[Page]) -> Reward:
        from ray import train

        self.graded.append(record.run_id)
        context = train.get_context()
        killed = Path(context.get_storage().experiment_fs_path) / KILLED
        in_mid_step = len(self.graded) == RUNS_A_WORKER + RUNS_A_WORKER // 2
        if in_mid_step and context.get_world_rank() == 0 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return earned(record, example, gold)


earned_until_killed = Executioner()


# The world ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where the tests train."""

    root: Path
    mosaic: Mosaic

    @property
    def world(self) -> WorldConfig:
        return WorldConfig(
            collection=str(self.root / "collection"), agent=mosaic_agent(), corpus=CorpusConfig(ocr=False)
        )

    def sft(self, **values: object) -> SFTConfig:
        own = {
            "name": "sft",
            "storage": str(self.root / "runs"),
            "model": {"path": str(self.root / "model"), "tokens_per_batch": 2048},
            "optimizer": {"lr": 4e-3, "warmup_steps": 10, "schedule": "cosine", "betas": [0.9, 0.98]},
            "trajectories": str(self.root / "expert"),
            "epochs": 9,
            "batch": 32,
            "checkpoint_every": 1000,
        }
        return SFTConfig.model_validate(own | values)

    def rl(self, start: Path, **values: object) -> RLConfig:
        own = {
            "name": "rl",
            "storage": str(self.root / "runs"),
            "model": {"path": str(start), "freeze_vision": False, "tokens_per_batch": 2048},
            "optimizer": {"lr": 3e-4, "weight_decay": 0.0},
            "workers": {"count": WORKERS},
            "examples": str(self.root / "world/train.jsonl"),
            "validation": str(self.root / "world/validation.jsonl"),
            "validation_every": STEPS,
            "steps": STEPS,
            "algorithm": "ggpo",
            "rollout": {
                "questions": QUESTIONS,
                "group": GROUP,
                "max_reply_tokens": 48,
                "engine": {"max_model_len": 1024, "max_num_seqs": 16, "max_batched_tokens": 2048, "max_images": 8},
            },
            "reward": {"scorer": f"{__name__}:earned"},
            "world": self.world.model_dump(),
            "checkpoint_every": 1,
        }
        return RLConfig.model_validate(own | values)


@pytest.fixture(scope="module")
def own_ray() -> Iterator[None]:
    """Ray as ``vrag train`` starts it, unless other tests have one already."""
    import ray

    if ray.is_initialized():
        yield
        return
    # Unix socket paths have a length limit that pytest's own folders would break.
    folder = Path(tempfile.mkdtemp(prefix="vrag-ray-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)
        start_ray(folder)
        yield
        ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def place(own_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The world in a collection, a model of random weights, and what an expert did that now and then errs."""
    root = tmp_path_factory.mktemp("training")
    place = Place(root, Mosaic.generate(SIZE, seed=0))
    place.mosaic.write(root / "world")
    report = ingest([root / "world/pages"], Settings(collection=place.world.collection, corpus=place.world.corpus))
    assert report.added == SIZE.pages
    save_mosaic_model(root / "model", shape=SHAPE)
    runs = asyncio.run(_played(place))
    write_trajectories(root / "expert/runs.parquet", runs)
    assert sum(run.reward.success for run in runs) > len(runs) / 2
    return place


async def _played(place: Place) -> list[Trajectory]:
    form = ChatFormat(str(place.root / "model"))
    world = await World.open(place.world, RewardConfig(), 64)
    try:
        groups = await expert_runs(
            world.stage,
            lambda task, sample: MosaicExpert(place.mosaic, world.stage.protocol, noise=0.2, sample=sample),
            form,
            pixels_of(place).widen,
            world.tasks(str(place.root / "world/train.jsonl")),
            group=3,
        )
    finally:
        await world.close()
    return [run for group in groups for run in group]


def pixels_of(place: Place) -> Pixels:
    from transformers import AutoProcessor

    return Pixels(AutoProcessor.from_pretrained(str(place.root / "model")))


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


# Evidence -------------------------------------------------------------------------------------------------------------


def test_training_searches_and_sees_the_collection_as_serving_does(place: Place) -> None:
    page = place.mosaic.pages[3]

    async def look() -> None:
        evidence = await CollectionEvidence.open(place.world)
        try:
            found = await evidence.search(page.name, top_k=2, filter=None)
            assert found.results[0][0].passage.text == page.name
            assert await evidence.search(page.name, top_k=2, filter=None) is found, "asked for once"
            family = mosaic_agent().picture_pixels
            doc_id = found.results[0][0].passage.doc_id
            request = PictureRequest(doc_id, Locator(page=1), None, None, 28, family, family)
            nowhere = PictureRequest("0" * 64, Locator(page=1), None, None, 28, family, family)
            seen, refused, again = await evidence.pictures([request, nowhere, request])
            assert seen == again == draw(page_pixels(page), request)
            assert isinstance(refused, VragError)
            assert (await evidence.pictures([request]))[0] is seen
        finally:
            await evidence.close()

    asyncio.run(look())


def test_runs_that_search_for_the_same_at_once_share_one_search(place: Place) -> None:
    name = place.mosaic.pages[4].name

    async def search() -> None:
        evidence = await CollectionEvidence.open(place.world)
        try:
            asked = [asyncio.create_task(evidence.search(name, top_k=2, filter=None)) for _ in range(8)]
            other = asyncio.create_task(evidence.search(name, top_k=1, filter=None))
            await asyncio.sleep(0)
            asked[0].cancel()
            found = await asyncio.gather(*asked[1:])
            assert asked[0].cancelled(), "the one that gave up took the search from nobody"
            assert len({id(one) for one in found}) == 1
            assert [len(one.results[0]) for one in (found[0], await other)] == [2, 1]
            left = asyncio.create_task(evidence.search(place.mosaic.pages[5].name, top_k=2, filter=None))
            await asyncio.sleep(0)
        finally:
            await evidence.close()
        with pytest.raises(asyncio.CancelledError):
            await left

    asyncio.run(search())


def test_an_empty_collection_is_refused(place: Place) -> None:
    world = place.world.model_copy(update={"collection": str(place.root / "nothing")})
    with pytest.raises(VragError, match="nothing"):
        asyncio.run(CollectionEvidence.open(world))


# Supervised fine-tuning -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tuned(place: Place) -> Path:
    """The folder of the run."""
    told: list[str] = []
    final = train_sft(place.sft(), told.append)
    assert final == place.root / "runs/sft/final"
    assert told[-1].startswith("step ")
    return final.parent


def test_sft_learns_what_the_expert_says(tuned: Path) -> None:
    losses = [line["sft/loss"] for line in metrics(tuned)]
    assert losses[-1] < 0.5 < losses[0]
    assert metrics(tuned)[-1]["sft/exact"] > 0.8
    assert (tuned / "README.md").exists() and any((tuned / "tensorboard").iterdir())


def test_a_run_that_fails_says_why_in_one_line(place: Place) -> None:
    (place.root / "empty").mkdir()
    with pytest.raises(VragError, match=r"the training run lost failed: .*empty holds no trajectories") as caught:
        train_sft(place.sft(name="lost", trajectories=str(place.root / "empty")), lambda line: None)
    assert "\n" not in str(caught.value)


def in_two_parts(place: Place, name: str, *, sharded: bool = True) -> SFTConfig:
    model: dict[str, object] = {"path": str(place.root / "model"), "tokens_per_batch": 2048, "sharded": sharded}
    return place.sft(
        name=name, model=model, workers={"count": WORKERS, "max_failures": 1}, epochs=6, checkpoint_every=5
    )


def uneven_steps(config: SFTConfig) -> list[int]:
    """Steps in which the ranks cut their shares into unequal numbers of micro-batches."""
    calls = list(read_calls(Path(config.trajectories)))
    found: list[int] = []
    for step in range(-(-len(calls) // config.batch)):
        batch = batch_of(calls, step, config.batch, config.seed)
        shares = (batch[rank::WORKERS] for rank in range(WORKERS))
        counts = {len(list(parts([[call.tokens] for call in own], config.model.tokens_per_batch))) for own in shares}
        if len(counts) > 1:
            found.append(step)
    return found


def test_a_sharded_model_learns_the_same_and_goes_on_from_its_checkpoint_when_a_worker_is_killed(place: Place) -> None:
    # Ranks of a sharded model that score unequally often would wait for each other for ever.
    assert uneven_steps(in_two_parts(place, "whole"))
    whole = train_sft(in_two_parts(place, "whole", sharded=False), lambda line: None)
    undisturbed = train_sft(in_two_parts(place, "sharded"), lambda line: None)
    one, other = weights(whole), weights(undisturbed)
    assert one.keys() == other.keys()
    assert max(float((one[name] - other[name]).abs().max()) for name in one) < SHARDING_TOLERANCE
    killed: list[int] = []

    def kill_after_a_checkpoint(line: str) -> None:
        if line.startswith("step 10/") and not killed:
            victim = children_called("ray::RayTrainWorker")[0]
            killed.append(victim.pid)
            victim.kill()

    again = train_sft(in_two_parts(place, "sharded-killed"), kill_after_a_checkpoint)
    assert killed
    assert alike(weights(again), other)


# Reinforcement learning ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(place: Place, tuned: Path) -> Path:
    """The folder of a run on two workers that nothing disturbed."""
    told: list[str] = []
    final = train_rl(place.rl(tuned / "final"), told.append)
    assert [line.split(":")[0] for line in told] == [f"step {step}/{STEPS}" for step in (0, 1, 2, 3, 3)]
    return final.parent


def steps_of(folder: Path) -> list[dict[str, float]]:
    return [line for line in metrics(folder) if "update/loss" in line]


def test_sampler_and_trainer_agree_before_and_after_every_update(trained: Path) -> None:
    steps = steps_of(trained)
    assert [line["step"] for line in steps] == list(range(1, STEPS + 1))
    for line in steps:
        assert line["update/tokens"] > 100, "the gap is that of many tokens"
        assert line["parity/gap_max"] <= GAP
        assert line["update/grad_norm"] > 0
    last = metrics(trained)[-1]
    assert last["step"] == STEPS
    assert 0 < last["validation/parity/gap_max"] <= GAP, "with the weights of the last update"


def test_runs_take_several_turns_and_look_at_pictures(trained: Path) -> None:
    for line in steps_of(trained):
        assert line["run/turns"] > 2
        assert line["run/searches"] > 0.5
        assert line["run/pictures"] > 0


def test_every_run_can_be_read_again_as_it_was_sampled(place: Place, trained: Path) -> None:
    pixels = pixels_of(place)
    for step in range(1, STEPS + 1):
        shares = [
            list(read_trajectories(trained / f"rollouts/step-{step:06d}-rank-{rank}.parquet"))
            for rank in range(WORKERS)
        ]
        assert [len(share) for share in shares] == [RUNS_A_WORKER] * WORKERS
        assert not {run.uid for run in shares[0]} & {run.uid for run in shares[1]}
        calls = [call for share in shares for run in share for call in run.calls]
        assert all(len(call.logprobs) == len(call.completion_ids) > 0 for call in calls)
        assert {call.weights for call in calls} == {str(step - 1)}
        seeing = [call for call in calls if call.images]
        assert seeing
        for call in seeing:
            assert pixels.widen(narrow(call.prompt_ids, pixels.image_token_id), call.images) == call.prompt_ids


def narrow(ids: Sequence[int], image: int) -> tuple[int, ...]:
    """With one token for each picture: other tokens stand between any two."""
    return tuple(token for place, token in enumerate(ids) if token != image or ids[place - 1] != image)


def test_the_trained_model_is_a_plain_folder(place: Place, tuned: Path, trained: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForImageTextToText

    saved, begun = weights(trained / "final"), weights(tuned / "final")
    assert sum(not torch.equal(saved[name], begun[name]) for name in saved) > len(saved) / 2
    AutoModelForImageTextToText.from_pretrained(str(trained / "final"), dtype=torch.float32).save_pretrained(tmp_path)
    assert alike(weights(tmp_path), saved)
    assert alike(weights(max(trained.glob("checkpoint_*/"))), saved)
    assert ChatFormat(str(trained / "final")).reply_tokens("red")


def alike(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """To the last bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def timeless(line: dict[str, float]) -> dict[str, float]:
    """Without what depends on the machine's mood: times, and the sampler's last bits."""
    return {name: value for name, value in line.items() if not {"seconds", "speed", "parity"} & set(name.split("/"))}


def test_a_run_whose_worker_was_killed_in_mid_step_ends_as_if_nothing_had_happened(
    place: Place, tuned: Path, trained: Path
) -> None:
    config = place.rl(
        tuned / "final",
        name="killed",
        workers={"count": WORKERS, "max_failures": 1},
        reward={"scorer": f"{__name__}:earned_until_killed"},
    )
    again = train_rl(config, lambda line: None).parent
    assert (again / KILLED).exists()
    assert [timeless(line) for line in metrics(again)] == [timeless(line) for line in metrics(trained)]
    assert alike(weights(again / "final"), weights(trained / "final"))


def test_adapters_learn_from_what_a_served_policy_says(place: Place, tuned: Path) -> None:
    config = place.rl(
        tuned / "final",
        name="served",
        model={"path": str(tuned / "final"), "lora_rank": 4, "tokens_per_batch": 2048},
        workers={"count": 1},
        steps=2,
        rollout={
            "questions": 2,
            "group": GROUP,
            "max_reply_tokens": 48,
            "served": {
                "model": "that of the run",
                "dtype": "float32",
                "max_model_len": 1024,
                "max_num_seqs": 16,
                "max_images": 8,
                "num_gpus": 0,
                "num_cpus": 0.5,
                "enforce_eager": True,
                "engine_args": {"block_size": 32},
            },
        },
    )
    folder = train_rl(config, lambda line: None).parent
    steps = steps_of(folder)
    assert [line["step"] for line in steps] == [1, 2]
    assert all(0 < line["parity/gap_max"] <= GAP for line in steps), "the replicas speak with the merged adapters"
    assert {call.weights for run in read_trajectories(folder / "rollouts") for call in run.calls} == {"0", "1"}
    begun, saved = weights(tuned / "final"), weights(folder / "final")
    changed = {
        name.rpartition(".layers.")[2].partition(".")[2] for name in saved if not torch.equal(saved[name], begun[name])
    }
    assert changed
    assert all("_proj" in name for name in changed), "adapters alone have learnt, and they are merged"
    assert not any((folder / "serving").iterdir()), "weights handed over are not left behind"
