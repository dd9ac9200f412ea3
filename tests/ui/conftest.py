"""One gateway a test, and the app in front of it as Streamlit's own test harness runs it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.ui_gateway import ServedGateway, Stage, scripted_gateway


@pytest.fixture(autouse=True, scope="session")
def components_searched_once() -> Iterator[None]:
    """Streamlit reads the metadata of every installed package for each app that a test begins: half a second."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def served(tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedGateway]:
    with scripted_gateway(tmp_path, stage) as running:
        monkeypatch.setenv("VRAG_URL", running.url)
        yield running
