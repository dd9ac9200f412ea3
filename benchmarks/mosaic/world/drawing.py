"""Pages as pixels, and pictures of them exactly as the serving path draws them.

Fine print is a checkerboard of squares of ``PRINT_PIXELS``. At page size (``PAGE_TOKENS`` visual tokens) two squares
fall on about one shown pixel, so that it is one even grey whatever its colours are. A crop can enlarge its middle
(``print_box``) so far that each square fills about a patch. For Qwen2.5-VL a shown pixel is two squares wide, so
every such crop at whole pixels begins with the same square.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.mosaic.world.page import CELLS, GRID, Page, cell_box
from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.corpus.png import NATIVE_DPI, crop_png, png_bytes
from vrag_ray.imaging import fitting
from vrag_ray.imaging.coordinates import ModelFamily, Size, model_size
from vrag_ray.types import FULL_PAGE, Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

CELL_PIXELS = 112
SIDE_PIXELS = GRID * CELL_PIXELS
PRINT_PIXELS = 2
PAGE_TOKENS = GRID
"""Visual tokens a side at which a page is shown: one a cell."""
_PRINT_SHARE = 1 / (PAGE_TOKENS * 14)
"""Of the page's side, a print box: two pixels of 112."""


def page_side(family: ModelFamily) -> int:
    """Pixels a side of a page as it is shown to models of ``family``: 112 or 128."""
    return PAGE_TOKENS * family.patch


def page_pixels(page: Page) -> NDArray[np.uint8]:
    """[448, 448, 3], RGB."""
    steps = np.arange(CELL_PIXELS) // PRINT_PIXELS
    odd = (steps[:, None] + steps[None, :]) % 2 == 1
    pixels = np.empty((SIDE_PIXELS, SIDE_PIXELS, 3), np.uint8)
    for index, (cell, colour) in enumerate(zip(CELLS, page.cells, strict=True)):
        row, column = divmod(index, GRID)
        square = pixels[row * CELL_PIXELS : (row + 1) * CELL_PIXELS, column * CELL_PIXELS : (column + 1) * CELL_PIXELS]
        square[:] = colour.rgb
        if cell in page.prints:
            square[odd] = colour.complement.rgb
    return pixels


def page_png(page: Page) -> bytes:
    """The page's file."""
    from PIL import Image

    return png_bytes(Image.fromarray(page_pixels(page)))


def draw(pixels: NDArray[np.uint8], request: PictureRequest) -> Picture:
    """What ``request`` asks for of a page's pixels, as a collection's own page would be drawn."""
    from PIL import Image

    region = request.region or FULL_PAGE
    raw = Size(
        max(1, round(pixels.shape[1] * (region.x1 - region.x0))),
        max(1, round(pixels.shape[0] * (region.y1 - region.y0))),
    )
    size = model_size(raw, patch=request.patch, min_pixels=request.min_pixels, max_pixels=request.max_pixels)
    scale = max(size.width / raw.width, size.height / raw.height)
    png = crop_png(Image.fromarray(pixels), dpi=NATIVE_DPI * scale, box=request.region, max_pixels=pixels.size)
    return Picture(fitting.fitted(png, size), size)


def print_box(cell: str) -> Box:
    """What to crop in order to read the fine print of ``cell``: a spot in its middle (page fractions)."""
    box = cell_box(cell)
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    half = _PRINT_SHARE / 2
    return Box(x - half, y - half, x + half, y + half)
