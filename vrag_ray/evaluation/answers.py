"""Send every question of a set to agents, once a sample, and record and grade the answers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.contract import System
from vrag_ray.client.schemas import RunRequest
from vrag_ray.evaluation.folder import EvaluationFolder, Row
from vrag_ray.evaluation.measures.answer_measures import Judges, Shorten, is_unanswerable, measured
from vrag_ray.evaluation.page_shots import PageShots, drawn
from vrag_ray.evaluation.service import Systems
from vrag_ray.evaluation.side_by_side import OnDone, ask_all
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace, name_of
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

RUNS = "runs"


async def evaluate_answers(
    systems: Systems,
    examples: Sequence[Example],
    gold: Mapping[str, Sequence[GoldPlace]],
    folder: EvaluationFolder,
    *,
    judges: Judges | None = None,
    shorten: Shorten | None = None,
    concurrency: int = 4,
    collection: str = "",
    on_done: OnDone | None = None,
    pictures: bool = False,
) -> None:
    """See ``ask_all``. ``gold`` has the places of each question, by its uid. Every run is stored whole, below the
    folder; with ``pictures`` also the pages that it cites, and the right ones.

    Raises VragError at the end where runs failed or were not judged.
    """

    async def draw(doc_id: str, page: int | None, seconds: float | None) -> bytes:
        return await systems.execute(lambda system: drawn(system, doc_id, page, seconds))

    shots = PageShots(folder.root, draw) if pictures else None

    async def ask(example: Example, agent: str, sample: int) -> Row:
        began = time.perf_counter()
        record = await _finished_run(systems, example, agent, collection)
        seconds = time.perf_counter() - began
        measures = await measured(record, example, gold.get(example.uid, ()), judges, shorten)
        _keep(folder.root, agent, example.uid, sample, record)
        places = tuple(gold.get(example.uid, ()))
        if shots is not None:
            await shots.take(record.citations, places)
        row = _row(record, example, agent, sample, measures, seconds)
        return with_changes(row, {"gold_places": places})

    await ask_all(examples, folder, ask, concurrency=concurrency, on_done=on_done)


def run_file(root: Path, agent: str, uid: str, sample: int = 0) -> Path:
    """Where the run of a question is stored."""
    name = uuid.uuid5(uuid.NAMESPACE_OID, uid if sample == 0 else f"{uid} {sample}").hex
    return root / RUNS / agent / f"{name}.json"


async def _finished_run(systems: Systems, example: Example, agent: str, collection: str) -> RunRecord:
    """Raises VragError where the run failed, which says nothing about the agent."""
    run_id = uuid.uuid4().hex
    request = RunRequest(question=example.question, agent=agent, run_id=run_id, collection=collection or None)

    async def run(system: System) -> RunRecord:
        async for _ in system.ask(request):
            pass
        return await system.run(run_id)

    record = await systems.execute(run)
    if record.status in (RunStatus.ERROR, RunStatus.CANCELLED):
        raise VragError(f"{example.uid} ({agent}): {record.error or record.status}")
    return record


def _row(
    record: RunRecord, example: Example, agent: str, sample: int, measures: Mapping[str, float], seconds: float
) -> Row:
    named = {"kind": example.kind, "source": example.data_source}
    groups: dict[str, tuple[str, ...]] = {"answerable": ("no" if is_unanswerable(example) else "yes",)}
    groups |= {name: (value,) for name, value in named.items() if value}
    groups |= example.groups
    return Row(
        system=agent,
        uid=example.uid,
        sample=sample,
        question=example.question,
        measures=measures,
        seconds=seconds,
        groups=groups,
        found=tuple(dict.fromkeys(map(_cited, record.citations))),
        gold=tuple(map(name_of, example.gold)),
        answer=record.answer,
        references=example.answers,
        notes=record.notices,
    )


def _cited(citation: Citation) -> str:
    if citation.page is not None:
        return f"{citation.title}#p{citation.page}"
    if citation.t_start is not None:
        return f"{citation.title}#t{citation.t_start:g}-{citation.t_end or citation.t_start:g}"
    return citation.title


def _keep(root: Path, agent: str, uid: str, sample: int, record: RunRecord) -> None:
    path = run_file(root, agent, uid, sample)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(record.to_json(), encoding="utf-8")
