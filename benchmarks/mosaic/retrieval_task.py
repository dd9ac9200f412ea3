"""Pages without words under names that say nothing, and partial descriptions of them: what a retriever has to see.

A query names two to four cells, ``a1 red, c3 blue``. It may fit more pages than the one it was made of: an oracle that
knows every cell has to guess among those, and its hit rates are the ceiling.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mosaic.world.chance import drawn_from
from benchmarks.mosaic.world.colours import COLOURS
from benchmarks.mosaic.world.drawing import draw, page_pixels, page_png, page_side
from benchmarks.mosaic.world.page import CELLS, Page
from vrag_ray.agent.chat import PictureRequest
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.types import FamilyName, Locator

FAMILY = FAMILIES[FamilyName.QWEN2_5_VL]
SIZES = (2, 3, 4)
"""How many cells a query names."""
PAGES, QUERIES, PAIRS = "pages", "queries.jsonl", "pairs.jsonl"


@dataclass(frozen=True, slots=True)
class Query:
    """``cells`` are those it names; ``target`` is the file of the page it was made of, ``fitting`` of all that fit."""

    text: str
    cells: tuple[str, ...]
    target: str
    fitting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Pages that no training saw, by file name, and queries for them."""

    pages: tuple[Page, ...]
    queries: tuple[Query, ...]


def file_name(page: Page) -> str:
    """A hash: it says nothing of the page."""
    return hashlib.sha256(page.name.encode()).hexdigest()[:16] + ".png"


def random_pages(split: str, count: int, seed: int) -> Iterator[Page]:
    """Mosaics of independent colours, the same ones for the same arguments."""
    chance = drawn_from("retrieval", split, seed)
    for number in range(count):
        yield Page(name=f"{split}/{seed}/{number}", cells=tuple(chance.choice(COLOURS) for _ in CELLS))


def described(page: Page, cells: Sequence[str]) -> str:
    return ", ".join(f"{cell} {page.colour(cell)}" for cell in cells)


def held_out(seed: int, *, pages: int = 1000, queries: int = 500) -> HeldOut:
    """``queries`` of each size, for as many different pages as there are."""
    made = tuple(random_pages("held-out", pages, seed))
    chance = drawn_from("retrieval", "queries", seed)
    names = [file_name(page) for page in made]
    searches = []
    for size in SIZES:
        places = [place for _ in range(-(-queries // pages)) for place in chance.sample(range(pages), pages)]
        for place in places[:queries]:
            cells = tuple(chance.sample(CELLS, size))
            colours = [made[place].colour(cell) for cell in cells]
            fitting = (
                name
                for name, page in zip(names, made, strict=True)
                if all(page.colour(cell) is colour for cell, colour in zip(cells, colours, strict=True))
            )
            searches.append(Query(described(made[place], cells), cells, names[place], tuple(fitting)))
    return HeldOut(made, tuple(searches))


def write_held_out(folder: Path, task: HeldOut) -> None:
    """``pages/<hash>.png`` as they would be ingested, and ``queries.jsonl`` with gold pages and gold cells."""
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for page in task.pages:
        (folder / PAGES / file_name(page)).write_bytes(page_png(page))
    lines = (
        json.dumps({"query": query.text, "cells": query.cells, "target": query.target, "fitting": query.fitting})
        for query in task.queries
    )
    (folder / QUERIES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_queries(folder: Path) -> tuple[Query, ...]:
    """The queries that ``write_held_out`` has written."""
    rows = map(json.loads, (folder / QUERIES).read_text(encoding="utf-8").splitlines())
    return tuple(Query(row["query"], tuple(row["cells"]), row["target"], tuple(row["fitting"])) for row in rows)


def shown(page: Page) -> bytes:
    """PNG of a page at 4 x 4 visual tokens, drawn as serving draws it."""
    area = page_side(FAMILY) ** 2
    request = PictureRequest(page.name, Locator(page=1), None, None, FAMILY.patch, area, area)
    return draw(page_pixels(page), request).png


def write_pairs(folder: Path, seed: int, *, pages: int, queries: int, hard: bool = False) -> None:
    """``pairs.jsonl`` for ``vrag train retriever``, and its pictures: ``queries`` of each of ``pages``.

    Labels name every cell, so that no page counts as a negative of a query that it fits. ``hard`` adds to each query a
    page that differs from its own in one of the named cells.
    """
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    chance = drawn_from("retrieval", "pairs", seed)
    with (folder / f".{PAIRS}").open("w", encoding="utf-8") as file:
        for page in random_pages("train", pages, seed):
            for _ in range(queries):
                cells = chance.sample(CELLS, chance.choice(SIZES))
                row: dict[str, object] = {
                    "query": {"text": described(page, cells), "labels": _labels(page, cells)},
                    "positive": _passage(folder, page),
                }
                if hard:
                    row["negatives"] = [_passage(folder, _changed(page, chance.choice(cells), chance))]
                file.write(json.dumps(row) + "\n")
    (folder / f".{PAIRS}").rename(folder / PAIRS)


def _passage(folder: Path, page: Page) -> dict[str, object]:
    picture = folder / PAGES / file_name(page)
    if not picture.exists():
        picture.write_bytes(shown(page))
    return {"picture": f"{PAGES}/{picture.name}", "labels": _labels(page, CELLS)}


def _labels(page: Page, cells: Sequence[str]) -> list[str]:
    return [f"{cell} {page.colour(cell)}" for cell in cells]


def _changed(page: Page, cell: str, chance: random.Random) -> Page:
    other = chance.choice([colour for colour in COLOURS if colour is not page.colour(cell)])
    cells = tuple(other if here == cell else page.colour(here) for here in CELLS)
    return Page(name=f"{page.name}/{cell}/{other}", cells=cells)


@dataclass(frozen=True, slots=True)
class HitRates:
    """Of queries of one size: how often the target is first and among the first ten, and the first page fits."""

    queries: int
    hit_1: float
    hit_10: float
    first_fits: float


def hit_rates(queries: Sequence[Query], ranked: Sequence[Sequence[str]]) -> HitRates:
    """``ranked`` has the files found for each query, best first."""
    rows = list(zip(queries, ranked, strict=True))
    return HitRates(
        len(rows),
        _mean([files[:1] == [query.target] for query, files in rows]),
        _mean([query.target in files[:10] for query, files in rows]),
        _mean([bool(files) and files[0] in query.fitting for query, files in rows]),
    )


def oracle_rates(queries: Sequence[Query]) -> HitRates:
    """What is to be expected of one that knows every cell and draws lots among the pages that fit."""
    return HitRates(
        len(queries),
        _mean([1 / len(query.fitting) for query in queries]),
        _mean([min(1.0, 10 / len(query.fitting)) for query in queries]),
        1.0,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)
