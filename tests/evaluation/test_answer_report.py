"""The report of an evaluation of answers: runs, pages with boxes, and what others printed."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import sync_playwright

from tests.support.browser import CHROMIUM, needs_browser
from tests.support.ui_stories import DOC, citation, story
from vrag_ray.agent.events import AnswerEvent, ErrorEvent, RunStatus, ThinkEvent
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.evaluation.answers import run_file
from vrag_ray.evaluation.folder import EvaluationFolder, Header, Kind, Row
from vrag_ray.evaluation.page_shots import LONGEST_PX, PageShots, shot_name, small_jpeg
from vrag_ray.evaluation.report.page import report_page
from vrag_ray.evaluation.report.published import FIGURES, NOTE, TOGETHER
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.types import PassageKind, VragError
from vrag_ray.views.run_view import view_of

EVIL = "<script>alert(1)</script>"
GOLD = GoldPlace("report.pdf#p2", DOC, page=2, box=(0.5, 0.5, 0.75, 0.75))


def png(width: int = 600, height: int = 800) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(buffer, "PNG")
    return buffer.getvalue()


class Drawer:
    """Draws page 2 and no other."""

    def __init__(self) -> None:
        self.drawn: list[int] = []

    async def __call__(self, doc_id: str, page: int | None, seconds: float | None) -> bytes:
        if page is None:
            return png(1280, 720)
        self.drawn.append(page)
        if page != 2:
            raise VragError(f"page {page} of /srv/secret-folder/report.pdf cannot be drawn: it is torn")
        return png()


def record() -> RunRecord:
    events = list(story(2, answer=f"42 {EVIL} [1]"))
    events.insert(-1, ErrorEvent(step=5, message="cannot open '/srv/secret-folder/model.bin'"))
    last = events[-1]
    assert isinstance(last, AnswerEvent)
    cited = (*last.citations, citation(2, "n1", 3).model_copy(update={"bbox": None, "quote": EVIL}))
    events[-1] = last.model_copy(update={"citations": cited})
    view = view_of(events)
    return RunRecord(
        run_id="r",
        question="How many?",
        agent="vimrag",
        status=RunStatus.ANSWERED,
        answer=last.answer,
        citations=cited,
        graph=view.graph,
        steps=6,
        corrections=1,
        events=tuple(events),
        timings=Timings(),
        usage={},
    )


@pytest.fixture
def folder(tmp_path: Path) -> EvaluationFolder:
    header = Header(
        kind=Kind.ANSWERS, suite="SlideVQA.jsonl", suite_hash="abc", questions=2, subject={}, systems=("vimrag", "vrag")
    )
    made = EvaluationFolder.begin(tmp_path / "e", header)
    shots = PageShots(made.root, Drawer())
    for system in header.systems:
        for uid in ("q0", "q1"):
            run = record()
            asyncio.run(shots.take(run.citations, (GOLD,)))
            path = run_file(made.root, system, uid)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(run.to_json(), encoding="utf-8")
            made.add(
                Row(
                    system=system,
                    uid=uid,
                    question="How many?",
                    measures={"right": 1.0},
                    seconds=0.1,
                    groups={"source": ("vidoseek",)},
                    answer=run.answer,
                    references=("42",),
                    gold_places=(GOLD,),
                )
            )
    return made


def test_a_page_is_in_the_file_once_and_shown_wherever_it_is_cited(folder: EvaluationFolder) -> None:
    page = report_page(EvaluationFolder.open(folder.root))
    assert page.count("<symbol ") == page.count("data:image/jpeg;base64,") == 1
    assert page.count('<use href="#page-1"') == 4
    held = (480, 640)
    assert f'viewBox="0 0 {held[0]} {held[1]}"' in page
    # Cited at (0.1, 0.2, 0.4, 0.3), right at (0.5, 0.5, 0.75, 0.75).
    assert re.search(r'<rect x="48.0" y="128.0" width="144.0" height="64.0"[^>]* stroke-width="3"/>', page)
    assert re.search(r'<rect x="240.0" y="320.0" width="120.0" height="160.0"[^>]* stroke-dasharray="7 5"/>', page)
    assert "report, page 2: cited by [1] in a box; the answer stands here in a dashed box" in page


def test_a_page_that_cannot_be_drawn_is_reported(folder: EvaluationFolder) -> None:
    page = report_page(folder)
    assert "No picture of report, page 3: cited by [2] as a whole: page 3 of report.pdf cannot be drawn" in page
    (folder.root / "pages" / f"{shot_name(DOC, 2, None)}.jpg").unlink()
    assert "the answer stands here in a dashed box: none was kept with this evaluation" in report_page(folder)


def test_runs_are_shown_with_memory_citations_and_steps_and_nothing_of_them_is_markup(folder: EvaluationFolder) -> None:
    page = report_page(folder)
    assert page.count('aria-label="Memory graph: the question, n1, search from root; n2, search from n1;') == 4
    for drawn in re.findall(r'<svg xmlns="http://www.w3.org/2000/svg".*?</svg>', page, re.DOTALL):
        root = ElementTree.fromstring(drawn)
        assert {element.get("data-node") for element in root.iter() if element.get("data-node")} == {
            "root",
            "n1",
            "n2",
            "answer",
        }
    assert "[1] report, page 2, box 0.10 0.20 0.40 0.30: <q>a quote</q>" in page
    assert "search    query 1" in page and "think     I should search." in page
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert "secret-folder" not in page and "cannot open &#39;model.bin&#39;" in page
    hrefs = re.findall(r'href="([^"]{,24})', page)
    assert hrefs and all(href.startswith(("#", "data:image/jpeg;base64,")) for href in hrefs)
    assert not re.search(r"<link|<img|src=|url\(|@import", page)


def test_a_missing_or_truncated_run_is_reported(folder: EvaluationFolder) -> None:
    run_file(folder.root, "vrag", "q0").unlink()
    run_file(folder.root, "vrag", "q1").write_text("{")
    page = report_page(folder)
    assert "Its run is not in the folder." in page and "Its run cannot be shown: not a run record" in page


def test_a_clip_is_shown_as_one_frame_with_its_seconds(folder: EvaluationFolder) -> None:
    clip = {"page": None, "t_start": 10.0, "t_end": 30.0, "kind": PassageKind.CLIP, "bbox": None}
    run = record().model_copy(update={"citations": (citation(1, "n1").model_copy(update=clip),)})
    run_file(folder.root, "vrag", "q0").write_text(run.to_json())
    asyncio.run(PageShots(folder.root, Drawer()).take(run.citations, ()))
    assert "report, the frame at 10.0 s: cited by [1], 10.0-30.0 s" in report_page(folder)


def test_very_long_runs_are_cut(folder: EvaluationFolder) -> None:
    run = record()
    events = (*run.events[:-1], *(ErrorEvent(step=n, message="x" * 900) for n in range(7, 300)))
    thought = ThinkEvent(step=300, content="y")
    long = run.model_copy(update={"events": (*events, thought, thought, run.events[-1])})
    run_file(folder.root, "vrag", "q0").write_text(long.to_json())
    page = report_page(folder)
    assert "lines more" in page and "x" * 321 not in page


def test_figures_of_known_benchmarks_stand_beside_it_as_printed(folder: EvaluationFolder, tmp_path: Path) -> None:
    page = report_page(folder)
    assert NOTE in page and "<h3>SlideVQA</h3>" in page and "<h3>ViDoSeek</h3>" in page
    assert f"<h3>{TOGETHER}</h3>" in page and "<h3>MMLongBench</h3>" not in page
    assert "<td>78.82</td>" in page and "arXiv 2505.22019, Table 1" in page
    own = folder.header.model_copy(update={"suite": "mine", "systems": ()})
    assert "Published figures" not in report_page(EvaluationFolder(tmp_path, own, {}))
    searches = folder.header.model_copy(update={"kind": Kind.RETRIEVAL})
    assert "Published figures" not in report_page(EvaluationFolder(tmp_path, searches, {}))
    assert len({(figure.benchmark, figure.column, figure.system) for figure in FIGURES}) == len(FIGURES)


def test_each_page_is_drawn_once_and_small(tmp_path: Path) -> None:
    drawer = Drawer()
    shots = PageShots(tmp_path, drawer)
    clip = GoldPlace("talk.mp4#t10-20", DOC, seconds=(10.0, 20.0))

    async def taken() -> None:
        both = (citation(1, "n1", 2), citation(2, "n1", 2))
        await asyncio.gather(shots.take(both, (GOLD, clip)), shots.take(both[:1], ()))
        await PageShots(tmp_path, drawer).take((), (GOLD,))

    asyncio.run(taken())
    assert drawer.drawn == [2]
    names = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert names == [f"{DOC}-p2.jpg", f"{DOC}-t15.0.jpg"]
    with Image.open(tmp_path / "pages" / names[1]) as frame:
        assert (frame.format, frame.size) == ("JPEG", (LONGEST_PX, 360))


@pytest.mark.parametrize("doc_id", ["../../etc", "a/b", "", "x" * 200])
def test_no_picture_is_named_by_an_id_that_is_a_path(doc_id: str) -> None:
    assert shot_name(doc_id, 1, None) == ""


def test_plain_text_has_no_picture() -> None:
    text = citation(1, "n1").model_copy(update={"page": None, "kind": PassageKind.TEXT})
    assert shot_name(text.doc_id, text.page, text.t_start) == ""
    assert len(small_jpeg(png())) < 20_000


def test_a_reply_of_a_service_that_is_no_picture_is_reported() -> None:
    with pytest.raises(VragError, match="no picture"):
        small_jpeg(b"<html>")


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_everyone_can_read_it_at_every_width(tmp_path: Path, folder: EvaluationFolder, width: int, scheme: str) -> None:
    path = folder.root / "report.html"
    path.write_text(report_page(folder), encoding="utf-8")
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=CHROMIUM) as browser:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        urls: list[str] = []
        page.on("request", lambda request: urls.append(request.url))
        page.goto(path.as_uri())
        for details in page.locator("details").all():
            details.locator("summary").click()
        assert Axe().run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert [url for url in urls if not url.startswith("data:")] == [path.as_uri()]
