import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.support.documents import decoded, image_bytes, open_png, picture_of
from vrag_ray.corpus.model import DecodeError, WorkItem, words_from_name
from vrag_ray.types import Box, DocumentKind, Locator, PassageKind

IMAGE = DocumentKind.IMAGE
PAGE = Locator(page=1)
LOTS = 10_000_000


def item(name: str) -> WorkItem:
    return WorkItem("doc", IMAGE, 0, 1, name)


@pytest.mark.parametrize(
    ("format_", "suffix"),
    [
        ("JPEG", "jpg"),
        ("PNG", "png"),
        ("WEBP", "webp"),
        ("TIFF", "tif"),
        ("GIF", "gif"),
        ("BMP", "bmp"),
        ("PPM", "ppm"),
        ("JPEG2000", "jp2"),
        ("AVIF", "avif"),
        ("HEIF", "heic"),
    ],
)
def test_every_picture_format_is_probed_and_rendered(sandbox, put, format_, suffix):
    from pillow_heif import register_heif_opener

    register_heif_opener()
    name = f"blue-sky.{suffix}"
    path = put(name, image_bytes(Image.new("RGB", (60, 40), "blue"), format_))
    probe = sandbox.probe(path, name)
    assert (probe.kind, probe.units, probe.title) == (IMAGE, 1, "blue sky")
    assert probe.meta == {"width": 60, "height": 40, "format": format_}
    image = open_png(sandbox.render(path, IMAGE, PAGE, dpi=150, box=None, max_pixels=LOTS))
    assert image.size == (60, 40)
    assert image.convert("RGB").getpixel((30, 20)) == pytest.approx((0, 0, 255), abs=8)


def frames_in(format_: str, frames: list[Image.Image]) -> bytes:
    buffer = io.BytesIO()
    frames[0].save(buffer, format_, save_all=True, append_images=frames[1:])
    return buffer.getvalue()


@pytest.mark.parametrize("format_", ["TIFF", "GIF", "WEBP", "PNG"])
def test_every_frame_is_a_page(sandbox, put, no_ocr, format_):
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "lime", "blue")]
    path = put("a.x", frames_in(format_, frames))
    name = f"a.{format_.lower()}"
    probe = sandbox.probe(path, name)
    assert (probe.units, probe.meta["frames"], probe.notices) == (3, 3, ())
    units = decoded(sandbox, path, WorkItem("doc", IMAGE, 0, 3, name), no_ocr)
    assert [unit.locator for unit in units] == [Locator(page=1), Locator(page=2), Locator(page=3)]
    for page, colour in ((3, (0, 0, 255)), (1, (255, 0, 0))):
        image = open_png(sandbox.render(path, IMAGE, Locator(page=page), dpi=150, box=None, max_pixels=LOTS))
        assert image.convert("RGB").getpixel((5, 5)) == pytest.approx(colour, abs=8)
    with pytest.raises(DecodeError, match="has 3 pages and no page 4"):
        sandbox.page_text(path, IMAGE, Locator(page=4), no_ocr)


def test_each_page_of_a_fax_is_read(sandbox, put, options):
    ships = ("Alma", "Berta")
    path = put("fax.tif", frames_in("TIFF", [picture_of([f"The dredger {ship} left."]) for ship in ships]))
    units = decoded(sandbox, path, WorkItem("doc", IMAGE, 0, 2, "fax.tif"), options)
    assert [unit.text for unit in units] == ["The dredger Alma left.", "The dredger Berta left."]


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_each_page_of_an_uncompressed_tiff_stands_as_its_orientation_says(sandbox, put, orientation):
    upright = Image.new("L", (60, 40), 255)
    upright.paste(0, (0, 0, 10, 20))
    turned = upright.rotate({1: 0, 3: 180, 6: 90, 8: 270}[orientation], expand=True)
    buffer = io.BytesIO()
    turned.save(buffer, "TIFF", save_all=True, append_images=[turned], tiffinfo={274: orientation})
    path = put("a", buffer.getvalue())
    for page in (1, 2, 1):
        image = open_png(sandbox.render(path, IMAGE, Locator(page=page), dpi=150, box=None, max_pixels=LOTS))
        assert np.array_equal(np.asarray(image.convert("L")), np.asarray(upright))


