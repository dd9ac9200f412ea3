"""What can be asked of the mosaics, as a task and as words, both ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.mosaic.world.colours import Colour
from vrag_ray.types import VragError


class Kind(StrEnum):
    """How the answer is found."""

    SINGLE_HOP = "single_hop"
    MULTI_HOP = "multi_hop"
    BRANCH = "branch"
    FINE_PRINT = "fine_print"


@dataclass(frozen=True, slots=True)
class Task:
    """The colour of ``cell`` is wanted, of a page that is found from ``page``.

    ``hops`` counts the pages of a multi-hop chain, ``page`` included; it is 1 elsewhere. ``mark`` is the mark of the
    right one of the two pages that a branch names, None elsewhere.
    """

    kind: Kind
    page: str
    cell: str
    hops: int = 1
    mark: Colour | None = None


_PAGE = r"(?P<page>[a-z]+ [a-z]+)"
_CELL = r"(?P<cell>[a-d][1-4])"
_FORMS = {
    Kind.SINGLE_HOP: "What colour is cell {cell} of page {page}?",
    Kind.MULTI_HOP: (
        "What colour is cell {cell} of page number {hops} of the chain from {page}? "
        "The first two cells of a page name the next."
    ),
    Kind.BRANCH: "What colour is cell {cell} of the page, out of the two named by {page}, whose last cell is {mark}?",
    Kind.FINE_PRINT: "What colour begins the fine print in cell {cell} of page {page}?",
}
_PATTERNS = {
    kind: re.compile(
        re.escape(form)
        .replace(r"\{cell\}", _CELL)
        .replace(r"\{page\}", _PAGE)
        .replace(r"\{hops\}", r"(?P<hops>\d+)")
        .replace(r"\{mark\}", r"(?P<mark>[a-z]+)")
    )
    for kind, form in _FORMS.items()
}


def question_text(task: Task) -> str:
    """The question in words."""
    return _FORMS[task.kind].format(cell=task.cell, page=task.page, hops=task.hops, mark=task.mark)


def understood(question: str) -> Task:
    """The inverse of ``asked``. Raises ``VragError`` on any other question."""
    for kind, pattern in _PATTERNS.items():
        match = pattern.fullmatch(question)
        if match is not None:
            words = match.groupdict()
            mark = words.get("mark")
            if mark is not None and mark not in set(Colour):
                raise VragError(f"no page has the mark {mark!r}: the colours are {', '.join(Colour)}")
            return Task(
                kind, words["page"], words["cell"], int(words.get("hops") or 1), None if mark is None else Colour(mark)
            )
    raise VragError(f"not a question of this world: {question[:120]!r}")
