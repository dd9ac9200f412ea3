"""How the work of ingest is cut: groups of files, ranges of pages, and what one call decodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.config import CorpusConfig
from vrag_ray.ingest.machine import cores, readers
from vrag_ray.ingest.plan import (
    PAGES_OF_A_SCAN,
    DocumentPlan,
    PlannedRange,
    decode_tasks,
    pages_of_item,
    planned_ranges,
    takes_long,
    task_from_json,
    task_to_json,
    waits,
    work_items,
)
from vrag_ray.ingest.sources import MOST_FILES_OF_A_GROUP, Source, grouped
from vrag_ray.types import DocumentKind

PAGES = 16


def plan(name: str, units: int, kind: DocumentKind = DocumentKind.TEXT) -> DocumentPlan:
    return DocumentPlan(f"file:///{name}", name, f"{name:a<64}", kind, units=units, pending=units, meta={"year": 1851})


def ranges_of(*plans: DocumentPlan) -> list[PlannedRange]:
    return [
        planned_range for each in plans for planned_range in planned_ranges(each, list(work_items(each, (), PAGES)))
    ]


def sizes(tasks: list[list[PlannedRange]]) -> list[list[tuple[str, int, int]]]:
    return [[(part.plan.name, part.start, part.stop) for part in task] for task in tasks]


def test_other_ranges_than_those_of_an_interrupted_run_leave_no_page_twice() -> None:
    ranges = [(item.start, item.stop) for item in work_items(plan("a", 10), {0, 1, 2, 3, 6}, 3)]
    assert ranges == [(4, 6), (7, 9), (9, 10)]
    assert [(item.start, item.stop) for item in work_items(plan("a", 10), set(), 4)] == [(0, 4), (4, 8), (8, 10)]


def test_small_files_are_decoded_together_and_a_long_one_in_parts() -> None:
    ranges = ranges_of(plan("long", 40, DocumentKind.PDF), plan("a", 1), plan("b", 3), plan("c", 7), plan("d", 9))
    tasks = list(decode_tasks(ranges, CorpusConfig(pages_per_item=PAGES)))
    assert sizes(tasks) == [
        [("long", 0, 16)],
        [("long", 16, 32)],
        [("long", 32, 40), ("a", 0, 1), ("b", 0, 3)],
        [("c", 0, 7), ("d", 0, 9)],
    ]


def test_what_takes_long_to_decode_stays_alone() -> None:
    ranges = ranges_of(plan("a", 1), plan("scan", 1, DocumentKind.IMAGE), plan("b", 1), plan("c", 1))
    read = list(decode_tasks(ranges, CorpusConfig(pages_per_item=PAGES)))
    assert sizes(read) == [[("a", 0, 1)], [("scan", 0, 1)], [("b", 0, 1), ("c", 0, 1)]]
    shown = list(decode_tasks(ranges, CorpusConfig(pages_per_item=PAGES, ocr=False)))
    assert len(shown) == 1
    clips = ranges_of(plan("a", 1), plan("film", 2, DocumentKind.VIDEO))
    assert sizes(list(decode_tasks(clips, CorpusConfig(pages_per_item=PAGES, ocr=False)))) == [
        [("a", 0, 1)],
        [("film", 0, 2)],
    ]


def test_a_scan_is_cut_into_few_pages_so_that_no_reader_is_left_with_the_last() -> None:
    config = CorpusConfig(pages_per_item=PAGES)
    book, scan = (replace(plan("x", 100, DocumentKind.PDF), scans=scans) for scans in (20, 30))
    assert (takes_long(book, config), pages_of_item(book, config)) == (False, PAGES)
    assert (takes_long(scan, config), pages_of_item(scan, config)) == (True, PAGES_OF_A_SCAN)
    ranges = planned_ranges(scan, list(work_items(scan, (), pages_of_item(scan, config))))
    tasks = list(decode_tasks(ranges, config))
    assert {len(task) for task in tasks} == {1} and len(tasks) == 50
    assert all(waits(task, config) for task in tasks)
    # A scan that is known already is not worth waiting for.
    assert not waits([PlannedRange(scan, 0, 0)], config)
    without = CorpusConfig(pages_per_item=PAGES, ocr=False)
    assert (takes_long(scan, without), pages_of_item(scan, without)) == (False, PAGES)


@pytest.mark.parametrize(
    ("cpus", "gigabytes", "count"),
    [(1, 8, 1), (2, 16, 2), (4, 3, 2), (8, 64, 8), (64, 256, 64), (64, 40, 30), (2, 0, 1)],
)
def test_readers_fill_the_cores_as_far_as_memory_goes(cpus: int, gigabytes: int, count: int) -> None:
    assert readers(cpus, gigabytes * 10**9) == count


@pytest.mark.parametrize(
    ("count", "allowed", "quota", "granted"),
    [
        (8, 8, "", 8),
        (8, 8, "max 100000\n", 8),
        (64, 64, "400000 100000\n", 4),
        (64, 64, "150000 100000\n", 2),
        (64, 3, "400000 100000\n", 3),
        (8, 8, "20000 100000\n", 1),
        (2, 2, "400000 100000\n", 2),
    ],
)
def test_the_cores_of_a_container_are_those_it_may_use(count: int, allowed: int, quota: str, granted: int) -> None:
    assert cores(count, allowed, quota) == granted


def test_files_with_nothing_to_decode_fill_no_task_without_end() -> None:
    known = [PlannedRange(plan(f"known-{number}", 5), 0, 0) for number in range(200)]
    tasks = list(decode_tasks(known, CorpusConfig(pages_per_item=PAGES)))
    assert [part.plan.name for task in tasks for part in task] == [part.plan.name for part in known]
    assert len(tasks) < 10 and max(map(len, tasks)) < 100


@given(units=st.lists(st.integers(0, 70), max_size=30), pages=st.integers(1, 20))
def test_tasks_hold_every_range_once_in_order_and_survive_their_journey(units: list[int], pages: int) -> None:
    plans = [plan(f"f{number}", count) for number, count in enumerate(units)]
    ranges = [
        planned_range for each in plans for planned_range in planned_ranges(each, list(work_items(each, (), pages)))
    ]
    tasks = list(decode_tasks(ranges, CorpusConfig(pages_per_item=pages)))
    assert [part for task in tasks for part in task] == ranges
    assert [task_from_json(task_to_json(task)) for task in tasks] == tasks
    for task in tasks:
        assert sum(part.stop - part.start for part in task) <= pages


def test_groups_are_small_for_few_files_and_bounded_for_many() -> None:
    def listed(count: int) -> list[Source]:
        return [Source(Path(f"/f/{n}.txt"), f"file:///f/{n}.txt", f"{n}.txt") for n in range(count)]

    assert [len(group) for group in grouped(listed(3), readers=1)] == [1, 1, 1]
    assert [len(group) for group in grouped(listed(20), readers=1)] == [3] * 6 + [2]
    many = grouped(listed(10_000), readers=2)
    assert max(map(len, many)) == MOST_FILES_OF_A_GROUP
    assert [source for group in many for source in group] == listed(10_000)
