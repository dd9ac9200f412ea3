"""The documents of a harbour: a yearbook (prose, a table, a chart), slides, a scanned sheet, a photographed chart,
a clip of its gate camera."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pymupdf

from vrag_ray.drawing.canvas import NAVY, SAND, Area, Canvas, Face, Style, finished
from vrag_ray.drawing.photographs import SHEET, photographed, scanned
from vrag_ray.drawing.video import filmed
from vrag_ray.samples.harbours.clip import clip_of
from vrag_ray.samples.harbours.facts import Harbour
from vrag_ray.samples.harbours.pages import (
    MARGIN,
    SLIDE,
    draw_electricity,
    draw_facts_slide,
    draw_lifts,
    draw_prose,
    draw_sheet,
    draw_table,
    draw_title_slide,
    shot_of,
)
from vrag_ray.samples.harbours.wording import WORDINGS

TEXT_PAGE, TABLE_PAGE, CHART_PAGE = 1, 2, 3
FACTS_SLIDE = 2


def yearbook_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-yearbook.pdf"


def slides_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-slides.pdf"


def sheet_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-crane-sheet.pdf"


def photo_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-electricity.jpg"


def clip_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-gate-camera.mp4"


def documents_of(harbour: Harbour) -> Mapping[str, Callable[[], bytes]]:
    """What makes each, by its file name."""
    return {
        yearbook_name(harbour): lambda: _yearbook(harbour),
        slides_name(harbour): lambda: _slides(harbour),
        sheet_name(harbour): lambda: scanned(
            lambda canvas: draw_sheet(canvas, harbour), f"{harbour.name}, crane sheet", seed=harbour.look
        ),
        photo_name(harbour): lambda: photographed(lambda canvas: draw_electricity(canvas, harbour), shot_of(harbour)),
        clip_name(harbour): lambda: filmed(clip_of(harbour)),
    }


def _yearbook(harbour: Harbour) -> bytes:
    wording = WORDINGS[harbour.language]
    document = pymupdf.open()
    title = wording.title.format(name=harbour.name)
    for heading, draw in (
        (title, draw_prose),
        (wording.figures.format(name=harbour.name), draw_table),
        (wording.lifts.format(name=harbour.name), draw_lifts),
    ):
        canvas = Canvas(document.new_page(width=SHEET[0], height=SHEET[1]))
        canvas.text(MARGIN, 96, heading, Style(19, Face.BOLD, NAVY))
        canvas.rect(Area(MARGIN, 108, 46, 3), fill=SAND)
        draw(canvas, harbour)
        canvas.finish()
    return finished(document, title)


def _slides(harbour: Harbour) -> bytes:
    document = pymupdf.open()
    for draw in (draw_title_slide, draw_facts_slide):
        canvas = Canvas(document.new_page(width=SLIDE[0], height=SLIDE[1]))
        draw(canvas, harbour)
        canvas.finish()
    return finished(document, f"{harbour.name} Harbour, slides")
