"""Pages that only OCR can read: photographed on a wall, or scanned."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pymupdf
from PIL import Image, ImageFilter

from vrag_ray.drawing.canvas import Area, Box, Canvas, Point, finished

Corners = tuple[tuple[float, float], tuple[float, float], tuple[float, float], tuple[float, float]]
Draw = Callable[[Canvas], object]
SHEET = (595, 842)
"""A4 in points."""
CHART = (640, 480)
"""A wall chart, in points."""
_UNIT: Corners = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
_ASKEW = 0.5
"""Degrees by which a scanned sheet is turned, against the clock."""


@dataclass(frozen=True, slots=True)
class Shot:
    """How a sheet was photographed: where its corners (clockwise from the top left) fell, in fractions."""

    corners: Corners
    light: tuple[float, float]
    """Brightness at the left and the right edge."""
    wall: tuple[int, int, int]
    seed: int


def photographed(draw: Draw, shot: Shot) -> bytes:
    """A JPEG of a chart that hangs on a wall."""
    sheet = _rendered(draw, *CHART, dpi=150)
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


def scanned(draw: Draw, title: str, *, seed: int = 3) -> bytes:
    """A PDF of one page that is a picture, a little askew: it has no text layer."""
    sheet = _rendered(draw, *SHEET, dpi=150).convert("L")
    sheet = sheet.rotate(_ASKEW, resample=Image.Resampling.BICUBIC, fillcolor=250)
    grey = np.asarray(sheet, dtype=np.float32) + np.random.default_rng(seed).normal(0.0, 5.0, sheet.size[::-1])
    page_image = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.5))
    document = pymupdf.open()
    page = document.new_page(width=SHEET[0], height=SHEET[1])
    page.insert_image(page.rect, stream=_jpeg(page_image, quality=48))
    return finished(document, title)


def in_photograph(area: Area, shot: Shot) -> Box:
    """Where in the picture of ``photographed`` that part of the chart is, in fractions."""
    # From the sheet to the photo: the other way than that of the pixels.
    a, b, c, d, e, f, g, h = _coefficients(_UNIT, shot.corners)

    def moved(x: float, y: float) -> Point:
        x, y = x / CHART[0], y / CHART[1]
        scale = g * x + h * y + 1
        return (a * x + b * y + c) / scale, (d * x + e * y + f) / scale

    return _box([moved(*corner) for corner in area.corners])


def in_scan(area: Area) -> Box:
    """Where on the page of ``scanned`` that part of the sheet is, in fractions."""
    cos, sin = math.cos(math.radians(_ASKEW)), math.sin(math.radians(_ASKEW))
    middle_x, middle_y = SHEET[0] / 2, SHEET[1] / 2

    def turned(x: float, y: float) -> Point:
        x, y = x - middle_x, y - middle_y
        return (middle_x + x * cos + y * sin) / SHEET[0], (middle_y - x * sin + y * cos) / SHEET[1]

    return _box([turned(*corner) for corner in area.corners])


def _box(points: Sequence[Point]) -> Box:
    across, down = zip(*points, strict=True)
    return min(across), min(down), max(across), max(down)


def _rendered(draw: Draw, width: float, height: float, *, dpi: int) -> Image.Image:
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
    return _coefficients(corners, ((0, 0), (width, 0), (width, height), (0, height)))


def _coefficients(source: Sequence[Point], target: Sequence[Point]) -> list[float]:
    """Of the perspective that takes the four points of ``source`` to those of ``target``."""
    rows: list[list[float]] = []
    targets: list[float] = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
        targets += [u, v]
    return [float(value) for value in np.linalg.solve(np.array(rows), np.array(targets))]


def _jpeg(picture: Image.Image, *, quality: int) -> bytes:
    target = io.BytesIO()
    picture.save(target, "JPEG", quality=quality, dpi=(150, 150))
    return target.getvalue()
