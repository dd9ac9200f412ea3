"""Every setting of training and its default, once. ``presets/`` holds whole configurations and what they need."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError, model_validator

from vrag_ray.config import (
    AgentConfig,
    AgentName,
    CorpusConfig,
    IndexConfig,
    OpenAiConfig,
    Section,
    SpaceConfig,
    VllmConfig,
)
from vrag_ray.config.embedding import with_text_space
from vrag_ray.config.setting_names import fault_of
from vrag_ray.config.yaml_file import read_yaml
from vrag_ray.policies.llm.prompt_limits import ModelLimits, context_of
from vrag_ray.policies.registry import wire_protocol
from vrag_ray.questions.grounding import GroundingMeasure
from vrag_ray.training.algorithms.algorithm import Algorithm, Credit
from vrag_ray.training.algorithms.credit_assignment import algorithm_of, user_assign
from vrag_ray.training.rewards.reward import RewardWeights, overlong_penalty
from vrag_ray.types import VragError

logger = logging.getLogger(__name__)
T = TypeVar("T", bound=Section)
Share = Annotated[float, Field(ge=0, lt=1)]
PRESETS = Path(__file__).with_name("presets")


class Dtype(StrEnum):
    """The number formats of weights and passes."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class Schedule(StrEnum):
    """The learning rate after the warm-up."""

    CONSTANT = "constant"
    COSINE = "cosine"


class EngineConfig(Section):
    """The vLLM engine inside a training worker."""

    gpu: bool = False
    dtype: Dtype = Dtype.FLOAT32
    max_model_len: int = Field(default=16_384, ge=16)
    """Tokens of prompt and reply together; the pictures count with their visual tokens."""
    max_num_seqs: int = Field(default=64, ge=1)
    max_batched_tokens: int = Field(default=8192, ge=16)
    max_images: int = Field(default=16, ge=1)
    """Pictures in one prompt; results, memory and crops share them."""
    enforce_eager: bool = True
    gpu_memory_utilization: float = Field(default=0.5, gt=0, le=1)
    engine_args: dict[str, str | int | float | bool] = Field(default={})
    """More arguments of vLLM's ``EngineArgs``, by their own names."""


class RolloutConfig(Section):
    """How trajectories are sampled. One step takes ``questions`` questions and runs each ``group`` times."""

    questions: int = Field(default=32, ge=1)
    group: int = Field(default=5, ge=1)
    concurrency: int = Field(default=256, ge=1)
    """Runs of one worker that are under way at once."""
    temperature: float = Field(default=1.0, gt=0)
    max_reply_tokens: int = Field(default=2048, ge=1)
    refill: int = Field(default=2, ge=0)
    """With dynamic sampling: how often groups that teach nothing are replaced by other questions in one step."""
    keep: bool = True
    """Write every step's trajectories to the run directory."""
    engine: EngineConfig = EngineConfig()
    """The engine inside each training worker."""
    served: VllmConfig | None = None
    """Where set, a served policy speaks instead, on resources of its own; its ``model`` is that of the run."""


class ModelConfig(Section):
    """The model that is trained. ``path`` is a Hugging Face folder that every node can read (a URI is copied by each
    worker), or a hub id."""

    path: str
    dtype: Dtype = Dtype.FLOAT32
    """Of the weights and the optimiser's state."""
    gpu: bool = False
    sharded: bool = False
    """Each worker holds a part of the model (FSDP2); otherwise each holds all of it."""
    compute_dtype: Dtype = Dtype.FLOAT32
    """What a sharded model's weights are gathered in for a pass."""
    freeze_vision: bool = True
    gradient_checkpointing: bool = False
    lora_rank: int = Field(default=0, ge=0)
    """0 trains all weights that are not frozen."""
    lora_alpha: int = Field(default=32, ge=1)
    tokens_per_batch: int = Field(default=8192, ge=16)
    """Padded tokens that one forward pass holds at most; a longer call stands alone."""

    @property
    def computed_in(self) -> Dtype:
        """The number format of a pass."""
        return self.compute_dtype if self.sharded else self.dtype


