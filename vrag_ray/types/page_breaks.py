"""Paragraphs that begin on one page and end on the next."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from vrag_ray.types.documents import PageText
from vrag_ray.types.elements import Element, ElementKind
from vrag_ray.types.geometry import undivided

LONGEST_CONTINUATION = 60
"""Words of the next page."""
LEAST_WORDS = 4
"""Words of a paragraph, below which its last line may be a label."""
FULL_LINE = 0.8
"""Share of the characters of the line above that the last line of a paragraph has, where the text goes on."""
FULL_WIDTH = 0.6
"""Share of the page's width that a single line fills, where the text goes on."""
MOST_HEADER_LINES = 3
LEAST_LETTERS = 0.5
"""Share of the words of a text that have letters, in which the labels of a chart have digits."""

_RUNNING = (ElementKind.PARAGRAPH, ElementKind.LIST_ITEM)
_HEADINGS = (ElementKind.TITLE, ElementKind.SECTION)
_SENTENCE_ENDS = tuple(".!?:…。！？：")  # noqa: RUF001 - full-width marks end sentences too
_OPENING = "\"'“‘«(["  # noqa: RUF001
_CLOSING = "\"'”’»)]*"  # noqa: RUF001


def open_paragraph(elements: Sequence[Element]) -> Element | None:
    """The paragraph in whose middle a page ends; None where the last one ends its sentence, or a heading is last.

    Tables, pictures, notes, headers and footers may stand behind it.
    """
    last = next((part for part in reversed(elements) if part.kind in _RUNNING + _HEADINGS), None)
    if last is None or last.kind in _HEADINGS or len(last.text.split()) < LEAST_WORDS:
        return None
    return None if last.text.rstrip().rstrip(_CLOSING).endswith(_SENTENCE_ENDS) else last


def continuation(elements: Sequence[Element], following: Sequence[Element]) -> str:
    """The first words of the next page, whose elements are ``following``, where they go on with the open paragraph of
    a page with ``elements``; else "".

    A small letter goes on with it, below a heading too, as which a header is taken that stands close to the text.
    Anything else does where no heading is above it and the open paragraph ends with a full line in mid-sentence.
    """
    paragraph = open_paragraph(elements)
    # What stands on both pages belongs to neither.
    if paragraph is None or any(part.text == paragraph.text for part in following):
        return ""
    headers = {_without_digits(line) for line in _first_lines(elements)}
    may_be_new = not _ends_in_mid_sentence(paragraph)
    for part in following:
        lines = part.text.splitlines()
        while lines and _without_digits(lines[0]) in headers:
            del lines[0]
        words = " ".join(lines).split()[:LONGEST_CONTINUATION]
        if not words or sum(any(map(str.isalpha, word)) for word in words) < LEAST_LETTERS * len(words):
            continue
        text = " ".join(words)
        first = text.lstrip(_OPENING)[:1]
        # The last line of a paragraph, alone at the top of a page, looks like a header.
        is_last_line = part.kind is ElementKind.HEADER and not first.isupper() and text.endswith(_SENTENCE_ENDS)
        if part.kind is ElementKind.PARAGRAPH or is_last_line:
            return text if first.islower() or not may_be_new else ""
        if part.kind is ElementKind.LIST_ITEM:
            return ""
        may_be_new = may_be_new or part.kind in _HEADINGS
    return ""


def crossing_paragraph(page: PageText) -> Element | None:
    """The paragraph with which the next page goes on; None where none does."""
    return open_paragraph(page.elements) if page.continuation else None


def crossing_text(page: PageText) -> str:
    """That paragraph whole, as far as the next page is known; "" where there is none."""
    paragraph = crossing_paragraph(page)
    return continued(paragraph.text, page.continuation) if paragraph is not None else ""


def continued(text: str, rest: str, written: Container[str] = frozenset()) -> str:
    """``text`` and the ``rest`` of it as they are read, a divided word as one; ``written`` are the words of the
    document, as in ``undivided``."""
    if not rest:
        return text
    before, after = text.split()[-1:], rest.split()[:1]
    whole = undivided(before[0], after[0], written) if before and after else None
    if whole is not None:
        return text.rstrip().removesuffix(before[0]) + whole + rest.lstrip().removeprefix(after[0])
    return f"{text.rstrip()} {rest}"


def _ends_in_mid_sentence(paragraph: Element) -> bool:
    *others, last = paragraph.text.splitlines()
    is_full = len(last) >= FULL_LINE * len(others[-1]) if others else paragraph.box.x1 - paragraph.box.x0 >= FULL_WIDTH
    word = last.split()[-1]
    has_no_case = word[-1].isalpha() and word[-1].lower() == word[-1].upper()
    return is_full and (word[0].islower() or word.endswith((",", "-")) or has_no_case)


def _first_lines(elements: Sequence[Element]) -> Iterator[str]:
    """What may be the header of a page."""
    for part in elements[:MOST_HEADER_LINES]:
        yield from part.text.splitlines()[:MOST_HEADER_LINES]


def _without_digits(line: str) -> frozenset[str]:
    """The words of a header without the number of the page, which may stand at either side."""
    return frozenset(word for word in line.split() if not any(map(str.isdigit, word)))
