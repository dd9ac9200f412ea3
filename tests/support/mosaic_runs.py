"""A tiny world of mosaics for tests of training: in memory, or in a real collection; and runs of its expert."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from transformers import AutoProcessor, ProcessorMixin

from benchmarks.mosaic.model import ModelShape
from benchmarks.mosaic.world.agent import mosaic_agent, mosaic_protocol
from benchmarks.mosaic.world.colours import COLOURS
from benchmarks.mosaic.world.drawing import draw, page_pixels
from benchmarks.mosaic.world.expert import MosaicExpert
from benchmarks.mosaic.world.mosaic import Mosaic
from benchmarks.mosaic.world.page import Page
from benchmarks.mosaic.world.questions import Kind
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.ports import EvidenceSource, Policy
from vrag_ray.config import AgentConfig
from vrag_ray.policies.llm.chat_model import TokenDelta, TokenRequest
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.questions.examples import GoldPage
from vrag_ray.questions.gold_places import GoldPlace, name_of
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS, TrainSample, train_samples
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import ModelConfig, OptimizerConfig
from vrag_ray.training.rewards.grader import Grader
from vrag_ray.training.rewards.reward import RewardWeights
from vrag_ray.training.rollout.rollout import RolloutContext, Task, expert_runs
from vrag_ray.training.trainer.batch import collate
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.training.trainer.learner import Learner, Update
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.training.trainer.scorer import Scorer, load_model
from vrag_ray.training.trajectory import Call, Trajectory
from vrag_ray.types import (
    HYBRID,
    LEXICAL,
    Completion,
    FamilyName,
    Hit,
    Locator,
    PageText,
    Passage,
    PassageKind,
    Query,
    SearchAnswer,
    VragError,
    passage_id,
)
from vrag_ray.types.filters import SearchFilter

Groups = list[list[Trajectory]]
Gradients = dict[str, torch.Tensor]
WHOLE_PAGE = Locator(page=1)
TINY = ModelShape(
    layers=2, heads=2, mlp=64, vision_depth=1, vision_heads=1, vision_mlp=32, tied=True, initializer_range=0.1
)
"""Weights large enough that every token of a prompt is felt in the log-probs of a reply."""


@cache
def world() -> Mosaic:
    return Mosaic.generate(seed=0)


@dataclass
class Album:
    """An ``EvidenceSource`` of pages in memory, found by the words of their names; the name is a document's id."""

    pages: Sequence[Page] = field(default_factory=lambda: world().pages)
    broken: str = ""

    @property
    def source(self) -> EvidenceSource:
        return EvidenceSource(self, self)

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        if self.broken:
            raise VragError(self.broken)
        [query] = map(Query.of, queries)
        words = set(query.text.split())
        ranked = sorted((-len(words & set(page.name.split())), page.name) for page in self.pages)
        hits = tuple(_hit(name, -count) for count, name in ranked[:top_k] if count)
        return SearchAnswer((hits,), 1, 1, LEXICAL, 1)

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return [PageText(name, place, name, (), 448.0, 448.0) for name, place in pages]

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        by_name = {page.name: page for page in self.pages}
        return [draw(page_pixels(by_name[request.doc_id]), request) for request in requests]


def _hit(name: str, score: int) -> Hit:
    passage = Passage(passage_id(name, WHOLE_PAGE, 0), name, PassageKind.IMAGE, WHOLE_PAGE, 0, name)
    return Hit(passage, name, f"{name.replace(' ', '-')}.png", float(score))


def context(
    *, family: FamilyName = FamilyName.QWEN2_5_VL, source: Album | None = None, agent: AgentConfig | None = None
) -> RolloutContext:
    """The answer alone is graded."""
    grade = Grader("exact_match", weights=RewardWeights(answer=1.0, retrieval=0.0, format=0.0))
    return RolloutContext(
        (source or Album()).source, mosaic_protocol(family), agent or mosaic_agent(family), grade, concurrency=64
    )


