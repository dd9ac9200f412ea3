"""The fields of a PDF form, and what readers of a PDF noted and struck out on its pages (widgets and annotations).

A file holds the values of its fields apart from the page, so MuPDF gives them behind all labels, and marks of check
boxes as letters of a symbol font. Here each value is put behind its label, and a check box is written in words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import pymupdf

from vrag_ray.corpus.formats.pdf_objects import choices
from vrag_ray.corpus.model import CHECKED, UNCHECKED, clean
from vrag_ray.types import Box, Word, around

FARTHEST_ABOVE = 1.5
"""Heights of the line above a field by which it stands over the field at most."""
_NOTES = frozenset({"Text", "Highlight", "Underline", "Squiggly", "StrikeOut", "Caret"})
_BUTTONS = frozenset({"CheckBox", "RadioButton"})
_VALUED = _BUTTONS | {"Text", "ComboBox", "ListBox"}
_UNSEEN = 2 | 32
"""The flags of annotations that a program for PDFs does not show: Hidden and NoView."""
_PASSWORD = 1 << 13
"""The flag of text fields that hold a password."""
_COMB = 1 << 24
"""The flag of text fields with a cell for each letter."""
BoxOf = Callable[[float, float, float, float], Box | None]
Field = tuple[pymupdf.Widget, Box]
_Neighbour = tuple[Word | None, float]


def notes_on(page: pymupdf.Page) -> list[str]:
    """The text of each note on ``page``, behind its author where it has an author."""
    notes = []
    for annotation in page.annots():
        if annotation.type[1] not in _NOTES or annotation.flags & _UNSEEN:
            continue
        content, author = annotation.info["content"].strip(), annotation.info["title"].strip()
        if content:
            notes.append(clean(f"{author}: {content}" if author else content))
    return notes


def struck_boxes(page: pymupdf.Page) -> list[pymupdf.Rect]:
    """Where text is struck out by annotations, in points of the unturned page."""
    return [
        pymupdf.Quad(annotation.vertices[first : first + 4]).rect
        for annotation in page.annots()
        if annotation.type[1] == "StrikeOut" and not annotation.flags & _UNSEEN
        for first in range(0, len(annotation.vertices or ()) - 3, 4)
    ]


def shown_fields(page: pymupdf.Page, box_of: BoxOf) -> list[Field]:
    """The fields of ``page`` that have a value and are shown, each with its place. ``box_of`` turns a rectangle of the
    unturned page, in points, into fractions of the upright page."""
    return [
        (widget, box)
        for widget in page.widgets()
        if widget.field_type_string in _VALUED
        and not _is_unseen(page, widget)
        and (box := box_of(*widget.rect)) is not None
    ]


def without_passwords(fields: Sequence[Field], lines: Sequence[list[Word]]) -> int:
    """Takes what is drawn in password fields out of ``lines``, and returns how many words these were.

    A program for PDFs shows dots there, though the file may hold the letters.
    """
    boxes = [box for widget, box in fields if _is_password(widget)]
    count = 0
    for line in lines:
        concealed = {id(word) for word in line if any(is_in(word, box) for box in boxes)}
        count += sum(any(map(str.isalnum, word.text)) for word in line if id(word) in concealed)
        line[:] = [word for word in line if id(word) not in concealed]
    return count


def place_values(page: pymupdf.Page, fields: Sequence[Field], lines: Sequence[list[Word]]) -> list[list[Word]]:
    """Puts the value of each of the ``fields`` of ``page`` but passwords beside its label in ``lines``, which hold the
    words of the page.

    Returns further lines: the values without a label on the page, behind their tooltips.
    """
    fields = [(widget, box) for widget, box in fields if not _is_password(widget)]
    # Before any label is looked for: a value is no label.
    values = [_value(page, widget, box, _taken(widget, box, lines)) for widget, box in fields]
    printed = [word for line in lines for word in line if word.turn == 0]
    before: dict[int, list[Word]] = {}
    behind: dict[int, list[Word]] = {}
    further: list[list[Word]] = []
    for (widget, box), taken in zip(fields, values, strict=True):
        value = taken
        is_button = widget.field_type_string in _BUTTONS
        left, right, above = _neighbours(printed, box, page.rect.width / page.rect.height)
        label, _ = min((right if is_button else above), left, key=_distance)
        is_before = is_button and label is not None and label is right[0]
        if is_button:
            state = CHECKED if _is_checked(page, widget) else UNCHECKED
            value = [Word(f"{state.capitalize()}:" if is_before else state, box)]
        if is_before:
            before.setdefault(id(label), []).extend(value)
        elif label is not None:
            behind.setdefault(id(label), []).extend(value)
        elif value and (tooltip := clean(widget.field_label or "").split()):
            # Side by side with its label, as if that were printed: what lies in one place is not read as one line.
            first = Box(box.x0, value[0].box.y0, box.x1, value[0].box.y1)
            ends = next((n for n, word in enumerate(value) if word.box.y0 > first.y1), len(value))
            further.append([*_shared([*tooltip, *(word.text for word in value[:ends])], first), *value[ends:]])
        elif value and (not is_button or _is_checked(page, widget)):
            further.append(value)
    for line in lines:
        line[:] = [part for word in line for part in (*before.get(id(word), ()), word, *behind.get(id(word), ()))]
    return further


def _taken(widget: pymupdf.Widget, box: Box, lines: Sequence[list[Word]]) -> list[Word]:
    """The words in the field, which are taken out of ``lines``: of a button its mark."""
    taken: list[Word] = []
    for line in lines:
        here = [word for word in line if word.turn == 0 and is_in(word, box)]
        if widget.field_type_string in _BUTTONS:
            here = [word for word in here if len(word.text) == 1]
        places = set(map(id, here))
        line[:] = [word for word in line if id(word) not in places]
        taken += here
    return taken


def _value(page: pymupdf.Page, widget: pymupdf.Widget, box: Box, drawn: list[Word]) -> list[Word]:
    """The value of a field: the words that are ``drawn`` in it, but

    - of a list what is chosen in it, which may be scrolled out of sight;
    - what a combo box shows for its choice, where MuPDF has drawn the name that the choice has in the file;
    - the words of the value where its letters are drawn apart, as in the cells of a comb;
    - the value of a field that has no appearance of its own, where MuPDF makes none.
    """
    kind = widget.field_type_string
    if kind in _BUTTONS:
        return drawn
    letters = "".join(word.text for word in drawn)
    place = around([word.box for word in drawn]) or box
    stated = clean(widget.field_value).split() if isinstance(widget.field_value, str) else []
    is_bare = not drawn and page.parent.xref_get_key(widget.xref, "AP")[0] == "null"
    if kind == "Text":
        is_apart = letters == "".join(stated) and len(stated) < len(drawn)
        if is_apart or is_bare:
            return _shared(stated, place)
        is_comb = bool(widget.field_flags & _COMB) and all(len(word.text) == 1 for word in drawn)
        return [Word(letters, place)] if drawn and is_comb else drawn
    chosen = choices(page.parent, widget.xref)
    is_named = letters == "".join("".join(name for name, _ in chosen).split())
    if kind == "ListBox" or is_bare or is_named:
        return _shared(clean(" ".join(text for _, text in chosen)).split(), box if kind == "ListBox" else place)
    return drawn


def _neighbours(printed: Sequence[Word], box: Box, aspect: float) -> tuple[_Neighbour, _Neighbour, _Neighbour]:
    """The nearest words left of, right of and above ``box``, and how far each is, in heights of the page."""
    left: _Neighbour = (None, math.inf)
    right: _Neighbour = (None, math.inf)
    above: _Neighbour = (None, math.inf)
    for word in printed:
        other = word.box
        middle, height = (other.y0 + other.y1) / 2, other.y1 - other.y0
        is_level = box.y0 <= middle <= box.y1 or other.y0 <= (box.y0 + box.y1) / 2 <= other.y1
        if is_level and other.x1 <= (box.x0 + box.x1) / 2:
            left = min(left, (word, max(0.0, (box.x0 - other.x1) * aspect)), key=_distance)
        elif is_level and other.x0 >= (box.x0 + box.x1) / 2:
            right = min(right, (word, max(0.0, (other.x0 - box.x1) * aspect)), key=_distance)
        elif other.x0 < box.x1 and other.x1 > box.x0 and 0 <= box.y0 - middle < FARTHEST_ABOVE * height:
            # The last word of the line that stands over the field.
            above = (word, max(0.0, box.y0 - other.y1))
    return left, right, above


def _distance(neighbour: _Neighbour) -> float:
    return neighbour[1]


def _is_checked(page: pymupdf.Page, widget: pymupdf.Widget) -> bool:
    kind, state = page.parent.xref_get_key(widget.xref, "AS")
    return state != "/Off" if kind == "name" else widget.field_value not in (None, "", "Off", False)


def _is_password(widget: pymupdf.Widget) -> bool:
    return widget.field_type_string == "Text" and bool(widget.field_flags & _PASSWORD)


def _is_unseen(page: pymupdf.Page, widget: pymupdf.Widget) -> bool:
    kind, flags = page.parent.xref_get_key(widget.xref, "F")
    return kind == "int" and bool(int(flags) & _UNSEEN)


def is_in(word: Word, box: Box) -> bool:
    """Whether the middle of the word is in ``box``."""
    x, y = (word.box.x0 + word.box.x1) / 2, (word.box.y0 + word.box.y1) / 2
    return box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1


def _shared(texts: Sequence[str], box: Box) -> list[Word]:
    """``texts`` as words that share ``box`` from left to right."""
    wide = (box.x1 - box.x0) / max(1, len(texts))
    edges = [*(box.x0 + number * wide for number in range(len(texts))), box.x1]
    return [
        Word(text, Box(x0, box.y0, x1, box.y1)) for text, (x0, x1) in zip(texts, itertools.pairwise(edges), strict=True)
    ]
