"""Every page of the web interface, in both palettes, in front of axe: contrast, names, text for pictures; and Tab."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.support.browser import CHROMIUM, app_server, needs_browser
from tests.support.pictures import grey_png
from tests.support.ui_gateway import ServedGateway, Stage, scripted_gateway
from tests.support.ui_journey import SOON_MS, Browser, ask, expect, keep, launched, picture_of_graph, visit
from tests.support.ui_stories import story

pytestmark = needs_browser
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
MOST_TABS = 80
HEAT = "Show where the question was seen"
SHIP = {"name": "ship.png", "mimeType": "image/png", "buffer": grey_png(90)}
FOCUSED = """(async () => {
    // Until the ring is drawn.
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    const one = document.activeElement, style = getComputedStyle(one);
    const marked = style.outlineStyle !== "none" || style.boxShadow !== "none";
    return [one === document.body ? "" : one.ariaLabel || one.innerText || "", marked];
})()"""
"""What has the focus: its name, and whether an outline or a shadow shows that."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched(CHROMIUM) as running:
        yield running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedGateway]:
    with scripted_gateway(tmp_path_factory.mktemp("gateway"), Stage(events=story(3))) as running:
        yield running


@pytest.fixture(scope="module")
def address(served: ServedGateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with app_server(served.url, tmp_path_factory.mktemp("ui") / "app.log") as address:
        yield address


SETTLED = """() => document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-stale=true]')
    && document.getAnimations().every(one => one.playState !== 'running')"""


def faults(page: Page) -> list[str]:
    """What axe finds wrong, a line each: the rule, the element, why. What is being drawn anew is pale: that is over."""
    page.wait_for_function(SETTLED, timeout=SOON_MS)
    violations = Axe().run(page, options={"runOnly": RULES, "resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}" for rule in violations for node in rule["nodes"]
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_and_worked_by_everybody(browser: Browser, address: str, scheme: str):
    problems: list[str] = []
    with visit(browser, address, color_scheme=scheme) as page:
        ask(page, "How many?")
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
        picture_of_graph(page, "answer from n3")
        page.get_by_text(HEAT).click()
        expect(page.get_by_text("Nothing tells where the question was seen")).to_be_visible(timeout=SOON_MS)
        page.get_by_role("button", name="Add a picture").click()
        page.locator("input[type=file]").set_input_files(SHIP)
        expect(page.get_by_alt_text("The picture to ask with: ship.png")).to_be_visible(timeout=SOON_MS)
        problems += faults(page)
        page.keyboard.press("Escape")
        keep(page, f"asked-picture-{scheme}")
        page.get_by_role("link", name="Library").click()
        expect(page.get_by_role("button", name="Delete")).to_be_visible(timeout=SOON_MS)
        problems += faults(page)
        page.get_by_role("link", name="Runs").click()
        expect(page.get_by_role("button", name="Open this run").first).to_be_visible(timeout=SOON_MS)
        problems += faults(page)
    assert problems == []


def test_the_keyboard_alone_reaches_the_question_and_every_button_of_the_answer(browser: Browser, address: str):
    with visit(browser, address) as page:
        ask(page, "How many?")
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
        # While it is drawn anew, the ring of what has the focus fades in.
        page.wait_for_function(SETTLED, timeout=SOON_MS)
        shown: dict[str, bool] = {}
        for _ in range(MOST_TABS):
            page.keyboard.press("Tab")
            name, visible = page.evaluate(FOCUSED)
            # An icon's name is a line of its own.
            shown |= dict.fromkeys(name.split("\n"), visible)
        assert {"Library", "Runs"} <= set(shown)
        for name in ("Retry", "Edit", HEAT, "Add a picture"):
            assert shown[name], f"nothing shows that {name} has the focus"
