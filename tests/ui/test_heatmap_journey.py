"""In a browser, in front of the whole service over pages that are only drawn: found, cited in a box, and tinted."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from PIL import Image

from tests.support.browser import CHROMIUM, app_server, kept_screenshots, needs_browser
from tests.support.planted_spaces import GRID, RGB
from tests.support.ui_journey import SETTLED_MS, SOON_MS, ask, expect, keep, launched, visible, visit
from ui.boxes import OUTLINE
from vrag_ray.config import CorpusConfig, Settings, SpaceConfig
from vrag_ray.ingest import ingest
from vrag_ray.ingest.spaces import embed_spaces
from vrag_ray.serving.local import start_serving

# `test_heatmap.py` can fail for the same reasons in the app, `tests/agent/test_citations.py` in the agent, and
# `tests/index/search/test_space_legs.py` in the index.
pytestmark = [needs_browser, pytest.mark.exhaustive]
SIDE, GAP = 420, 4
RED, GREEN = 9, 10
PAGES = (
    "blue white black yellow white blue yellow black white black blue yellow yellow white black blue",
    "white blue yellow black yellow white black blue black red green white blue yellow white black",
    "yellow black white blue black yellow blue white white blue black yellow blue white yellow black",
)


def mosaic_pdf(path: Path) -> None:
    """A page a mosaic of 4 x 4 tiles, drawn as vectors, without a word."""
    document = pymupdf.open()
    side = SIDE / GRID
    for cells in PAGES:
        page = document.new_page(width=SIDE, height=SIDE)
        page.draw_rect(page.rect, color=(0.8, 0.8, 0.8), fill=(0.8, 0.8, 0.8))
        for number, cell in enumerate(cells.split()):
            x, y = side * (number % GRID), side * (number // GRID)
            colour = tuple(channel / 255 for channel in RGB[cell])
            tile = pymupdf.Rect(x + GAP, y + GAP, x + side - GAP, y + side - GAP)
            page.draw_rect(tile, color=colour, fill=colour)
    document.save(path)


@pytest.fixture(scope="module")
def address(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app in front of the service: a late-interaction leg, and no other that knows anything."""
    root = tmp_path_factory.mktemp("mosaics")
    mosaic_pdf(root / "mosaics.pdf")
    settings = Settings(
        collection=str(root / "collection"),
        # OCR would look for words on every mosaic.
        corpus=CorpusConfig(ocr=False),
        spaces={
            "text": SpaceConfig(model="none"),
            "late": SpaceConfig(model="tests.support.planted_spaces:colours", batch=3),
        },
    )
    ingest([root / "mosaics.pdf"], settings)
    embed_spaces(settings)
    service = start_serving(settings, 0, ready_timeout_s=300)
    try:
        with app_server(service.base_url, root / "app.log") as app:
            yield app
    finally:
        service.stop()


def pixels_of(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def tile(pixels: np.ndarray, number: int) -> np.ndarray:
    """The mean colour of the middle of a tile."""
    side = pixels.shape[0] // GRID
    x, y = side * (number % GRID), side * (number // GRID)
    return pixels[y + side // 3 : y + 2 * side // 3, x + side // 3 : x + 2 * side // 3].reshape(-1, 3).mean(axis=0)


def test_a_page_that_is_only_drawn_is_cited_in_its_box_and_shows_where_the_question_was_seen(address: str):
    with launched(CHROMIUM) as browser, visit(browser, address) as page:
        ask(page, "Where is red beside green?")
        expect(visible(page, "no words could be read there")).to_be_visible(timeout=SOON_MS)
        boxed = page.get_by_alt_text("with a box where the search saw the question")
        expect(boxed).to_be_visible(timeout=SOON_MS)
        whole = pixels_of(page.request.get(str(boxed.evaluate("image => image.src"))).body())
        toggle = page.get_by_label("Show where the question was seen")
        toggle.focus()
        page.keyboard.press("Space")
        tinted = page.get_by_alt_text("tinted where")
        expect(tinted).to_be_visible(timeout=SOON_MS)
        heated = pixels_of(page.request.get(str(tinted.evaluate("image => image.src"))).body())
        keep(page, "heatmap-page")
        folder = kept_screenshots()
        if folder is not None:
            # So high that the field at the bottom covers nothing of the card.
            page.set_viewport_size({"width": 1500, "height": 1800})
            page.wait_for_timeout(SETTLED_MS)
            page.locator("[class*=st-key-card-]").first.screenshot(path=folder / "heatmap.png")
    rows, columns = np.nonzero((abs(whole - OUTLINE) < 24).all(axis=2))
    height, width = whole.shape[:2]
    bounds = (columns.min() / width, rows.min() / height, (columns.max() + 1) / width, (rows.max() + 1) / height)
    # The second and third tile of the third row: the line runs around them.
    assert bounds == pytest.approx((0.25, 0.5, 0.75, 0.75), abs=0.02)
    changed = [float(abs(tile(heated, number) - tile(whole, number)).max()) for number in range(GRID * GRID)]
    assert min(changed[RED], changed[GREEN]) > 40, changed
    assert max(share for number, share in enumerate(changed) if number not in (RED, GREEN)) < 20, changed
