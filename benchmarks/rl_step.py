"""What a reinforcement step costs: agent rollouts against the bare engine, and a whole step against TRL's GRPOTrainer.

Usage: ``python benchmarks/rl_step.py COURSE`` with the folder of ``benchmarks/mosaic_rl.py``, whose world,
collection and imitating model are used. Every comparison is made in one run, in turns, on the same cores.

The agent's share does not grow with the model. Its rollouts are measured with the model as it is, whose replies cost
the engine a few milliseconds, and with the same model made deeper by layers that compute and add nothing: it says the
same, at a cost nearer to that of a model in use.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

from vrag_ray.types.copies import with_changes

# ``benchmarks.…`` is found from the repository's root, which Python does not look in for a script below it.
sys.path[0] = str(Path(__file__).parents[1])


from benchmarks.mosaic.exercises import reading_exercise
from benchmarks.mosaic.world.agent import mosaic_agent, mosaic_protocol
from vrag_ray.cluster import start_ray
from vrag_ray.config import CorpusConfig
from vrag_ray.policies.llm.chat_model import ChatRequest, Sampling, TokenDelta, TokenRequest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat, images, pictures
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS, TrainSample
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import EngineConfig, EnvironmentConfig, ModelConfig, OptimizerConfig, RewardConfig
from vrag_ray.training.rollout.colocated import ColocatedEngine
from vrag_ray.training.rollout.environment import Environment
from vrag_ray.training.rollout.recording import derive_seed
from vrag_ray.training.rollout.rollout import rollouts
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.training.trainer.learner import Learner
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.training.trainer.scorer import Scorer, load_model
from vrag_ray.training.trainer.weights import full_weights
from vrag_ray.training.trajectory import Call
from vrag_ray.types import Completion

if TYPE_CHECKING:
    from PIL.Image import Image

WARM_UP, ROUNDS = 3, 21
"""Warm is also what has been searched for: training keeps what it found, and asks the same questions again.
Medians of nine rounds differ by 0.03 and more from run to run on a shared machine."""
TRL_ROUNDS = 15
OUR_TOKENS, TRL_SAMPLES = 2048, 32
"""Of a micro-batch: with ours 4,096 were slower, with TRL's 64 and 128 as fast or slower."""
QUESTIONS, GROUP = 16, 8
AGENT_QUESTIONS, AGENT_PLACES = 32, 64
"""More runs than the engine has places: when some wait for a search or end, others take their places."""
MAX_REPLY_TOKENS = 28
"""Tokens of a reply in agent rollouts, as in the course. A run that babbles up to its last step is alone at the end."""
DEPTHS = (4, 12)
"""Layers of the model as it is, and deepened."""
REPLY_TOKENS = 24
LR = 1e-5
THREADS = 2


def ratio_summary(ratios: Sequence[float]) -> str:
    """The median, and all of them: one round says little on a machine that others use as well."""
    return f"ratio {statistics.median(ratios):.2f} (of {', '.join(f'{ratio:.2f}' for ratio in sorted(ratios))})"


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    into.append(time.perf_counter() - begun)


