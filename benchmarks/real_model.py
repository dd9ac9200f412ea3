"""What a real language model does with the agents' prompts: valid, sensible and right replies, by protocol.

Usage: python benchmarks/real_model.py --openai URL --model NAME [--agents vimrag vrag] [--free]
       [--questions 3] [--evidence text] [--marks words] [--out runs.json] [--collection FOLDER]
       [--note "what was changed"]

Prompts are never changed without this table: run it before and after, on the same model. Any OpenAI-compatible
endpoint will do; a small instruction-tuned model on a CPU is the hard case, because it obeys only a plain prompt.

Everything but the model runs in this process, over the demo corpus; a collection is made where none is given.

- valid: share of replies that are an action of the protocol and were accepted;
- sensible: share of searches with at least one informative word of the question, and not a repetition;
- right: answers that contain the known answer (or, for a question that the corpus cannot answer, abstain);
- in memory: runs that remembered an item whose page holds the known answer;
- cited: right answers with a citation of the right document;
- boxed: citations with a box on their page, of all citations;
- sentences: supported (their facts stand in what they cite), unsupported, and unchecked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from vrag_ray.agent.events import CorrectionEvent, SearchEvent
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.support import Support
from vrag_ray.client.contract import System
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import AgentConfig, EvidenceForm, Marks, OpenAiConfig, Settings
from vrag_ray.samples.demo.corpus import HEAT_PHOTO, NOTES, REPORT, SCAN, VIDEO, make_corpus
from vrag_ray.system.here import local_system

PLACEHOLDERS = frozenset({"query", "search", "search query", "what to look for", "question", "a few words to look for"})
STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "at",
        "did",
        "do",
        "does",
        "for",
        "how",
        "in",
        "is",
        "it",
        "much",
        "of",
        "on",
        "the",
        "to",
        "was",
        "were",
        "what",
        "when",
        "which",
        "who",
    ]
)
INFORMATIVE_CHARS = 2


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """``answers``: any of them in the reply is right; none where the corpus does not hold it. ``source``: its file."""

    question: str
    answers: tuple[str, ...]
    source: str = ""


QUESTIONS = (
    GoldQuestion("How much waste heat did the ice factory recover?", ("287",), HEAT_PHOTO),
    GoldQuestion("At what time is turbine T4 released after the blade inspection?", ("16:20",), VIDEO),
    GoldQuestion("How much shore power in MWh did the cruise berth take in 2024?", ("1,946", "1946"), REPORT),
    GoldQuestion("When was crane 2 inspected?", ("17 September 2024", "September 17, 2024"), SCAN),
    GoldQuestion("Where are the spare keys of the substations hanging?", ("blue cabinet",), NOTES),
    GoldQuestion("What is the salary of the harbour master?", ()),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run, counted."""

    agent: str
    question: str
    status: str
    answer: str
    replies: int
    corrections: int
    searches: int
    sensible: int
    right: bool
    cited: bool
    citations: int
    boxed: int
    supported: int
    unsupported: int
    unchecked: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float

    @classmethod
    def of(cls, agent: str, gold: GoldQuestion, record: RunRecord, seconds: float) -> Outcome:
        queries = [event.query for event in record.events if isinstance(event, SearchEvent)]
        support = Counter(sentence.support for sentence in record.sentences)
        right = any(answer in record.answer for answer in gold.answers) if gold.answers else refuses(record)
        return cls(
            agent=agent,
            question=gold.question,
            status=str(record.status),
            answer=record.answer or record.error,
            replies=record.steps,
            corrections=sum(isinstance(event, CorrectionEvent) for event in record.events),
            searches=len(queries),
            sensible=sum(
                is_sensible(query, gold.question) and query not in queries[:place]
                for place, query in enumerate(queries)
            ),
            right=right,
            cited=right and any(citation.uri.endswith(gold.source) for citation in record.citations),
            citations=len(record.citations),
            boxed=sum(citation.bbox is not None and not citation.seen_by_search for citation in record.citations),
            supported=support[Support.CITED] + support[Support.ALIGNED],
            unsupported=support[Support.UNSUPPORTED],
            unchecked=support[Support.UNCHECKED],
            prompt_tokens=record.usage.get("prompt_tokens", 0),
            completion_tokens=record.usage.get("completion_tokens", 0),
            seconds=seconds,
        )


def informative(text: str) -> set[str]:
    """The words of a text that say what it is about, in lower case."""
    words = "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split()
    return {word for word in words if len(word) >= INFORMATIVE_CHARS and word not in STOP_WORDS}


def is_sensible(query: str, question: str) -> bool:
    """Whether a search has a word of the question, and is none of the words that a prompt might leave as its model."""
    return query.strip().casefold() not in PLACEHOLDERS and bool(informative(query) & informative(question))


