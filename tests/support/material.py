"""Small documents made on the spot: a PDF, a picture, a video of known colours and a text."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

PAGE_SIZE = (612, 792)
PICTURE_SIZE = (320, 200)
COLOURS = {0: (200, 30, 30), 1: (30, 200, 30), 2: (30, 30, 200)}
"""Second of the video: its colour."""
TEXT = "Tide tables are printed every spring.\nThe harbour master keeps a copy in the tower.\n"
_PAGES = (
    "Annual report of the harbour authority. Ships and cargo grew in all quarters.",
    "Dredging the northern basin cost 4.7 million euros. The work took eleven weeks.",
    "Staff: the pilots trained two apprentices and bought a new launch.",
)


def pdf() -> bytes:
    import pymupdf

    document = pymupdf.open()
    for text in _PAGES:
        page = document.new_page(width=PAGE_SIZE[0], height=PAGE_SIZE[1])
        page.insert_text((72, 100), text, fontsize=11)
    data: bytes = document.tobytes()
    return data


def picture() -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", PICTURE_SIZE, "white")
    ImageDraw.Draw(image).text((20, 80), "Cranes 17", fill="black", font_size=40)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def video() -> bytes:
    import av
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clip.mp4"
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            for colour in COLOURS.values():
                pixels = np.full((48, 64, 3), colour, np.uint8)
                for _ in range(10):
                    for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                        container.mux(packet)
            for packet in stream.encode():
                container.mux(packet)
        return path.read_bytes()
