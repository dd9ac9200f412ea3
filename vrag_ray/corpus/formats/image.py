"""Pictures through Pillow: first frame, upright by EXIF, RGB on white."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps

from vrag_ray.corpus.formats.source import Opening, damage, is_memory_error
from vrag_ray.corpus.model import DecodedUnit, DecodeError, Probe, title_from_name, words_from_name
from vrag_ray.corpus.ocr import OCR_PIXELS, lines_of_words
from vrag_ray.corpus.passages import BLANK, TEXT_FROM_NAME
from vrag_ray.corpus.png import crop_png, fitting_scale, resized
from vrag_ray.types import Box, DocumentKind, Locator, MetaValue, PageText, PassageKind

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "GIF")
INVISIBLE = 4
"""Of 256 levels of a colour: a difference that nobody sees."""
SMALL_SIDE = 1000
"""A picture whose longer side is shorter is read at double size: the detector misses type of a few pixels."""
_ORIENTATION, _DATE_TIME, _SIDEWAYS = 0x0112, 0x0132, (5, 6, 7, 8)
_AGAIN = "get the whole file again, or open it in a picture program and save it anew, as PNG for example"
UNREADABLE = f"is no readable picture: its header is damaged, or of a kind that the decoder does not know; {_AGAIN}"
DAMAGED = f"is a damaged or cut short picture, or compressed in a way that the decoder does not know; {_AGAIN}"


class ImageSource:
    """A picture whose header has been read and found within the limits; pixels are decoded on demand."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        # The check below replaces Pillow's, which only warns up to twice its limit.
        Image.MAX_IMAGE_PIXELS = None
        with damage(UNREADABLE):
            self._image = Image.open(opening.path, formats=FORMATS)
        width, height = self._image.size
        if width * height > opening.limits.max_pixels:
            self._image.close()
            raise DecodeError(
                f"has {width} x {height} = {width * height / 1e6:.1f} million pixels, more than the limit of "
                f"{opening.limits.max_pixels / 1e6:g}: scale it down or raise corpus.limits.max_pixels"
            )
        self._rgb: Image.Image | None = None

    def probe(self) -> Probe:
        width, height = self._image.size
        meta: dict[str, MetaValue] = {"format": str(self._image.format)}
        sideways, taken = False, None
        try:
            exif = self._image.getexif()
            sideways, taken = exif.get(_ORIENTATION) in _SIDEWAYS, exif.get(_DATE_TIME)
        except Exception as error:
            if is_memory_error(error):
                raise
            meta["exif_damaged"] = True
        meta |= {"width": height if sideways else width, "height": width if sideways else height}
        if isinstance(taken, str) and taken.isascii() and taken.isprintable():
            meta["taken"] = taken
        with damage(DAMAGED):
            if (frames := getattr(self._image, "n_frames", 1)) > 1:
                meta["frames"] = int(frames)
        return Probe(DocumentKind.IMAGE, 1, title_from_name(self._opening.name), meta=meta)

    def locator(self, unit: int) -> Locator:
        return Locator(page=unit + 1)

    def unit(self, unit: int) -> DecodedUnit:
        """The text OCR reads; where it reads none, the words of the file name, marked as such in the metadata.

        A blank picture has no text at all, so that no search finds it.
        """
        if _is_blank(self._pixels()):
            return DecodedUnit(unit, PassageKind.IMAGE, self.locator(unit), meta={BLANK: True})
        seen = self._ocr()
        if seen is not None and len(seen.text) >= self._opening.options.ocr_min_chars:
            lines = lines_of_words(seen.words)
            return DecodedUnit(unit, PassageKind.IMAGE, self.locator(unit), seen.text, lines, seen.words, ocr=True)
        parts = (words_from_name(self._opening.name), "" if seen is None else seen.text)
        return DecodedUnit(
            unit,
            PassageKind.IMAGE,
            self.locator(unit),
            "\n".join(part for part in parts if part),
            words=() if seen is None else seen.words,
            ocr=seen is not None,
            meta={TEXT_FROM_NAME: True},
        )

    def page_text(self, locator: Locator) -> PageText:
        """What OCR reads, empty where OCR is off. Width and height in pixels of the upright picture."""
        self._check(locator)
        seen = self._ocr()
        width, height = self._pixels().size
        return PageText(
            self._opening.path.name,
            locator,
            seen.text if seen else "",
            seen.words if seen else (),
            width=width,
            height=height,
        )

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:
        """PNG of the picture or of ``box`` of it, scaled by ``dpi / 150`` but never above its own pixels."""
        self._check(locator)
        return crop_png(self._pixels(), dpi=dpi, box=box, max_pixels=max_pixels)

    def close(self) -> None:
        self._image.close()

    def _check(self, locator: Locator) -> None:
        if locator.page != 1:
            raise DecodeError(f"is a single picture and has no {locator}")

    def _ocr(self) -> OcrText | None:
        image = self._pixels()
        if not self._opening.options.ocr:
            return None
        wanted = 2.0 if max(image.size) < SMALL_SIDE else 1.0
        scale = fitting_scale(image.width, image.height, wanted, OCR_PIXELS)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        return self._opening.read(np.asarray(resized(image, size, (0, 0, *image.size))))

    def _pixels(self) -> Image.Image:
        if self._rgb is None:
            with damage(DAMAGED):
                self._image.load()
                self._rgb = rgb(_upright(self._image))
        return self._rgb


def _upright(image: Image.Image) -> Image.Image:
    """As EXIF says; as it is where that is damaged, which ``probe`` notes."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception as error:
        if is_memory_error(error):
            raise
        return image


def _is_blank(image: Image.Image) -> bool:
    """Whether the picture is white, grey or black all over, to the eye: any other colour may be its subject."""
    pixels = np.asarray(image)
    return int(pixels.max()) - int(pixels.min()) <= INVISIBLE


def rgb(image: Image.Image) -> Image.Image:
    """RGB on white. Pictures of 16 bits a pixel keep their upper 8; Pillow's own conversion would clip them."""
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        values = np.asarray(image, dtype=np.float32)
        top = 65535.0 if image.mode.startswith("I;16") or float(values.max(initial=0)) > 255 else 255.0
        image = Image.fromarray(np.clip(values * (255.0 / top), 0, 255).astype(np.uint8))
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        ground = Image.new("RGBA", layer.size, "white")
        return Image.alpha_composite(ground, layer).convert("RGB")
    return image.convert("RGB")
