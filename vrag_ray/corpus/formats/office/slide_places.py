"""Where the shapes of a slide are, and which of their texts nobody sees: beside the slide, or below a later shape."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot
from typing import NamedTuple
from xml.etree import ElementTree

from vrag_ray.corpus.formats.office.parts import child, every, related, tag_of

SHAPES = ("sp", "graphicFrame", "cxnSp", "pic")
_OPAQUE_PICTURES = (".jpg", ".jpeg")
"""Of other formats the file alone does not tell whether they are transparent."""


class Place(NamedTuple):
    """The edges of a shape in the units of its slide."""

    left: float
    top: float
    right: float
    bottom: float

    def holds(self, other: Place) -> bool:
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a group does with the places in it. In a group that is turned, or states no place, none is known."""

    scale_x: float = 1.0
    scale_y: float = 1.0
    x: float = 0.0
    y: float = 0.0
    is_unknown: bool = False

    def place(self, holder: ElementTree.Element | None) -> Place | None:
        """Where the transformation ``holder`` puts a shape; None without one, as where the layout of the slide does."""
        corner, extent = pair_of(holder, "off", "x", "y"), pair_of(holder, "ext", "cx", "cy")
        if holder is None or corner is None or extent is None or self.is_unknown:
            return None
        (x, y), (width, height) = corner, extent
        if _is_turned(holder):
            # Whichever way: around its middle.
            reach = hypot(width, height) / 2
            x, y, width, height = x + width / 2 - reach, y + height / 2 - reach, 2 * reach, 2 * reach
        left, top = self.x + x * self.scale_x, self.y + y * self.scale_y
        return Place(left, top, left + width * self.scale_x, top + height * self.scale_y)

    def inner(self, group: ElementTree.Element) -> _Frame:
        holder = child(group, "grpSpPr", "xfrm")
        own, corner, extent = (
            self.place(holder),
            pair_of(holder, "chOff", "x", "y"),
            pair_of(holder, "chExt", "cx", "cy"),
        )
        if holder is None or self.is_unknown:
            return self
        if own is None or corner is None or extent is None or _is_turned(holder):
            return _Frame(is_unknown=True)
        (x, y), (width, height) = corner, extent
        scale_x = (own.right - own.left) / width if width else self.scale_x
        scale_y = (own.bottom - own.top) / height if height else self.scale_y
        return _Frame(scale_x, scale_y, own.left - x * scale_x, own.top - y * scale_y)


def placed_shapes(
    parent: ElementTree.Element, frame: _Frame | None = None
) -> Iterator[tuple[ElementTree.Element, Place | None]]:
    """The shapes of a slide as they are written, those of groups among them, and where each is, if it says so."""
    frame = frame or _Frame()
    for element in parent:
        tag = tag_of(element)
        if tag in SHAPES:
            holder = child(element, "xfrm") if tag == "graphicFrame" else child(element, "spPr", "xfrm")
            yield element, frame.place(holder)
        elif tag != "Fallback":
            yield from placed_shapes(element, frame.inner(element) if tag == "grpSp" else frame)


def unseen_texts(
    slide: ElementTree.Element, size: tuple[float, float] | None, relations: dict[str, str]
) -> list[ElementTree.Element]:
    """The shapes whose text is beside a slide of the ``size``, or wholly below a later one that is opaque.

    On a slide that moves shapes, those come into sight; where it shows and hides them in turn, nothing stays covered.
    """
    placed = list(placed_shapes(slide))
    is_moved, is_animated = (next(every(slide, tag), None) is not None for tag in ("animMotion", "spTgt"))
    sheet = Place(0, 0, *size) if size is not None and not is_moved else None
    covers = [
        (number, place)
        for number, (shape, place) in enumerate(placed)
        if place is not None and not is_animated and _is_opaque(shape, relations)
    ]
    return [
        shape
        for number, (shape, place) in enumerate(placed)
        if place is not None
        and _has_text(shape)
        and (
            (sheet is not None and _is_apart(place, sheet))
            or any(later > number and cover.holds(place) for later, cover in covers)
        )
    ]


def _has_text(shape: ElementTree.Element) -> bool:
    return child(shape, "txBody") is not None or next(every(shape, "tbl"), None) is not None


def _is_apart(place: Place, sheet: Place) -> bool:
    return (
        place.right <= sheet.left or place.left >= sheet.right or place.bottom <= sheet.top or place.top >= sheet.bottom
    )


def _is_opaque(shape: ElementTree.Element, relations: dict[str, str]) -> bool:
    """Whether a shape is an upright rectangle of one colour, or an upright photograph."""
    look, holder = child(shape, "spPr"), child(shape, "spPr", "xfrm")
    form = child(shape, "spPr", "prstGeom")
    if look is None or holder is None or _is_turned(holder) or form is None or form.get("prst") != "rect":
        return False
    if tag_of(shape) == "pic":
        parts = [related(blip, relations, "embed") for blip in every(shape, "blip")]
        has_effects = next(every(shape, "alphaModFix", "clrChange", "softEdge"), None) is not None
        return not has_effects and any(posixpath.splitext(part)[1].lower() in _OPAQUE_PICTURES for part in parts)
    fill = child(shape, "spPr", "solidFill")
    return fill is not None and next(every(look, "alpha", "softEdge"), None) is None


def _is_turned(holder: ElementTree.Element) -> bool:
    return holder.get("rot", "0") not in ("", "0")


def pair_of(holder: ElementTree.Element | None, tag: str, first: str, second: str) -> tuple[float, float] | None:
    """The two numbers of the element ``tag`` of a transformation; None without both."""
    element = child(holder, tag) if holder is not None else None
    values = [element.get(key, "") for key in (first, second)] if element is not None else []
    if not values or not all(value.lstrip("-").isdigit() for value in values):
        return None
    return float(values[0]), float(values[1])