def test_a_tiff_whose_end_is_missing_has_the_pages_before_it(sandbox, put, no_ocr):
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "lime", "blue")]
    whole = frames_in("TIFF", frames)
    path = put("a", whole[: len(whole) * 2 // 3 + 20])
    assert sandbox.probe(path, "a.tif").units == 3
    units = decoded(sandbox, path, WorkItem("doc", IMAGE, 0, 3, "a.tif"), no_ocr)
    assert ["cut short" in unit.error for unit in units] == [False, False, True]
    for page, colour in enumerate([(255, 0, 0), (0, 255, 0)], 1):
        image = open_png(sandbox.render(path, IMAGE, Locator(page=page), dpi=150, box=None, max_pixels=LOTS))
        assert image.convert("RGB").getpixel((5, 5)) == colour


def test_of_an_animation_only_frames_that_differ_are_pages_and_not_too_many(sandbox, put):
    still, other = Image.new("RGB", (40, 40), "white"), Image.new("RGB", (40, 40), "navy")
    speck = still.copy()
    speck.putpixel((3, 3), (240, 240, 240))
    assert sandbox.probe(put("a", frames_in("GIF", [still, speck, other])), "a.gif").units == 2
    grey = [Image.new("RGB", (8, 8), (0, 0, 0) if n % 2 else (255, 255, 255)) for n in range(60)]
    probe = sandbox.probe(put("b", frames_in("WEBP", grey)), "b.webp")
    assert (probe.units, probe.notices) == (40, ("20 of its 60 frames are left out: 40 of those that differ are read",))


def test_a_preview_in_a_tiff_is_no_page(sandbox, put):
    buffer, page = io.BytesIO(), Image.new("L", (40, 40), 90)
    small = page.resize((8, 8))
    small.encoderinfo = {"tiffinfo": {254: 1}}
    page.save(buffer, "TIFF", save_all=True, append_images=[small])
    assert sandbox.probe(put("a", buffer.getvalue()), "a.tif").units == 1


def test_exif_orientation_is_applied_to_size_pixels_and_boxes(sandbox, put, no_ocr):
    picture = Image.new("RGB", (60, 40), "white")
    picture.paste("red", (0, 0, 10, 10))
    path = put("t.jpg", image_bytes(picture, "JPEG", orientation=6))
    probe = sandbox.probe(path, "t.jpg")
    assert (probe.meta["width"], probe.meta["height"]) == (40, 60)
    page = sandbox.page_text(path, IMAGE, PAGE, no_ocr)
    assert (page.width, page.height, page.text) == (40, 60, "")
    corner = Box(0.75, 0.0, 1.0, 10 / 60)
    image = open_png(sandbox.render(path, IMAGE, PAGE, dpi=150, box=corner, max_pixels=LOTS))
    assert image.size == (10, 10)
    assert image.convert("RGB").getpixel((5, 5)) == pytest.approx((254, 0, 0), abs=10)


def test_transparency_is_laid_on_white_and_16_bit_grey_keeps_its_levels(sandbox, put):
    clear = put("c.png", image_bytes(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), "PNG"))
    image = open_png(sandbox.render(clear, IMAGE, PAGE, dpi=150, box=None, max_pixels=LOTS))
    assert image.convert("RGB").getpixel((1, 1)) == (255, 255, 255)
    deep = put("d.png", image_bytes(Image.fromarray(np.full((8, 8), 32768, np.uint16)), "PNG"))
    image = open_png(sandbox.render(deep, IMAGE, PAGE, dpi=150, box=None, max_pixels=LOTS))
    assert image.convert("RGB").getpixel((1, 1)) == (127, 127, 127)


def test_a_white_drawing_on_a_transparent_ground_is_read(sandbox, put, options):
    ink = Image.new("RGBA", (900, 300), "white")
    ink.putalpha(ImageOps.invert(picture_of(["Gate 4417 opens at noon"]).convert("L")))
    path = put("white.png", image_bytes(ink, "PNG"))
    (unit,) = decoded(sandbox, path, item("white.png"), options)
    assert unit.text == "Gate 4417 opens at noon"


def test_text_in_a_picture_is_read_with_boxes(sandbox, put, options):
    path = put("chart.png", image_bytes(picture_of(["Revenue by quarter", "Q3 1250 units"]), "PNG"))
    (unit,) = decoded(sandbox, path, item("chart.png"), options)
    assert unit.kind is PassageKind.IMAGE
    assert unit.ocr
    assert unit.text == "Revenue by quarter\nQ3 1250 units"
    box = next(word.box for word in unit.words if word.text == "1250")
    crop = open_png(sandbox.render(path, IMAGE, PAGE, dpi=150, box=box.padded(0.02, 0.05), max_pixels=LOTS))
    assert np.asarray(crop.convert("L")).min() < 100
    again = put("crop.png", image_bytes(crop.convert("RGB"), "PNG"))
    assert "1250" in decoded(sandbox, again, item("crop.png"), options)[0].text


@pytest.mark.parametrize("colour", ["white", "gray", "black"])
def test_a_blank_picture_has_no_text_not_even_its_name(sandbox, put, options, colour):
    path = put("harbour_at-night.png", image_bytes(Image.new("RGB", (200, 100), colour), "PNG"))
    (unit,) = decoded(sandbox, path, item("harbour_at-night.png"), options)
    assert (unit.text, unit.meta, unit.words) == ("", {"blank": True}, ())


def test_a_picture_without_text_is_found_by_its_name_and_says_so(sandbox, put, options):
    path = put("harbour_at-night.png", image_bytes(Image.new("RGB", (200, 100), "navy"), "PNG"))
    (unit,) = decoded(sandbox, path, item("harbour_at-night.png"), options)
    assert (unit.text, unit.meta, unit.words) == ("harbour at night", {"text_from_name": True}, ())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("harbour_at-night.jpg", "harbour at night"),
        ("IMG_1234.jpg", "IMG 1234"),
        ("d3fbb93662c1d5e2.png", ""),
        ("0b8f6a52-91c4-4f0e-9d0a-6f2e9c1b7a55.png", ""),
        ("decade.png", "decade"),
    ],
)
def test_a_name_that_is_a_hash_or_a_uuid_gives_no_words(name: str, words: str) -> None:
    assert words_from_name(name) == words


