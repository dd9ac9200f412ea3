"""Promises of ``space_embedder``: which class reads a model, what its id names, and what is refused by name."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.support import embedder_factories as factories
from tests.support import tiny_embedders as tiny
from tests.support.embedding_material import picture_content, vectors
from vrag_ray.config import Engine, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, EmbedError
from vrag_ray.embedding.engines import engine as engines
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.embedding.source import fingerprint
from vrag_ray.ingest import ingest
from vrag_ray.types import VragError


@pytest.fixture(scope="module")
def colqwen2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.tiny_colqwen2(tmp_path_factory.mktemp("embedders") / "named-siglip-but-is-not")


@pytest.fixture(scope="module")
def siglip2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.tiny_siglip2(tmp_path_factory.mktemp("embedders") / "siglip2")


def space(model: Path | str, **settings: object) -> Embedder:
    return space_embedder(SpaceConfig.model_validate({"model": str(model), "device": "cpu"} | settings))


def changed(folder: Path, target: Path, **values: object) -> Path:
    """A copy whose config.json says ``values``."""
    shutil.copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | values))
    return target


def test_the_config_decides_not_the_name(colqwen2: Path) -> None:
    assert space(colqwen2).multi_vector


def test_the_id_names_what_decides_a_vector_and_nothing_else(siglip2: Path, tmp_path: Path) -> None:
    plain = space(siglip2).id
    assert plain == space(siglip2, dtype="float32", batch=2, actors=3).id
    assert plain.startswith(f"siglip2@{fingerprint(siglip2)}/siglip2/")
    assert plain != space(siglip2, max_pixels=4096).id
    assert plain != space(siglip2, max_frames=2).id
    elsewhere = shutil.copytree(siglip2, tmp_path / "siglip2")
    assert plain == space(elsewhere).id


@pytest.mark.parametrize("instruction", ["Find pages", "Find pictures"])
def test_the_id_names_the_instruction(tmp_path: Path, instruction: str) -> None:
    folder = tiny.tiny_qwen3_vl_embedding(tmp_path / "qwen")
    assert space(folder).id != space(folder, instruction=instruction).id


def test_other_weights_are_another_model(siglip2: Path, tmp_path: Path) -> None:
    other = tiny.tiny_siglip2(tmp_path / "siglip2", seed=1)
    assert fingerprint(other) != fingerprint(siglip2)
    tokenizer = shutil.copytree(siglip2, tmp_path / "tokenizer")
    (tokenizer / "tokenizer_config.json").write_text("{}")
    assert fingerprint(tokenizer) != fingerprint(siglip2)


def test_one_changed_byte_in_a_small_file_of_weights_is_seen(siglip2: Path, tmp_path: Path) -> None:
    """Of large files samples are read; this one is covered by them."""
    copy = shutil.copytree(siglip2, tmp_path / "copy")
    weights = copy / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert fingerprint(copy) != fingerprint(siglip2)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"model": "/no/such/folder"}, "no embedding model '/no/such/folder' here, nor such a folder: use minilm"),
        ({"model": "nobody/nothing-of-that-name"}, "nobody/nothing-of-that-name is not in the hub's cache"),
        ({"revision": "v1"}, "which has no revisions"),
        ({"dims": 16}, "not trained to be truncated"),
        ({"dims": 65}, "vectors of 64 dimensions"),
        ({"instruction": "Find"}, "not trained on instructions"),
        ({"device": "tpu"}, "use auto, cpu or cuda"),
        ({"dtype": "int8"}, "use auto, float32, bfloat16, float16"),
        ({"engine": Engine.VLLM}, "vLLM has no class whose vectors are those of siglip2"),
        ({"model": "no_such_package:make"}, "no_such_package does not import"),
    ],
)
def test_a_space_that_cannot_be_is_refused_by_name(siglip2: Path, settings: dict[str, object], fault: str) -> None:
    with pytest.raises(VragError, match=fault):
        space(**({"model": siglip2} | settings))


def test_pictures_of_one_size_have_no_pixel_limit(tmp_path: Path) -> None:
    with pytest.raises(VragError, match="leave `max_pixels` out"):
        space(tiny.tiny_colpali(tmp_path / "colpali"), max_pixels=1000)


def test_an_unknown_architecture_is_refused_with_the_known_ones(siglip2: Path, tmp_path: Path) -> None:
    folder = changed(siglip2, tmp_path / "other", model_type="wav2vec2", architectures=["Wav2Vec2Model"])
    with pytest.raises(VragError, match=r"wav2vec2 \(Wav2Vec2Model\), which is no embedder known here.*colqwen2"):
        space(folder)


@pytest.mark.parametrize("contents", [None, b"no json", b"[]"])
def test_a_folder_without_a_description_is_no_model(tmp_path: Path, contents: bytes | None) -> None:
    if contents is not None:
        (tmp_path / "config.json").write_bytes(contents)
    with pytest.raises(VragError, match="no model folder"):
        space(tmp_path)


@pytest.mark.parametrize("missing", ["model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_by_name(siglip2: Path, tmp_path: Path, missing: str) -> None:
    folder = shutil.copytree(siglip2, tmp_path / "lacking")
    (folder / missing).unlink()
    with pytest.raises(VragError, match=r"lacking.* (unusable|cannot be loaded)"):
        space(folder)


def test_a_missing_package_is_reported_with_the_command_that_installs_it(
    siglip2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(VragError, match=r"needs the package torch.*pip install '\.\[embedded,visual\]'"):
        space(siglip2)


def test_a_folder_may_say_that_it_was_trained_to_be_truncated(colqwen2: Path, tmp_path: Path) -> None:
    with pytest.raises(VragError, match='"mrl": true'):
        space(colqwen2, dims=16)
    folder = shutil.copytree(colqwen2, tmp_path / "mrl")
    (folder / "vrag_embedding.json").write_text('{"mrl": true, "made_by": "a trainer"}')
    short, whole = (
        model.embed_passages([picture_content(56, 56, 1)])[0] for model in (space(folder, dims=16), space(folder))
    )
    begun = vectors(whole)[:, :16]
    np.testing.assert_allclose(vectors(short), begun / np.linalg.norm(begun, axis=1, keepdims=True), atol=1e-5)


def test_a_folder_may_say_its_pixel_limits(colqwen2: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(colqwen2, tmp_path / "small")
    (folder / "vrag_embedding.json").write_text('{"min_pixels": 784, "max_pixels": 3136}')
    small = space(folder)
    assert small.pictures is not None
    assert (small.pictures.min_pixels, small.pictures.max_pixels) == (784, 3136)
    assert len(vectors(small.embed_passages([picture_content(112, 112, 1)])[0])) < 30
    larger = space(folder, max_pixels=6272)
    assert larger.pictures is not None
    assert larger.pictures.max_pixels == 6272


def test_a_recipe_that_says_nonsense_is_refused(colqwen2: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(colqwen2, tmp_path / "nonsense")
    (folder / "vrag_embedding.json").write_text('{"score": "some"}')
    with pytest.raises(VragError, match=r"vrag_embedding\.json is not a description"):
        space(folder)


def test_a_factory_gets_the_space_and_its_embedder_is_used() -> None:
    config = SpaceConfig(model=f"{factories.__name__}:letters", batch=3)
    embedder = space_embedder(config)
    assert isinstance(embedder, factories.LetterEmbedder)
    assert embedder.config is config


@pytest.mark.usefixtures("local_ray")
def test_a_model_without_texts_is_no_text_space(colqwen2: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("some words")
    settings = Settings(collection=str(tmp_path / "c"), spaces={"text": SpaceConfig(model=str(colqwen2))})
    [notice] = ingest([tmp_path / "note.txt"], settings).notices
    assert notice.startswith("lexical search only: ")
    assert notice.endswith("name it under `spaces` by another name than text")


def test_a_batch_beyond_the_memory_is_embedded_one_by_one(
    siglip2: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A content that does not fit alone either fails; the others have their vectors. Said in the log."""
    embedder = space(siglip2)
    contents = [picture_content(64, 64, 1), Content("red"), picture_content(16, 16, 2), picture_content(128, 128, 3)]
    expected = embedder.embed_passages(contents)
    run = engines.TransformersEngine._run

    def tight(self: engines.TransformersEngine, prepared: engines.Prepared) -> object:
        sizes = [prompt.picture.width for prompt in prepared.prompts if prompt.picture is not None]
        if sum(sizes) > 64:
            raise MemoryError("no more")
        return run(self, prepared)

    monkeypatch.setattr(engines.TransformersEngine, "_run", tight)
    results = embedder.embed_passages(contents)
    for place in range(3):
        np.testing.assert_allclose(vectors(results[place]), vectors(expected[place]), atol=1e-5)
    assert isinstance(results[3], EmbedError)
    assert "lower max_pixels" in str(results[3])
    assert "one by one" in caplog.text


