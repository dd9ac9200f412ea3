"""Both engines give one space: the same ids, and vectors that agree to a cosine of 0.9999."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import pytest

from tests.support import tiny_embedders as tiny
from tests.support.paths import ROOT
from tests.support.tiny_vllm import VLLM_ENVIRONMENT, needs_vllm

pytestmark = needs_vllm

ALWAYS: dict[str, Callable[[Path], Path]] = {
    "qwen3-vl-embedding": tiny.tiny_qwen3_vl_embedding,
    "colqwen2": tiny.tiny_colqwen2,
}
MORE: dict[str, Callable[[Path], Path]] = {
    "colqwen2-on-qwen2.5-vl": lambda folder: tiny.tiny_colqwen2(folder, base="qwen2_5_vl"),
    "gve": tiny.tiny_gve,
    "bge-m3": tiny.tiny_bge_m3,
    "bert-mean": lambda folder: tiny.described(tiny.tiny_bert(folder), "mean"),
    "qwen3-last": lambda folder: tiny.described(tiny.tiny_qwen3(folder), "lasttoken"),
}


class Report(TypedDict):
    ids: list[str]
    modalities: list[list[str]]
    cosines: dict[str, list[float | str]]


def run(builders: dict[str, Callable[[Path], Path]], folder: Path) -> dict[str, Report]:
    """All of them in one process; the result of each by its name."""
    folders = [build(folder / name) for name, build in builders.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.run_vllm_pooling", *map(str, folders)],
        env=os.environ | VLLM_ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, f"vLLM failed:\n{done.stderr[-4000:]}"
    reports: dict[str, Report] = json.loads(done.stdout.strip().splitlines()[-1])
    return {Path(name).name: report for name, report in reports.items()}


def assert_one_space(report: Report, *, without_clips: bool = False) -> None:
    first, second = report["ids"]
    assert first == second
    by_transformers, by_vllm = map(set, report["modalities"])
    assert by_transformers - by_vllm == ({"clip"} if without_clips else set())
    for side, cosines in report["cosines"].items():
        # Whatever stands between the others fails in both.
        assert cosines.pop(1 if side == "queries" else 0) == "EmbedError EmbedError"
        if without_clips and side == "passages":
            assert [cosines.pop(), cosines.pop()] == ["Embedding EmbedError"] * 2
        assert cosines
        assert all(isinstance(cosine, float) and cosine >= 0.9999 for cosine in cosines), (side, cosines)


@pytest.mark.exhaustive
def test_both_engines_give_one_space(tmp_path: Path) -> None:
    reports = run(ALWAYS, tmp_path)
    for name in ALWAYS:
        assert set(reports[name]["cosines"]) == {"queries", "passages"}
        assert_one_space(reports[name])


# Each starts another engine; what they share can fail in test_both_engines_give_one_space.
@pytest.mark.exhaustive
def test_both_engines_give_one_space_for_the_other_models(tmp_path: Path) -> None:
    reports = run(MORE, tmp_path)
    for name in MORE:
        assert_one_space(reports[name], without_clips=name == "gve")