def tasks(count: int) -> list[Task]:
    """Training questions, of each kind in turn."""
    by_kind = {kind: [example for example in world().train if example.kind == kind] for kind in Kind}
    examples = [example for row in zip(*by_kind.values(), strict=False) for example in row]
    return [Task(example, tuple(map(_gold_place, example.gold))) for example in examples[:count]]


def _gold_place(gold: GoldPage) -> GoldPlace:
    return GoldPlace(name_of(gold), gold.file_name[:-4].replace("-", " "), page=1, box=gold.box)


def expert(noise: float, family: FamilyName = FamilyName.QWEN2_5_VL) -> Callable[[Task, int], Policy]:
    return lambda task, sample: MosaicExpert(world(), mosaic_protocol(family), noise=noise, sample=sample)


def played(
    model: Path, *, questions: int = 4, group: int = 3, noise: float = 0.4, family: FamilyName = FamilyName.QWEN2_5_VL
) -> Groups:
    """Runs of an expert that errs, in the tokens of the model in the folder ``model``."""
    form, pixels = format_of(model), pixels_of(model)
    return asyncio.run(
        expert_runs(
            context(family=family),
            expert(noise, family),
            form,
            pixels.expand_image_tokens,
            tasks(questions),
            group=group,
        )
    )


@cache
def processor_of(model: Path) -> ProcessorMixin:
    processor: ProcessorMixin = AutoProcessor.from_pretrained(str(model))
    return processor


@cache
def format_of(model: Path) -> ChatFormat:
    return ChatFormat(str(model))


@cache
def pixels_of(model: Path) -> Pixels:
    return Pixels(processor_of(model))


def pad_of(model: Path) -> int:
    return int(processor_of(model).tokenizer.pad_token_id)


def scorer_of(model: Path, temperature: float = 1.0, *, freeze_vision: bool = False) -> Scorer:
    torch.set_num_threads(1)
    return Scorer(load_model(ModelConfig(path=str(model), freeze_vision=freeze_vision), str(model)), temperature)


class Speaker:
    """``TokenModel`` that reads its prompt: it searches for ``searches`` pages, keeps nothing, and answers a colour.

    Which pages and which colour is drawn by the request's seed. It spells every letter by itself, which no tokenizer
    would do. A reply takes ``turns`` turns of the event loop, as many as the test states for the request.
    """

    def __init__(
        self, model: Path, *, searches: int = 1, turns: Callable[[TokenRequest], int] = lambda request: 1
    ) -> None:
        self.tokenizer = processor_of(model).tokenizer
        self.heard: list[TokenRequest] = []
        self.speaking = self.most = 0
        self._pixels = pixels_of(model)
        self._searches = searches
        self._turns = turns

    async def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        self.heard.append(request)
        self.speaking += 1
        self.most = max(self.most, self.speaking)
        try:
            await self.wait(request)
            text = mosaic_protocol().render(self._action(request))
            ids = self.spelt(text)
            logprobs = tuple(-1 / (3 + place) for place in range(len(ids)))
            half = len(ids) // 2
            read = self._pixels.expand_image_tokens(request.prompt_ids, request.images)
            yield TokenDelta(ids[:half], logprobs[:half], read)
            yield TokenDelta(ids[half:], logprobs[half:])
            yield Completion(text=text, weights="5", token_ids=ids, logprobs=logprobs)
        finally:
            self.speaking -= 1

    async def wait(self, request: TokenRequest) -> None:
        for _ in range(self._turns(request)):
            await asyncio.sleep(0)

    def read(self, request: TokenRequest) -> str:
        return str(self.tokenizer.decode(request.prompt_ids))

    def spelt(self, text: str) -> tuple[int, ...]:
        letters = (self.tokenizer(letter, add_special_tokens=False)["input_ids"] for letter in text)
        return (*(token for letter in letters for token in letter), int(self.tokenizer.eos_token_id))

    def _action(self, request: TokenRequest) -> Action:
        dice = request.sampling.seed or 0
        if request.images:
            seen = range(1, len(request.images) + 1)
            useless = (MemorizeEntry(information_id=f"Picture {number}", is_useful=False) for number in seen)
            return SummarizeAndMemorize(summarize="nothing", memorize=tuple(useless))
        done = set(re.findall(r'{"id": "(s\d+)"', self.read(request)))
        parent = f"s{len(done)}" if done else "root"
        if len(done) == self._searches:
            return AddAnswerNode(parent_ids=(parent,), answer=COLOURS[dice % len(COLOURS)].value)
        page = world().pages[dice % len(world().pages)].name
        return AddSearchNode(id=f"s{len(done) + 1}", parent_ids=(parent,), query=f"{page} {len(done)}")


