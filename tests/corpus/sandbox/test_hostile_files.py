"""Every hostile file ends as an error with its reason, inside the limits, and the decode after it works."""

import io
import logging
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.support.documents import decoded, image_bytes, open_png, text_pdf, video
from tests.support.hostile_files import HOSTILE, nested_forms_pdf, pdf_of, stream_of
from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.model import DecodedUnit, DecodeError, DecodeOptions, KilledError, WorkItem
from vrag_ray.corpus.sandbox.isolate import decode_isolating
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.types import DocumentKind, Locator

LIMITS = DecodeLimits(cpu_seconds=1, wall_seconds=120.0, memory_mb=1024)
OPTIONS = DecodeOptions.from_config(CorpusConfig(limits=LIMITS, ocr=False))

EXPECTED = {
    "nested-forms.pdf": "took more than 1 s of CPU",
    "flate-bomb.pdf": "took more than 1 s of CPU",
    "truncated.pdf": "has no readable page: it is damaged or cut short",
    "encrypted.pdf": "is encrypted: remove the password",
    "giant.png": r"has 12000 x 12000 = 144\.0 million pixels, more than the limit of 50",
    "really-a-png.jpg": r"is a PNG although it is named \.jpg: rename it",
    "truncated.jpg": "is a damaged or cut short picture",
    "truncated.mp4": "is no readable video, or is cut short",
    "zero-frames.mp4": "has no (picture|video frames)",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LIMITS) as started:
        yield started


def first_unit(sandbox: Sandbox, path: Path, name: str) -> DecodedUnit:
    kind = sandbox.probe(path, name).kind
    return decoded(sandbox, path, WorkItem("doc", kind, 0, 1, name), OPTIONS)[0]


def test_all_ten_have_their_promise() -> None:
    assert set(HOSTILE) == {*EXPECTED, "giant-page.pdf"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_hostile_file_ends_with_its_error_and_the_next_decode_works(sandbox, put, name):
    path = put(name, HOSTILE[name]())
    with pytest.raises(DecodeError, match=EXPECTED[name]) as caught:
        if error := first_unit(sandbox, path, name).error:
            raise DecodeError(error)
    assert str(caught.value).startswith(f"{name}: ")
    assert str(path) not in str(caught.value)
    good = put("good.pdf", text_pdf(["business as usual"]))
    assert first_unit(sandbox, good, "good.pdf").text.strip() == "business as usual"
    assert sandbox.peak_memory_mb < LIMITS.memory_mb


def test_a_giant_page_reads_fine_and_renders_within_the_limit(sandbox, put):
    data = HOSTILE["giant-page.pdf"]()
    assert len(data) < 450
    path = put("giant-page.pdf", data)
    assert first_unit(sandbox, path, "giant-page.pdf").error == ""
    png = sandbox.render(path, DocumentKind.PDF, Locator(page=1), dpi=144, box=None, max_pixels=10**6)
    image = open_png(png)
    assert image.width * image.height <= 10**6
    # At 144 dpi the page would take gigabytes.
    assert sandbox.peak_memory_mb < LIMITS.memory_mb / 2


def test_drawing_a_bomb_is_limited_like_reading_it(sandbox, put):
    path = put("nested.pdf", nested_forms_pdf())
    with pytest.raises(KilledError, match="CPU"):
        sandbox.render(path, DocumentKind.PDF, Locator(page=1), dpi=72, box=None, max_pixels=10**6)


def test_a_document_whose_first_page_kills_keeps_its_other_pages(sandbox, put):
    path = put("nested.pdf", nested_forms_pdf())
    probe = sandbox.probe(path, "nested.pdf")
    assert (probe.units, probe.title) == (2, "nested")
    item = WorkItem("doc", probe.kind, 0, 2, "nested.pdf")
    bad, fine = decode_isolating(sandbox, path, item, OPTIONS)
    assert bad.error.startswith("nested.pdf: took more than 1 s of CPU")
    assert (bad.unit, bad.locator) == (0, Locator(page=1))
    assert (fine.unit, fine.error) == (1, "")


def test_a_range_full_of_killing_pages_is_given_up_after_the_allowed_kills(sandbox, put):
    path = put("nested.pdf", nested_forms_pdf())
    item = WorkItem("doc", DocumentKind.PDF, 0, 2, "nested.pdf")
    bad, untried = decode_isolating(sandbox, path, item, OPTIONS, max_kills=1)
    assert "CPU" in bad.error
    assert untried.error.startswith("nested.pdf: not tried, the decoder was ended 1 times before it")
    assert "--retry-errors" in bad.error and "--retry-errors" in untried.error
    assert untried.locator == Locator(page=2)


A_LIBRARYS_OWN = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception)\b|code=|error -?\d|the file'|not processed|data stream|chunk b|Invalid data|"
    r"Missing dimensions|decoder object|exception stack"
)
REMEDIES = re.compile(
    r"get the whole file|get it again|convert it|rename|save it|leave it out|correct it|split it|export it|write it as"
)


