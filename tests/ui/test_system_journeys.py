"""Journeys through the web interface in a real browser, in front of the whole service over the demo corpus."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from PIL import Image

from tests.support import material
from tests.support.browser import CHROMIUM, app_server, needs_browser
from tests.support.ui_journey import SOON_MS, ask, expect, keep, launched, picture_of_graph, visible, visit
from ui.boxes import OUTLINE
from ui.options import EXAMPLES
from vrag_ray.config import Settings
from vrag_ray.samples.demo.corpus import REPORT, make_corpus
from vrag_ray.serving.local import start_here

pytestmark = needs_browser


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder)
    return folder


@pytest.fixture(scope="module")
def address(demo_collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app in front of the service, over a copy of the demo collection: journeys add to it and take from it."""
    root = tmp_path_factory.mktemp("system")
    settings = Settings.model_validate({"collection": str(root / "collection"), "serving": {"refresh_s": 0.5}})
    shutil.copytree(demo_collection, settings.collection)
    service = start_here(settings, 0)
    try:
        with app_server(service.base_url, root / "app.log") as app:
            yield app
    finally:
        service.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with launched(CHROMIUM) as running:
        yield running


def bounds_of_outline(png: bytes) -> tuple[float, float, float, float]:
    """The box that is drawn on a page, in page fractions."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    rows, columns = np.nonzero((abs(pixels - OUTLINE) < 24).all(axis=2))
    height, width = pixels.shape[:2]
    return columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height


def test_from_the_first_page_by_an_example_to_the_box_around_the_cited_words(browser, address: str, corpus: Path):
    with visit(browser, address) as page:
        expect(page.get_by_text("What do the documents say?")).to_be_visible(timeout=SOON_MS)
        keep(page, "first-start")
        page.get_by_role("button", name=EXAMPLES[0]).click()
        expect(visible(page, "1,946")).to_be_visible(timeout=SOON_MS)
        # The number stands in the steps already: the page is drawn anew once the run has ended.
        expect(page.get_by_text("Answered without a language model")).to_be_visible(timeout=SOON_MS)
        picture_of_graph(page, "answer from q1")
        whole = page.get_by_alt_text("with a box around what is cited")
        expect(whole).to_be_visible(timeout=SOON_MS)
        expect(page.get_by_alt_text("Closer look at what is cited")).to_be_visible(timeout=SOON_MS)
        png = page.request.get(str(whole.evaluate("image => image.src"))).body()
        keep(page, "answer")
        sentence = page.locator(".vrag-sentence").first
        source = sentence.get_by_role("tooltip")
        expect(source).to_be_hidden()
        sentence.hover()
        expect(source.get_by_alt_text("Cited here")).to_be_visible()
        keep(page, "sentence")
        page.mouse.move(0, 0)
        expect(source).to_be_hidden()
        sentence.focus()
        expect(source).to_be_visible()
    document = pymupdf.open(corpus / REPORT)
    row = [word for word in document[3].get_text("words") if word[4] in ("Cruise", "1,946")]
    cruise = next(
        word
        for word in row
        if word[4] == "Cruise" and any(abs(word[1] - other[1]) < 2 for other in row if other[4] == "1,946")
    )
    value = next(word for word in row if word[4] == "1,946")
    width, height = document[3].rect.width, document[3].rect.height
    x0, y0, x1, y1 = bounds_of_outline(png)
    assert x0 <= cruise[0] / width and x1 >= value[2] / width
    assert y0 <= cruise[1] / height + 0.005 and y1 >= value[3] / height - 0.005
    assert y1 - y0 < 6 * (value[3] - value[1]) / height


def test_a_video_source_plays_from_the_cited_moment(browser, address: str):
    with visit(browser, address) as page:
        ask(page, EXAMPLES[2])
        expect(visible(page, "16:20")).to_be_visible(timeout=SOON_MS)
        video = page.locator("video")
        expect(video).to_be_visible(timeout=SOON_MS)
        page.wait_for_function("() => document.querySelector('video').readyState >= 1", timeout=SOON_MS)
        assert float(video.evaluate("video => video.currentTime")) > 1.0
        keep(page, "video")


def test_an_upload_lists_a_good_and_a_broken_file_separately(browser, address: str):
    with visit(browser, f"{address}/library") as page:
        page.get_by_role("button", name="Add to the library").click()
        expect(page.get_by_text("Choose at least one file first.")).to_be_visible(timeout=SOON_MS)
        files = page.locator("input[type=file]")
        files.set_input_files(
            [
                {"name": "harbour.pdf", "mimeType": "application/pdf", "buffer": material.pdf()},
                {"name": "torn.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7 torn"},
            ]
        )
        # From here on the button waits for the files; the page takes them a moment after the browser has them.
        expect(page.get_by_role("button", name="Remove torn.pdf")).to_be_visible(timeout=SOON_MS)
        page.get_by_role("button", name="Add to the library").click()
        expect(page.get_by_text("1 of 2 searchable")).to_be_visible(timeout=SOON_MS)
        expect(visible(page, "torn.pdf:")).to_be_visible()
        expect(visible(page, "not readable")).to_be_visible(timeout=SOON_MS)
        keep(page, "library")
        page.get_by_role("link", name="Ask").click()
        ask(page, "What did dredging the northern basin cost?")
        expect(visible(page, "4.7 million euros")).to_be_visible(timeout=SOON_MS)
