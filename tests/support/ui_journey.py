"""What every journey through the web interface does: visit, ask, look, keep a picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.support.browser import kept_screenshots
from tests.support.patience import HANGS_AFTER_S

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
SOON_MS = HANGS_AFTER_S * 1000
TALLEST, SETTLED_MS = 1800, 500
"""Of a screenshot that is stored: pixels, and the time that pictures get to come in."""


@contextmanager
def launched(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


@contextmanager
def visit(browser: Browser, address: str, size: dict[str, int] = WIDE, **options: str) -> Iterator[Page]:
    """A page that may send requests to the app alone."""
    context = browser.new_context(viewport=size, **options)
    page = context.new_page()
    page.set_default_timeout(SOON_MS)
    elsewhere: list[str] = []
    page.on("request", lambda request: elsewhere.append(request.url) if _foreign(request.url, address) else None)
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(address)
    try:
        yield page
    finally:
        context.close()
    assert not elsewhere, f"fetched from elsewhere: {elsewhere}"
    assert not broken, f"faults of the page: {broken}"


def _foreign(url: str, address: str) -> bool:
    app = urlsplit(address)
    return not url.startswith((f"{app.scheme}://{app.netloc}/", f"ws://{app.netloc}/", "data:", "blob:", "about:"))


def ask(page: Page, question: str) -> None:
    box = page.get_by_test_id("stChatInputTextArea")
    expect(box).to_be_enabled(timeout=SOON_MS)
    box.fill(question)
    box.press("Enter")


def visible(page: Page, text: str) -> Locator:
    """The first place where ``text`` can be seen: closed blocks hold it too."""
    return page.get_by_text(text).locator("visible=true").first


def picture_of_graph(page: Page, words: str) -> None:
    expect(page.get_by_alt_text(re.compile(rf"Memory graph: .*{words}")).first).to_be_visible(timeout=SOON_MS)


def keep(page: Page, name: str) -> None:
    folder = kept_screenshots()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        before = page.viewport_size or WIDE
        # The page scrolls within itself: only a higher window shows more of it.
        inner = page.evaluate("Math.max(...[...document.querySelectorAll('*')].map(one => one.scrollHeight))")
        page.set_viewport_size({"width": before["width"], "height": min(TALLEST, max(before["height"], inner))})
        page.wait_for_timeout(SETTLED_MS)
        page.screenshot(path=folder / f"{name}.png")
        page.set_viewport_size(before)


def alternatives(page: Page) -> list[str | None]:
    """What stands for each picture where it cannot be seen."""
    return [image.get_attribute("alt") for image in page.locator("img").all()]


__all__ = [
    "NARROW",
    "SOON_MS",
    "WIDE",
    "Browser",
    "alternatives",
    "ask",
    "expect",
    "keep",
    "launched",
    "picture_of_graph",
    "visible",
    "visit",
]
