"""Worlds: the same for the same seed, true on disk, and honest about what validation measures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.mosaic.world.drawing import page_pixels
from benchmarks.mosaic.world.generate import BENCHMARK, MosaicSize
from benchmarks.mosaic.world.mosaic import Mosaic
from benchmarks.mosaic.world.page import Page
from benchmarks.mosaic.world.questions import Kind, Task, question_text, understood
from tests.support.mosaic_episodes import small_world
from vrag_ray.questions.examples import Example
from vrag_ray.types import VragError


def pages_of(world: Mosaic, examples: tuple[Example, ...]) -> set[str]:
    by_file = {page.file_name: page.name for page in world.pages}
    return {by_file[gold.file_name] for example in examples for gold in example.gold}


def page_named(world: Mosaic, name: str) -> Page:
    page = world.page(name)
    assert page is not None
    return page


def solved(world: Mosaic, task: Task) -> tuple[list[str], str]:
    """Pages and answer by following the question, independently of how questions are made."""
    way = [page_named(world, task.page)]
    if task.kind is Kind.MULTI_HOP:
        for _ in range(task.hops - 1):
            way.append(page_named(world, way[-1].names[0]))
    if task.kind is Kind.BRANCH:
        ends = [end for end in (page_named(world, name) for name in way[0].names) if end.mark == task.mark]
        assert len(ends) == 1, "the mark must tell the two pages apart"
        way += ends
    assert (task.cell in way[-1].prints) == (task.kind is Kind.FINE_PRINT)
    return [page.file_name for page in way], way[-1].colour(task.cell).value


@pytest.mark.parametrize("size", [MosaicSize(), MosaicSize(pages=40, train=200, validation=40, hops=5), BENCHMARK])
def test_every_question_has_the_answer_and_the_pages_that_following_it_gives(size: MosaicSize) -> None:
    world = Mosaic.generate(size, seed=2)
    assert (len(world.pages), len(world.train), len(world.validation)) == (size.pages, size.train, size.validation)
    for example in (*world.train, *world.validation):
        task = understood(example.question)
        assert task.kind == example.kind
        assert task.hops == (size.hops if task.kind is Kind.MULTI_HOP else 1)
        files, answer = solved(world, task)
        assert [gold.file_name for gold in example.gold] == files
        assert len(set(files)) == len(files), "no chain may come back to where it was"
        assert example.answers == (answer,)


def test_no_training_question_leads_to_a_page_that_validation_asks_about() -> None:
    world = Mosaic.generate(BENCHMARK, seed=0)
    trained, held_out = pages_of(world, world.train), pages_of(world, world.validation)
    assert not trained & held_out
    assert len(trained) == 120
    assert 30 <= len(held_out) <= 40
    for name in trained:
        assert set(page_named(world, name).names) <= trained
    questions = Counter(example.question for example in (*world.train, *world.validation))
    assert set(questions.values()) == {1}
    assert len({example.uid for example in (*world.train, *world.validation)}) == len(questions)


def test_each_page_shares_a_word_with_another() -> None:
    for seed in range(5):
        names = [page.name.split() for page in Mosaic.generate(seed=seed).pages]
        for name in names:
            assert any(other != name and set(other) & set(name) for other in names)


def test_kinds_share_the_questions_by_how_often_they_are_listed_as_far_as_they_reach() -> None:
    world = Mosaic.generate(BENCHMARK, seed=0)
    for examples in (world.train, world.validation):
        counts = Counter(example.kind for example in examples)
        assert counts == {kind.value: len(examples) * BENCHMARK.kinds.count(kind) // 10 for kind in Kind}
    crowded = Mosaic.generate(replace(BENCHMARK, train=4000), seed=0)
    counts = Counter(example.kind for example in crowded.train)
    assert counts["fine_print"] == 120 * BENCHMARK.prints, "there are no more of them"
    assert counts["branch"] == 4000 - 3 * 960
    only = Mosaic.generate(MosaicSize(kinds=(Kind.BRANCH,)), seed=0)
    assert {example.kind for example in only.train} == {"branch"}


def test_the_seed_decides_everything() -> None:
    assert Mosaic.generate(seed=4) == small_world()
    assert Mosaic.generate(seed=5).pages != small_world().pages


def test_a_world_on_disk_is_the_world_in_memory(tmp_path: Path) -> None:
    world = small_world()
    world.write(tmp_path / "world")
    assert Mosaic.read(tmp_path / "world") == world
    files = {path.name: path for path in (tmp_path / "world" / "pages").iterdir()}
    assert set(files) == {page.file_name for page in world.pages}
    for page in world.pages:
        with Image.open(files[page.file_name]) as image:
            assert np.array_equal(np.asarray(image), page_pixels(page))
    lines = (tmp_path / "world" / "train.jsonl").read_text().splitlines()
    assert tuple(map(Example.model_validate_json, lines)) == world.train


def test_a_world_never_goes_into_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(VragError, match="not empty"):
        small_world().write(tmp_path)


def test_a_damaged_world_names_the_file_and_the_line(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"world\.json"):
        Mosaic.read(tmp_path)
    folder = tmp_path / "world"
    small_world().write(folder)
    lines = (folder / "validation.jsonl").read_text().splitlines()
    (folder / "validation.jsonl").write_text("\n".join([lines[0], "{}", *lines[2:]]))
    with pytest.raises(VragError, match=r"validation\.jsonl, line 2"):
        Mosaic.read(folder)
    (folder / "validation.jsonl").unlink()
    with pytest.raises(VragError, match=r"validation\.jsonl"):
        Mosaic.read(folder)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pages": 4}, "8 to 256 pages"),
        ({"pages": 300}, "8 to 256 pages"),
        ({"hops": 5}, "too few for a chain of 5"),
        ({"kinds": ()}, "kinds of questions"),
        ({"prints": 12}, "0 to 11 fine prints"),
    ],
)
def test_a_size_that_no_world_can_have_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(VragError, match=message):
        MosaicSize(**wrong)  # type: ignore[arg-type]


def test_more_questions_than_there_are_is_an_error_that_says_how_many() -> None:
    with pytest.raises(VragError, match=r"8 pages give \d+ different questions for train, not 9999"):
        Mosaic.generate(MosaicSize(train=9999), seed=0)


def test_a_question_is_understood_as_it_was_meant_and_others_are_refused() -> None:
    tasks = [
        Task(Kind.SINGLE_HOP, "amber falcon", "c3"),
        Task(Kind.MULTI_HOP, "amber falcon", "a1", hops=4),
        Task(Kind.BRANCH, "amber falcon", "b2", mark=small_world().pages[0].mark),
        Task(Kind.FINE_PRINT, "amber falcon", "d2"),
    ]
    assert [understood(question_text(task)) for task in tasks] == tasks
    for question in ("What is this?", question_text(tasks[2]).replace(str(tasks[2].mark), "plaid")):
        with pytest.raises(VragError, match=r"not a question|no page has the mark"):
            understood(question)
