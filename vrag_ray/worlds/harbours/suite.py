"""Questions in five difficulties, each with its answer and the pages that it stands on, known by construction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from vrag_ray.training.data.examples import Example, GoldPage
from vrag_ray.training.data.files import save_examples
from vrag_ray.worlds.harbours.documents import (
    CHART_PAGE,
    FACTS_SLIDE,
    TABLE_PAGE,
    documents_of,
    photo_name,
    sheet_name,
    slides_name,
    yearbook_name,
)
from vrag_ray.worlds.harbours.facts import CONSUMERS, QUARTERS, YEARS, Harbour, Quantity, harbours
from vrag_ray.worlds.harbours.wording import WORDINGS

QUESTIONS, DOCUMENTS = "questions.jsonl", "documents"
UNANSWERABLE = "Not answerable"


class Difficulty(StrEnum):
    """``Example.kind``, in this order in a table."""

    LOOKUP = "1 a cell of a table"
    PICTURE = "2 in a scan, photo or chart"
    TWO_HOPS = "3 two documents"
    COMPARE = "4 compare two harbours"
    NOWHERE = "5 not answerable"


def write_suite(folder: Path, seed: int, count: int) -> tuple[Path, Path]:
    """Documents of ``count`` harbours and the questions; the folder of the former and the file of the latter. Documents
    that are there are not made again. The same seed makes the same."""
    made = harbours(seed, count)
    documents = folder / DOCUMENTS
    documents.mkdir(parents=True, exist_ok=True)
    for number, harbour in enumerate(made):
        for name, make in documents_of(harbour, seed * 100 + number).items():
            if not (documents / name).exists():
                (documents / name).write_bytes(make())
    save_examples(folder / QUESTIONS, list(questions(made)))
    return documents, folder / QUESTIONS


def questions(made: Sequence[Harbour]) -> Iterator[Example]:
    for number, harbour in enumerate(made):
        other = made[(number + 1) % len(made)]
        yield from _lookups(harbour)
        yield from _pictures(harbour, number)
        yield _two_hops(harbour)
        yield _comparison(harbour, other)
        yield from _nowhere(harbour)


def _example(
    harbour: Harbour, difficulty: Difficulty, number: int, question: str, answers: Sequence[str], *gold: tuple[str, int]
) -> Example:
    return Example(
        uid=f"{harbour.slug}-{difficulty.value[0]}-{number}",
        question=question,
        answers=tuple(answers),
        gold=tuple(GoldPage(file_name=name, page=page) for name, page in gold),
        kind=difficulty.value,
        data_source=f"harbours-{harbour.language.value}",
    )


def _lookups(harbour: Harbour) -> Iterator[Example]:
    wording = WORDINGS[harbour.language]
    cells = ((Quantity.SHORE_POWER, YEARS[1]), (Quantity.PASSENGERS, YEARS[2]))
    for number, (quantity, year) in enumerate(cells):
        asked = wording.lookup.format(quantity=wording.quantities[quantity], name=harbour.name, year=year)
        answer = f"{harbour.value(quantity, year):,}"
        yield _example(harbour, Difficulty.LOOKUP, number, asked, [answer], (yearbook_name(harbour), TABLE_PAGE))


def _pictures(harbour: Harbour, number: int) -> Iterator[Example]:
    consumer = CONSUMERS[number % len(CONSUMERS)]
    quarter = number % len(QUARTERS)
    told = (
        (f"When was the crane of {harbour.name} inspected?", harbour.inspected, (sheet_name(harbour), 1)),
        (f"How many tonnes did the crane of {harbour.name} lift?", str(harbour.load_t), (sheet_name(harbour), 1)),
        (
            f"How much electricity did the {consumer.lower()} of {harbour.name} use in 2024, in MWh?",
            f"{harbour.electricity[consumer]:,}",
            (photo_name(harbour), 1),
        ),
        (
            f"How many crane lifts had {harbour.name} in {QUARTERS[quarter]} of 2024?",
            f"{harbour.lifts[quarter]:,}",
            (yearbook_name(harbour), CHART_PAGE),
        ),
    )
    for place, (question, answer, gold) in enumerate(told):
        yield _example(harbour, Difficulty.PICTURE, place, question, [answer], gold)


def _two_hops(harbour: Harbour) -> Example:
    wording = WORDINGS[harbour.language]
    asked = f"How much was the {wording.quantities[Quantity.WASTE_HEAT]} in {YEARS[0]} where the tug {harbour.tug} is?"
    answer = f"{harbour.value(Quantity.WASTE_HEAT, YEARS[0]):,}"
    gold = ((slides_name(harbour), FACTS_SLIDE), (yearbook_name(harbour), TABLE_PAGE))
    return _example(harbour, Difficulty.TWO_HOPS, 0, asked, [answer], *gold)


def _comparison(harbour: Harbour, other: Harbour) -> Example:
    more = max((harbour, other), key=lambda one: one.value(Quantity.FUEL, YEARS[2]))
    asked = f"Which of the two sold more fuel in {YEARS[2]}, {harbour.name} or {other.name}?"
    gold = tuple((yearbook_name(one), TABLE_PAGE) for one in (harbour, other))
    return _example(harbour, Difficulty.COMPARE, 0, asked, [more.name], *gold)


def _nowhere(harbour: Harbour) -> Iterator[Example]:
    wording = WORDINGS[harbour.language]
    yield _example(
        harbour, Difficulty.NOWHERE, 0, wording.unknown.format(name=harbour.name, year=YEARS[1]), [UNANSWERABLE]
    )
    quantity = wording.quantities[Quantity.SHORE_POWER]
    asked = wording.lookup.format(quantity=quantity, name=harbour.name, year=YEARS[-1] + 8)
    yield _example(harbour, Difficulty.NOWHERE, 1, asked, [UNANSWERABLE])
