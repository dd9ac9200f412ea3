"""The place where a training run asks its questions, made from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vrag_ray.config import Settings
from vrag_ray.library.evidence import CollectionEvidence
from vrag_ray.policies.llm.model_family import served_family
from vrag_ray.policies.llm.prompt_limits import ModelLimits
from vrag_ray.policies.registry import wire_protocol
from vrag_ray.questions.files import load_examples
from vrag_ray.questions.judge import Judge
from vrag_ray.training.config import EnvironmentConfig, RewardConfig, RLConfig
from vrag_ray.training.rewards.grader import AnswerScorer, Grader, resolve_gold, user_reward
from vrag_ray.training.rollout.rollout import RolloutContext, Task
from vrag_ray.training.run.storage import local_copy
from vrag_ray.types import Document, VragError
from vrag_ray.types.copies import with_changes


@dataclass(frozen=True, slots=True)
class Environment:
    """``context`` is where runs happen; ``evidence`` and ``judge`` are held open for it."""

    context: RolloutContext
    evidence: CollectionEvidence
    judge: Judge | None
    _tasks: dict[str, Sequence[Task]] = field(default_factory=dict)

    @classmethod
    async def open(
        cls, environment: EnvironmentConfig, reward: RewardConfig, concurrency: int, limits: ModelLimits | None = None
    ) -> Environment:
        """``limits`` are those of the model that will speak; None for an expert that reads no prompt.

        Raises VragError for a reward that cannot be given, and for a collection that cannot be searched.
        """
        _check_reward(reward)
        judge = Judge(reward.judge, cache=reward.judge_cache) if reward.judge is not None else None
        grade = Grader(reward.scorer, weights=reward.weights, measure=reward.grounding_measure, judge=judge)
        evidence = await open_evidence(environment)
        protocol = wire_protocol(environment.agent_name, environment.agent, environment.corpus, limits)
        context = RolloutContext(evidence.source, protocol, environment.agent, grade, concurrency, reward.overlong)
        return cls(context, evidence, judge)

    def tasks(self, path: str) -> Sequence[Task]:
        """The examples of a file, with their gold pages and boxes as the collection names them. Read once."""
        if path not in self._tasks:
            self._tasks[path] = read_tasks(path, self.evidence.documents)
        return self._tasks[path]

    async def close(self) -> None:
        await self.evidence.close()
        if self.judge is not None:
            await self.judge.aclose()


def check_questions(config: RLConfig) -> str:
    """Read the questions, and find the reward, before a model is loaded and an engine started for them; what there is,
    in a line.

    Raises VragError, with file and row, for what the workers could not use.
    """
    _check_reward(config.reward)
    documents = documents_of(config.environment.collection)
    tasks = read_tasks(config.examples, documents)
    if config.reward.grounding > 0:
        grounding_line(tasks, config.examples, config.reward)
    held_out = len(read_tasks(config.validation, documents)) if config.validation else 0
    with_gold = sum(bool(task.gold) for task in tasks)
    return f"{len(tasks)} questions to train on, {with_gold} of them with gold places; {held_out} of validation"


def documents_of(collection: str) -> Sequence[Document]:
    """Raises VragError where there is no collection."""
    from vrag_ray.index.storage.collection import Collection

    return Collection.open(collection).documents()


def _check_reward(reward: RewardConfig) -> None:
    if reward.scorer == AnswerScorer.JUDGE and reward.judge is None:
        raise VragError("reward.scorer is judge: set reward.judge.base_url and reward.judge.model, or compare words")
    if reward.scorer not in tuple(AnswerScorer):
        user_reward(reward.scorer)


def read_tasks(path: str, documents: Sequence[Document]) -> Sequence[Task]:
    """The examples of a file, with their gold places as a collection of ``documents`` names them.

    Raises VragError that names file and row, or example and gold file.
    """
    with local_copy(path) as file:
        examples = load_examples(file)
    gold = resolve_gold(examples, documents)
    return [Task(example, gold[example.uid]) for example in examples]


def grounding_line(tasks: Sequence[Task], examples: str, reward: RewardConfig) -> str:
    """For the log of a run that grades cited elements: how many of its questions allow it. ``examples`` is their file.

    Raises VragError where no question does: the weight would then be the answer's in all of them.
    """
    boxed = sum(any(place.box is not None for place in task.gold) for task in tasks)
    if not boxed:
        raise VragError(
            f"reward.grounding is {reward.grounding:g}, but no question of {examples} has a gold box: "
            "give their gold pages boxes, or set reward.grounding to 0"
        )
    return (
        f"grounding: {boxed} of {len(tasks)} questions have gold boxes; for the others reward.grounding "
        f"{reward.grounding:g} is added to the weight of the answer"
    )


async def open_evidence(environment: EnvironmentConfig) -> CollectionEvidence:
    """The collection that runs search, its shards started. Raises VragError where it is empty or cannot be read."""
    settings = Settings(
        collection=environment.collection,
        corpus=environment.corpus,
        spaces=environment.spaces,
        index=environment.index,
        agent=environment.agent,
    )
    return await CollectionEvidence.open(settings)


def with_family(config: RLConfig) -> RLConfig:
    """``config`` with the family of its model, where it says none.

    Raises VragError where that is another one than the configuration says, and where prompts in its patches cannot fit.
    """
    environment = config.environment
    path = config.model.path
    with local_copy(path, weights=False) as folder:
        family = served_family(environment.agent.family, path, "model.path", folder=str(folder))
    agent = with_changes(environment.agent, {"family": family})
    # The configuration was checked with the family of its agent, if it says none.
    wire_protocol(environment.agent_name, agent, environment.corpus, config.prompt_limits)
    return with_changes(config, {"environment": with_changes(environment, {"agent": agent})})
