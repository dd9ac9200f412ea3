from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vrag_ray.config import CorpusConfig, DecodeLimits
from vrag_ray.corpus.model import DecodeOptions
from vrag_ray.corpus.sandbox.sandbox import Sandbox

Put = Callable[[str, bytes], Path]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """One child for all tests that do not kill it, with time to spare on a busy machine."""
    with Sandbox(DecodeLimits(cpu_seconds=60, wall_seconds=120.0, ocr_seconds=120)) as started:
        yield started


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write bytes under a name that says nothing of their kind, as a collection's blob store does."""

    def put_bytes(name: str, data: bytes) -> Path:
        path = tmp_path / f"blob-{abs(hash(name))}"
        path.write_bytes(data)
        return path

    return put_bytes


@pytest.fixture
def options() -> DecodeOptions:
    return DecodeOptions.from_config(CorpusConfig())


@pytest.fixture
def no_ocr() -> DecodeOptions:
    return DecodeOptions.from_config(CorpusConfig(ocr=False))