def refuses(record: RunRecord) -> bool:
    """Whether a finished run says, by its status or in words, that it has no answer."""
    answer = record.answer.casefold()
    words = (
        "not enough",
        "not sufficient",
        "no sufficient",
        "does not",
        "not found",
        "no information",
        "cannot",
        "not mention",
    )
    return record.status in ("abstained", "answered") and (record.abstained or any(word in answer for word in words))


async def measure(system: System, arguments: argparse.Namespace) -> list[Outcome]:
    outcomes: list[Outcome] = []
    records: list[object] = []
    for agent in arguments.agents:
        for gold in QUESTIONS[: arguments.questions]:
            run_id = f"{agent}-run-{len(outcomes):04}"
            begun = time.perf_counter()
            async for _ in system.ask(RunRequest(question=gold.question, agent=agent, run_id=run_id)):
                pass
            record = await system.run(run_id)
            outcome = Outcome.of(agent, gold, record, time.perf_counter() - begun)
            outcomes.append(outcome)
            records.append(json.loads(record.to_json()))
            print(
                f"{agent} {outcome.seconds:5.0f} s  {outcome.replies - outcome.corrections}/{outcome.replies} valid  "
                f"{outcome.status}  {'right' if outcome.right else 'wrong'}: {outcome.answer[:100]!r}",
                flush=True,
            )
            if arguments.out is not None:
                counted = [asdict(outcome) for outcome in outcomes]
                arguments.out.write_text(json.dumps({"outcomes": counted, "records": records}, ensure_ascii=False))
    return outcomes


def table(outcomes: list[Outcome], agent: str) -> str:
    """A row of Markdown."""
    rows = [outcome for outcome in outcomes if outcome.agent == agent]
    replies, searches = sum(row.replies for row in rows), sum(row.searches for row in rows)
    valid = replies - sum(row.corrections for row in rows)
    seconds = sum(row.seconds for row in rows) / len(rows)
    supports = [(row.supported, row.unsupported, row.unchecked) for row in rows]
    sentences = ", ".join(str(sum(kind)) for kind in zip(*supports, strict=True))
    return (
        f"| {agent} | {valid} of {replies} | {sum(row.sensible for row in rows)} of {searches} "
        f"| {sum(row.right for row in rows)} of {len(rows)} | {sum(row.cited for row in rows)} "
        f"| {replies / len(rows):.1f} | {sum(row.prompt_tokens for row in rows) // len(rows)} + "
        f"{sum(row.completion_tokens for row in rows) // len(rows)} | {seconds:.0f} "
        f"| {sum(row.boxed for row in rows)} of {sum(row.citations for row in rows)} | {sentences} |"
    )


async def run(settings: Settings, arguments: argparse.Namespace) -> None:
    async with local_system(settings) as system:
        outcomes = await measure(system, arguments)
    print(f"\n{arguments.model}: {arguments.note}")
    print(
        "| agent | valid replies | sensible searches | right | cited | replies a run | tokens a run | seconds a run "
        "| boxed | sentences |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for agent in arguments.agents:
        print(table(outcomes, agent))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--openai", required=True, metavar="URL", help="the endpoint, up to /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--agents", nargs="+", default=["vimrag", "vrag"], choices=["vimrag", "vrag"])
    parser.add_argument("--questions", type=int, default=len(QUESTIONS), help="the first n of the questions")
    parser.add_argument("--evidence", type=EvidenceForm, default=EvidenceForm.TEXT)
    parser.add_argument("--marks", type=Marks, default=Marks.WORDS, help="numbers before the elements of pages, or off")
    parser.add_argument("--free", action="store_true", help="do not hold replies to the protocol's grammar")
    parser.add_argument("--max-steps", type=int, default=8)
    parser.add_argument("--collection", help="of the demo corpus; made where none is given")
    parser.add_argument("--note", default="")
    parser.add_argument("--out", type=Path, help="all runs, in JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        collection = arguments.collection
        if collection is None:
            from vrag_ray.cli.commands.up import ingest_new
            from vrag_ray.cluster import start_ray, stop_ray

            collection = str(Path(folder) / "collection")
            start_ray()
            ingest_new(make_corpus(Path(folder) / "corpus"), Settings(collection=collection))
            stop_ray()
        settings = Settings(
            collection=collection,
            openai=OpenAiConfig(base_url=arguments.openai, model=arguments.model, temperature=0.0, timeout_s=600),
            agent=AgentConfig(
                evidence=arguments.evidence,
                marks=arguments.marks,
                max_steps=arguments.max_steps,
                deadline_s=1200,
                max_reply_tokens=512,
                constrained=not arguments.free,
            ),
        )
        asyncio.run(run(settings, arguments))


if __name__ == "__main__":
    main()
