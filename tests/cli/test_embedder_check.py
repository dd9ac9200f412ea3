"""``vrag doctor --embedder`` says of an embedder what this machine makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.tiny_embedders import tiny_bge_m3, tiny_colqwen2, tiny_siglip2
from vrag_ray.cli.main import main


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        capsys.readouterr()
        assert main(["doctor", *arguments]) == 0
        return capsys.readouterr().out

    return run


def test_a_late_interaction_model_is_measured(doctor: Callable[..., str], tmp_path: Path) -> None:
    folder = tiny_colqwen2(tmp_path / "late")
    report = json.loads(doctor("--embedder", str(folder), "--json").splitlines()[-1])
    assert (report["dim"], report["multi_vector"], report["modalities"]) == (32, True, ["clip", "picture"])
    by_content = {row["content"]: row for row in report["tried"]}
    assert set(by_content) == {"query", "page", "clip"}
    page = by_content["page"]
    assert page["shortest"] == pytest.approx(1, abs=1e-5)
    assert page["grid"][0] * page["grid"][1] <= page["vectors"]
    assert report["bytes_a_page"] == page["vectors"] * 32 * 2
    assert all(row["milliseconds"] > 0 for row in report["tried"])
    assert report["memory_mib"] > 0
    assert set(report["readable"].values()) == {1.0}


def test_a_text_model_has_no_page_and_says_what_it_reads(doctor: Callable[..., str], tmp_path: Path) -> None:
    shown = doctor("--embedder", str(tiny_bge_m3(tmp_path / "text")))
    assert "64 dimensions, one vector a content; passages: text" in shown
    assert "page" not in shown
    assert "季度收入: 0.00" in shown


def test_where_the_other_engine_has_no_such_class_it_says_so(doctor: Callable[..., str], tmp_path: Path) -> None:
    shown = doctor("--embedder", str(tiny_siglip2(tmp_path / "siglip2")), "--engine-compare")
    assert "not compared with the other engine: vLLM has no class" in shown


def test_engine_compare_needs_an_embedder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--engine-compare"]) == 2
    assert "needs --embedder" in capsys.readouterr().err


def test_a_missing_model_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--embedder", "nobody/nothing-of-that-name"]) == 1
    assert "nobody/nothing-of-that-name is not in the hub's cache" in capsys.readouterr().err
