"""From random weights to an agent that answers: seeing, imitating a noisy expert, then reinforcement.

Usage: ``python benchmarks/mosaic_rl.py [--out FOLDER] [--algorithm NAME] [--steps N] [--seed N]``.

A model of 1.3 million parameters learns the mosaic world (``benchmarks.mosaic.world``) on this machine's cores: a real
collection behind the real retriever, the same agent as in serving, colocated vLLM. Validation asks about pages that no
training question leads to, sampled at temperature 1. The last stage serves the trained folder with ``vrag serve`` and
asks the same questions over HTTP. A run goes on where it stopped: every stage that is done is skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from vrag_ray.types.copies import with_changes

# ``benchmarks.…`` is found from the repository's root, which Python does not look in for a script below it.
sys.path[0] = str(Path(__file__).parents[1])

from benchmarks.mosaic.exercises import COMPARISONS, NAMES, SEEING, WORDS, Reading, reading_exercise
from benchmarks.mosaic.in_memory_rollout import Call as Practised
from benchmarks.mosaic.model import ModelShape, save_mosaic_model
from benchmarks.mosaic.practice import BOTH, BRANCHES, SIZE, before_its_eyes, from_memory, practice
from benchmarks.mosaic.world.agent import mosaic_agent, mosaic_protocol
from benchmarks.mosaic.world.chance import drawn_from
from benchmarks.mosaic.world.expert import MosaicExpert
from benchmarks.mosaic.world.generate import BENCHMARK, MosaicSize
from benchmarks.mosaic.world.mosaic import Mosaic
from vrag_ray.agent.chat import Message
from vrag_ray.agent.events import AnswerEvent, RunStatus
from vrag_ray.client.http import AsyncClient
from vrag_ray.client.schemas import RunRequest
from vrag_ray.cluster import start_ray
from vrag_ray.config import CorpusConfig, Settings, VllmConfig
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat, images
from vrag_ray.questions.answer_scores import exact_match
from vrag_ray.questions.examples import Example
from vrag_ray.questions.files import load_examples
from vrag_ray.serving.local import start_serving
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.config import (
    EngineConfig,
    EnvironmentConfig,
    ModelConfig,
    OptimizerConfig,
    RewardConfig,
    RLConfig,
    RolloutConfig,
    Schedule,
    SFTConfig,
    WorkersConfig,
)
from vrag_ray.training.launch import train_rl, train_sft
from vrag_ray.training.rollout.environment import Environment
from vrag_ray.training.rollout.rollout import expert_runs
from vrag_ray.training.rollout.trajectory_store import write_calls, write_trajectories
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.training.trajectory import Call

NOISE = 0.2


@dataclass(frozen=True, slots=True)
class Lessons:
    """What a stage before imitation is made of, in numbers of replies.

    ``exercises`` in reading, decisions from memory (``every``: see ``from_memory``), and looks of an expert without
    noise at what it found.
    """

    readings: tuple[Reading, ...]
    exercises: int
    size: MosaicSize
    decisions: int
    looks: int
    every: int = 4


@dataclass(frozen=True, slots=True)
class Imitation:
    """What imitation is made of: runs of a noisy expert over the collection, calls of practice runs over small worlds
    of ``size``, and exercises in reading."""

    expert_runs: int = 1120
    practice: int = 14400
    readings: int = 4800
    size: MosaicSize = SIZE


PREPARED = {
    "seeing": Lessons(SEEING, 9600, BRANCHES, 4800, 0, every=1),
    "comparing": Lessons(COMPARISONS, 14400, BOTH, 0, 0),
    "naming": Lessons(NAMES, 4500, BOTH, 3000, 4500),
    "talking": Lessons(NAMES, 800, BOTH, 7200, 1600),
}
"""From naming on, each keeps up what came before."""
EPOCHS = 3
"""Of imitation."""
MAX_REPLY_TOKENS = 28
"""Tokens of a reply. The expert needs fewer; what babbles on is cut off soon."""
CORPUS = CorpusConfig(ocr=False)
HTTP_AT_ONCE = 16
VALIDATION_SAMPLES = 2
ANSWERS = RewardConfig(answer=0.9, retrieval=0.0, format=0.1)
"""What is rewarded: the answer, and a tenth for form."""

PromptAndReply = tuple[tuple[Message, ...], str]
"""What a model reads, and what it is to reply."""


class Course:
    """Everything lies in ``out``: the world, its collection, the lessons, and a training run a stage."""

    def __init__(self, out: Path, seed: int, size: MosaicSize = BENCHMARK, imitation: Imitation | None = None) -> None:
        self.size = size
        self.imitation = imitation or Imitation()
        self.out = out
        self.seed = seed
        self.seconds: dict[str, float] = {}
        self.environment_config = EnvironmentConfig(
            collection=str(out / "collection"), agent=mosaic_agent(), corpus=CORPUS
        )
        self.workers = WorkersConfig(count=2, threads=1)

    def stage(self, name: str, done: Path, work: Callable[[], object]) -> None:
        """Do ``work`` unless ``done`` is there, and note how long it took."""
        if done.exists():
            print(f"{name}: done before", flush=True)
            return
        begun = time.monotonic()
        work()
        self.seconds[name] = time.monotonic() - begun
        print(f"{name}: {self.seconds[name]:.0f} s", flush=True)

    def make_world(self) -> None:
        from vrag_ray.ingest import ingest

        Mosaic.generate(self.size, seed=self.seed).write(self.out / "world")
        ingest([self.out / "world" / "pages"], Settings(collection=self.environment_config.collection, corpus=CORPUS))
        save_mosaic_model(self.out / "model", seed=self.seed, shape=ModelShape(initializer_range=0.04))

    def write_lessons(self) -> None:
        """Exercises, practice, and what a noisy expert did with training questions over the real collection."""
        form = ChatFormat(str(self.out / "model"))
        pixels = Pixels(form.processor)
        asyncio.run(self._write_expert_runs(form, pixels))
        imitation = self.imitation
        practised = _practised(practice(seed=self.seed, noise=NOISE, size=imitation.size))
        self._write("imitating/practice", islice(practised, imitation.practice), form, pixels)
        self._write("imitating/reading", islice(self._readings(WORDS, self.seed), imitation.readings), form, pixels)

    def _write(self, name: str, turns: Iterable[PromptAndReply], form: ChatFormat, pixels: Pixels) -> None:
        write_calls(self.out / f"{name}.parquet", _as_calls(turns, form, pixels))

    def _readings(self, kinds: tuple[Reading, ...], seed: int) -> Iterator[PromptAndReply]:
        for index in count():
            exercise = reading_exercise(mosaic_protocol(), seed=seed, index=index, readings=kinds)
            yield exercise.messages, exercise.reply

    async def _write_expert_runs(self, form: ChatFormat, pixels: Pixels) -> None:
        truth = Mosaic.read(self.out / "world")
        environment = await Environment.open(self.environment_config, RewardConfig(), 64)
        try:
            groups = await expert_runs(
                environment.context,
                lambda _, sample: MosaicExpert(truth, environment.context.protocol, noise=NOISE, sample=sample),
                form,
                pixels.expand_image_tokens,
                environment.tasks(str(self.out / "world" / "train.jsonl"))[: self.imitation.expert_runs],
            )
        finally:
            await environment.close()
        runs = [run for group in groups for run in group]
        right = sum(run.reward.success for run in runs) / len(runs)
        print(f"expert: {len(runs)} runs, {right:.3f} of them right", flush=True)
        write_trajectories(self.out / "imitating" / "expert.parquet", runs)

    def prepare(self, name: str, start: Path, lessons: Lessons, optimizer: OptimizerConfig) -> Path:
        """A stage before imitation. The model that it ends with."""
        model = self.out / f"{name}-run" / "final"
        self.stage(name, model, lambda: self._prepare(name, start, lessons, optimizer))
        return model

    def _prepare(self, name: str, start: Path, lessons: Lessons, optimizer: OptimizerConfig) -> None:
        form = ChatFormat(str(start))
        pixels = Pixels(form.processor)
        seeds = drawn_from(name, self.seed)
        deciding, seen, reading = (seeds.randrange(2**31) for _ in range(3))
        decisions = from_memory(practice(seed=deciding, size=lessons.size), every=lessons.every)
        looks = before_its_eyes(practice(seed=seen, size=lessons.size))
        exercises = self._readings(lessons.readings, reading)
        self._write(f"{name}/decisions", islice(_practised(decisions), lessons.decisions), form, pixels)
        self._write(f"{name}/looks", islice(_practised(looks), lessons.looks), form, pixels)
        self._write(f"{name}/reading", islice(exercises, lessons.exercises), form, pixels)
        self.learn(name, start, 48, 1, optimizer)

    def _metrics(self, run: str) -> list[dict[str, float]]:
        lines = (self.out / run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def learn(self, name: str, model: Path, batch: int, epochs: int, optimizer: OptimizerConfig) -> None:
        config = SFTConfig(
            name=f"{name}-run",
            storage=str(self.out),
            seed=self.seed,
            model=ModelConfig(path=str(model), freeze_vision=False, tokens_per_batch=2048),
            optimizer=optimizer,
            workers=self.workers,
            checkpoint_every=200,
            trajectories=str(self.out / name),
            batch=batch,
            epochs=epochs,
        )
        train_sft(config, lambda line: print(f"  {line}", flush=True))

    def reinforce(
        self,
        name: str,
        algorithm: Algorithm,
        steps: int,
        lr: float,
        reward: RewardConfig = ANSWERS,
    ) -> None:
        rollout = RolloutConfig(
            questions=16,
            group=8,
            max_reply_tokens=MAX_REPLY_TOKENS,
            keep=False,
            engine=EngineConfig(max_model_len=1024, max_num_seqs=64, max_batched_tokens=4096, max_images=8),
        )
        config = RLConfig(
            name=name,
            storage=str(self.out),
            seed=self.seed,
            model=ModelConfig(
                path=str(self.out / "imitating-run" / "final"), freeze_vision=False, tokens_per_batch=4096
            ),
            optimizer=OptimizerConfig(lr=lr, warmup_steps=3, weight_decay=0.0, betas=(0.9, 0.98)),
            workers=self.workers,
            examples=str(self.out / "world" / "train.jsonl"),
            validation=str(self.out / "world" / "validation.jsonl"),
            validation_every=20,
            validation_samples=VALIDATION_SAMPLES,
            steps=steps,
            algorithm=algorithm,
            rollout=rollout,
            reward=reward,
            environment=self.environment_config,
            checkpoint_every=20,
        )
        train_rl(config, lambda line: print(f"  {line}", flush=True))

    def curve(self, name: str, measure: str = "success") -> list[tuple[int, float]]:
        """A part of the reward of validation by step of a reinforcement run."""
        validation = f"validation/reward/{measure}"
        points = [(int(row["step"]), row[validation]) for row in self._metrics(name) if validation in row]
        return list(dict(points).items())

    def serve_settings(self, name: str) -> Settings:
        """What serves the trained model: the same collection, the same agent, the exported folder."""
        model = VllmConfig(
            model=str(self.out / name / "final"),
            dtype="float32",
            max_model_len=512,
            max_images=8,
            num_gpus=0,
            num_cpus=1,
            enforce_eager=True,
            engine_args={"block_size": 32},
        )
        return Settings(
            collection=self.environment_config.collection,
            corpus=CORPUS,
            agent=self.environment_config.agent,
            vllm=model,
        )

    def served_success(self, name: str) -> float:
        """The share of right answers to the validation questions over HTTP, each asked as often as in validation."""
        examples = load_examples(self.out / "world" / "validation.jsonl")
        service = start_serving(self.serve_settings(name), port=0, ready_timeout_s=300.0)
        try:
            return asyncio.run(_right_over_http(service.base_url, examples))
        finally:
            service.stop()


def _practised(calls: Iterable[Practised]) -> Iterator[PromptAndReply]:
    for call in calls:
        yield mosaic_protocol().messages(call.prompt), call.reply


def _as_calls(turns: Iterable[PromptAndReply], form: ChatFormat, pixels: Pixels) -> Iterator[Call]:
    for messages, reply in turns:
        pngs = images(messages)
        ids = pixels.expand_image_tokens(form.tokens(ChatRequest(messages))[0], pngs)
        yield Call(ids, pngs, form.reply_tokens(reply), text=reply)


async def _right_over_http(base_url: str, examples: Sequence[Example]) -> float:
    room = asyncio.Semaphore(HTTP_AT_ONCE)

    async with AsyncClient(base_url) as client:

        async def right(example: Example) -> float:
            async with room:
                async for event in client.ask(RunRequest(question=example.question, agent="vimrag", deadline_s=600)):
                    if isinstance(event, AnswerEvent) and event.status is RunStatus.ANSWERED:
                        return exact_match(event.answer, example.answers)
            return 0.0

        scores = await asyncio.gather(*(right(example) for example in examples for _ in range(VALIDATION_SAMPLES)))
    return sum(scores) / len(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("mosaic-rl"))
    parser.add_argument("--algorithm", choices=list(ALGORITHMS), default="gspo_segments")
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--entropy", type=float, default=0.0, help="coefficient of the entropy term")
    parser.add_argument("--name", help="of the reinforcement run; rl-ALGORITHM by default")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    # Ray's workers are nice to everything else by default; here they are all that runs.
    os.environ.setdefault("RAY_worker_niceness", "0")
    start_ray()
    course = Course(chosen.out.absolute(), chosen.seed)
    out = course.out
    out.mkdir(parents=True, exist_ok=True)
    run = chosen.name or f"rl-{chosen.algorithm}"
    algorithm = with_changes(ALGORITHMS[chosen.algorithm], {"entropy": chosen.entropy})
    constant = OptimizerConfig(lr=2e-3, warmup_steps=40, betas=(0.9, 0.95))
    falling = OptimizerConfig(lr=2e-3, warmup_steps=20, betas=(0.9, 0.95), schedule=Schedule.COSINE, final_lr=1e-4)
    course.stage("world", out / "model", course.make_world)
    course.stage("lessons", out / "imitating" / "reading.parquet", course.write_lessons)
    prepared = out / "model"
    for name, lessons in PREPARED.items():
        prepared = course.prepare(name, prepared, lessons, constant)
    course.stage(
        "imitating",
        out / "imitating-run" / "final",
        lambda: course.learn("imitating", prepared, 40, EPOCHS, falling),
    )
    course.stage(
        "reinforcement",
        out / run / "final",
        lambda: course.reinforce(run, algorithm, chosen.steps, chosen.lr),
    )
    curve = course.curve(run)
    print(f"all stages: {sum(course.seconds.values()) / 60:.1f} minutes")
    print(f"validation success (T=1): {curve[0][1]:.3f} after imitation, {curve[-1][1]:.3f} after reinforcement")
    print("curve: " + ", ".join(f"{step}: {value:.3f}" for step, value in curve))
    served = course.served_success(run)
    print(f"the same questions over HTTP: {served:.3f} ({served - curve[-1][1]:+.3f})")


if __name__ == "__main__":
    main()