def damaged_files(mp4: bytes) -> Iterator[tuple[str, bytes]]:
    """Sound files of every kind: cut, with another beginning, and with bytes changed all over."""
    chance = random.Random(7)
    picture = Image.effect_noise((120, 90), 60).convert("RGB")
    sound = {
        "a.pdf": text_pdf(["one page", "another page"]),
        "a.mp4": mp4,
        **{f"a.{suffix}": image_bytes(picture, suffix) for suffix in ("png", "jpeg", "webp", "tiff", "gif")},
    }
    with io.BytesIO() as packed:
        picture.save(packed, "TIFF", compression="tiff_lzw")
        sound["lzw.tiff"] = packed.getvalue()
    for name, data in sound.items():
        for part in (12, 40, len(data) // 3, len(data) - len(data) // 50):
            yield name, data[:part]
        for count in (8, 60):
            noisy = bytearray(data)
            for _ in range(count):
                noisy[chance.randrange(8, min(len(noisy), 20 * count))] = chance.randrange(256)
            yield name, bytes(noisy)
    # No tag but its compression, and no tag at all.
    yield "no-size.tiff", b"II*\0\x08\0\0\0\x01\0\x03\x01\x03\0\x01\0\0\0\x01\0\0\0\0\0\0\0"
    yield "no-tag.tiff", b"II*\0\x08\0\0\0" + bytes(8)
    nested = b"[" * 20_000 + b"]" * 20_000
    yield (
        "deep.pdf",
        pdf_of(
            [
                b"<</Type/Catalog/Pages 2 0 R/X " + nested + b">>",
                b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
                b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R>>",
                stream_of(nested),
            ]
        ),
    )
    yield from (("a.txt", data) for data in ("größe".encode("latin-1"), "größe".encode("utf-16-le"), bytes(range(256))))
    yield from (("a.jsonl", data) for data in (b"\n", b"{", b"[1]", b'{"uid": 1, "text": ' + b"[" * 100_000))
    yield from ((name, b"<!DOCTYPE html><p>Log in first") for name in ("a.pdf", "a.png", "a.mp4", "a.docx"))
    yield from ((name, b"") for name in ("a.pdf", "a.png", "a.txt"))


def test_every_message_says_what_to_do_and_none_is_a_librarys_own(sandbox, put, tmp_path) -> None:
    messages = []
    mp4 = video(tmp_path / "sound.mp4", 2).read_bytes()
    for number, (name, data) in enumerate(damaged_files(mp4)):
        try:
            error = first_unit(sandbox, put(f"{number}-{name}", data), name).error
        except DecodeError as refusal:
            error = str(refusal)
        if error:
            messages.append(error)
            assert not A_LIBRARYS_OWN.search(error), error
            assert REMEDIES.search(error), error
    assert len(messages) > 35


def test_messages_of_the_library_are_in_the_log(sandbox, put, caplog) -> None:
    caplog.set_level(logging.DEBUG, "vrag_ray.corpus")
    with pytest.raises(DecodeError):
        sandbox.probe(put("a.png", b"\x89PNG\r\n\x1a\n and no more"), "a.png")
    assert "a.png: the decoder said: " in caplog.text
