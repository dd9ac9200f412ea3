"""The elements of a page or a clip: what a reader would point at, each with its number, its kind and its box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from vrag_ray.types.geometry import Box


class ElementKind(StrEnum):
    """What an element is to a reader."""

    TITLE = "title"
    SECTION = "section"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    TABLE_CELL = "table_cell"
    PICTURE = "picture"
    CAPTION = "caption"
    NOTE = "note"
    HEADER = "header"
    FOOTER = "footer"
    CUE = "cue"
    """The speech in a clip, or its caption."""
    SHOT = "shot"
    """A stretch of a clip in which one picture stays, such as a slide of a talk."""


@dataclass(frozen=True, slots=True)
class Element:
    """``number`` counts the elements of a page in reading order, from 1. The cells of a table follow it.

    ``box`` is in page fractions: of a cell what ruling lines enclose, without them its share of the table, half way
    to its neighbours; of any other element what its words fill. ``text`` holds the words line by line, of a table as
    Markdown, and "" for a picture.
    ``section`` is the heading on the page under which it stands, "" where there is none. ``table`` is the number of the
    table of which this is a cell. ``t_start`` and ``t_end`` are seconds of a video: of a clip elements are in the order
    in which they begin, and ``box`` is in fractions of the picture, the whole of it for cues and shots.
    """

    number: int
    kind: ElementKind
    box: Box
    text: str
    section: str = ""
    table: int | None = None
    t_start: float | None = None
    t_end: float | None = None

    def __reduce__(self) -> tuple[Callable[..., Element], _Values]:
        """Pickled by its values, as words are: a page of figures has hundreds of cells."""
        corners, times = self.box.as_tuple(), (self.t_start, self.t_end)
        return _element, (self.number, self.kind.value, corners, self.text, self.section, self.table, *times)


_Corners = tuple[float, float, float, float]
_Values = tuple[int, str, _Corners, str, str, int | None, float | None, float | None]


def _element(
    number: int,
    kind: str,
    corners: _Corners,
    text: str,
    section: str,
    table: int | None,
    t_start: float | None,
    t_end: float | None,
) -> Element:
    return Element(number, ElementKind(kind), Box(*corners), text, section, table, t_start, t_end)
