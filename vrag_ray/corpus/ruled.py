"""Grids of ruling lines: the cells that lines on a page enclose, whatever is written in them. Pure geometry.

Lengths are in heights of the page, x to the right and y down, so that both directions are measured alike.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SLACK = 0.003
"""Page heights by which lines that meet may miss each other."""
MOST_LINES = 400
"""A page of more is a drawing, not a table."""
LEAST_SIDE = 0.006
"""Page heights of a row or a column, at least: two lines that are closer are one border."""
DRAWN = 0.6
"""Share of the side of a cell along which a line stands, from which on it parts two cells."""


@dataclass(frozen=True, slots=True)
class Line:
    """A horizontal or vertical line at ``at`` from ``start`` to ``end``."""

    at: float
    start: float
    end: float

    def crosses(self, other: Line) -> bool:
        """Whether a line across this one meets it."""
        return (
            self.start - SLACK <= other.at <= self.end + SLACK and other.start - SLACK <= self.at <= other.end + SLACK
        )


@dataclass(frozen=True, slots=True)
class Field:
    """A cell of a grid from ``row`` and ``column`` over ``rows`` and ``columns``."""

    row: int
    column: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Grid:
    """``xs`` and ``ys`` are the edges of its columns and rows; ``fields`` has for each place (row, column) its cell."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    fields: dict[tuple[int, int], Field]

    def field_at(self, x: float, y: float) -> Field | None:
        """The cell around a point; None outside."""
        column, row = bisect_right(self.xs, x) - 1, bisect_right(self.ys, y) - 1
        return self.fields.get((row, column))


def grids(horizontal: Sequence[Line], vertical: Sequence[Line]) -> list[Grid]:
    """The grids of at least two rows and two columns, from the top of the page down."""
    across, down = _whole(horizontal), _whole(vertical)
    if not across or not down or len(across) + len(down) > MOST_LINES:
        return []
    drawn = [grid for rows, columns in _joined(across, down) if (grid := _grid(rows, columns)) is not None]
    return sorted(drawn, key=lambda grid: (grid.ys[0], grid.xs[0]))


def grid_of_cells(boxes: Sequence[tuple[float, float, float, float]]) -> Grid:
    """The grid in which each of ``boxes`` (x0, y0, x1, y1) is a cell."""
    xs, ys = (_edges([edge for box in boxes for edge in (box[axis], box[axis + 2])]) for axis in (0, 1))
    fields: dict[tuple[int, int], Field] = {}
    for x0, y0, x1, y1 in boxes:
        (left, right), (top, bottom) = (
            [min(range(len(edges)), key=lambda n: abs(edges[n] - at)) for at in pair]
            for edges, pair in ((xs, (x0, x1)), (ys, (y0, y1)))
        )
        field = Field(top, left, max(1, bottom - top), max(1, right - left))
        for row in range(field.row, field.row + field.rows):
            for column in range(field.column, field.column + field.columns):
                fields.setdefault((row, column), field)
    return Grid(tuple(xs), tuple(ys), fields)


def _whole(lines: Sequence[Line]) -> list[Line]:
    """``lines`` with the pieces of one line joined."""
    joined: list[Line] = []
    for line in sorted(lines, key=lambda line: (round(line.at / SLACK), line.start)):
        last = joined[-1] if joined else None
        if last is not None and abs(last.at - line.at) <= SLACK and line.start <= last.end + SLACK:
            joined[-1] = Line(last.at, last.start, max(last.end, line.end))
        else:
            joined.append(line)
    return [line for line in joined if line.end - line.start >= LEAST_SIDE]


def _joined(across: Sequence[Line], down: Sequence[Line]) -> Iterator[tuple[list[Line], list[Line]]]:
    """The lines that hang together, as rows and columns."""
    left = set(range(len(down)))
    rows_left = set(range(len(across)))
    while rows_left:
        rows, columns = {rows_left.pop()}, set[int]()
        grown = True
        while grown:
            new_columns = {j for j in left if any(across[i].crosses(down[j]) for i in rows)}
            columns, left = columns | new_columns, left - new_columns
            new_rows = {i for i in rows_left if any(across[i].crosses(down[j]) for j in columns)}
            rows, rows_left = rows | new_rows, rows_left - new_rows
            grown = bool(new_columns or new_rows)
        if columns:
            yield [across[i] for i in rows], [down[j] for j in columns]


def _grid(across: Sequence[Line], down: Sequence[Line]) -> Grid | None:
    # Tables are often open at their sides: lines end where a border would stand.
    xs = _edges([*(line.at for line in down), min(s.start for s in across), max(s.end for s in across)])
    ys = _edges([*(line.at for line in across), min(s.start for s in down), max(s.end for s in down)])
    rows, columns = len(ys) - 1, len(xs) - 1
    if rows < 2 or columns < 2:
        return None
    fields: dict[tuple[int, int], Field] = {}
    for row in range(rows):
        for column in range(columns):
            if (row, column) in fields:
                continue
            wide = 1
            while (
                column + wide < columns
                and (row, column + wide) not in fields
                and not _stands(down, xs[column + wide], ys[row], ys[row + 1])
            ):
                wide += 1
            high = 1
            while row + high < rows and not any(
                (row + high, column + at) in fields
                or _stands(across, ys[row + high], xs[column + at], xs[column + at + 1])
                for at in range(wide)
            ):
                high += 1
            field = Field(row, column, high, wide)
            fields.update(((row + i, column + j), field) for i in range(high) for j in range(wide))
    return Grid(tuple(xs), tuple(ys), fields)


def _edges(positions: Sequence[float]) -> list[float]:
    edges: list[float] = []
    for position in sorted(positions):
        if not edges or position - edges[-1] >= LEAST_SIDE:
            edges.append(position)
    return edges


def _stands(lines: Sequence[Line], at: float, start: float, end: float) -> bool:
    """Whether a line stands at ``at`` along most of the side from ``start`` to ``end``."""
    drawn = sum(
        max(0.0, min(line.end, end) - max(line.start, start)) for line in lines if abs(line.at - at) < LEAST_SIDE
    )
    return drawn >= DRAWN * (end - start)


def edges_of(x0: float, y0: float, x1: float, y1: float) -> tuple[list[Line], list[Line]]:
    """The lines of a rectangle: one where it is as thin as a line, else its four sides."""
    if y1 - y0 < SLACK:
        return ([Line((y0 + y1) / 2, x0, x1)], []) if x1 - x0 >= LEAST_SIDE else ([], [])
    if x1 - x0 < SLACK:
        return ([], [Line((x0 + x1) / 2, y0, y1)])
    return [Line(y0, x0, x1), Line(y1, x0, x1)], [Line(x0, y0, y1), Line(x1, y0, y1)]
