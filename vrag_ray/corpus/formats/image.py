"""Pictures through Pillow, upright by EXIF, RGB on a ground that shows them.

Each page of a TIFF, each still of an animation is a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from PIL import Image, ImageOps
from PIL.TiffImagePlugin import TiffImageFile

from vrag_ray.corpus.elements import elements
from vrag_ray.corpus.formats.source import Opening, damage, is_memory_error
from vrag_ray.corpus.model import DecodedUnit, DecodeError, Probe, title_from_name, words_from_name
from vrag_ray.corpus.ocr import is_blank, lines_of_words, ocr_pixels
from vrag_ray.corpus.passages import BLANK, OCR_CONFIDENCE, TEXT_FROM_NAME
from vrag_ray.corpus.png import crop_png, fitting_scale, resized
from vrag_ray.corpus.tables import text_with_tables
from vrag_ray.types import Box, DocumentKind, Locator, Meta, MetaValue, PageText, PassageKind

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText

FORMATS = ("JPEG", "PNG", "WEBP", "TIFF", "GIF", "BMP", "DIB", "PPM", "JPEG2000", "AVIF", "HEIF")
PAGED = frozenset(("TIFF", "HEIF"))
"""Formats whose frames are pages of their own; those of others are an animation."""
MOST_FRAMES_LOOKED_AT = 1000
MOST_STILLS = 40
"""Pages that an animation becomes."""
LOOKED_AT_PIXELS = 256 * 256
"""An animation is compared with itself at this size."""
VISIBLE = 48
"""Of 256 levels of a colour: a difference that a pixel shows."""
MOST_SAME = 0.001
"""Share of pixels that may differ visibly between two frames of one page."""
SMALL_SIDE = 1000
"""A picture whose longer side is shorter is read at double size: the detector misses type of a few pixels."""
_ORIENTATION, _DATE_TIME, _SIDEWAYS = 0x0112, 0x0132, (5, 6, 7, 8)
_SUBFILE_TYPE, _REDUCED = 254, 1
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
            self._file = opening.path.open("rb")
        try:
            with damage(UNREADABLE):
                _add_heif(self._file)
                # No path: Pillow maps the pixels of a path, with rows and columns exchanged where a TIFF is turned.
                self._image = Image.open(self._file, formats=FORMATS)
            self._check_size()
        except Exception:
            self._file.close()
            raise
        self._shown: tuple[int, Image.Image] | None = None
        self._stills: tuple[list[int], int] | None = None
        self._damaged: set[int] = set()

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
        frames, notices = self._frames(), list[str]()
        if frames > 1:
            meta["frames"] = frames
        pages, left_out = self._pages()
        if left_out:
            notices.append(
                f"{left_out} of its {frames} frames are left out: {len(pages)} of those that differ are read"
            )
        return Probe(
            DocumentKind.IMAGE,
            len(pages),
            title_from_name(self._opening.name),
            meta=meta,
            notices=tuple(notices),
            scans=len(pages) if self._opening.options.ocr else 0,
        )

    def locator(self, unit: int) -> Locator:
        return Locator(page=unit + 1)

    def unit(self, unit: int) -> DecodedUnit:
        """The text OCR reads; where it reads none, the words of the file name, marked as such in the metadata.

        A blank picture has no text at all, so that no search finds it.
        """
        if is_blank(np.asarray(self._pixels(unit + 1))):
            return DecodedUnit(unit, PassageKind.IMAGE, self.locator(unit), meta={BLANK: True})
        seen = self._ocr(unit + 1)
        if seen is not None and len(seen.text) >= self._opening.options.ocr_min_chars:
            lines = lines_of_words(seen.words)
            meta: Meta = {OCR_CONFIDENCE: round(seen.confidence, 2)}
            return DecodedUnit(
                unit, PassageKind.IMAGE, self.locator(unit), seen.text, lines, seen.words, ocr=True, meta=meta
            )
        parts = (words_from_name(self._opening.name), "" if seen is None else seen.text)
        return DecodedUnit(
            unit,
            PassageKind.IMAGE,
            self.locator(unit),
            "\n".join(part for part in parts if part),
            words=() if seen is None else seen.words,
            ocr=seen is not None,
            notices=() if seen is None else seen.notices,
            meta={TEXT_FROM_NAME: True},
        )

    def page_text(self, locator: Locator) -> PageText:
        """What OCR reads, its tables as Markdown; empty where OCR is off. Width and height in pixels of the upright
        picture."""
        page = self._checked(locator)
        seen = self._ocr(page)
        width, height = self._pixels(page).size
        words = seen.words if seen else ()
        text = text_with_tables(words, width / height) or (seen.text if seen else "")
        parts = elements(words, width / height)
        return PageText(self._opening.path.name, locator, text, words, width=width, height=height, elements=parts)

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:
        """PNG of the picture or of ``box`` of it, scaled by ``dpi / 150`` but never above its own pixels."""
        return crop_png(self._pixels(self._checked(locator)), dpi=dpi, box=box, max_pixels=max_pixels)

    def close(self) -> None:
        self._image.close()
        self._file.close()

    def _check_size(self) -> None:
        width, height = self._image.size
        limit = self._opening.limits.max_pixels
        if width * height > limit:
            raise DecodeError(
                f"has {width} x {height} = {width * height / 1e6:.1f} million pixels, more than the limit of "
                f"{limit / 1e6:g}: scale it down or raise corpus.limits.max_pixels"
            )

    def _checked(self, locator: Locator) -> int:
        """The page that ``locator`` names. Raises DecodeError where there is none."""
        # The first page is there without a look at all others.
        if locator.page == 1 or (locator.page is not None and 1 <= locator.page <= len(self._pages()[0])):
            return locator.page
        count = len(self._pages()[0])
        has = "is a single picture" if count == 1 else f"has {count} pages"
        raise DecodeError(f"{has} and has no {locator}" if count == 1 else f"{has} and no {locator}")

    def _frames(self) -> int:
        if isinstance(self._image, TiffImageFile):
            return self._frames_of_tiff(self._image)
        with damage(DAMAGED):
            return int(getattr(self._image, "n_frames", 1))

    def _frames_of_tiff(self, image: TiffImageFile) -> int:
        """How many frames a TIFF has, those included whose directory is damaged or cut off, which are remembered.

        Pillow does not fail a second time at such a frame: it shows the frame before.
        """
        try:
            return image.n_frames
        except Exception as error:
            if is_memory_error(error):
                raise
        frame = 0
        # Two in a row: the chain of directories leads nowhere.
        while not {frame - 2, frame - 1} <= self._damaged:
            try:
                image.seek(frame)
            except EOFError:
                break
            except Exception as error:
                if is_memory_error(error):
                    raise
                self._damaged.add(frame)
            frame += 1
        image.seek(0)
        return frame

    def _pages(self) -> tuple[list[int], int]:
        """The frame (from 0) of each page, and how many frames that should be pages are not."""
        if self._stills is None:
            frames = self._frames()
            if frames == 1 or self._image.format == "MPO":
                # The further pictures of a camera's JPEG are its preview, or the view of the other eye.
                self._stills = [0], 0
            elif self._image.format in PAGED:
                pages = [frame for frame in range(frames) if not self._is_preview(frame)] or [0]
                most = self._opening.limits.max_pages
                self._stills = pages[:most], max(0, len(pages) - most)
            else:
                self._stills = self._differing(frames)
        return self._stills

    def _is_preview(self, frame: int) -> bool:
        """Whether a frame of a TIFF says that it is another one in small."""
        if not isinstance(self._image, TiffImageFile) or frame in self._damaged:
            return False
        with damage(DAMAGED):
            self._image.seek(frame)
            return bool(int(self._image.tag_v2.get(_SUBFILE_TYPE, 0)) & _REDUCED)

    def _differing(self, frames: int) -> tuple[list[int], int]:
        """The frames of an animation that differ visibly from the page before, at most ``MOST_STILLS``, evenly."""
        stills: list[int] = []
        before: np.ndarray | None = None
        looked_at = min(frames, MOST_FRAMES_LOOKED_AT)
        for frame in range(looked_at):
            try:
                self._image.seek(frame)
                scale = min(1.0, (LOOKED_AT_PIXELS / (self._image.width * self._image.height)) ** 0.5)
                size = (max(1, round(self._image.width * scale)), max(1, round(self._image.height * scale)))
                now = np.asarray(rgb(self._image).resize(size, Image.Resampling.BOX), dtype=np.int16)
            except Exception as error:
                if is_memory_error(error):
                    raise
                # A file that ends early shows what it has.
                looked_at = frame
                break
            if before is None or (np.abs(now - before).max(axis=2) > VISIBLE).mean() > MOST_SAME:
                stills.append(frame)
                before = now
        unseen = frames - looked_at
        if len(stills) <= MOST_STILLS:
            return stills or [0], unseen
        even = [stills[number * len(stills) // MOST_STILLS] for number in range(MOST_STILLS)]
        return even, unseen + len(stills) - MOST_STILLS

    def _ocr(self, page: int) -> OcrText | None:
        image = self._pixels(page)
        if not self._opening.options.ocr:
            return None
        factor = 2.0 if max(image.size) < SMALL_SIDE else 1.0
        scale = fitting_scale(image.width, image.height, factor, ocr_pixels(*image.size))
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        return self._opening.read(np.asarray(resized(image, size, (0, 0, *image.size))))

    def _pixels(self, page: int) -> Image.Image:
        """The upright picture of a page; the last one is held, since text and pixels are mostly requested together."""
        if self._shown is None or self._shown[0] != page:
            frame = 0 if page == 1 else self._pages()[0][page - 1]
            if frame in self._damaged:
                raise DecodeError(DAMAGED)
            with damage(DAMAGED):
                if frame or self._image_is_elsewhere(frame):
                    self._image.seek(frame)
                    self._check_size()
                self._image.load()
                self._shown = (page, rgb(_upright(self._image)))
        return self._shown[1]

    def _image_is_elsewhere(self, frame: int) -> bool:
        return bool(getattr(self._image, "tell", int)() != frame)


def _add_heif(file: BinaryIO) -> None:
    """Teach Pillow to read HEIC, where that is what it is going to see."""
    if file.read(8)[4:] != b"ftyp":
        return
    from pillow_heif import register_heif_opener

    register_heif_opener(thumbnails=False)


def _upright(image: Image.Image) -> Image.Image:
    """As EXIF says; as it is where that is damaged, which ``probe`` notes."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception as error:
        if is_memory_error(error):
            raise
        return image


def rgb(image: Image.Image) -> Image.Image:
    """RGB on white, on black where white shows nothing of the picture.

    Pictures of 16 bits a pixel keep their upper 8; Pillow's own conversion would clip them.
    """
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        values = np.asarray(image, dtype=np.float32)
        top = 65535.0 if image.mode.startswith("I;16") or float(values.max(initial=0)) > 255 else 255.0
        image = Image.fromarray(np.clip(values * (255.0 / top), 0, 255).astype(np.uint8))
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        on_white = _on_ground("white", layer)
        if not is_blank(np.asarray(on_white)):
            return on_white
        on_black = _on_ground("black", layer)
        return on_white if is_blank(np.asarray(on_black)) else on_black
    return image.convert("RGB")


def _on_ground(colour: str, layer: Image.Image) -> Image.Image:
    return Image.alpha_composite(Image.new("RGBA", layer.size, colour), layer).convert("RGB")
