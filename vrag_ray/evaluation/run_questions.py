"""Questions of a file about a collection or a running service: how good the answers are, or the searches for them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.config import OpenAiConfig
from vrag_ray.evaluation.answers import evaluate_answers
from vrag_ray.evaluation.evidence_texts import located, location_of_gold, reading_that_fits
from vrag_ray.evaluation.folder import EvaluationFolder, Header, Kind
from vrag_ray.evaluation.measures.answer_measures import ANSWER_MEASURES, MMLONGBENCH, SAA, SAA_LEAST_RECALL
from vrag_ray.evaluation.plan import Plan, environment
from vrag_ray.evaluation.run import run_suite, write_table
from vrag_ray.evaluation.service import documents_of, evaluated
from vrag_ray.evaluation.short_answers import ShortAnswers
from vrag_ray.evaluation.side_by_side import OnDone
from vrag_ray.evaluation.suites.question_suite import question_suite
from vrag_ray.evaluation.summary import MMLONGBENCH_F1
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace, gold_places, without_missing_pages
from vrag_ray.questions.judge import Judge
from vrag_ray.questions.named_pages import NamedDocument
from vrag_ray.questions.published_sets import QuestionSet, load_questions

VERDICTS, SHORT = "verdicts", "short-answers"


def run_answers(plan: Plan, source: Path, agents: Sequence[str], on_done: OnDone | None) -> EvaluationFolder:
    """``agents`` answer; where none is named, the agent that answers requests without a name.

    Raises VragError for what is no file of questions (see ``load_questions``), and for gold pages that are not in the
    collection.
    """
    questions = load_questions(source)
    return asyncio.run(_answers(plan, plan.name or source.name, questions, agents, on_done))


def run_question_searches(plan: Plan, source: Path, on_done: OnDone | None) -> EvaluationFolder:
    """The questions themselves are the queries, right are their gold places. Raises VragError as ``run_answers``, and
    where no gold place is known."""
    questions = load_questions(source)

    async def run() -> EvaluationFolder:
        documents = await documents_of(plan.settings, plan.service)
        gold = await _gold(plan, questions, documents)
        suite = question_suite(plan.name or source.name, gold.examples, gold.places, documents)
        return await run_suite(plan, plan.settings, suite, on_done, {**_of_file(questions), **gold.facts})

    return asyncio.run(run())


@dataclass(frozen=True, slots=True)
class _Gold:
    """``places`` by the uid of each of ``examples``; ``facts`` are what results say of how they were read."""

    examples: Sequence[Example]
    places: Mapping[str, Sequence[GoldPlace]]
    facts: Mapping[str, str]


async def _gold(plan: Plan, questions: QuestionSet, documents: Sequence[NamedDocument]) -> _Gold:
    """The gold places by question. Of a collection that is opened here, with the boxes of their texts and pixels, by
    the reading of the file that fits its pages. Raises VragError as ``gold_places`` and ``located``."""
    examples, facts = questions.examples, {}
    if questions.names_missing:
        examples, missing = without_missing_pages(examples, documents)
        if missing:
            facts["gold pages that no document has"] = f"left out, of {missing} questions"
    if questions.readings and plan.service is None:
        reading = await reading_that_fits(questions.readings, documents, plan.settings)
        examples = questions.readings[reading.name]
        facts["gold boxes"] = f"{reading.name}; {reading.held} of {reading.compared} compared hold their texts"
    elif questions.readings:
        facts["gold boxes"] = (
            f"{next(iter(questions.readings))}; not compared with their texts: a service at --url is evaluated"
        )
    places: Mapping[str, Sequence[GoldPlace]] = gold_places(examples, documents)
    if plan.service is None:
        places = await located(places, plan.settings)
    return _Gold(examples, places, {**facts, **location_of_gold(places, here=plan.service is None)})


async def _answers(
    plan: Plan,
    name: str,
    questions: QuestionSet,
    agents: Sequence[str],
    on_done: OnDone | None,
) -> EvaluationFolder:
    gold = await _gold(plan, questions, await documents_of(plan.settings, plan.service))
    rows = [example.model_dump(mode="json") for example in gold.examples]
    async with (
        evaluated(plan.settings, plan.service, plan.workers) as (systems, subject),
        AsyncExitStack() as stack,
    ):
        header = Header(
            kind=Kind.ANSWERS,
            suite=name,
            suite_hash=hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest(),
            questions=len(gold.examples),
            subject={
                **subject.facts,
                **_agent_settings(plan),
                "right": _right(plan.judges),
                **_rule(plan.judges, questions),
                **_of_file(questions),
                **gold.facts,
                **_joined(plan.judges, gold.places),
            },
            systems=tuple(agents) or (subject.default_agent,),
            samples=plan.samples,
            environment=environment(),
        )
        folder = EvaluationFolder.begin(plan.out, header)
        judges = {}
        for label, endpoint in zip(judge_names(plan.judges), plan.judges, strict=True):
            judges[label] = Judge(endpoint, cache=str(plan.out / VERDICTS), concurrency=plan.concurrency)
            stack.push_async_callback(judges[label].aclose)
        shorten = None
        if plan.judges and _has_forms(questions):
            answers = ShortAnswers(plan.judges[0], cache=plan.out / SHORT, concurrency=plan.concurrency)
            stack.push_async_callback(answers.aclose)
            shorten = answers.of
        await evaluate_answers(
            systems,
            gold.examples,
            gold.places,
            folder,
            judges=judges,
            shorten=shorten,
            concurrency=plan.concurrency,
            collection="" if plan.service is None else plan.service.collection,
            on_done=on_done,
            pictures=True,
        )
    write_table(folder, (*ANSWER_MEASURES, MMLONGBENCH_F1))
    return folder


def judge_names(judges: Sequence[OpenAiConfig]) -> list[str]:
    """The model of each, with its number where two have one name."""
    models = [judge.model for judge in judges]
    return [
        model if models.count(model) == 1 else f"{model} ({number})" for number, model in enumerate(models, start=1)
    ]


def _agent_settings(plan: Plan) -> dict[str, str]:
    """Those of a running service are its own."""
    if plan.service is not None:
        return {}
    settings = plan.settings
    return {
        "model": "none" if settings.language_model is None else settings.language_model.model,
        "evidence": settings.agent.evidence.value,
        "marks": settings.agent.marks.value,
        "max_steps": str(settings.agent.max_steps),
        "abstain_below": str(settings.agent.abstain_below),
    }


def _right(judges: Sequence[OpenAiConfig]) -> str:
    if not judges:
        return "a reference stands in the answer"
    first, *others = judge_names(judges)
    return f"judged by {first}" + (f", beside {', '.join(others)}" if others else "")


def _has_forms(questions: QuestionSet) -> bool:
    return any(example.answer_format is not None for example in questions.examples)


def _rule(judges: Sequence[OpenAiConfig], questions: QuestionSet) -> dict[str, str]:
    if not _has_forms(questions):
        return {}
    return {MMLONGBENCH: f"short answers extracted by {judges[0].model}" if judges else "of answers as they are"}


def _joined(judges: Sequence[OpenAiConfig], gold: Mapping[str, Sequence[GoldPlace]]) -> dict[str, str]:
    """How ``SAA`` joins answer and evidence, where gold boxes are known."""
    if not any(place.box is not None for places in gold.values() for place in places):
        return {}
    return {SAA: f"{_right(judges)}, and evidence recall is {SAA_LEAST_RECALL} or more; relevance is not judged"}


def _of_file(questions: QuestionSet) -> dict[str, str]:
    """What results say of the file of questions."""
    licence = {"licence of the questions": questions.licence} if questions.licence else {}
    return {**licence, **questions.facts}