def deepened(model: Path, layers: int, into: Path) -> Path:
    """The model in a folder, with copies of its layers on top of them that give nothing to the residual stream."""
    from safetensors.torch import load_file, save_file

    copytree(model, into)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    text = config["text_config"]
    had, text["num_hidden_layers"] = text["num_hidden_layers"], layers
    text["layer_types"] = ["full_attention"] * layers
    (into / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = load_file(model / "model.safetensors")
    for name, weight in list(weights.items()):
        place = re.search(r"\.layers\.(\d+)\.", name)
        if place is None:
            continue
        adds = name.endswith(("o_proj.weight", "down_proj.weight"))
        for layer in range(had + int(place[1]), layers, had):
            copied = name.replace(place[0], f".layers.{layer}.")
            weights[copied] = weight.new_zeros(weight.shape) if adds else weight.clone()
    save_file(weights, into / "model.safetensors", metadata={"format": "pt"})
    return into


class Bench:
    """One engine and one learner over a model of a course, as a training worker has them."""

    def __init__(self, course: Path, model: Path, places: int) -> None:
        import torch

        torch.set_num_threads(THREADS)
        self.course = course
        self.model = str(model)
        self.form = ChatFormat(self.model)
        config = EngineConfig(max_model_len=512, max_num_seqs=places, max_batched_tokens=8192, max_images=8)
        self.engine = ColocatedEngine(self.model, config, temperature=1.0, distributed=False, seed=0)
        trained = load_model(ModelConfig(path=self.model, freeze_vision=False), self.model)
        self.pixels = Pixels(self.form.processor)
        ranks = Collectives()
        self.optimizer = Optimizer(trained, OptimizerConfig(lr=LR), 1000, ranks)
        self.trained = trained
        self.learner = Learner(
            Scorer(trained), self.optimizer, self.pixels, ranks, pad_id=self._pad(), tokens_per_batch=OUR_TOKENS
        )

    def _pad(self) -> int:
        return int(self.form.processor.tokenizer.pad_token_id)

    async def agent_against_engine(self) -> None:
        """Tokens a second of agent runs, and of the engine given the very same prompts at once."""
        config = EnvironmentConfig(
            collection=str(self.course / "collection"), agent=mosaic_agent(), corpus=CorpusConfig(ocr=False)
        )
        environment = await Environment.open(config, RewardConfig(), 256)
        tasks = environment.tasks(str(self.course / "world" / "train.jsonl"))[:AGENT_QUESTIONS]
        agent: list[float] = []
        bare: list[float] = []
        longest: list[int] = []
        try:
            for turn in range(WARM_UP + ROUNDS):
                spent: list[float] = []
                with timed(spent):
                    groups = await rollouts(
                        environment.context,
                        self.engine,
                        self.form,
                        tasks,
                        group=GROUP,
                        sampling=Sampling(MAX_REPLY_TOKENS),
                        seed=f"{turn}",
                    )
                runs = [run for group in groups for run in group]
                calls = [call for run in runs for call in run.calls]
                tokens = sum(len(call.completion_ids) for call in calls)
                # Both begin with an empty prefix cache.
                await self.engine.load_weights(full_weights(self.trained), f"{turn}")
                again: list[float] = []
                with timed(again):
                    await asyncio.gather(*(self._again(call, f"{turn}/{at}") for at, call in enumerate(calls)))
                await self.engine.load_weights(full_weights(self.trained), f"{turn}")
                if turn >= WARM_UP:
                    agent.append(tokens / spent[0])
                    bare.append(tokens / again[0])
                    longest.append(max(sum(len(call.completion_ids) for call in run.calls) for run in runs))
        finally:
            await environment.close()
        ratios = ratio_summary([mine / theirs for mine, theirs in zip(agent, bare, strict=True)])
        more = statistics.median(1 / mine - 1 / theirs for mine, theirs in zip(agent, bare, strict=True))
        print(f"agent rollouts: {statistics.median(agent):.0f} tokens/s in {len(runs)} runs of {len(calls)} replies")
        print(f"bare engine, the same prompts at once: {statistics.median(bare):.0f} tokens/s; {ratios}")
        print(f"the agent's own share: {1000 * more * tokens / len(calls):.1f} ms a reply")
        print(
            f"tokens of a round: {tokens}, of its longest run, one after the other: {statistics.median(longest)}",
            flush=True,
        )

    async def _again(self, call: Call, seed: str) -> None:
        """As many tokens for the same prompt, without an agent."""
        narrow = _narrow(call.prompt_ids, self.form.picture_tokens[0])
        sampling = Sampling(
            len(call.completion_ids), 1.0, seed=derive_seed(seed), banned_token_ids=self.form.picture_tokens
        )
        await _whole(self.engine.generate(TokenRequest(narrow, call.images, sampling)))

    async def our_step(self, prompts: Sequence[tuple[tuple[int, ...], tuple[bytes, ...]]], turn: int) -> int:
        """One GRPO step on one-turn samples: sample, learn, new weights. The number of samples."""

        async def generate(number: int, ids: tuple[int, ...], pngs: tuple[bytes, ...]) -> Call:
            sampling = Sampling(
                REPLY_TOKENS, 1.0, seed=derive_seed(turn, number), banned_token_ids=self.form.picture_tokens
            )
            read, done = await _whole(self.engine.generate(TokenRequest(ids, pngs, sampling)))
            return Call(read, pngs, done.token_ids, done.logprobs, done.text, done.finish)

        repeated = [prompt for prompt in prompts for _ in range(GROUP)]
        calls = await asyncio.gather(*(generate(number, *prompt) for number, prompt in enumerate(repeated)))
        samples = [TrainSample((call,), 1.0 if at % 2 else -1.0, keep=True) for at, call in enumerate(calls)]
        self.learner.update([samples], with_changes(ALGORITHMS["grpo"], {"kl": 0.0}))
        await self.engine.load_weights(full_weights(self.trained), f"step {turn}")
        return len(calls)


def _narrow(ids: tuple[int, ...], image_token: int) -> tuple[int, ...]:
    """One image token for each picture."""
    return tuple(token for at, token in enumerate(ids) if token != image_token or ids[at - 1] != image_token)


async def _whole(pieces: AsyncGenerator[TokenDelta | Completion]) -> tuple[tuple[int, ...], Completion]:
    read: tuple[int, ...] = ()
    async for piece in pieces:
        if isinstance(piece, Completion):
            return read, piece
        read = read or piece.prompt_ids
    raise RuntimeError("the engine broke off")


class TrlStep:
    """TRL's trainer on the same prompts. It generates with transformers: its vLLM mode knows no CPU."""

    def __init__(
        self, model: str, prompts: Sequence[tuple[str, Image]], banned_token_ids: Sequence[int], folder: Path
    ) -> None:
        from datasets import Dataset
        from transformers import AutoModelForImageTextToText, AutoProcessor, PreTrainedModel, ProcessorMixin
        from trl.trainer.grpo_config import GRPOConfig

        chats = [[{"role": "user", "content": text}] for text, _ in prompts]
        self._data = Dataset.from_dict({"prompt": chats, "image": [picture for _, picture in prompts]})
        self._config = GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=TRL_SAMPLES,
            gradient_accumulation_steps=QUESTIONS * GROUP // TRL_SAMPLES,
            num_generations=GROUP,
            max_completion_length=REPLY_TOKENS,
            learning_rate=LR,
            max_steps=1,
            beta=0.0,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to=[],
            save_strategy="no",
            logging_steps=1000,
            disable_tqdm=True,
            temperature=1.0,
            generation_kwargs={"suppress_tokens": list(banned_token_ids)},
        )
        load_trained: Callable[[str], PreTrainedModel] = AutoModelForImageTextToText.from_pretrained
        load_processor: Callable[..., ProcessorMixin] = AutoProcessor.from_pretrained
        # TRL pads prompts on the left itself, and takes the processor's word for where the pictures are.
        self._model, self._processor = load_trained(model), load_processor(model, padding_side="left")

    def seconds(self) -> float:
        """Of one step; setting the trainer up is not counted."""
        from trl.trainer.grpo_trainer import GRPOTrainer

        trainer = GRPOTrainer(
            model=self._model,
            reward_funcs=_alternating,
            args=self._config,
            train_dataset=self._data,
            processing_class=self._processor,
        )
        begun = time.perf_counter()
        trainer.train()
        return time.perf_counter() - begun


