"""What is to be seen of a page, at page size and closer."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest
from PIL import Image

from benchmarks.mosaic.world.colours import COLOURS, Colour
from benchmarks.mosaic.world.drawing import draw, page_pixels, page_png, page_side, print_box
from benchmarks.mosaic.world.expert import print_crop
from benchmarks.mosaic.world.page import BODY, CELLS, Page, cell_box
from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.corpus.png import crop_png
from vrag_ray.imaging.coordinates import FAMILIES, Size, View, with_margin
from vrag_ray.library.page_images import fitted
from vrag_ray.types import FULL_PAGE, Box, DocumentKind, FamilyName, Locator

FAMILY_NAMES = list(FamilyName)
PLACE = Locator(page=1)


def printed(*colours: Colour) -> Page:
    """Every cell of the body that may be is fine print, in turns of ``colours``."""
    cells = [COLOURS[2]] * len(CELLS)
    for index, cell in enumerate(BODY):
        cells[CELLS.index(cell)] = colours[index % len(colours)]
    return Page(name="amber falcon", cells=tuple(cells), prints=BODY)


def request_for(family: FamilyName, region: Box | None = None) -> PictureRequest:
    area = page_side(FAMILIES[family]) ** 2
    patch = FAMILIES[family].patch
    return PictureRequest("amber falcon", PLACE, region, None, patch, area if region else patch**2, area)


def seen(page: Page, family: FamilyName, region: Box | None = None) -> np.ndarray:
    picture = draw(page_pixels(page), request_for(family, region))
    with Image.open(io.BytesIO(picture.png)) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def inner(picture: np.ndarray, cell: str) -> np.ndarray:
    """A cell of a page as shown, without the pixels into which its neighbours bleed."""
    side = picture.shape[0]
    x0, y0, x1, y1 = (round(edge * side) for edge in cell_box(cell).as_tuple())
    return picture[y0 + 4 : y1 - 4, x0 + 4 : x1 - 4]


def test_a_page_file_holds_its_pixels() -> None:
    page = printed(*COLOURS)
    with Image.open(io.BytesIO(page_png(page))) as image:
        assert image.size == (448, 448)
        assert np.array_equal(np.asarray(image), page_pixels(page))


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_a_page_is_shown_in_four_by_four_visual_tokens_with_its_colours(family: FamilyName) -> None:
    page = Page(name="amber falcon", cells=COLOURS)
    picture = seen(page, family)
    assert picture.shape == (4 * FAMILIES[family].patch, 4 * FAMILIES[family].patch, 3)
    for cell, colour in zip(CELLS, COLOURS, strict=True):
        assert np.abs(inner(picture, cell) - colour.rgb).max() <= 3


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_fine_print_of_any_colour_is_one_grey_at_page_size(family: FamilyName) -> None:
    pictures = [seen(printed(colour), family) for colour in COLOURS]
    for cell in BODY:
        values = np.stack([inner(picture, cell) for picture in pictures])
        assert values.min() >= 126
        assert values.max() <= 129


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_the_cropped_middle_begins_with_the_colour_of_the_fine_print(family: FamilyName) -> None:
    known = FAMILIES[family]
    shown = View(FULL_PAGE, Size(page_side(known), page_side(known)))
    for index, cell in enumerate(BODY):
        colour = COLOURS[index % len(COLOURS)]
        region = with_margin(known.codec.decode(print_crop(cell, known), shown))
        picture = seen(printed(*COLOURS), family, region)
        assert picture.shape == (page_side(known), page_side(known), 3)
        square = picture.shape[0] / 8.5
        first, second = picture[round(0.75 * square), [round(0.75 * square), round(1.75 * square)]]
        assert np.abs(first - colour.rgb).max() < 64
        assert np.abs(second - colour.complement.rgb).max() < 64


def test_every_spot_of_a_cell_reads_the_same_in_whole_pixels_of_the_older_family() -> None:
    known = FAMILIES[FamilyName.QWEN2_5_VL]
    shown = View(FULL_PAGE, Size(112, 112))
    spots = [with_margin(known.codec.decode((x, y, x + 2, y + 2), shown)) for x, y in ((33, 33), (40, 51), (36, 47))]
    first, *others = [seen(printed(Colour.ROSE), FamilyName.QWEN2_5_VL, spot) for spot in spots]
    assert all(np.abs(other - first).max() <= 2 for other in others)


@pytest.mark.parametrize("family", FAMILY_NAMES)
@pytest.mark.parametrize("region", [None, with_margin(print_box("c3")), Box(0.1, 0.2, 0.7, 0.5)])
def test_pictures_are_those_of_the_serving_path(family: FamilyName, region: Box | None) -> None:
    page = printed(*COLOURS)
    request = request_for(family, region)

    async def from_file(place: Locator, dpi: float, box: Box | None) -> bytes:
        return crop_png(Image.open(io.BytesIO(page_png(page))), dpi=dpi, box=box, max_pixels=16_000_000)

    served: Picture = asyncio.run(fitted(request, DocumentKind.IMAGE, (448.0, 448.0), from_file))
    assert draw(page_pixels(page), request) == served
