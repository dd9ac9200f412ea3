"""``vrag train retriever``, on a real Ray, with a tiny model: it trains, it goes on, it leaves a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

pytest.importorskip("transformers", reason="NO TRANSFORMERS: retrievers are not trained here")
from transformers import ColQwen2ForRetrieval, ColQwen2Processor

from tests.support.object_store import Bucket
from tests.support.retriever_material import LATE, questions, written_pairs
from vrag_ray.cli.main import main
from vrag_ray.training.launch import train_retriever
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.types import VragError


def config_for(folder: Path, start: Path, /, **values: object) -> dict[str, object]:
    given = {
        "name": "run",
        "storage": str(folder),
        "model": {"path": str(start), "freeze_vision": False},
        "optimizer": {"lr": 1e-3},
        "pairs": str(folder / "pairs.jsonl"),
        "late": LATE.model_dump(mode="json"),
        "steps": 2,
        "batch": 4,
        "checkpoint_every": 1,
    }
    return given | values


def trained(folder: Path, capsys: pytest.CaptureFixture[str], values: dict[str, object]) -> str:
    """What the command prints of a whole run."""
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(values))
    assert main(["train", "retriever", "--config", str(path)]) == 0
    return capsys.readouterr().out


@pytest.mark.exhaustive
def test_a_run_goes_on_where_it_stopped_and_leaves_a_folder_that_transformers_loads(
    local_ray: None, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    written_pairs(tmp_path, 9)
    first = trained(tmp_path, capsys, config_for(tmp_path, model))
    assert "9 queries to learn from" in first
    assert f"trained retriever: {tmp_path}/run/final" in first
    again = trained(tmp_path, capsys, config_for(tmp_path, model, steps=3))
    # It begins with the checkpoint of step 2.
    assert "step 2/3: 9 queries" in again
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 3]
    assert {"retriever/loss", "retriever/first", "seconds/cpu"} <= json.loads(lines[-1]).keys()
    assert json.loads((tmp_path / "run/final/vrag_embedding.json").read_text())["score"] == "body"
    loaded = ColQwen2ForRetrieval.from_pretrained(tmp_path / "run/final")
    processor = ColQwen2Processor.from_pretrained(tmp_path / "run/final")
    vectors = loaded(**processor.process_queries(text=list(questions(2)))).embeddings
    assert vectors.shape[::2] == (2, 16)


def test_a_check_reads_the_pairs_with_the_models_processor_and_starts_nothing(
    model: Path, tmp_path: Path, bucket: Bucket, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "run.yaml"
    # Of a model at a URI all but its weights is fetched.
    at_uri = {"path": bucket.upload(model, "retrieves"), "freeze_vision": False}
    path.write_text(yaml.safe_dump(config_for(tmp_path, model, model=at_uri)))
    written_pairs(tmp_path, 9)
    assert main(["train", "retriever", "--config", str(path), "--check"]) == 0
    shown = capsys.readouterr().out
    assert shown.rstrip().endswith("# 9 queries to learn from; 2 steps an epoch")
    assert yaml.safe_load(shown)["pairs"] == str(tmp_path / "pairs.jsonl")
    assert not (tmp_path / "run").exists()
    (tmp_path / "pairs.jsonl").write_text('{"query": "units by region"}')
    assert main(["train", "retriever", "--config", str(path), "--check"]) == 1
    assert "row 1: positive" in capsys.readouterr().err


def test_what_is_missing_is_named_before_anything_starts(model: Path, tmp_path: Path):
    def refused(**values: object) -> str:
        config = RetrieverConfig.model_validate(config_for(tmp_path, model, **values))
        with pytest.raises(VragError) as caught:
            train_retriever(config, pytest.fail)
        return str(caught.value)

    assert "pairs: there is no" in refused()
    written_pairs(tmp_path, 2)
    assert "collection: there is no" in refused(collection=str(tmp_path / "none"))
    assert "model.path: there is no" in refused(model={"path": "./none/at/all"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batch": 2, "workers": {"count": 3}}, "batch 2 leaves some of 3 workers without a passage"),
        ({"dims": [0]}, r"dims \[0\]: each must be at least 1"),
        ({"late_weight": 0.5}, "late_weight is for single-vector models"),
        ({"temprature": 0.1}, "temprature"),
    ],
    ids=str,
)
def test_a_configuration_that_cannot_work_is_refused(values: dict[str, object], message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message):
        RetrieverConfig.model_validate(config_for(tmp_path, tmp_path, **values))
