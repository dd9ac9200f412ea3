"""Journeys through the web interface in a real browser, in front of a gateway whose runs are scripted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.browser import CHROMIUM, app_server, free_port, needs_browser
from tests.support.ui_gateway import ServedGateway, Stage, scripted_gateway
from tests.support.ui_journey import (
    NARROW,
    SOON_MS,
    Browser,
    alternatives,
    ask,
    expect,
    keep,
    launched,
    picture_of_graph,
    visit,
)
from tests.support.ui_stories import story

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched(CHROMIUM) as running:
        yield running


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The app, in front of a port at which each test serves its own gateway."""
    port = free_port()
    with app_server(f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("ui") / "app.log") as address:
        yield address, port


@pytest.fixture
def served(tmp_path: Path, address: tuple[str, int]) -> Iterator[ServedGateway]:
    with scripted_gateway(tmp_path, Stage(events=story(3)), port=address[1]) as running:
        yield running


def test_a_question_is_watched_while_it_is_answered(browser: Browser, address: tuple[str, int], served: ServedGateway):
    served.stage.pause = 14
    with visit(browser, address[0]) as page:
        ask(page, "How many?")
        expect(page.get_by_text("Search: query 1").first).to_be_visible(timeout=SOON_MS)
        expect(page.get_by_alt_text("Thumbnail of report, page 1")).to_be_visible(timeout=SOON_MS)
        picture_of_graph(page, "n2, search from n1")
        expect(page.get_by_role("button", name="Stop this run")).to_be_visible()
        expect(page.get_by_text("Sources")).to_have_count(0)
        keep(page, "watch")
        served.stage.go.set()
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
        picture_of_graph(page, "answer from n3")
        expect(page.get_by_role("button", name="Stop this run")).to_have_count(0)
        assert all(alternatives(page))


def test_a_run_is_stopped_in_mid_stream(browser: Browser, address: tuple[str, int], served: ServedGateway):
    served.stage.pause = 9
    with visit(browser, address[0]) as page:
        ask(page, "How many?")
        expect(page.get_by_text("Search: query 1").first).to_be_visible(timeout=SOON_MS)
        page.get_by_role("button", name="Stop this run").click()
        expect(page.get_by_role("alert").get_by_text("the run was cancelled")).to_be_visible(timeout=SOON_MS)
        expect(page.get_by_role("button", name="Retry")).to_be_visible()
        keep(page, "stopped")
    assert served.backend.runs.summary(str(served.backend.started[0].run_id)).status == "cancelled"


def test_a_reload_shows_the_same_run_and_so_does_its_address(
    browser: Browser, address: tuple[str, int], served: ServedGateway
):
    with visit(browser, address[0]) as page:
        ask(page, "How many?")
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
        shared = page.url
        page.reload()
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
    with visit(browser, shared) as page:
        expect(page.get_by_text("How many?").first).to_be_visible(timeout=SOON_MS)
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
    assert len(served.backend.started) == 1


@pytest.mark.exhaustive
def test_the_graph_is_replayed_with_the_keyboard(browser: Browser, address: tuple[str, int], served: ServedGateway):
    with visit(browser, address[0]) as page:
        ask(page, "How many?")
        picture_of_graph(page, "answer from n3")
        slider = page.get_by_role("slider", name="Replay").or_(
            page.locator('[data-testid="stSlider"] [role=slider]').last
        )
        slider.first.focus()
        page.keyboard.press("Home")
        picture_of_graph(page, "nothing yet; 0 pictures kept")
        page.keyboard.press("End")
        picture_of_graph(page, "answer from n3")
        page.get_by_test_id("stButtonGroup").get_by_text("n2", exact=True).click()
        expect(page.get_by_text("Learnt: learnt 2")).to_be_visible(timeout=SOON_MS)
        expect(page.get_by_alt_text("Remembered: report, page 2")).to_be_visible(timeout=SOON_MS)
        keep(page, "graph")


