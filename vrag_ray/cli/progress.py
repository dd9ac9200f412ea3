"""Ingest as it goes: bars on a terminal, a line every few seconds elsewhere. Always on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import TaskID

    from vrag_ray.ingest import Progress

LINE_EVERY_S = 5.0


@contextmanager
def shown_progress() -> Iterator[Callable[[Progress], None]]:
    """A callback for ``ingest`` that shows its reports."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:9}"),
        BarColumn(bar_width=32),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[eta]}"),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show(progress: Progress) -> None:
            for stage in progress.stages:
                # Vector spaces come after the words, each with stages of its own; committing begins anew.
                if stage.name not in tasks:
                    tasks[stage.name] = bars.add_task(stage.name, total=0, unit=_unit(progress), rate="", eta="")
            _advance(bars.update, tasks, progress)

        yield show


def _advance(update: Callable[..., None], tasks: dict[str, TaskID], progress: Progress) -> None:
    total = max(progress.total_pages, progress.done_pages)
    for stage in progress.stages:
        eta = eta_text(progress.eta_s) if stage.name == "commit" else ""
        rate = f"{stage.pages_per_s:.1f} {_unit(progress)}/s" if stage.pages else ""
        update(tasks[stage.name], completed=stage.pages, total=total, unit=_unit(progress), rate=rate, eta=eta)


def _unit(progress: Progress) -> str:
    return "passages" if progress.spaces else "pages"


class _Lines:
    def __init__(self) -> None:
        self._last = time.monotonic()

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < LINE_EVERY_S or not progress.total_pages:
            return
        self._last = now
        rates = ", ".join(f"{stage.name} {stage.pages_per_s:.1f}/s" for stage in progress.stages if stage.pages)
        shown = f" ({rates})" if rates else ""
        typer.echo(
            f"{progress.done_pages} of {progress.total_pages} {_unit(progress)} committed{shown} "
            f"{eta_text(progress.eta_s)}",
            err=True,
        )


def eta_text(eta_s: float | None) -> str:
    if eta_s is None:
        return ""
    minutes, seconds = divmod(round(eta_s), 60)
    return f"about {minutes}:{seconds:02d} left"
