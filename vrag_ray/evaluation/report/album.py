"""The pictures of pages in a report: each is in the file once, and shown with its boxes wherever it is cited."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from pathlib import Path

from vrag_ray.evaluation.page_shots import PAGES, PICTURE, REASON
from vrag_ray.training.data.examples import Corners

CITED, GOLD = "#b3341e", "#0b5ed7"
NOT_KEPT = "none was kept with this evaluation"


@dataclass(frozen=True, slots=True)
class _Held:
    number: int
    width: int
    height: int
    jpeg: bytes


class Album:
    """Of the evaluation in ``root``. ``shown`` collects what is asked of it; ``symbols`` is what that refers to."""

    def __init__(self, root: Path) -> None:
        self._folder = root / PAGES
        self._held: dict[str, _Held] = {}

    def shown(self, name: str, told: str, cited: list[Corners], gold: list[Corners]) -> str:
        """The picture of that name (see ``shot_name``), described by ``told``; empty where there is none."""
        held = self._held.get(name) or self._read(name)
        if held is None:
            return ""
        boxes = [_box(held, box, GOLD, ' stroke-dasharray="7 5"') for box in gold]
        boxes += [_box(held, box, CITED, "") for box in cited]
        return (
            f'<svg class="shot" viewBox="0 0 {held.width} {held.height}" width="{held.width}" height="{held.height}" '
            f'role="img" aria-label="{escape(told)}"><use href="#page-{held.number}" width="{held.width}" '
            f'height="{held.height}"/>{"".join(boxes)}</svg>'
        )

    def why_not(self, name: str) -> str:
        """Why there is no picture of that name."""
        path = self._folder / f"{name}{REASON}"
        return path.read_text(encoding="utf-8") if path.is_file() else NOT_KEPT

    def symbols(self) -> str:
        """All pictures that were shown so far."""
        if not self._held:
            return ""
        held = "".join(map(_symbol, self._held.values()))
        return f'<svg class="symbols" width="0" height="0" aria-hidden="true">{held}</svg>'

    def _read(self, name: str) -> _Held | None:
        path = self._folder / f"{name}{PICTURE}"
        if not path.is_file():
            return None
        from PIL import Image

        with Image.open(path) as image:
            width, height = image.size
        held = _Held(len(self._held) + 1, width, height, path.read_bytes())
        self._held[name] = held
        return held


def _box(held: _Held, box: Corners, colour: str, more: str) -> str:
    x0, y0, x1, y1 = box[0] * held.width, box[1] * held.height, box[2] * held.width, box[3] * held.height
    return (
        f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" fill="none" '
        f'stroke="{colour}" stroke-width="3"{more}/>'
    )


def _symbol(held: _Held) -> str:
    data = base64.b64encode(held.jpeg).decode()
    return (
        f'<symbol id="page-{held.number}" viewBox="0 0 {held.width} {held.height}"><image width="{held.width}" '
        f'height="{held.height}" href="data:image/jpeg;base64,{data}"/></symbol>'
    )
