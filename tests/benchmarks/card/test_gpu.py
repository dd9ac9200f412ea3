"""``benchmarks/gpu.py`` on small models, as a machine with a card and little else would run it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.card.embedders import PAGE_MODELS
from benchmarks.card.models import language_model
from benchmarks.card.runner import Row, Table, line
from benchmarks.card.training import STEPS, step_config
from tests.support.paths import ROOT
from vrag_ray.planning.memory_plan import GIB, OVERHEAD, embedding_phase, memory_plan
from vrag_ray.planning.units import SPACES, read_units
from vrag_ray.training.model_shapes import EMBEDDERS, SHAPES

MODULES = (
    "vrag_ray.embedding.space",
    "vrag_ray.embedding.registry",
    "vrag_ray.embedding.engines.engine",
    "vrag_ray.embedding.models.colqwen2",
    "vrag_ray.embedding.models.gve",
    "vrag_ray.embedding.models.qwen3_vl_embedding",
    "vrag_ray.embedding.models.qwen3_vl_reranker",
    "vrag_ray.training.trainer.learner",
    "vrag_ray.training.trainer.lora",
    "vrag_ray.training.trainer.optimizer",
    "vrag_ray.training.trainer.scorer",
    "vrag_ray.training.algorithms.loss",
    "vrag_ray.planning.memory_plan",
    "vrag_ray.planning.plan",
)
PARTS = [
    "card",
    "embed-qwen3-vl-2b",
    "lora-7b",
    "maxsim",
    "embed-colqwen2",
    "embed-gve-7b",
    "full-2b",
    "search",
    "faiss",
]
"""All that differ in what they run; the others differ in size alone."""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has no Ray, vLLM, FAISS or Arrow."""
    folder = tmp_path / "bare"
    folder.mkdir()
    shutil.copy(Path(__file__).with_name("without_packages.py"), folder / "sitecustomize.py")
    # One thread: models of this size gain nothing from more, which wait for each other where the machine is busy.
    threads = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return os.environ | threads | {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def run(bare: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=bare, capture_output=True, text=True, timeout=600, check=False
    )


def test_the_absent_packages_are_absent(bare: dict[str, str]) -> None:
    for package in ("ray", "pyarrow", "vllm", "faiss"):
        assert f"No module named '{package}'" in run(bare, "-c", f"import {package}").stderr


def test_embedders_and_the_trainers_step_need_no_ray_vllm_faiss_or_arrow(bare: dict[str, str]) -> None:
    done = run(bare, "-c", f"import {', '.join(MODULES)}")
    assert done.returncode == 0, done.stderr


# The quick tests that can fail for the same reason: the imports of the parts (above), and a runner whose parts fail
# (test_runner.py).
@pytest.mark.exhaustive
def test_a_dry_run_measures_every_part_where_little_is_installed(bare: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(bare, "benchmarks/gpu.py", "--tiny", "--out", str(out), "--only", *PARTS)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((out / "gpu.json").read_text())
    assert sorted(report["done"]) == sorted(PARTS)
    rows: dict[str, list[dict[str, object]]] = {part: [] for part in PARTS}
    for row in report["rows"]:
        rows[row["part"]].append(row)
    for part in ("maxsim", "search"):
        same = [row["value"] for row in rows[part] if str(row["what"]).endswith("same order")]
        assert same == [1.0, 1.0], rows[part]
    for part in ("embed-qwen3-vl-2b", "embed-colqwen2", "embed-gve-7b"):
        values = {str(row["what"]): row["value"] for row in rows[part]}
        speed, cosine = values["A4 pages, 2 at once"], values["lowest cosine of a vector alone and in a batch"]
        assert isinstance(speed, float) and speed > 0
        assert isinstance(cosine, float) and cosine > 0.99
    values = {str(row["what"]): row["value"] for row in rows["lora-7b"]}
    gap, tokens = values["log-probs, |bfloat16 - float32|"], values["tokens of prompts and replies"]
    assert isinstance(gap, float) and 0 < gap < 0.05
    assert isinstance(tokens, float) and tokens > 0
    assert rows["faiss"][0]["remark"] == "not installed: faiss, pyarrow"
    assert "the figures mean nothing" in (out / "gpu.md").read_text()
    assert not list(out.glob("units-*")), "figures of small models are no figures for `vrag plan`"


def test_without_a_card_nothing_of_real_size_is_tried(bare: dict[str, str], tmp_path: Path) -> None:
    done = run(bare, "benchmarks/gpu.py", "--out", str(tmp_path / "out"))
    assert done.stdout.startswith("nothing was measured: PyTorch sees no GPU here")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", sorted({step.name for step in STEPS.values()}))
def test_a_trained_model_has_the_published_size(name: str, tmp_path: Path) -> None:
    import torch

    model = language_model(tmp_path, name, tiny=False).make(torch.bfloat16, "meta")
    assert sum(weight.numel() for weight in model.parameters()) == SHAPES[name].parameters


@pytest.mark.parametrize("page_model", PAGE_MODELS, ids=lambda model: model.space)
def test_an_embedder_has_the_published_size_and_a_space_in_the_plan(page_model: object, tmp_path: Path) -> None:
    import torch

    chosen = next(model for model in PAGE_MODELS if model is page_model)
    model = chosen.build(tmp_path, False).make(torch.bfloat16, "meta")
    assert sum(weight.numel() for weight in model.parameters()) == EMBEDDERS[chosen.published].parameters
    assert SPACES[chosen.space].embedder == chosen.published


def test_a_row_says_its_share_of_what_was_computed() -> None:
    assert line("embed", Row("peak", 9.0, "GB", 12.0)) == "| embed | peak | 9.000 GB | 12.0 GB | 0.75 |  |"
    assert line("embed", Row("peak", None, "GB", 12.0, "no card")) == "| embed | peak |  | 12.0 GB |  | no card |"


def test_several_runs_make_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, part in enumerate(("a", "b")):
        table = Table.open(tmp_path / str(number), "H100")
        table.add(part, Row("speed", 2.0, "pages/s"))
        table.end(part)
    joined = Table(tmp_path, "")
    for number in (0, 1, 0):
        joined.take(tmp_path / str(number) / "gpu.json")
    assert str(joined).splitlines()[0] == "H100"
    assert [part for part, _ in joined.rows] == joined.done == ["a", "b"]


def test_the_units_file_is_one_that_vrag_plan_reads(tmp_path: Path) -> None:
    from benchmarks.card.embedders import units_text

    file = tmp_path / "units.json"
    file.write_text(units_text(21.5, 8))
    figure = read_units(file).pages_per_gpu_s
    assert figure is not None and figure.value == 21.5


@pytest.mark.parametrize(
    ("part", "peak_gb"),
    [("lora-2b", 9.77), ("lora-7b", 26.6), ("full-2b", 36.1), ("full-2b-float32", 60.2), ("full-7b-bf16", 77.7)],
)
def test_the_memory_plan_is_near_what_a_card_took(part: str, peak_gb: float) -> None:
    """Peaks of an H100 (docs/results/gpu.md): at most a hundredth above the plan, which is at most a quarter more."""
    phases = memory_plan(step_config(STEPS[part]), 80 * GIB).phases
    planned = max(phase.total - OVERHEAD for phase in phases if phase.name in ("update", "optimiser")) / 1e9
    assert peak_gb / 1.01 <= planned <= peak_gb * 1.25


@pytest.mark.parametrize(
    ("embedder", "batch", "peak_gb"),
    [
        ("Qwen/Qwen3-VL-Embedding-2B", 8, 7.32),
        ("Qwen/Qwen3-VL-Embedding-2B", 32, 16.2),
        ("vidore/colqwen2-v1.0-hf", 8, 5.81),
        ("vidore/colqwen2-v1.0-hf", 32, 9.65),
        ("Alibaba-NLP/GVE-7B", 8, 16.1),
        ("Alibaba-NLP/GVE-7B", 32, 17.3),
        ("Qwen/Qwen3-VL-Embedding-8B", 8, 19.8),
        ("Qwen/Qwen3-VL-Embedding-8B", 32, 30.2),
    ],
)
def test_an_embedder_takes_about_what_was_planned(embedder: str, batch: int, peak_gb: float) -> None:
    planned = (embedding_phase(embedder, batch).total - OVERHEAD) / 1e9
    assert peak_gb / 1.02 <= planned <= peak_gb * 1.15


def test_a_batch_that_does_not_fit_is_no_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine goes on one by one, which would be measured as if it were the batch."""
    import torch

    from benchmarks.card.embedders import embed_pages
    from benchmarks.card.runner import Setup
    from vrag_ray.embedding.models.architecture import Architecture, Inputs
    from vrag_ray.embedding.models.colqwen2 import ColQwen2

    forward = ColQwen2.forward

    def limited(self: Architecture, model: object, inputs: Inputs) -> object:
        if len(inputs["input_ids"]) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        return forward(self, model, inputs)  # type: ignore[arg-type]

    monkeypatch.setattr(ColQwen2, "forward", limited)
    rows = {row.what: row for row in embed_pages(Setup("cpu", True, tmp_path), "colqwen2")}
    assert rows["A4 pages, 2 at once"].value is None
    assert "embedded one by one: it does not fit the memory" in rows["A4 pages, 2 at once"].remark
