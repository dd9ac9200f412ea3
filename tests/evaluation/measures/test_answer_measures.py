"""What an answer is worth where its place is known: pages, boxes, and both joined with the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from tests.support.judge_stub import judge_stub
from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.config import OpenAiConfig
from vrag_ray.evaluation.measures.answer_measures import measured
from vrag_ray.questions.examples import Corners, Example
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.questions.judge import Judge
from vrag_ray.types import PassageKind

ELEMENTS: Sequence[Corners] = [(0.1, height, 0.9, height + 0.1) for height in (0.1, 0.3, 0.5, 0.7)]
GOLD = (
    *(GoldPlace("a.pdf#p1", "a", page=1, box=box) for box in ELEMENTS),
    GoldPlace("b.pdf#p6", "b", page=6, box=ELEMENTS[0]),
)
"""Four elements of one page and one of another document."""
QUESTION = Example(uid="q", question="What are the fees?", answers=("4,210 crowns",))


def run(answer: str, *cited: tuple[str, int, Corners], abstained: bool = False) -> RunRecord:
    return RunRecord(
        run_id="r",
        question=QUESTION.question,
        agent="vimrag",
        status=RunStatus.ABSTAINED if abstained else RunStatus.ANSWERED,
        answer=answer,
        abstained=abstained,
        citations=tuple(
            Citation(
                number=number,
                doc_id=doc_id,
                title=doc_id,
                uri=f"{doc_id}.pdf",
                kind=PassageKind.TEXT,
                page=page,
                bbox=box,
                node_id=f"n{number}",
            )
            for number, (doc_id, page, box) in enumerate(cited, start=1)
        ),
        graph=MemoryGraph.start(QUESTION.question),
        steps=1,
        corrections=0,
        events=(),
        timings=Timings(),
        usage={},
    )


def measures(record: RunRecord, gold: Sequence[GoldPlace] = GOLD) -> Mapping[str, float]:
    return asyncio.run(measured(record, QUESTION, gold))


THREE = [("a", 1, box) for box in ELEMENTS[:3]]


def test_answer_and_evidence_must_both_be_right() -> None:
    # Three of five elements are a recall of 0.6, the least that counts; one of the two pages is cited.
    enough = measures(run("They are 4,210 crowns.", *THREE))
    assert (enough["evidence recall"], enough["page recall"], enough["SAA"]) == (0.6, 0.5, 1.0)
    less = measures(run("They are 4,210 crowns.", *THREE[:2]))
    assert (less["evidence recall"], less["right"], less["SAA"]) == (0.4, 1.0, 0.0)
    wrong = measures(run("They are 3,980 crowns.", *THREE, ("b", 6, ELEMENTS[0])))
    assert (wrong["evidence recall"], wrong["page recall"], wrong["right"], wrong["SAA"]) == (0.8, 1.0, 0.0, 0.0)


def test_a_page_counts_once_and_in_its_own_document() -> None:
    # Page 6 of a.pdf is no page of b.pdf; cited places, unlike pages, count four times.
    values = measures(run("4,210 crowns", ("a", 1, (0.0, 0.0, 0.1, 0.1)), ("a", 6, ELEMENTS[0])))
    assert (values["page recall"], values["cited recall"], values["evidence recall"]) == (0.5, 0.8, 0.0)
    without_boxes = [GoldPlace("a.pdf#p1", "a", page=1)]
    assert "SAA" not in measures(run("4,210 crowns", *THREE), without_boxes)
    assert measures(run("4,210 crowns", *THREE), without_boxes)["page recall"] == 1.0
    seconds = [GoldPlace("t.mp4#t1-2", "t", seconds=(1, 2))]
    assert not {"page recall", "SAA"} & measures(run("4,210 crowns"), seconds).keys()


@pytest.mark.parametrize("abstained", [True, False])
def test_who_cites_nothing_recalls_nothing(abstained: bool) -> None:
    values = measures(run("" if abstained else "4,210 crowns", abstained=abstained))
    assert (values["page recall"], values["evidence recall"], values["SAA"]) == (0.0, 0.0, 0.0)
    # An abstention has no citations whose precision could be measured.
    assert values.get("evidence precision") == (None if abstained else 0.0)


def test_the_verdict_of_a_judge_decides_what_is_joined() -> None:
    def verdict(body: object, _number: int) -> str:
        return f"<judge>{'three score' in str(body)}</judge>"

    with judge_stub(verdict) as stub:

        async def judged(answer: str) -> Mapping[str, float]:
            judge = Judge(OpenAiConfig(base_url=stub.base_url, model="stub"))
            try:
                return await measured(run(answer, *THREE), QUESTION, GOLD, {"stub": judge})
            finally:
                await judge.aclose()

        right, wrong = asyncio.run(judged("about three score and ten")), asyncio.run(judged("4,210 crowns"))
    assert (right["contains"], right["SAA"]) == (0.0, 1.0)
    assert (wrong["contains"], wrong["SAA"]) == (1.0, 0.0)