def _alternating(completions: Sequence[object], **_: object) -> list[float | None]:
    return [float(number % 2) for number in range(len(completions))]


async def against_trl(bench: Bench, folder: Path) -> None:
    exercises = [reading_exercise(mosaic_protocol(), seed=1, index=index) for index in range(QUESTIONS)]
    chats = [exercise.messages for exercise in exercises]
    ours = [(bench.form.tokens(ChatRequest(chat))[0], images(chat)) for chat in chats]
    theirs = [(chat[0].text, pictures(images(chat))[0]) for chat in chats]
    peer = TrlStep(bench.model, theirs, bench.form.picture_tokens, folder)
    mine: list[float] = []
    trl: list[float] = []
    for turn in range(WARM_UP + TRL_ROUNDS):
        begun = time.perf_counter()
        samples = await bench.our_step(ours, turn)
        spent = time.perf_counter() - begun
        other = peer.seconds()
        if turn >= WARM_UP:
            mine.append(samples / spent)
            trl.append(QUESTIONS * GROUP / other)
    ratios = ratio_summary([own / their for own, their in zip(mine, trl, strict=True)])
    print(f"a step of {QUESTIONS} prompts x {GROUP} one-turn samples of {REPLY_TOKENS} tokens")
    print(f"ours {statistics.median(mine):.1f} samples/s, TRL {statistics.median(trl):.1f} samples/s; {ratios}")


def measure_agent(course: Path, model: Path) -> None:
    start_ray()

    async def measured() -> None:
        await Bench(course, model, AGENT_PLACES).agent_against_engine()

    asyncio.run(measured())


def measure_step(course: Path, model: Path, folder: Path) -> None:
    async def measured() -> None:
        await against_trl(Bench(course, model, QUESTIONS * GROUP), folder)

    asyncio.run(measured())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("course", type=Path)
    parser.add_argument("--layers", type=int, nargs="*", default=DEPTHS, help="depths of the model for agent rollouts")
    chosen = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")
    os.environ["OMP_NUM_THREADS"] = str(THREADS)
    course: Path = chosen.course.absolute()
    model = course / "imitating-run" / "final"
    # One engine a process: a second one would find the first one's groups of processes.
    fresh = ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1)
    with tempfile.TemporaryDirectory() as name, fresh:
        folder = Path(name)
        for layers in chosen.layers:
            print(f"{layers} layers", flush=True)
            fresh.submit(measure_agent, course, deepened(model, layers, folder / str(layers))).result()
        fresh.submit(measure_step, course, model, folder / "trl").result()


if __name__ == "__main__":
    main()
