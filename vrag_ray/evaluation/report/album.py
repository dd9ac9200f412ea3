"""The pictures of pages in a report: each is in the file once, and shown with its boxes wherever it is cited."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.evaluation.page_shots import PAGES, PICTURE, REASON
from vrag_ray.questions.examples import Corners

NOT_STORED = "none was kept with this evaluation"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in the file; sizes in pixels."""

    number: int
    width: int
    height: int
    jpeg: bytes

    @property
    def base64(self) -> str:
        return base64.b64encode(self.jpeg).decode()


@dataclass(frozen=True, slots=True)
class ShownBox:
    """In pixels of the picture, from its top left corner. ``cited``: by the run; else the answer stands there."""

    x: float
    y: float
    width: float
    height: float
    cited: bool


@dataclass(frozen=True, slots=True)
class Shot:
    """One use of the picture ``number``, with the boxes on it."""

    number: int
    width: int
    height: int
    boxes: tuple[ShownBox, ...]


class Album:
    """The pictures of the evaluation in ``root`` that the report shows so far."""

    def __init__(self, root: Path) -> None:
        self._folder = root / PAGES
        self._pictures: dict[str, Picture] = {}

    @property
    def pictures(self) -> list[Picture]:
        return list(self._pictures.values())

    def shot(self, name: str, cited: Sequence[Corners], gold: Sequence[Corners]) -> Shot | None:
        """The picture of that name (see ``shot_name``); None where there is none."""
        picture = self._pictures.get(name) or self._read(name)
        if picture is None:
            return None

        def box(corners: Corners, is_cited: bool) -> ShownBox:
            x0, y0, x1, y1 = corners
            return ShownBox(
                x0 * picture.width,
                y0 * picture.height,
                (x1 - x0) * picture.width,
                (y1 - y0) * picture.height,
                is_cited,
            )

        boxes = (*(box(corners, False) for corners in gold), *(box(corners, True) for corners in cited))
        return Shot(picture.number, picture.width, picture.height, boxes)

    def why_not(self, name: str) -> str:
        """Why there is no picture of that name."""
        path = self._folder / f"{name}{REASON}"
        return path.read_text(encoding="utf-8") if path.is_file() else NOT_STORED

    def _read(self, name: str) -> Picture | None:
        path = self._folder / f"{name}{PICTURE}"
        if not path.is_file():
            return None
        from PIL import Image

        with Image.open(path) as image:
            width, height = image.size
        picture = Picture(len(self._pictures) + 1, width, height, path.read_bytes())
        self._pictures[name] = picture
        return picture
