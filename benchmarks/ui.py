"""How late the web interface is: from an event leaving the gateway to its being on screen; and the first paint.

Usage: ``python benchmarks/ui.py``. A real browser and the real app, in front of a gateway that tells a run of twenty
memory nodes and then, at times of its own, thoughts and memories by turns. The gateway notes when it lets an event go,
the page when the frame with that event's words is drawn; both read the same clock.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

# The folder of this script comes first otherwise, and it holds another module of the app's name: this one.
sys.path[0] = str(Path(__file__).parent.parent)

from tests.support.browser import CHROMIUM, app_server, free_port
from tests.support.ui_gateway import ScriptedRun, Stage, scripted_gateway
from tests.support.ui_stories import item, story
from vrag_ray.agent.events import Event, MemorizeEvent, ThinkEvent, stamped

NODES, MARKS = 20, 60
GAP_S = 0.45
SETTLED_S = 5.0
"""Twenty nodes at once are no run that there is: the page may draw them before the first mark."""
GOAL_S, FIRST_PAINT_GOAL_S = 0.4, 3.0
VISITS = 5
_WATCH = """
() => {
  window.seen = {};
  const note = text => {
    for (const mark of text.match(/mark-\\d+-end/g) || [])
      if (!(mark in window.seen)) {
        window.seen[mark] = 0;
        requestAnimationFrame(() => { window.seen[mark] = Date.now() / 1000; });
      }
  };
  new MutationObserver(records => records.forEach(one => note(one.target.textContent || "")))
    .observe(document.body, { childList: true, subtree: true, characterData: true });
}
"""


def marked_events() -> list[Event]:
    """The run of ``NODES`` nodes without its end, then one event for each mark."""
    events = story(NODES)[:-4]
    begun = len(events)
    for number in range(MARKS):
        mark = f" mark-{number}-end"
        step = 1000 + number // 2
        if number % 2:
            page = number % NODES + 1
            events.append(MemorizeEvent(step=step, node_id=f"n{page}", summary=mark, items=(item(page),)))
        else:
            events.append(ThinkEvent(step=step, content=mark))
    return [*events[:begun], *(stamped(event, begun + at, begun + at) for at, event in enumerate(events[begun:]))]


class PacedRun(ScriptedRun):
    """Tells what happened before the marks at once, each mark at its time, and notes when."""

    async def events(self) -> AsyncGenerator[Event, None]:
        before = len(self._events) - MARKS
        for number, event in enumerate(self._events):
            if number == before:
                await asyncio.sleep(SETTLED_S)
            if number >= before:
                await asyncio.sleep(GAP_S)
                self._stage.left[f"mark-{number - before}-end"] = time.time()
            yield event
        await asyncio.sleep(60)


def delays(page: Page, address: str, left: dict[str, float]) -> list[float]:
    page.goto(address)
    box = page.get_by_test_id("stChatInputTextArea")
    box.wait_for()
    page.evaluate(_WATCH)
    box.fill("How many?")
    box.press("Enter")
    page.wait_for_function(f"() => window.seen['mark-{MARKS - 1}-end'] > 0", timeout=(MARKS * GAP_S + 60) * 1000)
    seen: dict[str, float] = page.evaluate("() => window.seen")
    return [seen[mark] - left[mark] for mark in left if seen.get(mark)]


def first_paint(page: Page, address: str) -> float:
    began = time.perf_counter()
    page.goto(address)
    page.get_by_text("What do the documents say?").wait_for()
    return time.perf_counter() - began


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    port = free_port()
    with (
        scripted_gateway(folder, Stage(events=marked_events()), port=port, make_run=PacedRun) as served,
        app_server(f"http://127.0.0.1:{port}", folder / "app.log") as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        paints = [first_paint(browser.new_context().new_page(), address) for _ in range(VISITS)]
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        took = delays(page, address, served.stage.left)
        browser.close()
    late = statistics.quantiles(took, n=20)
    print(f"first paint: {paints[0]:.2f} s at the app's first visit, then {max(paints[1:]):.2f} s at most")
    print(f"  goal {FIRST_PAINT_GOAL_S:g} s; ratio {max(paints) / FIRST_PAINT_GOAL_S:.2f}")
    print(f"{len(took)} of {MARKS} events beside a graph of {NODES + 1} nodes, from the gateway to the screen:")
    median = statistics.median(took)
    print(f"  median {median * 1000:.0f} ms, p95 {late[-1] * 1000:.0f} ms, worst {max(took) * 1000:.0f} ms")
    print(f"  goal p95 {GOAL_S * 1000:.0f} ms; ratio {late[-1] / GOAL_S:.2f}")


if __name__ == "__main__":
    main()
