"""One gateway a test, and the app in front of it as Streamlit's own test harness runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ui_gateway import ServedGateway, Stage, scripted_gateway


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def served(tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedGateway]:
    with scripted_gateway(tmp_path, stage) as running:
        monkeypatch.setenv("VRAG_URL", running.url)
        yield running
