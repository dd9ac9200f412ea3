"""What a client's context takes: a picture is reduced until it fits, and stays the file that it is where it does."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from vrag_ray.mcp.pictures import MOST_BYTES, PictureFormat, fitted_picture


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def noise(height: int, width: int) -> bytes:
    """No format packs it well, as a photo."""
    return png(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


def test_a_picture_that_fits_is_not_written_anew():
    page = png(np.full((300, 200, 3), 255, np.uint8))
    picture = fitted_picture(page, max_side=2_000, format=PictureFormat.AUTO)
    assert picture.data is page
    assert (picture.format, picture.width, picture.height, picture.reduced_from) == ("png", 200, 300, "")


def test_a_photo_becomes_a_small_jpeg_that_says_its_size_before():
    picture = fitted_picture(noise(1_500, 2_400), max_side=2_000, format=PictureFormat.AUTO)
    assert picture.format is PictureFormat.JPEG
    assert len(picture.data) <= MOST_BYTES
    assert picture.reduced_from == ", reduced from 2400 x 1500"
    with Image.open(io.BytesIO(picture.data)) as shown:
        assert (shown.format, shown.size) == ("JPEG", (picture.width, picture.height))
        assert picture.width / picture.height == pytest.approx(1.6, abs=0.01)


@pytest.mark.parametrize(("format", "signature"), [(PictureFormat.PNG, b"\x89PNG"), (PictureFormat.JPEG, b"\xff\xd8")])
def test_a_format_that_is_named_is_kept_to_whatever_its_bytes(format, signature):
    picture = fitted_picture(noise(600, 800), max_side=700, format=format)
    assert picture.data.startswith(signature)
    assert (picture.width, picture.height) == (700, 525)
