"""Questions in five difficulties, each with its answer and the places that it stands at, known by construction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from vrag_ray.drawing.edition import edition_of
from vrag_ray.questions.examples import Example, GoldPage
from vrag_ray.questions.files import save_examples
from vrag_ray.samples.harbours.documents import documents_of
from vrag_ray.samples.harbours.facts import CALLS, CONSUMERS, QUARTERS, YEARS, Harbour, Quantity, harbours
from vrag_ray.samples.harbours.pages import SheetLine
from vrag_ray.samples.harbours.places import Places
from vrag_ray.samples.harbours.wording import WORDINGS

QUESTIONS, DOCUMENTS = "questions.jsonl", "documents"
UNANSWERABLE = "Not answerable"
_EDITION_FILE = ".edition"


class Difficulty(StrEnum):
    """``Example.kind``, in this order in a table."""

    LOOKUP = "1 a cell of a table"
    PICTURE = "2 in a scan, photo, chart or clip"
    TWO_HOPS = "3 two documents"
    COMPARE = "4 compare two harbours"
    NOWHERE = "5 not answerable"


def write_suite(folder: Path, seed: int, count: int) -> tuple[Path, Path]:
    """Documents of ``count`` harbours and the questions; the folder of the former and the file of the latter. The same
    seed makes the same. Documents that this very code has made of the seed before are not made again."""
    made = harbours(seed, count)
    documents, mark = folder / DOCUMENTS, folder / _EDITION_FILE
    documents.mkdir(parents=True, exist_ok=True)
    edition = f"seed {seed} {edition_of([Path(__file__).parent])}"
    current = mark.is_file() and mark.read_text(encoding="ascii") == edition
    for harbour in made:
        for name, make in documents_of(harbour).items():
            if not (current and (documents / name).exists()):
                (documents / name).write_bytes(make())
    mark.write_text(edition, encoding="ascii")
    save_examples(folder / QUESTIONS, list(questions(made)))
    return documents, folder / QUESTIONS


def questions(made: Sequence[Harbour]) -> Iterator[Example]:
    places = [Places(harbour) for harbour in made]
    for number, (harbour, its) in enumerate(zip(made, places, strict=True)):
        after = (number + 1) % len(made)
        yield from _lookups(harbour, its)
        yield from _pictures(harbour, its, number)
        yield _two_hops(harbour, its)
        yield _comparison((harbour, its), (made[after], places[after]))
        yield from _nowhere(harbour)


def _example(
    harbour: Harbour, difficulty: Difficulty, number: int, question: str, answers: Sequence[str], *gold: GoldPage
) -> Example:
    return Example(
        uid=f"{harbour.slug}-{difficulty.value[0]}-{number}",
        question=question,
        answers=tuple(answers),
        gold=gold,
        kind=difficulty.value,
        data_source=f"harbours-{harbour.language.value}",
    )


def _lookups(harbour: Harbour, places: Places) -> Iterator[Example]:
    wording = WORDINGS[harbour.language]
    cells = ((Quantity.SHORE_POWER, YEARS[1]), (Quantity.PASSENGERS, YEARS[2]))
    for number, (quantity, year) in enumerate(cells):
        text = wording.lookup.format(quantity=wording.quantities[quantity], name=harbour.name, year=year)
        answer = f"{harbour.value(quantity, year):,}"
        yield _example(harbour, Difficulty.LOOKUP, number, text, [answer], places.cell(quantity, year))


def _pictures(harbour: Harbour, places: Places, number: int) -> Iterator[Example]:
    consumer = CONSUMERS[number % len(CONSUMERS)]
    quarter = number % len(QUARTERS)
    scene, later = number % CALLS, (number + 1) % CALLS
    lock = harbour.calls[scene].lock
    sentence = (
        (
            f"When was the crane of {harbour.name} inspected?",
            (harbour.inspected,),
            places.sheet(SheetLine.INSPECTED),
        ),
        (
            f"How many tonnes did the crane of {harbour.name} lift?",
            (str(harbour.load_t),),
            places.sheet(SheetLine.LOAD),
        ),
        (
            f"How much electricity did the {consumer.lower()} of {harbour.name} use in 2024, in MWh?",
            (f"{harbour.electricity[consumer]:,}",),
            places.electricity(consumer),
        ),
        (
            f"How many crane lifts had {harbour.name} in {QUARTERS[quarter]} of 2024?",
            (f"{harbour.lifts[quarter]:,}",),
            places.lifts(QUARTERS[quarter]),
        ),
        (
            f"Which lock did the ship {harbour.calls[scene].ship} enter at {harbour.name}?",
            (f"lock {lock}", str(lock)),
            places.call(scene),
        ),
        (
            f"At what time did the ship {harbour.calls[later].ship} enter a lock at {harbour.name}?",
            (harbour.calls[later].time,),
            places.call(later),
        ),
    )
    for place, (question, answers, gold) in enumerate(sentence):
        yield _example(harbour, Difficulty.PICTURE, place, question, answers, gold)


def _two_hops(harbour: Harbour, places: Places) -> Example:
    wording = WORDINGS[harbour.language]
    text = f"How much was the {wording.quantities[Quantity.WASTE_HEAT]} in {YEARS[0]} where the tug {harbour.tug} is?"
    answer = f"{harbour.value(Quantity.WASTE_HEAT, YEARS[0]):,}"
    gold = (places.tug(), places.cell(Quantity.WASTE_HEAT, YEARS[0]))
    return _example(harbour, Difficulty.TWO_HOPS, 0, text, [answer], *gold)


def _comparison(*both: tuple[Harbour, Places]) -> Example:
    harbour, other = (named for named, _ in both)
    more = max((harbour, other), key=lambda port: port.value(Quantity.FUEL, YEARS[2]))
    text = f"Which of the two sold more fuel in {YEARS[2]}, {harbour.name} or {other.name}?"
    gold = (places.cell(Quantity.FUEL, YEARS[2]) for _, places in both)
    return _example(harbour, Difficulty.COMPARE, 0, text, [more.name], *gold)


def _nowhere(harbour: Harbour) -> Iterator[Example]:
    wording = WORDINGS[harbour.language]
    yield _example(
        harbour, Difficulty.NOWHERE, 0, wording.unknown.format(name=harbour.name, year=YEARS[1]), [UNANSWERABLE]
    )
    quantity = wording.quantities[Quantity.SHORE_POWER]
    text = wording.lookup.format(quantity=quantity, name=harbour.name, year=YEARS[-1] + 8)
    yield _example(harbour, Difficulty.NOWHERE, 1, text, [UNANSWERABLE])