def test_a_lost_gateway_is_reported_and_comes_back_without_a_reload(
    browser: Browser, address: tuple[str, int], tmp_path: Path
):
    with ExitStack() as up:
        up.enter_context(scripted_gateway(tmp_path, Stage(events=story(2)), port=address[1]))
        with visit(browser, address[0]) as page:
            ask(page, "How many?")
            expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
            up.close()
            expect(page.get_by_text("No server answers at")).to_be_visible(timeout=SOON_MS)
            expect(page.get_by_text("Traceback")).to_have_count(0)
            keep(page, "gateway-down")
            with scripted_gateway(tmp_path, Stage(events=story(2)), port=address[1]):
                expect(page.get_by_text("No server answers at")).to_have_count(0, timeout=SOON_MS)
                expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)


def test_a_gateway_that_dies_in_mid_run_loses_no_question(browser: Browser, address: tuple[str, int], tmp_path: Path):
    with ExitStack() as up:
        up.enter_context(scripted_gateway(tmp_path / "before", Stage(events=story(3), pause=9), port=address[1]))
        with visit(browser, address[0]) as page:
            ask(page, "How many?")
            expect(page.get_by_text("Search: query 1").first).to_be_visible(timeout=SOON_MS)
            up.close()
            expect(page.get_by_text("No server answers at")).to_be_visible(timeout=SOON_MS)
            expect(page.get_by_text("Traceback")).to_have_count(0)
            # Another one in its place, which knows nothing of that run.
            with scripted_gateway(tmp_path / "after", Stage(events=story(3)), port=address[1]):
                expect(page.get_by_text("The run was lost from sight")).to_be_visible(timeout=SOON_MS)
                keep(page, "gateway-died")
                page.get_by_role("button", name="Ask again").click()
                expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
                expect(page.get_by_text("How many?").first).to_be_visible()


def test_words_of_documents_and_models_stay_words(browser: Browser, address: tuple[str, int], tmp_path: Path):
    evil = '<script>document.title="owned"</script> ![x](http://203.0.113.1/p.png) <img src=x onerror=alert(1)>'
    events = story(2, title=evil, answer=f"**Bold** {evil} [1]")
    with scripted_gateway(tmp_path, Stage(events=events), port=address[1]), visit(browser, address[0]) as page:
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        ask(page, evil)
        expect(page.get_by_text("Sources", exact=True)).to_be_visible(timeout=SOON_MS)
        expect(page.locator("strong", has_text="Bold")).to_be_visible()
        assert page.title() != "owned"
        assert dialogs == []
        assert page.locator("[src*='203.0.113.1'], [href*='203.0.113.1'], img[src='x']").count() == 0
        expect(page.get_by_text('<script>document.title="owned"</script>').first).to_be_visible()
        keep(page, "inert")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.exhaustive)])
def test_everything_fits_a_phone(browser: Browser, address: tuple[str, int], served: ServedGateway, scheme: str):
    with visit(browser, address[0], NARROW, color_scheme=scheme) as page:
        ask(page, "How many?")
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
        picture_of_graph(page, "answer from n3")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        edges = "[...document.querySelectorAll('img')].map(image => image.getBoundingClientRect().right)"
        assert max(page.evaluate(edges)) <= NARROW["width"] + 1
        keep(page, f"phone-{scheme}")


def test_the_other_pages_open_and_a_past_run_is_opened_from_there(
    browser: Browser, address: tuple[str, int], served: ServedGateway
):
    with visit(browser, address[0]) as page:
        ask(page, "How many?")
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
        page.get_by_role("link", name="Runs").click()
        page.get_by_role("button", name="Open this run").click()
        expect(page.get_by_text("Sources")).to_be_visible(timeout=SOON_MS)
        page.get_by_role("link", name="Library").click()
        page.get_by_role("button", name="Delete").click()
        expect(page.get_by_text("cannot be undone")).to_be_visible(timeout=SOON_MS)
        keep(page, "delete")
        page.get_by_role("button", name="Delete it").click()
        expect(page.get_by_text("cannot be undone")).to_have_count(0, timeout=SOON_MS)
