"""The report of an evaluation: everything is in it, nothing is loaded, and everyone can read it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from tests.support.browser import CHROMIUM, needs_browser
from vrag_ray.evaluation.folder import EvaluationFolder, Header, Kind, Row
from vrag_ray.evaluation.report.charts import MOST_RANKS, success_by_rank
from vrag_ray.evaluation.report.page import report_page

SYSTEMS = ("hybrid", "lexical")


@pytest.fixture
def folder(tmp_path: Path) -> EvaluationFolder:
    header = Header(
        kind=Kind.RETRIEVAL,
        suite="birds <of> the north",
        suite_hash="abc",
        questions=2,
        subject={"embedder": "planted/1"},
        systems=SYSTEMS,
        environment={"command": "vrag evaluate outline /home/somebody/secret-folder/birds.pdf"},
    )
    made = EvaluationFolder.begin(tmp_path / "e", header)
    for system in SYSTEMS:
        for number, question in enumerate(("where nests the <script>alert(1)</script> gull?", "what does it eat?")):
            pages = ("birds.pdf#p9", "birds.pdf#p2") if system == "hybrid" else ("birds.pdf#p9",)
            made.add(
                Row(
                    system=system,
                    uid=f"q{number}",
                    question=question,
                    measures={"RR": 0.5 if system == "hybrid" else 0.0},
                    seconds=0.01,
                    groups={"wording": ("title",)},
                    found=pages,
                    gold=("birds.pdf#p2",),
                )
            )
    return made


def test_tables_questions_and_facts_are_in_it_and_nothing_is_loaded(folder: EvaluationFolder) -> None:
    page = report_page(folder)
    assert '<td class="best">0.500</td>' in page and "hybrid, wording: title" in page
    assert "planted/1" in page and "birds &lt;of&gt; the north" in page
    assert page.count("<details>") == 2
    assert "hybrid at 2 · lexical not found" in page
    assert not re.search(r"<script|<link|<img|src=|href=|url\(|@import", page)
    # It is sent to others.
    assert "secret-folder" not in page and "vrag evaluate outline birds.pdf" in page


def test_an_evaluation_that_is_not_whole_says_so(folder: EvaluationFolder) -> None:
    assert "Incomplete" not in report_page(folder)
    part = EvaluationFolder(folder.root, folder.header, {row.key: row for row in folder.rows[:3]})
    assert "Incomplete: 3 of 4 rows are here." in report_page(part)


def test_the_curve_counts_the_first_right_result(folder: EvaluationFolder) -> None:
    hybrid = [row for row in folder.rows if row.system == "hybrid"]
    assert success_by_rank(hybrid) == [0.0, *[1.0] * (MOST_RANKS - 1)]


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_everyone_can_read_it_at_every_width(folder: EvaluationFolder, width: int, scheme: str) -> None:
    path = folder.root / "report.html"
    path.write_text(report_page(folder), encoding="utf-8")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM) as browser:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(path.as_uri())
        page.locator("details").first.click()
        assert Axe().run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
