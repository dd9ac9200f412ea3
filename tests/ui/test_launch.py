"""``vrag ui``: what it starts, and what it refuses to start."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from vrag_ray.cli.commands.ui import launch_of
from vrag_ray.types import VragError


def test_the_app_listens_on_loopback_and_receives_the_address_of_its_gateway(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", "/already/there")
    launch = launch_of("http://127.0.0.1:8000", "127.0.0.1", 8601)
    assert launch.command[1:4] == ("-m", "streamlit", "run")
    assert Path(launch.command[4]).name == "app.py"
    assert launch.command[5:] == ("--server.address", "127.0.0.1", "--server.port", "8601")
    assert launch.environment["VRAG_URL"] == "http://127.0.0.1:8000"
    root = str(Path(launch.command[4]).parent.parent)
    assert launch.environment["PYTHONPATH"] == f"{root}{os.pathsep}/already/there"
    assert launch.address == "http://127.0.0.1:8601"


def test_an_open_address_is_refused_unless_it_is_meant():
    with pytest.raises(VragError, match="--allow-open"):
        launch_of("http://127.0.0.1:8000", "0.0.0.0", 8601)
    assert launch_of("http://127.0.0.1:8000", "0.0.0.0", 8601, allow_open=True).address == "http://0.0.0.0:8601"


@pytest.mark.parametrize(("missing", "problem"), [("streamlit", "extra `ui`"), ("ui.app", "folder ui/")])
def test_what_is_not_installed_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, missing: str, problem: str):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else there(name))
    with pytest.raises(VragError, match=problem):
        launch_of("http://127.0.0.1:8000", "127.0.0.1", 8601)
