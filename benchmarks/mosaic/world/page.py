"""A page: a mosaic of 4 x 4 coloured cells, named by two words.

A cell is called by its column, ``a`` to ``d`` from the left, and its row, ``1`` to ``4`` from the top. The first row
names two other pages, in ``a1 b1`` and in ``c1 d1`` (see ``colours.page_name``); the last cell, ``d4``, is the page's
mark. Neither the first row nor the mark is ever fine print.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, model_validator

from benchmarks.mosaic.world.colours import Colour, page_name
from vrag_ray.types import Box, VragError

GRID = 4
COLUMNS = "abcd"
CELLS = tuple(f"{column}{row}" for row in range(1, GRID + 1) for column in COLUMNS)
"""In reading order."""
MARK = "d4"
BODY = tuple(cell for cell in CELLS[GRID:] if cell != MARK)
"""Cells that may be fine print."""


class Page(BaseModel):
    """``cells`` holds the colours in the order of ``CELLS``.

    A cell of ``prints`` is fine print: a checkerboard that begins, upper left, with the cell's colour and goes on
    with its complement.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    cells: tuple[Colour, ...]
    prints: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Page:
        if len(self.cells) != len(CELLS):
            raise VragError(f"page {self.name!r} has {len(self.cells)} cells: a mosaic has {len(CELLS)}")
        wrong = [cell for cell in self.prints if cell not in BODY]
        if wrong:
            raise VragError(f"page {self.name!r}: no fine print can stand in {wrong[0]!r}, only in {', '.join(BODY)}")
        return self

    @property
    def file_name(self) -> str:
        return self.name.replace(" ", "-") + ".png"

    @property
    def names(self) -> tuple[str, str]:
        """The pages that the first row points at."""
        a, b, c, d = self.cells[:GRID]
        return page_name(a, b), page_name(c, d)

    @property
    def mark(self) -> Colour:
        return self.colour(MARK)

    def colour(self, cell: str) -> Colour:
        """Of fine print, the colour that it begins with. Raises ``VragError`` where there is no such cell."""
        return self.cells[_index(cell)]


def cell_box(cell: str) -> Box:
    """Where a cell stands, in page fractions."""
    row, column = divmod(_index(cell), GRID)
    return Box(column / GRID, row / GRID, (column + 1) / GRID, (row + 1) / GRID)


def cell_at(x: float, y: float) -> str:
    """The cell that holds a point (page fractions)."""
    column, row = min(GRID - 1, int(x * GRID)), min(GRID - 1, int(y * GRID))
    return CELLS[row * GRID + column]


def _index(cell: str) -> int:
    if cell not in CELLS:
        raise VragError(f"there is no cell {cell!r}: cells are a1 to d4")
    return CELLS.index(cell)
