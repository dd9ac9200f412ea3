"""What ``vrag demo`` asks: one question for each kind of evidence, with the answer that the corpus holds."""

from __future__ import annotations

from dataclasses import dataclass

from vrag_ray.samples.demo import facts
from vrag_ray.samples.demo.corpus import HEAT_PHOTO, REPORT, VIDEO


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """``answer`` is the text that a right answer contains; ``source`` the file it cites.

    ``page`` (1-based) or ``seconds`` (start, end) say where in the file the answer stands.
    """

    label: str
    question: str
    answer: str
    source: str
    page: int | None = None
    seconds: tuple[float, float] | None = None


QUESTIONS = (
    DemoQuestion(
        label="a cell of a table",
        question="How much shore power in MWh did the cruise berth take in 2024?",
        answer=facts.thousands(facts.SHORE_POWER_MWH["Cruise berth"][-1]),
        source=REPORT,
        page=4,
    ),
    DemoQuestion(
        label="a chart in a photo",
        question="How much waste heat did the ice factory recover?",
        answer=f"{facts.HEAT_RECOVERED_MWH['Ice factory']} MWh",
        source=HEAT_PHOTO,
        page=1,
    ),
    DemoQuestion(
        label="a moment of a video",
        question="At what time is turbine T4 released after the blade inspection?",
        answer="16:20",
        source=VIDEO,
        seconds=facts.VIDEO_CUES[-1][:2],
    ),
)