def sampled(groups: Groups, model: Path, shift: float = 0.0) -> Groups:
    """The same runs as if the model had written them: with its log-probs, each ``shift`` too high."""
    scorer, pixels, pad_id = scorer_of(model), pixels_of(model), pad_of(model)

    def scored(call: Call) -> Call:
        with torch.no_grad():
            logp = scorer(collate([call], pixels, pad_id)).logp
        return replace(call, logprobs=tuple(float(value) + shift for value in logp))

    return [[replace(run, calls=tuple(map(scored, run.calls))) for run in group] for group in groups]


def taught(groups: Groups, algorithm: Algorithm) -> list[TrainSample]:
    """The train samples of all runs, in order."""
    return [sample for run in train_samples(groups, algorithm, Collectives()) for sample in run]


@dataclass
class School:
    """A learner with all that it is made of."""

    learner: Learner
    optimizer: Optimizer
    scorer: Scorer

    @classmethod
    def open(
        cls,
        model: Path,
        *,
        tokens_per_batch: int = 512,
        reference: Path | None = None,
        lr: float = 1e-2,
        entropy_learns: bool = False,
    ) -> School:
        """Nothing is clipped, and nothing decays: a step is that of the gradient alone."""
        loaded = scorer_of(model).model
        scorer = Scorer(loaded, entropy_learns=entropy_learns)
        ranks = Collectives()
        optimizer = Optimizer(loaded, OptimizerConfig(lr=lr, weight_decay=0.0, clip_norm=1e9), 10, ranks)
        learner = Learner(
            scorer,
            optimizer,
            pixels_of(model),
            ranks,
            pad_id=pad_of(model),
            tokens_per_batch=tokens_per_batch,
            reference=scorer_of(reference) if reference is not None else None,
        )
        return cls(learner, optimizer, scorer)

    def update(
        self, batches: Sequence[Sequence[TrainSample]], algorithm: Algorithm
    ) -> tuple[list[Update], list[Gradients]]:
        """What the learner says of each step, and the gradients that each step was made with."""
        names = {id(parameter): name for name, parameter in self.scorer.model.named_parameters()}
        gradients: list[Gradients] = []

        def keep(stepping: torch.optim.Optimizer, *_: object) -> None:
            own = [parameter for group in stepping.param_groups for parameter in group["params"]]
            gradients.append({names[id(parameter)]: parameter.grad.clone() for parameter in own})

        hook = register_optimizer_step_pre_hook(keep)
        try:
            return self.learner.update(batches, algorithm), gradients
        finally:
            hook.remove()


def apart(left: Gradients, right: Gradients) -> float:
    """How far the gradients differ, in shares of the whole gradient."""
    assert left.keys() == right.keys()
    difference = torch.stack([(left[name] - right[name]).norm() for name in left]).norm()
    return float(difference / torch.stack([value.norm() for value in right.values()]).norm())


def recipe(name: str, **changes: object) -> Algorithm:
    """A known algorithm with other values."""
    return Algorithm.model_validate(ALGORITHMS[name].model_dump() | changes)
