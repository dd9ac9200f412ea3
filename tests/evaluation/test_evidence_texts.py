"""Where on its page a text of a benchmark is found."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest

from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.evaluation.evidence_texts import box_of_text, holds_text, located, location_of_gold
from vrag_ray.index.storage.collection import Collection
from vrag_ray.ingest import ingest
from vrag_ray.questions.examples import PixelBox
from vrag_ray.questions.gold_places import GoldPlace, gold_places, iou
from vrag_ray.questions.published_sets import load_questions
from vrag_ray.questions.rows import DataError
from vrag_ray.types import Box, Word


def row(page: int = 1) -> str:
    """As FinanceBench publishes one: pages count from 0."""
    evidence = {
        "evidence_text": "Fees\n4,210\n3,980\nRent\n120\n95",
        "doc_name": "HARBOUR_2023",
        "evidence_page_num": page,
        "evidence_text_full_page": "...",
    }
    whole = {
        "financebench_id": "f1",
        "company": "Harbour",
        "doc_name": "HARBOUR_2023",
        "question": "What were fees?",
        "answer": 4210,
        "question_type": "metrics-generated",
        "question_reasoning": None,
        "evidence": [evidence],
    }
    return json.dumps(whole) + "\n"


def report(path: Path) -> None:
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 100), "A page about ships and nothing else")
        page = document.new_page()
        page.insert_text((72, 80), "Some words come before the table of the year")
        for line, cells in enumerate((("Fees", "4,210", "3,980"), ("Rent", "120", "95"))):
            for column, cell in enumerate(cells):
                page.insert_text((100 + 150 * column, 300 + 20 * line), cell)
        page.insert_text((72, 700), "and some come after it")
        document.save(path)


def test_a_published_row_becomes_a_gold_box_around_its_words(tmp_path: Path) -> None:
    report(tmp_path / "HARBOUR_2023.pdf")
    questions = tmp_path / "financebench_open_source.jsonl"
    questions.write_text(row(), encoding="utf-8")
    loaded = load_questions(questions)
    [example] = loaded.examples
    assert loaded.licence.startswith("FinanceBench: CC BY-NC")
    assert (example.uid, example.answers, example.gold[0].page) == ("f1", ("4210",), 2)
    settings = Settings(collection=str(tmp_path / "c"), spaces={"text": SpaceConfig(model="none")})
    ingest([tmp_path / "HARBOUR_2023.pdf"], settings)
    gold = gold_places(loaded.examples, Collection.open(tmp_path / "c").documents())
    [place] = asyncio.run(located(gold, settings))["f1"]
    assert place.box is not None
    assert location_of_gold({"f1": [place]}, here=True) == {"gold texts": "1 of 1 located on their pages"}
    assert location_of_gold(gold, here=False) == {"gold texts": "not located: a service at --url is evaluated"}
    assert location_of_gold({"f1": [replace(place, text="")]}, here=True) == {}
    width, height = pymupdf.paper_size("a4")
    assert iou(place.box, (100 / width, 290 / height, 430 / width, 324 / height)) > 0.7


def test_words_in_another_order_are_found_and_too_few_are_not() -> None:
    texts = ["before", "it", "Fees", "4,210", "Rent", "120", "after", "it", "all"]
    words = [Word(text, Box(0.1 * n, 0.5, 0.1 * n + 0.05, 0.52)) for n, text in enumerate(texts)]
    box = box_of_text(words, "Fees Rent 4,210 120")
    assert box is not None
    assert box.as_tuple() == pytest.approx((0.2, 0.5, 0.55, 0.52))
    assert box_of_text(words, "Fees rent of other harbours") is None
    assert box_of_text(words, "...") is None and box_of_text([], "Fees") is None


def test_words_without_spaces_are_compared_by_their_characters() -> None:
    first, second = "\u5cb8\u7535\u4ef7\u683c", "\u4e3a120\u5143"
    words = [Word(first, Box(0.1, 0.5, 0.5, 0.52)), Word(second, Box(0.1, 0.53, 0.3, 0.55))]
    # A published text has no line break where the page has one.
    text = first + second
    box = box_of_text(words, text)
    assert box is not None and box.as_tuple() == pytest.approx((0.1, 0.5, 0.5, 0.55))
    assert holds_text(words, (0.0, 0.4, 0.6, 0.6), text)
    # Of seven words a box around the first line holds four.
    assert not holds_text(words, (0.0, 0.4, 0.6, 0.525), text)


def test_a_service_places_no_pixels() -> None:
    place = GoldPlace("r.pdf#p1", "r", page=1, pixels=PixelBox(corners=(1, 2, 3, 4), dpi=144))
    assert location_of_gold({"q": [place]}, here=False) == {
        "gold boxes": "in pixels, not placed on their pages: a service at --url is evaluated"
    }


def test_a_row_that_is_wrong_is_named(tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(row(page=-1), encoding="utf-8")
    with pytest.raises(DataError, match=r"evidence_page_num|evidence\.0"):
        load_questions(file)
