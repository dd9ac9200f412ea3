"""Every hostile file ends as an error with its reason, inside the limits, and the decode after it works."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import decoded, open_png, text_pdf
from tests.support.hostile_files import HOSTILE, nested_forms_pdf
from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.model import DecodedUnit, DecodeError, DecodeOptions, KilledError, WorkItem
from vrag_ray.corpus.sandbox.isolate import decode_isolating
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.types import DocumentKind, Locator

LIMITS = DecodeLimits(cpu_seconds=1, wall_seconds=30.0, memory_mb=1024)
OPTIONS = DecodeOptions.from_config(CorpusConfig(limits=LIMITS, ocr=False))

EXPECTED = {
    "nested-forms.pdf": "took more than 1 s of CPU",
    "flate-bomb.pdf": "took more than 1 s of CPU",
    "truncated.pdf": "has no readable page: it is damaged or cut short",
    "encrypted.pdf": "is encrypted: remove the password",
    "giant.png": r"has 12000 x 12000 = 144\.0 million pixels, more than the limit of 50",
    "really-a-png.jpg": r"is a PNG although it is named \.jpg: rename it",
    "truncated.jpg": "is a damaged picture: image file is truncated",
    "truncated.mp4": "is no readable video, or is cut short",
    "zero-frames.mp4": "has no video",
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
    assert sandbox.peak_memory_mb < 300


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
