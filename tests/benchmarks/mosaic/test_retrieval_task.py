"""The task of visual retrieval: what an oracle reaches, and that files say nothing of what they show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.mosaic.retrieval_task import (
    PAIRS,
    SIZES,
    HeldOut,
    Query,
    described,
    file_name,
    held_out,
    hit_rates,
    oracle_rates,
    random_pages,
    read_queries,
    write_held_out,
    write_pairs,
)
from benchmarks.mosaic.world.colours import COLOURS
from vrag_ray.training.retriever.pairs import read_pairs


@pytest.fixture(scope="module")
def task() -> HeldOut:
    return held_out(1, pages=300, queries=60)


def test_a_query_fits_the_pages_that_show_what_it_names(task: HeldOut):
    by_name = {file_name(page): page for page in task.pages}
    assert [len(query.cells) for query in task.queries] == [size for size in SIZES for _ in range(60)]
    for query in task.queries:
        assert query.target in query.fitting
        fitting = {name for name, page in by_name.items() if described(page, query.cells) == query.text}
        assert fitting == set(query.fitting)
    assert held_out(1, pages=300, queries=60) == task != held_out(2, pages=300, queries=60)


def test_the_oracle_is_what_drawing_lots_among_fitting_pages_gives(task: HeldOut):
    alone = Query("a1 red", ("a1",), "x", ("x",))
    shared = Query("a1 red", ("a1",), "x", tuple("xyzabcdefghi"))
    rates = oracle_rates([alone, shared])
    assert (rates.hit_1, rates.hit_10, rates.first_fits) == (pytest.approx(13 / 24), pytest.approx(11 / 12), 1.0)
    measured = hit_rates([alone, shared], [["x"], ["y", "x"]])
    assert (measured.queries, measured.hit_1, measured.hit_10, measured.first_fits) == (2, 0.5, 1.0, 1.0)
    assert hit_rates([alone], [[]]).hit_10 == 0


def test_written_queries_are_read_again_and_file_names_say_nothing(task: HeldOut, tmp_path: Path):
    small = HeldOut(task.pages[:5], task.queries[:4])
    write_held_out(tmp_path, small)
    assert read_queries(tmp_path) == small.queries
    names = [path.stem for path in (tmp_path / "pages").iterdir()]
    assert len(names) == 5
    assert not any(colour.value in name for colour in COLOURS for name in names)


def test_pairs_know_which_pages_a_query_fits_and_which_it_just_misses(tmp_path: Path):
    write_pairs(tmp_path, 1, pages=3, queries=2, hard=True)
    pairs = read_pairs(tmp_path / PAIRS, collection=False).pairs
    assert len(pairs) == 6
    for pair in pairs:
        assert pair.query.labels < pair.positives[0].labels
        (negative,) = pair.negatives
        assert not pair.answered_by(negative)
        assert len(pair.positives[0].labels - negative.labels) == 1
    rows = [json.loads(line) for line in (tmp_path / PAIRS).read_text().splitlines()]
    assert rows[0]["query"]["text"].split(", ") == rows[0]["query"]["labels"]
    assert len({page.cells for page in random_pages("train", 3, 1)}) == 3