class OptimizerConfig(Section):
    """AdamW, as torch has it."""

    lr: float = Field(default=1e-6, gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    schedule: Schedule = Schedule.CONSTANT
    final_lr: float = Field(default=0.0, ge=0)
    """Where ``cosine`` ends."""
    weight_decay: float = Field(default=0.01, ge=0)
    betas: tuple[Share, Share] = (0.9, 0.999)
    clip_norm: float = Field(default=1.0, gt=0)


class EnvironmentConfig(Section):
    """The collection, and the agent that searches it."""

    collection: str
    agent_name: AgentName = AgentName.VIMRAG
    agent: AgentConfig = AgentConfig()
    corpus: CorpusConfig = CorpusConfig()
    spaces: dict[str, SpaceConfig] = Field(default={})
    """As in the settings: spaces of the collection that are not named are searched as they were made."""
    index: IndexConfig = IndexConfig()

    @model_validator(mode="before")
    @classmethod
    def _with_text_space(cls, values: object) -> object:
        return with_text_space(values) if isinstance(values, Mapping) else values


class LengthConfig(Section):
    """From which length on tokens cost: nothing up to ``max_tokens - cache``, all of the weight from ``max_tokens`` on,
    and in between in proportion."""

    max_tokens: int = Field(ge=1)
    cache: int = Field(ge=1)

    @model_validator(mode="after")
    def _cache_is_a_part(self) -> LengthConfig:
        if self.cache > self.max_tokens:
            raise ValueError(f"cache {self.cache} is more than max_tokens {self.max_tokens}")
        return self


class OverlongConfig(Section):
    """DAPO's soft penalty for length: ``weight`` times that of the longest reply of a run, and of all its replies
    together, is added to what the run earns, whatever grades it."""

    reply: LengthConfig | None = None
    run: LengthConfig | None = None
    weight: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _something_is_limited(self) -> OverlongConfig:
        if self.reply is None and self.run is None:
            raise ValueError("give reward.overlong.reply or reward.overlong.run, each with max_tokens and cache")
        return self

    def of(self, replies: Sequence[int]) -> float:
        """What is added to the reward of a run whose replies have these numbers of tokens: 0 or less."""
        longest = (self.reply, max(replies, default=0)), (self.run, sum(replies))
        parts = [overlong_penalty(tokens, at.max_tokens, at.cache) for at, tokens in longest if at is not None]
        return self.weight * sum(parts)


class RewardConfig(Section):
    """What a run earns. ``scorer`` is ``exact_match``, ``f1``, ``anls``, ``judge``, or ``package.module:function``.

    ``answer``, ``retrieval``, ``format`` and ``grounding`` are the weights of the parts, and sum to 1.
    """

    scorer: str = "exact_match"
    answer: float = 0.7
    retrieval: float = 0.2
    format: float = 0.1
    grounding: float = 0.0
    """Of the elements that an answer cites, against gold boxes. For a question without gold boxes this weight is added
    to that of the answer."""
    grounding_measure: GroundingMeasure = GroundingMeasure.F1
    overlong: OverlongConfig | None = None
    judge: OpenAiConfig | None = None
    judge_cache: str | None = None
    """Folder, or URI of an object store, that keeps verdicts for later runs."""

    @property
    def weights(self) -> RewardWeights:
        """Raises ValueError where they are no shares."""
        return RewardWeights(self.answer, self.retrieval, self.format, self.grounding)

    @model_validator(mode="after")
    def _weights_are_shares(self) -> RewardConfig:
        _ = self.weights
        return self


class WorkersConfig(Section):
    """Ray Train's workers: one process each, with one GPU each where ``gpu`` is set."""

    count: int = Field(default=1, ge=1)
    cpus: float = Field(default=1.0, gt=0)
    threads: int = Field(default=1, ge=1)
    """Cores that one worker computes with."""
    gpu: bool = False
    max_failures: int = Field(default=0, ge=-1)
    """How often lost workers are replaced and the run goes on from its last checkpoint; -1 without limit."""


class TrainConfig(Section):
    """What SFT and RL share."""

    name: str = Field(min_length=1)
    """Of the run, and of its folder in ``storage``."""
    storage: str = "vrag-runs"
    """Folder, or URI of an object store. The same ``name`` and ``storage`` go on where that run stopped."""
    seed: int = 0
    gpu_memory_gb: int | None = Field(default=None, ge=1)
    """Memory of each GPU that this configuration is made for, one a worker. None: it is made for no GPU."""
    needs: str = ""
    """In words: what else this configuration needs, and why."""
    model: ModelConfig
    optimizer: OptimizerConfig = OptimizerConfig()
    workers: WorkersConfig = WorkersConfig()
    checkpoint_every: int = Field(default=25, ge=1)
    kept_checkpoints: int = Field(default=2, ge=1)

    @model_validator(mode="after")
    def _name_is_that_of_a_folder(self) -> TrainConfig:
        if "/" in self.name or self.name in (".", ".."):
            raise ValueError(f"name is {self.name!r}: give the name of one folder; where it is to be is storage")
        return self

    @model_validator(mode="after")
    def _gpus_are_for_somebody(self) -> TrainConfig:
        users = [name for name, uses in self.gpu_users.items() if uses]
        if users and not self.workers.gpu:
            raise ValueError(
                f"{users[0]} is true and workers.gpu is not: a worker without a GPU would compute on cores"
            )
        if self.workers.gpu and not users:
            names = " or ".join(self.gpu_users)
            raise ValueError(f"workers.gpu is true and nothing would use the GPUs: set {names}, or leave it out")
        return self

    @property
    def gpu_users(self) -> Mapping[str, bool]:
        """The settings that put something on a worker's GPU, by name."""
        return {"model.gpu": self.model.gpu}

    @property
    def made_for(self) -> str:
        """The hardware in words, and why."""
        if self.gpu_memory_gb is None:
            return self.needs
        count = self.workers.count
        return f"{count} {'GPU' if count == 1 else 'GPUs'} of {self.gpu_memory_gb} GB. {self.needs}".strip()


class RLConfig(TrainConfig):
    """Reinforcement learning: rollouts, rewards, and a policy-gradient step on each batch of them."""

    examples: str
    """Questions to train on (JSON lines, unified JSON or Parquet)."""
    validation: str = ""
    validation_every: int = Field(default=0, ge=0)
    """Steps between validations; 0: none."""
    validation_samples: int = Field(default=1, ge=1)
    """Runs of each validation question, sampled at the rollout's temperature."""
    steps: int = Field(ge=1)
    minibatches: int = Field(default=1, ge=1)
    """Optimiser steps on one batch of rollouts."""
    algorithm: str | Algorithm = "ggpo"
    """A name, its values spelled out, or ``package.module:function``: the credit of your own, with GSPO's loss."""
    rollout: RolloutConfig = RolloutConfig()
    environment: EnvironmentConfig
    reward: RewardConfig = RewardConfig()
    parity_gate: float = Field(default=0.05, gt=0)
    """The mean gap between the sampler's and the trainer's log-probs, above which a run stops: weights did not arrive,
    or the two compute different things."""

    @property
    def gpu_users(self) -> Mapping[str, bool]:
        return {"model.gpu": self.model.gpu, "rollout.engine.gpu": self.rollout.engine.gpu}

    @property
    def recipe(self) -> Algorithm:
        """The algorithm: by name, by the function that assigns its credit, or spelled out."""
        return algorithm_of(self.algorithm) if isinstance(self.algorithm, str) else self.algorithm

    @property
    def prompt_limits(self) -> ModelLimits:
        """What the engine of the rollouts takes in one prompt."""
        rollout, served = self.rollout, self.rollout.served
        engine = rollout.engine if served is None else served
        return ModelLimits(
            engine.max_images,
            context_of(engine.max_model_len, engine.engine_args),
            model="rollout.engine" if served is None else "rollout.served",
            agent="environment.agent",
            reply=rollout.max_reply_tokens,
            reply_setting="rollout.max_reply_tokens",
        )

    @model_validator(mode="after")
    def _validation_is_run(self) -> RLConfig:
        if self.validation and not self.validation_every:
            raise ValueError(
                f"validation {self.validation} would never be run: set validation_every to the steps between two"
            )
        if self.validation_every and not self.validation:
            raise ValueError(f"validation_every {self.validation_every} needs validation, a file of questions")
        return self

    @model_validator(mode="after")
    def _prompts_fit(self) -> RLConfig:
        environment = self.environment
        if environment.agent_name is AgentName.EXTRACTIVE:
            raise ValueError("environment.agent_name extractive asks no model: use vrag or vimrag")
        try:
            wire_protocol(environment.agent_name, environment.agent, environment.corpus, self.prompt_limits)
        except VragError as error:
            raise ValueError(f"the prompts of the agent {environment.agent_name} cannot fit: {error}") from error
        return self

    @model_validator(mode="after")
    def _replies_can_be_overlong(self) -> RLConfig:
        overlong, longest = self.reward.overlong, self.rollout.max_reply_tokens
        reply = overlong.reply if overlong is not None else None
        if reply is not None and reply.max_tokens - reply.cache >= longest:
            raise ValueError(
                f"reward.overlong.reply begins at {reply.max_tokens - reply.cache} tokens, and no reply has more than "
                f"rollout.max_reply_tokens {longest}: lower max_tokens"
            )
        return self

    @model_validator(mode="after")
    def _algorithm_is_known(self) -> RLConfig:
        try:
            credit = self.recipe.credit
            if not isinstance(credit, Credit):
                user_assign(credit)
        except VragError as error:
            raise ValueError(str(error)) from error
        if self.rollout.group == 1 and isinstance(credit, Credit) and credit is not Credit.PROGRESS:
            raise ValueError(
                f"rollout.group 1 teaches nothing with the credit {credit.value}, which compares the runs of one "
                "question: give 2 or more"
            )
        if self.rollout.questions % self.workers.count:
            raise ValueError(
                f"rollout.questions {self.rollout.questions} cannot be shared by {self.workers.count} workers"
            )
        if self.rollout.questions * self.rollout.group % (self.minibatches * self.workers.count):
            raise ValueError(
                f"{self.rollout.questions} questions times {self.rollout.group} runs cannot be cut into "
                f"{self.minibatches} minibatches on {self.workers.count} workers"
            )
        return self


class SFTConfig(TrainConfig):
    """Supervised fine-tuning on the agent's tokens of recorded trajectories or conversations."""

    trajectories: str
    """Recorded runs (a folder of Parquet files, as rollouts write them), or conversations in sharegpt form: the folder
    that ``vrag train construct --export`` wrote, or a JSON file. A local path, or a URI."""
    max_length: int | None = Field(default=None, ge=16)
    """Tokens of a prompt and its reply. Longer ones are left out and counted, never cut. By default as many as the
    model has positions."""
    validation: str = ""
    """Trajectories whose loss is measured and that are not learnt, in the forms of ``trajectories``."""
    validation_share: Share = 0.0
    """The share of the questions of ``trajectories`` that is held out instead, with all their runs: rounded, at least
    one question and never all."""
    validation_every: int = Field(default=0, ge=0)
    """Steps between two measurements of the loss of what is held out; the first is before step 1, the last at the
    end."""
    epochs: int = Field(default=1, ge=1)
    batch: int = Field(default=32, ge=1)
    """Calls in one optimiser step, over all workers."""

    @model_validator(mode="after")
    def _held_out_is_measured(self) -> SFTConfig:
        if self.validation and self.validation_share:
            raise ValueError("validation and validation_share both say what is held out: give one of them")
        if bool(self.validation or self.validation_share) != bool(self.validation_every):
            raise ValueError(
                "the loss of what is held out needs validation (a file) or validation_share, and validation_every, the "
                "steps between two measurements"
            )
        return self


def load_training(path: Path, kind: type[T]) -> T:
    """Read a configuration (YAML). ``preset: NAME`` in it takes everything that it does not set from that preset.

    Raises VragError that names the file and the field.
    """
    values = _yaml(path)
    name = values.pop("preset", None)
    if name is not None:
        if name not in presets():
            raise VragError(f"{path}: there is no preset {name!r}: choose from {', '.join(presets())}")
        values = _merged(preset_values(str(name)), values)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        fault = fault_of(kind, error)
        raise VragError(f"the configuration {path} is wrong at {fault}") from error


def presets() -> tuple[str, ...]:
    """The names of the configurations to start from."""
    return tuple(sorted(file.stem for file in PRESETS.glob("*.yaml")))


def preset_config(preset: str) -> RLConfig:
    """A preset, with placeholders for what only its user knows."""
    unknown: dict[str, object] = {
        "name": preset,
        "examples": "-",
        "steps": 1,
        "environment": {"collection": "-"},
        "model": {"path": "-"},
    }
    return RLConfig.model_validate(_merged(unknown, preset_values(preset)))


def preset_values(preset: str) -> dict[str, object]:
    """What a preset sets."""
    return _yaml(PRESETS / f"{preset}.yaml")


def _yaml(path: Path) -> dict[str, object]:
    values = read_yaml(path)
    if not isinstance(values, dict):
        raise VragError(f"the configuration {path} must be a mapping of names to values")
    if "world" in values:
        if "environment" in values:
            raise VragError(f"the configuration {path} has both environment and world, its former name: keep one")
        logger.warning("%s: world is called environment now; the old name will be refused in the next version", path)
        values["environment"] = values.pop("world")
    return values


def _merged(below: dict[str, object], above: dict[str, object]) -> dict[str, object]:
    """``above`` wins; sections are joined name by name."""
    joined = dict(below)
    for name, value in above.items():
        under = joined.get(name)
        joined[name] = _merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return joined
