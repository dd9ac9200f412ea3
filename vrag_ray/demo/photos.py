"""Pictures that only OCR can read: two photographed wall charts and a scanned maintenance sheet."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymupdf
from PIL import Image, ImageFilter

from vrag_ray.demo import facts
from vrag_ray.demo.canvas import INK, MUTED, NAVY, RULE, SAND, TEAL, Area, Canvas, Face, Style
from vrag_ray.demo.charts import bar_chart, column_chart
from vrag_ray.demo.report import finished

Corners = tuple[tuple[float, float], tuple[float, float], tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Shot:
    """How a sheet was photographed: where its corners (clockwise from the top left) fell, in fractions."""

    corners: Corners
    light: tuple[float, float]
    """Brightness at the left and the right edge."""
    wall: tuple[int, int, int]
    seed: int


HEAT_SHOT = Shot(((0.055, 0.085), (0.945, 0.05), (0.965, 0.94), (0.04, 0.925)), (1.03, 0.86), (143, 138, 129), 7)
FERRY_SHOT = Shot(((0.05, 0.05), (0.95, 0.075), (0.935, 0.945), (0.065, 0.955)), (0.86, 1.02), (110, 122, 128), 11)


def heat_photo() -> bytes:
    return _photo(_draw_heat, HEAT_SHOT)


def ferry_photo() -> bytes:
    return _photo(_draw_ferry, FERRY_SHOT)


def scanned_sheet() -> bytes:
    """A PDF of one page that is a picture: it has no text layer."""
    sheet = _rendered(_draw_sheet, 595, 842, dpi=150).convert("L")
    sheet = sheet.rotate(0.5, resample=Image.Resampling.BICUBIC, fillcolor=250)
    grey = np.asarray(sheet, dtype=np.float32) + np.random.default_rng(3).normal(0.0, 5.0, sheet.size[::-1])
    page_image = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.5))
    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    page.insert_image(page.rect, stream=_jpeg(page_image, quality=48))
    return finished(document, "Crane 2 maintenance sheet (scan)")


def _photo(draw: Callable[[Canvas], None], shot: Shot) -> bytes:
    sheet = _rendered(draw, 640, 480, dpi=150)
    size = sheet.size
    corners = tuple((x * size[0], y * size[1]) for x, y in shot.corners)
    hung = sheet.transform(size, Image.Transform.PERSPECTIVE, _perspective(corners, size), Image.Resampling.BICUBIC)
    mask = Image.new("L", size, 255).transform(size, Image.Transform.PERSPECTIVE, _perspective(corners, size))
    scene = Image.new("RGB", size, shot.wall)
    shadow = Image.new("RGB", size, tuple(part // 2 for part in shot.wall))
    offset = (9, 12)
    scene.paste(shadow, offset, mask)
    scene = scene.filter(ImageFilter.GaussianBlur(9))
    scene.paste(hung, (0, 0), mask)
    light = np.linspace(shot.light[0], shot.light[1], size[0], dtype=np.float32)[None, :, None]
    noise = np.random.default_rng(shot.seed).normal(0.0, 3.5, (size[1], size[0], 1))
    pixels = np.clip(np.asarray(scene, dtype=np.float32) * light + noise, 0, 255).astype(np.uint8)
    return _jpeg(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(0.6)), quality=72)


def _draw_heat(canvas: Canvas) -> None:
    canvas.rect(Area(0, 0, canvas.width, canvas.height), fill=(0.985, 0.98, 0.965))
    canvas.text(44, 58, "Waste heat recovered in 2024", Style(25, Face.BOLD, NAVY))
    canvas.text(44, 82, "Northmere Harbour, control room wall chart", Style(13.5, colour=MUTED))
    canvas.rect(Area(44, 94, 60, 4), fill=SAND)
    bar_chart(canvas, Area(44, 116, 540, 330), facts.HEAT_RECOVERED_MWH, unit="MWh", size=17.0)


def _draw_ferry(canvas: Canvas) -> None:
    canvas.rect(Area(0, 0, canvas.width, canvas.height), fill=(0.985, 0.985, 0.98))
    canvas.text(44, 56, "Charging the electric ferry", Style(25, Face.BOLD, NAVY))
    canvas.text(44, 80, "Mean minutes of charging for a crossing, by day of the week", Style(14, colour=MUTED))
    canvas.rect(Area(44, 92, 60, 4), fill=SAND)
    column_chart(canvas, Area(36, 112, 570, 320), facts.FERRY_CHARGE_MIN, size=15.0, colour=TEAL, digits=1)


def _draw_sheet(canvas: Canvas) -> None:
    mono = Style(11.5, Face.MONO)
    canvas.text(60, 96, "MAINTENANCE SHEET", Style(21, Face.BOLD, INK))
    canvas.text(60, 124, "Harbour crane 2, container quay", Style(13, colour=INK))
    canvas.text(60, 144, "Yearly inspection, 17 September 2024", Style(13, colour=INK))
    canvas.line((60, 162), (535, 162), INK, 1.2)
    for x, heading in zip((60, 215, 388), ("Part", "Finding", "Action"), strict=True):
        canvas.text(x, 188, heading, Style(12, Face.BOLD, INK))
    y = 200.0
    for part, finding, action in facts.CRANE_SCAN_ROWS:
        canvas.line((60, y), (535, y), RULE)
        for x, cell in zip((60, 215, 388), (part, finding, action), strict=True):
            canvas.text(x, y + 21, cell, Style(11.5))
        y += 34
    canvas.line((60, y), (535, y), INK, 1.2)
    y = canvas.paragraph(
        60,
        y + 24,
        470,
        "Load test: 42 tonnes lifted and held for ten minutes, sinking 3 mm. Result: passed. The crane was out of "
        "service from 07:30 to 15:45. Next inspection due in September 2025.",
        Style(12.5),
    )
    canvas.text(60, y + 44, "Stamp: HARBOUR WORKSHOP", mono)
    canvas.rect(Area(52, y + 24, 190, 34), stroke=INK)


def _rendered(draw: Callable[[Canvas], None], width: float, height: float, *, dpi: int) -> Image.Image:
    document = pymupdf.open()
    page = document.new_page(width=width, height=height)
    canvas = Canvas(page)
    draw(canvas)
    canvas.finish()
    pixmap = page.get_pixmap(dpi=dpi)
    return Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples)


def _perspective(corners: tuple[tuple[float, float], ...], size: tuple[int, int]) -> list[float]:
    """The eight coefficients that Pillow wants: from a point of the photo to a point of the sheet."""
    width, height = size
    sheet = ((0, 0), (width, 0), (width, height), (0, height))
    rows: list[list[float]] = []
    wanted: list[float] = []
    for (x, y), (u, v) in zip(corners, sheet, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
        wanted += [u, v]
    return [float(value) for value in np.linalg.solve(np.array(rows), np.array(wanted))]


def _jpeg(picture: Image.Image, *, quality: int) -> bytes:
    target = io.BytesIO()
    picture.save(target, "JPEG", quality=quality, dpi=(150, 150))
    return target.getvalue()