def test_a_fault_of_the_model_is_no_fault_of_a_content(siglip2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = space(siglip2)

    def lost(*_: object) -> None:
        raise RuntimeError("the GPU is lost")

    monkeypatch.setattr("vrag_ray.embedding.models.siglip.Siglip.pooled", lost)
    with pytest.raises(RuntimeError, match="the GPU is lost"):
        embedder.embed_passages([Content("red")])


def test_a_picture_that_the_processor_refuses_fails_alone(colqwen2: Path) -> None:
    """A strip of 400 : 1 is beyond what the model's family resizes."""
    embedded, refused = space(colqwen2).embed_passages([picture_content(56, 56, 1), picture_content(4000, 10, 1)])
    assert len(vectors(embedded)) > 4
    assert isinstance(refused, EmbedError)
    assert "processor refuses it" in str(refused)


def test_threads_share_one_embedder(colqwen2: Path) -> None:
    embedder = space(colqwen2)
    pages = [picture_content(56, 28 * (1 + place % 3), place) for place in range(6)]
    expected = [vectors(embedder.embed_passages([page])[0]) for page in pages]
    by_thread: dict[int, list[np.ndarray]] = {}

    def work(thread: int) -> None:
        by_thread[thread] = [vectors(embedder.embed_passages([page])[0]) for page in pages]
        embedder.embed_queries([Content("red circle")] * 2)
        embedder.readable(["red"] * 8)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(by_thread) == 3
    for rows in by_thread.values():
        for row, reference in zip(rows, expected, strict=True):
            np.testing.assert_allclose(row, reference, atol=1e-6)
