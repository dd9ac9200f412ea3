"""Well-behaved documents made by code, for the tests of this folder."""

from __future__ import annotations

import io
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.formats.registry import open_source
from vrag_ray.corpus.formats.source import Opening
from vrag_ray.corpus.model import DecodedUnit, DecodeOptions, WorkItem
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.types import DocumentKind, Locator, PageText

ASS_HEADER = (
    b"[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname, Fontsize\nStyle: Default,Arial,16\n\n"
    b"[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
)


def text_pdf(pages: Sequence[str], *, rotation: int = 0, title: str = "", crop: bool = False) -> bytes:
    """One string a page at (100, 120) of a 612 x 792 page, with an outline entry a page."""
    import pymupdf

    document = pymupdf.open()
    for text in pages:
        page = document.new_page(width=612, height=792)
        page.insert_text((100, 120), text, fontsize=20)
        if crop:
            page.set_cropbox(pymupdf.Rect(40, 30, 612, 792))
        page.set_rotation(rotation)
    document.set_toc([[1, f"Part {number}", number] for number in range(1, len(pages) + 1)])
    if title:
        document.set_metadata({"title": title})
    return bytes(document.tobytes())


def picture_of(lines: Sequence[str], *, size: tuple[int, int] = (900, 300), ink: str = "black") -> Image.Image:
    """Lines of large type on white."""
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        draw.text((40, 40 + 70 * row), line, fill=ink, font=ImageFont.load_default(40))
    return image


def spaced_picture(text: str, *, gap: int = 10) -> Image.Image:
    """One line with ``gap`` pixels more between its letters, twice that at spaces, as slides set their capitals."""
    font = ImageFont.load_default(34)
    steps = [font.getlength(letter) + gap * (2 if letter == " " else 1) for letter in text]
    image = Image.new("RGB", (round(sum(steps)) + 80, 120), "white")
    draw = ImageDraw.Draw(image)
    for place, letter in enumerate(text):
        draw.text((40 + sum(steps[:place]), 40), letter, fill="black", font=font)
    return image


def image_bytes(image: Image.Image, format_: str, *, orientation: int = 1) -> bytes:
    buffer = io.BytesIO()
    if orientation == 1:
        image.save(buffer, format_)
    else:
        exif = Image.Exif()
        exif[0x0112] = orientation
        image.save(buffer, format_, exif=exif)
    return buffer.getvalue()


def scanned_pdf(lines: Sequence[str]) -> bytes:
    """A page that is a picture of text, as a scanner makes it."""
    import pymupdf

    document = pymupdf.open()
    page = document.new_page(width=432, height=144)
    page.insert_image(page.rect, stream=image_bytes(picture_of(lines), "PNG"))
    return bytes(document.tobytes())


def video(
    path: Path,
    seconds: int,
    *,
    captions: Sequence[tuple[float, float, str]] = (),
    pictures: Sequence[Image.Image] = (),
    codec: str = "libx264",
) -> Path:
    """Two frames a second; frame ``i`` is flat grey of level ``2 * i``, or the pictures in equal shares."""
    import av
    from av.subtitles.subtitle import SubtitleSet

    size = pictures[0].size if pictures else (160, 120)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=2)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        subtitles = None
        if captions:
            subtitles = container.add_stream("mov_text" if path.suffix == ".mp4" else "subrip")
            subtitles.codec_context.subtitle_header = ASS_HEADER
            subtitles.codec_context.time_base = subtitles.time_base = Fraction(1, 1000)
        container.start_encoding()
        for index in range(2 * seconds):
            if pictures:
                array = np.asarray(pictures[index * len(pictures) // (2 * seconds)])
            else:
                array = np.full((size[1], size[0], 3), 2 * index, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(array, format="rgb24")))
        container.mux(stream.encode(None))
        for number, (start, end, text) in enumerate(captions):
            event = b"%d,0,Default,,0,0,0,,%s" % (number, text.encode())
            packet = subtitles.codec_context.encode_subtitle(
                SubtitleSet.create(event, 0, round((end - start) * 1000), pts=round(start * 1e6))
            )
            packet.stream, packet.time_base = subtitles, Fraction(1, 1000)
            packet.pts = packet.dts = round(start * 1000)
            packet.duration = round((end - start) * 1000)
            container.mux(packet)
    return path


def turned(mp4: bytes) -> bytes:
    """The same MP4 marked, as phones do, as lying on its side: players turn it by 90 degrees clockwise."""
    upright = bytes.fromhex("00010000 00000000 00000000 00000000 00010000")
    clockwise = bytes.fromhex("00000000 00010000 00000000 ffff0000 00000000")
    header = mp4.index(b"tkhd")
    matrix = mp4.index(upright, header)
    return mp4[:matrix] + clockwise + mp4[matrix + len(clockwise) :]


def open_png(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    assert image.format == "PNG"
    return image


def ink_box(image: Image.Image) -> tuple[int, int, int, int]:
    box = image.convert("L").point(lambda level: 255 if level < 128 else 0).getbbox()
    assert box is not None
    return box


def decoded(sandbox: Sandbox, path: Path, item: WorkItem, options: DecodeOptions) -> list[DecodedUnit]:
    """All units of ``item``; raises what ends the stream."""
    return list(sandbox.stream(path, item, options))


def first_page(path: Path) -> PageText:
    """The first page of a PDF, without OCR."""
    options = DecodeOptions.from_config(CorpusConfig(ocr=False))
    opening = Opening(path, path.name, options, DecodeLimits(), lambda _: pytest.fail("no picture is read"))
    source = open_source(DocumentKind.PDF, opening)
    try:
        return source.page_text(Locator(page=1))
    finally:
        source.close()
