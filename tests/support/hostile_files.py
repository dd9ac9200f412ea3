"""Files that broke decoders elsewhere, made by code: ``HOSTILE[name]()`` gives the bytes, ``name`` is the file name."""

from __future__ import annotations

import io
import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def pdf_of(objects: Sequence[bytes], *, catalog: int = 1) -> bytes:
    """A PDF of numbered objects (the first is 1) with a correct cross-reference table."""
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, catalog, start)
    return bytes(out)


def stream_of(data: bytes, entries: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (entries, len(data), data)


def giant_page_pdf() -> bytes:
    """0.4 KB that a naive renderer at 144 dpi turns into 28,800 x 28,800 pixels."""
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 14400 14400]/Contents 4 0 R>>",
            stream_of(b"0 0 7200 7200 re f"),
        ]
    )


def nested_forms_pdf(levels: int = 10, fan: int = 10) -> bytes:
    """Page one draws a form that draws ten forms that draw ten forms ...: ``fan ** levels`` drawings in 2.5 KB.

    Page two has a black square.
    """
    first_form = 6
    forms = []
    for level in range(levels):
        inner = first_form + level + 1
        entries = b"/Type/XObject/Subtype/Form/BBox[0 0 99 99]"
        if level + 1 < levels:
            entries += b"/Resources<</XObject<</F %d 0 R>>>>" % inner
            forms.append(stream_of(b"/F Do " * fan, entries))
        else:
            forms.append(stream_of(b"0 0 9 9 re f " * fan, entries))
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R 5 0 R]/Count 2>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</XObject<</F %d 0 R>>>>>>"
            % first_form,
            stream_of(b"/F Do " * fan),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents %d 0 R>>" % (first_form + levels),
            *forms,
            stream_of(b"9 9 50 50 re f"),
        ]
    )


def flate_bomb_pdf(inflated_mb: int = 768) -> bytes:
    """A content stream of drawing commands that inflates a thousandfold."""
    squeeze = zlib.compressobj(9)
    chunk = b"0 0 1 1 re f " * (2**20 // 13)
    header = squeeze.compress(b"") + squeeze.flush(zlib.Z_FULL_FLUSH)
    # A full flush forgets what came before, so that one compressed block can be repeated as it is.
    block = squeeze.compress(chunk) + squeeze.flush(zlib.Z_FULL_FLUSH)
    data = header + block * inflated_mb
    return pdf_of(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R>>",
            stream_of(data, b"/Filter/FlateDecode"),
        ]
    )


def truncated_pdf() -> bytes:
    """The first half of a file that, as most writers do, has its catalog and page tree at the end."""
    text = stream_of(b"BT /F 12 Tf 20 700 Td (The second half is lost.) Tj ET" + b" " * 2000)
    whole = pdf_of(
        [
            text,
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            b"<</Type/Page/Parent 4 0 R/MediaBox[0 0 612 792]/Contents 1 0 R/Resources<</Font<</F 2 0 R>>>>>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Catalog/Pages 4 0 R>>",
        ],
        catalog=5,
    )
    return whole[: len(whole) // 2]


def encrypted_pdf() -> bytes:
    import pymupdf

    document = pymupdf.open()
    document.new_page().insert_text((50, 50), "for your eyes only")
    return bytes(document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="secret", owner_pw="owner"))


def giant_png(side: int = 12_000) -> bytes:
    """144 million pixels in 140 KB."""
    squeeze = zlib.compressobj(9)
    row = bytes(side + 1)
    data = b"".join(squeeze.compress(row) for _ in range(side)) + squeeze.flush()
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return PNG_SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def small_png() -> bytes:
    return _picture("PNG")


def truncated_jpeg() -> bytes:
    whole = _picture("JPEG")
    return whole[: len(whole) // 2]


def truncated_mp4() -> bytes:
    """The first half of a video whose index stands at the end."""
    whole = _mp4()
    return whole[: len(whole) // 2]


def streamable_mp4_cut_short() -> bytes:
    """The index at the start promises ten seconds; the pictures end after about half of them."""
    whole = _mp4(options={"movflags": "faststart"})
    return whole[: len(whole) * 6 // 10]


def zero_frames_mp4() -> bytes:
    """A valid container with a video stream without a single frame."""
    return _mp4(frames=0)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "giant-page.pdf": giant_page_pdf,
    "nested-forms.pdf": nested_forms_pdf,
    "flate-bomb.pdf": flate_bomb_pdf,
    "truncated.pdf": truncated_pdf,
    "encrypted.pdf": encrypted_pdf,
    "giant.png": giant_png,
    "really-a-png.jpg": small_png,
    "truncated.jpg": truncated_jpeg,
    "truncated.mp4": truncated_mp4,
    "zero-frames.mp4": zero_frames_mp4,
}
"""The ten of the issue. All but ``giant-page.pdf``, which reads fine and renders small, must end with an error."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _picture(format_: str) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.effect_mandelbrot((400, 300), (-2, -1.5, 1, 1.5), 60).convert("RGB").save(buffer, format_)
    return buffer.getvalue()


def _mp4(frames: int = 100, options: dict[str, str] | None = None) -> bytes:
    import av
    import numpy as np

    noise = np.random.default_rng(0).integers(0, 255, (96, 128, 3), dtype=np.uint8)
    # By a real file: to move the index to the front, FFmpeg opens what it has written a second time.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video.mp4"
        with av.open(str(path), "w", options=options or {}) as container:
            stream = container.add_stream("libx264", rate=10, options={"g": "10"})
            stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
            container.start_encoding()
            for index in range(frames):
                picture = av.VideoFrame.from_ndarray(np.roll(noise, index, axis=1), format="rgb24")
                container.mux(stream.encode(picture))
            container.mux(stream.encode(None))
        return path.read_bytes()
