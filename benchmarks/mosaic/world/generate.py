"""How a world comes about from its size and a seed: names, pages that point at each other, and questions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.mosaic.world.colours import COLOURS, Colour, page_name
from benchmarks.mosaic.world.drawing import print_box
from benchmarks.mosaic.world.page import BODY, CELLS, MARK, Page
from benchmarks.mosaic.world.questions import Kind, Task, question_text
from vrag_ray.imaging.coordinates import with_margin
from vrag_ray.questions.examples import Example, GoldPage
from vrag_ray.types import VragError

Name = tuple[Colour, Colour]
Gold = tuple[Page, ...]

MIN_PAGES = 8
NAMES_PER_PAGE = 1.6
"""Names that could be given, to those that are: more would thin out the pages that share a word."""


@dataclass(frozen=True, slots=True)
class MosaicSize:
    """How much there is of everything. The defaults suit a unit test.

    ``hops`` is the number of pages in a multi-hop chain, ``prints`` the number of fine-print cells of a page.
    ``kinds`` are dealt to the questions in turn, as far as each has enough different ones: one that is listed twice
    has twice the share.
    """

    pages: int = 12
    train: int = 48
    validation: int = 12
    hops: int = 2
    prints: int = 4
    kinds: tuple[Kind, ...] = tuple(Kind)

    def __post_init__(self) -> None:
        most = len(COLOURS) ** 2
        if not MIN_PAGES <= self.pages <= most:
            raise VragError(f"a mosaic world has {MIN_PAGES} to {most} pages, not {self.pages}")
        if not 1 <= self.hops <= self.held_out:
            raise VragError(
                f"{self.held_out} pages are held out for validation, too few for a chain of {self.hops}: "
                f"ask for 1 to {self.held_out} hops or for more pages"
            )
        if not self.kinds or not 0 <= self.prints <= len(BODY):
            raise VragError(f"a mosaic world needs kinds of questions and 0 to {len(BODY)} fine prints a page")

    @property
    def held_out(self) -> int:
        """Pages that only validation asks about."""
        return max(4, self.pages // 4)


_USUAL = (Kind.SINGLE_HOP, Kind.MULTI_HOP, Kind.FINE_PRINT)
BENCHMARK = MosaicSize(pages=160, train=3200, validation=160, prints=8, kinds=(*_USUAL * 3, Kind.BRANCH))
"""A tenth of the questions are branches: two searches and a comparison more, by far the hardest to learn."""


def make_pages(size: MosaicSize, chance: random.Random) -> tuple[tuple[Page, ...], tuple[Page, ...]]:
    """The pages that training asks about, and those that are held out. Each part points only at itself."""
    names = _names(size.pages, chance)
    parts = names[: -size.held_out], names[-size.held_out :]
    train, held_out = (tuple(_part(part, size.prints, chance)) for part in parts)
    return train, held_out


def _names(count: int, chance: random.Random) -> list[Name]:
    """Different names, each of which shares a word with another one."""
    words = min(len(COLOURS), math.ceil(math.sqrt(NAMES_PER_PAGE * count)))
    while True:
        firsts, seconds = chance.sample(COLOURS, words), chance.sample(COLOURS, words)
        names = chance.sample([(first, second) for first in firsts for second in seconds], count)
        if all(any((a == first) != (b == second) for a, b in names) for first, second in names):
            return names


def _part(names: Sequence[Name], prints: int, chance: random.Random) -> Iterator[Page]:
    """Pages whose first pointers form one ring, so that no chain ever comes back to where it was."""
    # Dealt rather than drawn: the two pages that a branch names must differ in their marks.
    marks = [COLOURS[index % len(COLOURS)] for index in range(len(names))]
    chance.shuffle(marks)
    for index, (first, second) in enumerate(names):
        after = (index + 1) % len(names)
        others = [at for at in range(len(names)) if at not in (index, after) and marks[at] != marks[after]]
        body = (chance.choice(COLOURS) for _ in BODY)
        cells = (*names[after], *names[chance.choice(others)], *body, marks[index])
        yield Page(
            name=page_name(first, second),
            cells=cells,
            prints=tuple(sorted(chance.sample(BODY, prints), key=CELLS.index)),
        )


def make_examples(pages: Sequence[Page], size: MosaicSize, split: str, chance: random.Random) -> tuple[Example, ...]:
    """The split's number of different questions about ``pages``. Raises ``VragError`` where there are not enough."""
    count = size.train if split == "train" else size.validation
    by_name = {page.name: page for page in pages}
    stocks = {kind: list(_tasks(kind, by_name, size.hops)) for kind in dict.fromkeys(size.kinds)}
    for stock in stocks.values():
        chance.shuffle(stock)
    chosen: list[tuple[Task, Gold]] = []
    while len(chosen) < count:
        before = len(chosen)
        for stock in (stocks[kind] for kind in size.kinds):
            if stock and len(chosen) < count:
                chosen.append(stock.pop())
        if len(chosen) == before:
            raise VragError(f"{len(pages)} pages give {before} different questions for {split}, not {count}")
    chance.shuffle(chosen)
    return tuple(
        Example(
            uid=f"{split}-{number:05d}",
            question=question_text(task),
            answers=(gold[-1].colour(task.cell).value,),
            gold=tuple(_gold_page(task, page, is_last=page is gold[-1]) for page in gold),
            kind=task.kind.value,
        )
        for number, (task, gold) in enumerate(chosen)
    )


def _gold_page(task: Task, page: Page, *, is_last: bool) -> GoldPage:
    """Where the answer is fine print, with the part of the page that is to be looked at."""
    if task.kind is not Kind.FINE_PRINT or not is_last:
        return GoldPage(file_name=page.file_name)
    return GoldPage(file_name=page.file_name, box=with_margin(print_box(task.cell)).as_tuple())


def _tasks(kind: Kind, pages: dict[str, Page], hops: int) -> Iterator[tuple[Task, Gold]]:
    """Every task of a kind, with its gold pages in the order in which they are seen."""
    for page in pages.values():
        for gold, mark in _ways(kind, page, pages, hops):
            last = gold[-1]
            legible = [cell for cell in CELLS if cell not in last.prints and (mark is None or cell != MARK)]
            for cell in last.prints if kind is Kind.FINE_PRINT else legible:
                yield Task(kind, page.name, cell, len(gold) if kind is Kind.MULTI_HOP else 1, mark), gold


def _ways(kind: Kind, page: Page, pages: dict[str, Page], hops: int) -> Iterator[tuple[Gold, Colour | None]]:
    """The pages to be seen from ``page`` on, the asked one last, with its mark where that is what tells it."""
    if kind is Kind.BRANCH:
        for end in (pages[name] for name in page.names):
            yield (page, end), end.mark
        return
    chain = [page]
    while kind is Kind.MULTI_HOP and len(chain) < hops:
        chain.append(pages[chain[-1].names[0]])
    yield tuple(chain), None