def test_a_picture_is_never_enlarged_and_shrinks_to_the_limit(sandbox, put):
    path = put("a.png", image_bytes(Image.new("RGB", (600, 400)), "PNG"))
    assert open_png(sandbox.render(path, IMAGE, PAGE, dpi=600, box=None, max_pixels=LOTS)).size == (600, 400)
    assert open_png(sandbox.render(path, IMAGE, PAGE, dpi=75, box=None, max_pixels=LOTS)).size == (300, 200)
    small = open_png(sandbox.render(path, IMAGE, PAGE, dpi=150, box=None, max_pixels=6_000))
    assert small.width * small.height <= 6_000
    assert small.width / small.height == pytest.approx(1.5, rel=0.03)


def test_a_second_page_of_a_picture_is_an_error(sandbox, put):
    path = put("a.png", image_bytes(Image.new("RGB", (6, 4)), "PNG"))
    with pytest.raises(DecodeError, match="single picture and has no page 2"):
        sandbox.render(path, IMAGE, Locator(page=2), dpi=72, box=None, max_pixels=LOTS)


def test_damaged_exif_costs_the_orientation_and_not_the_picture(sandbox, put, no_ocr):
    data = io.BytesIO()
    picture_of(["upright"]).save(data, "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff\x01\x12")
    path = put("a.jpg", data.getvalue())
    probe = sandbox.probe(path, "a.jpg")
    assert (probe.meta["width"], probe.meta["height"]) == (900, 300)
    (unit,) = decoded(sandbox, path, WorkItem("doc", DocumentKind.IMAGE, 0, 1, "a.jpg"), no_ocr)
    assert unit.error == ""
