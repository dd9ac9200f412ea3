"""Reading order, tables and elements of random pages against MuPDF's layout model, which stands for a person here.

    python benchmarks/page_layout.py FOLDER_OF_PDFS... [--pages 160] [--seed 7]

Of each element that the model sees: whether its words follow each other in the order that ``vrag_ray`` gives them, and
whether a table is found where it sees one, and whether an element of ours has its box and its kind. The model needs
0.6 CPU seconds a page and is used nowhere else. Numbers of elements are drawn on each page at ``PIXELS``.
"""

from __future__ import annotations

import argparse
import io
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pymupdf
from PIL import Image

from vrag_ray.config import Marks
from vrag_ray.corpus.elements import elements
from vrag_ray.corpus.formats.pdf import pictures_of_page, ruled_grids
from vrag_ray.corpus.formats.pdf_text import read_page
from vrag_ray.corpus.tables import tables, text_with_tables
from vrag_ray.imaging.coordinates import Size, model_size
from vrag_ray.imaging.marks import Mark, PictureMarks, draw_marks, marked
from vrag_ray.types import Box, Word
from vrag_ray.types.elements import Element, ElementKind

LEAST_WORDS_OF_PAGE, LEAST_WORDS = 60, 8
PATCH, PIXELS = 28, 1280 * 28 * 28
"""Of a page as a model is shown it."""
TEXT = ("text", "list-item", "footnote", "caption")
SAME_BOX = 0.5
"""Intersection over union of two boxes that are taken for one element."""
KINDS = {
    "title": (ElementKind.TITLE, ElementKind.SECTION),
    "section-header": (ElementKind.SECTION, ElementKind.TITLE),
    "text": (ElementKind.PARAGRAPH,),
    "list-item": (ElementKind.LIST_ITEM,),
    "table": (ElementKind.TABLE,),
    "picture": (ElementKind.PICTURE,),
    "caption": (ElementKind.CAPTION,),
    "footnote": (ElementKind.NOTE,),
    "page-header": (ElementKind.HEADER,),
    "page-footer": (ElementKind.FOOTER,),
}
MIN_SHARE = 0.5
"""Share of a table's area that tables of ours cover, from which on it counts as found."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=160)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    files = sorted(path for folder in arguments.folders for path in folder.rglob("*.pdf"))
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for path, page in pages(files, arguments.pages, random.Random(arguments.seed)):
        compare(path, page, counts, seconds)
    print(f"{counts['pages']} pages of {len(files)} documents")
    print(f"paragraphs whole: {counts['text'] - counts['divided']} of {counts['text']}")
    print(f"tables found: {counts['found']} of {counts['tables']}; ours that the model calls none: {counts['other']}")
    for kind in KINDS:
        if total := counts[f"all {kind}"]:
            print(f"{kind}: box met {counts[f'box {kind}']}, kind too {counts[f'kind {kind}']}, of {total}")
    for name, spent in seconds.items():
        print(f"{name}: {spent / counts['pages'] * 1000:.1f} ms a page")


def pages(files: Sequence[Path], count: int, chance: random.Random) -> Iterator[tuple[Path, pymupdf.Page]]:
    for _ in range(count):
        path = chance.choice(files)
        document = pymupdf.open(path)
        page = document[chance.randrange(len(document))]
        if not page.rotation:
            yield path, page


def compare(path: Path, page: pymupdf.Page, counts: Counter[str], seconds: Counter[str]) -> None:
    import pymupdf.layout

    started = time.process_time()
    words = read_page(page, min_chars=0, ocr=None, believed=set()).words
    if len(words) < LEAST_WORDS_OF_PAGE:
        return
    read = time.process_time()
    aspect = page.rect.width / page.rect.height
    grids = ruled_grids(page)
    text_with_tables(words, aspect, grids)
    composed = time.process_time()
    parts = elements(words, aspect, grids, pictures_of_page(page))
    divided = time.process_time()
    seconds.update(dict(numbering_times(page, parts)))
    numbered = time.process_time()
    pymupdf.layout.activate()
    page.get_layout()
    seconds.update(
        {
            "words in reading order": read - started,
            "their tables as Markdown": composed - read,
            "their elements": divided - composed,
            "the layout model": time.process_time() - numbered,
        }
    )
    counts["pages"] += 1
    ours = [table.box for table in tables(words, aspect, grids)]
    # Typed as None, and filled by ``get_layout``.
    layout: Sequence[tuple[float, float, float, float, str]] = getattr(page, "layout_information") or ()  # noqa: B009
    seen = [(_box(page, corners), kind) for *corners, kind in layout]
    _count_elements(seen, parts, counts)
    owner = [next((at for at, (box, _) in enumerate(seen) if _holds(box, word)), -1) for word in words]
    for at, (box, kind) in enumerate(seen):
        places = [place for place, number in enumerate(owner) if number == at]
        if len(places) < LEAST_WORDS:
            continue
        if kind in TEXT:
            counts["text"] += 1
            if places[-1] - places[0] + 1 != len(places):
                counts["divided"] += 1
                print(f"{path.name} {(page.number or 0) + 1}: {kind} of {len(places)} words is divided")
        elif kind == "table":
            counts["tables"] += 1
            counts["found"] += sum(box.shared(table) for table in ours) > MIN_SHARE * box.area
    counts["other"] += sum(
        not any(box.shared(table) > MIN_SHARE * table.area for box, kind in seen if kind == "table") for table in ours
    )


def numbering_times(page: pymupdf.Page, parts: Sequence[Element]) -> Iterator[tuple[str, float]]:
    """CPU seconds for the numbers on a decoded picture of the page, and with the decoding and encoding of its PNG."""
    numbers = tuple(Mark(element.number, element.box) for element in parts if element.table is None)
    pixmap = page.get_pixmap(dpi=200)
    raw = Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples)
    for style in (Marks.MARGIN, Marks.BOXES):
        marks = PictureMarks(style, numbers, page.rect.width / page.rect.height)
        room = marks.page_pixels(PATCH, PIXELS)
        size = model_size(Size(*raw.size), patch=PATCH, min_pixels=PATCH**2, max_pixels=room)
        picture = raw.resize((size.width, size.height))
        buffer = io.BytesIO()
        picture.save(buffer, "PNG", compress_level=3)
        began = time.process_time()
        draw_marks(picture, marks, *marks.margins(PATCH))
        drawn = time.process_time()
        marked(buffer.getvalue(), marks, PATCH, PIXELS)
        yield f"numbers of elements ({style})", drawn - began
        yield f"the same from PNG to PNG ({style})", time.process_time() - drawn


def _count_elements(seen: Sequence[tuple[Box, str]], ours: Sequence[Element], counts: Counter[str]) -> None:
    whole = [element for element in ours if element.table is None]
    for box, kind in seen:
        if kind not in KINDS:
            continue
        best = max(whole, key=lambda element: _iou(box, element.box), default=None)
        met = best is not None and _iou(box, best.box) >= SAME_BOX
        counts[f"all {kind}"] += 1
        counts[f"box {kind}"] += met
        counts[f"kind {kind}"] += met and best is not None and best.kind in KINDS[kind]


def _iou(box: Box, other: Box) -> float:
    shared = box.shared(other)
    return shared / (box.area + other.area - shared)


def _box(page: pymupdf.Page, corners: Sequence[float]) -> Box:
    width, height = page.rect.width, page.rect.height
    x0, y0, x1, y1 = corners
    return Box(max(0, x0 / width), max(0, y0 / height), min(1, x1 / width), min(1, y1 / height)).padded(0.003, 0.003)


def _holds(box: Box, word: Word) -> bool:
    x, y = (word.box.x0 + word.box.x1) / 2, (word.box.y0 + word.box.y1) / 2
    return box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1


if __name__ == "__main__":
    main()
