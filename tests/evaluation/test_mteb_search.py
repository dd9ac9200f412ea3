"""mteb's own runner over this engine, on small tasks made here: its figures are ours."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import mteb
import pytest
import yaml
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.models_protocols import SearchProtocol
from PIL import Image
from typer.testing import CliRunner

from tests.support.ingest_material import PLANTED, settings_for
from tests.support.planted_spaces import SINGLE
from vrag_ray.cli.main import make_app
from vrag_ray.evaluation.measures.ranking import in_order, rank_measures
from vrag_ray.evaluation.mteb_search import MtebSearch
from vrag_ray.ingest import ingest
from vrag_ray.types import LEXICAL, TEXT, VragError

pytestmark = pytest.mark.usefixtures("local_ray")
BIRDS = ("albatross", "bittern", "cormorant", "dunlin", "eider", "fulmar")


class Birds(AbsTaskRetrieval):
    metadata = TaskMetadata(
        name="BirdsRetrieval",
        description="Birds and where they nest.",
        dataset={"path": "none/none", "revision": "1"},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )

    def load_data(self, **_: object) -> None:
        corpus = [{"id": f"d {n}", "title": bird, "text": f"the {bird} nests here"} for n, bird in enumerate(BIRDS)]
        corpus.append({"id": "twin", "title": BIRDS[0], "text": f"the {BIRDS[0]} nests here"})
        queries = [{"id": f"q{n}", "text": f"{bird} and {BIRDS[n - 1]}"} for n, bird in enumerate(BIRDS)]
        judged: dict[str, dict[str, int]] = {f"q{n}": {f"d {n}": 2, f"d {(n + 1) % 6}": 1} for n in range(6)}
        judged["q0"]["twin"] = 1
        data: Any = {
            "corpus": Dataset.from_list(corpus),
            "queries": Dataset.from_list(queries),
            "relevant_docs": judged,
            "top_ranked": None,
        }
        self.dataset = {"default": {"test": data}}
        self.data_loaded = True


@pytest.mark.parametrize(
    "mode",
    [TEXT, pytest.param(LEXICAL, marks=pytest.mark.exhaustive), pytest.param("hybrid", marks=pytest.mark.exhaustive)],
)
def test_the_figure_of_mteb_is_that_of_our_own_measures(tmp_path: Path, mode: str) -> None:
    model = MtebSearch(settings_for(tmp_path / "unused"), tmp_path / "corpora", ingest, mode)
    assert isinstance(model, SearchProtocol)
    task = Birds()
    [result] = mteb.evaluate(model, task, cache=None, co2_tracker=False, show_progress_bar=False).task_results
    [scores] = result.scores["test"]
    # mteb lets go of the data when it is done.
    task.load_data()
    data = task.dataset["default"]["test"]
    results = model.search(
        data["queries"], task_metadata=task.metadata, hf_split="test", hf_subset="default", top_k=1000, encode_kwargs={}
    )
    ours = [rank_measures(in_order(results[query]), grades) for query, grades in data["relevant_docs"].items()]
    for name, theirs in (("nDCG@10", "ndcg_at_10"), ("nDCG@5", "ndcg_at_5"), ("R@5", "recall_at_5")):
        # mteb rounds.
        assert fmean(values[name] for values in ours) == pytest.approx(scores[theirs], abs=1e-5), name
    assert result.get_score() == pytest.approx(scores["ndcg_at_10"], abs=1e-5)
    assert 0.3 < scores["ndcg_at_10"] < 1.0


def test_the_same_corpus_is_ingested_once(tmp_path: Path) -> None:
    reports: list[int] = []

    def counted(paths: Any, settings: Any) -> None:
        reports.append(ingest(paths, settings).added)

    for _ in range(2):
        model = MtebSearch(settings_for(tmp_path / "unused"), tmp_path / "corpora", counted, LEXICAL)
        mteb.evaluate(model, Birds(), cache=None, co2_tracker=False, show_progress_bar=False)
    assert reports == [6, 0]


def test_the_command_runs_tasks_and_benchmarks_by_name_and_refuses_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mteb, "get_task", lambda name: {"BirdsRetrieval": Birds()}[name])
    Path("config.yaml").write_text(yaml.safe_dump({"spaces": {"text": PLANTED.model_dump(mode="json")}}))
    command = ["evaluate", "mteb", "BirdsRetrieval", "--mode", "lexical", "--config", "config.yaml", "--json"]
    results = [CliRunner().invoke(make_app(), command) for _ in range(2)]
    first, again = (json.loads(result.stdout.splitlines()[-1]) for result in results)
    assert first == again and 0.3 < first["lexical"]["BirdsRetrieval"] < 1.0
    assert any(Path("vrag-evaluations/mteb/predictions/lexical").iterdir())
    with pytest.raises(VragError, match="neither a benchmark nor a task NoSuchTask"):
        raise CliRunner().invoke(make_app(), ["evaluate", "mteb", "NoSuchTask"]).exception or AssertionError


def test_pictures_are_items_too(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "unused").model_copy(update={"spaces": {"mean": SINGLE}})
    colours = ("red", "green", "blue")
    pictures = {colour: Image.new("RGB", (64, 48), colour) for colour in colours}
    corpus = Dataset.from_list([{"id": colour, "image": picture} for colour, picture in pictures.items()])
    model = MtebSearch(settings, tmp_path / "corpora", ingest, "hybrid")
    where: dict[str, Any] = {"task_metadata": Birds.metadata, "hf_split": "test", "hf_subset": "default"}
    model.index(corpus, **where, encode_kwargs={})
    queries = Dataset.from_list(
        [{"id": f"like {colour}", "image": Image.new("RGB", (64, 48), colour)} for colour in colours]
    )
    results = model.search(queries, **where, top_k=3, encode_kwargs={})
    assert {query: in_order(scores)[0] for query, scores in results.items()} == {
        f"like {colour}": colour for colour in colours
    }


def test_tasks_that_only_rerank_are_refused(tmp_path: Path) -> None:
    model = MtebSearch(settings_for(tmp_path / "unused"), tmp_path / "corpora", ingest)
    where: dict[str, Any] = {"task_metadata": Birds.metadata, "hf_split": "test", "hf_subset": "default"}
    with pytest.raises(VragError, match="there is no corpus yet"):
        model.search(Dataset.from_list([]), **where, top_k=3, encode_kwargs={})
    task = Birds()
    task.load_data()
    model.index(task.dataset["default"]["test"]["corpus"], **where, encode_kwargs={})
    with pytest.raises(VragError, match="BirdsRetrieval reranks"):
        model.search(Dataset.from_list([]), **where, top_k=3, encode_kwargs={}, top_ranked={"q0": ["d 0"]})
