"""Ask agents every question of a set, and measure answers, citations and what they took."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import RunRequest
from vrag_ray.evaluation.folder import EvaluationFolder, Row
from vrag_ray.evaluation.side_by_side import OnDone, ask_all
from vrag_ray.policies.extractive.wording import DISCLOSURE
from vrag_ray.serving.in_process import AnswerSystem
from vrag_ray.training.data.examples import Example
from vrag_ray.training.rewards.grader import own_answer
from vrag_ray.training.rewards.judge import Judge
from vrag_ray.training.rewards.reward import Page, anls, exact_match, f1, found_pages, normalised
from vrag_ray.types import Locator, VragError

UNANSWERABLE = frozenset({"not answerable", "unanswerable"})
"""References of questions that the documents do not answer, as MMLongBench-Doc writes them: right is to abstain."""
ANSWER_MEASURES = (
    *("right", "EM", "F1", "ANLS", "contains", "abstained", "gold found", "cited precision", "cited recall"),
    *("steps", "tokens"),
)
RUNS = "runs"


async def evaluate_answers(
    system: AnswerSystem,
    examples: Sequence[Example],
    gold: Mapping[str, Sequence[Page]],
    folder: EvaluationFolder,
    *,
    judge: Judge | None = None,
    concurrency: int = 4,
    on_done: OnDone | None = None,
) -> None:
    """See ``ask_all``. ``gold`` has the pages of each question, by its uid. Every run is kept whole, in ``runs`` of the
    folder. Raises VragError at the end where runs failed or were not judged.
    """

    async def ask(example: Example, agent: str) -> Row:
        began = time.perf_counter()
        record = await _asked(system, example, agent)
        seconds = time.perf_counter() - began
        measures = await measured(record, example, gold.get(example.uid, ()), judge)
        _keep(folder.root / RUNS / agent, example.uid, record)
        return _row(record, example, agent, measures, seconds)

    await ask_all(examples, folder, ask, concurrency=concurrency, on_done=on_done)


async def measured(
    record: RunRecord, example: Example, gold: Sequence[Page], judge: Judge | None = None
) -> dict[str, float]:
    """``right`` is the judge's verdict, or without one whether a reference stands in the answer, word for word.

    Of a question without answer only abstaining is right. Words are compared where there is an answer to compare,
    citations where gold pages are known, of answers only. Raises JudgeError where the judge gives no verdict.
    """
    answer = own_answer(record).removesuffix(DISCLOSURE).strip()
    abstained = record.abstained or not answer
    measures = {"abstained": float(abstained), "steps": float(record.steps), "tokens": float(_tokens(record))}
    if is_unanswerable(example):
        return {"right": float(abstained), **measures}
    words = "" if abstained else answer
    measures |= {
        "EM": exact_match(words, example.answers) if words else 0.0,
        "F1": f1(words, example.answers) if words else 0.0,
        "ANLS": anls(words, example.answers) if words else 0.0,
        "contains": float(any(_holds(words, reference) for reference in example.answers)),
    }
    right = measures["contains"]
    if judge is not None:
        right = float(await judge.verdict(example.question, example.answers, words))
    if gold:
        found, wanted = set(found_pages(record)), set(gold)
        measures["gold found"] = len(found & wanted) / len(wanted)
        if not abstained:
            cited = cited_pages(record)
            measures["cited precision"] = len(cited & wanted) / len(cited) if cited else 0.0
            measures["cited recall"] = len(cited & wanted) / len(wanted)
    return {"right": right, **measures}


def is_unanswerable(example: Example) -> bool:
    return normalised(example.answers[0]) in UNANSWERABLE


def cited_pages(record: RunRecord) -> set[Page]:
    return {(one.doc_id, Locator(page=one.page).key) for one in record.citations if one.page is not None}


async def _asked(system: AnswerSystem, example: Example, agent: str) -> RunRecord:
    """Raises VragError where the run failed, which says nothing about the agent."""
    run_id = uuid.uuid4().hex
    async for _ in system.ask(RunRequest(question=example.question, agent=agent, run_id=run_id)):
        pass
    record = await system.run(run_id)
    if record.status in (RunStatus.ERROR, RunStatus.CANCELLED):
        raise VragError(f"{example.uid} ({agent}): {record.error or record.status}")
    return record


def _row(record: RunRecord, example: Example, agent: str, measures: Mapping[str, float], seconds: float) -> Row:
    named = {"kind": example.kind, "source": example.data_source}
    groups: dict[str, tuple[str, ...]] = {"answerable": ("no" if is_unanswerable(example) else "yes",)}
    groups |= {name: (value,) for name, value in named.items() if value}
    groups |= example.groups
    pages = dict.fromkeys(f"{one.title}#p{one.page}" for one in record.citations if one.page is not None)
    return Row(
        system=agent,
        uid=example.uid,
        question=example.question,
        measures=measures,
        seconds=seconds,
        groups=groups,
        found=tuple(pages),
        gold=tuple(f"{page.file_name}#p{page.page}" for page in example.gold),
        answer=record.answer,
        references=example.answers,
        notes=record.notices,
    )


def _keep(folder: Path, uid: str, record: RunRecord) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid5(uuid.NAMESPACE_OID, uid).hex
    (folder / f"{name}.json").write_text(record.to_json(), encoding="utf-8")


def _holds(answer: str, reference: str) -> bool:
    """Whether the words of the reference follow one another in the answer."""
    words, wanted = _words(answer), _words(reference)
    starts = range(len(words) - len(wanted) + 1)
    return bool(wanted) and any(words[start : start + len(wanted)] == wanted for start in starts)


def _words(text: str) -> list[str]:
    """Without the dots that end a sentence: those within a number stay."""
    return [word for part in normalised(text).split() if (word := part.strip(".-"))]


def _tokens(record: RunRecord) -> int:
    return sum(record.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
