"""From a folder to a hit with its region, over HTTP, by three published architectures: random weights, so mechanics
and not quality. What a model finds is measured in benchmarks/visual_retrieval.py."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import yaml
from PIL import Image

from tests.support.patience import HANGS_AFTER_S
from tests.support.pictures import noise_png
from tests.support.tiny_embedders import tiny_colqwen2, tiny_qwen3_vl_embedding, tiny_siglip2
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import SearchRequest, data_url
from vrag_ray.config import load_settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.verify import verify
from vrag_ray.serving.local import start_serving

pytest.importorskip("transformers")
PAGES = 4
MODELS = {"look": "models/siglip2", "late": "models/colqwen2", "visual": "models/qwen3-vl-embedding"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a user has one: documents, models named by relative paths, and a configuration."""
    home = tmp_path_factory.mktemp("visual")
    (home / "models").mkdir()
    tiny_siglip2(home / MODELS["look"])
    tiny_colqwen2(home / MODELS["late"])
    tiny_qwen3_vl_embedding(home / MODELS["visual"])
    (home / "in").mkdir()
    for number in range(PAGES):
        (home / f"in/picture{number}.png").write_bytes(noise_png(96, 64, seed=number))
    (home / "in/copy.png").write_bytes(noise_png(96, 64, seed=0) + b"\n")
    (home / "in/note.txt").write_text("a harbour at night\n")
    config = {
        "collection": "collection",
        "corpus": {"ocr": False},
        "spaces": {
            name: {"model": model, "max_pixels": 12_544} if name != "look" else {"model": model}
            for name, model in MODELS.items()
        },
    }
    (home / "config.yaml").write_text(yaml.safe_dump(config))
    return home


@pytest.fixture(scope="module")
def ingested(local_ray: None, home: Path) -> str:
    """What ``vrag ingest`` printed, run in that folder."""
    import ray

    environment = os.environ | {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    command = [sys.executable, "-m", "vrag_ray.cli", "ingest", "in", "--config", "config.yaml"]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def client(ingested: str, home: Path) -> Iterator[Client]:
    settings = load_settings(home / "config.yaml").model_copy(update={"collection": str(home / "collection")})
    # Another folder, as a service has: a collection knows the models of its spaces.
    running = start_serving(settings.model_copy(update={"spaces": {}}), 0)
    with Client(running.base_url, timeout_s=HANGS_AFTER_S) as client:
        yield client
    running.stop()


def test_ingest_fills_every_space_and_says_what_held_it_up(ingested: str, home: Path) -> None:
    spaces = {space.name: space for space in Collection.open(home / "collection").spaces}
    assert {name: (space.passages, space.failed, space.multi_vector) for name, space in spaces.items()} == {
        "text": (PAGES + 2, 0, False),
        "look": (PAGES + 2, 0, False),
        "late": (PAGES + 1, 0, True),
        "visual": (PAGES + 2, 0, False),
    }
    assert all(f"space {name} (" in ingested for name in MODELS)
    assert ingested.count("bottleneck: ") >= 3
    assert verify(home / "collection").is_sound


def test_a_picture_finds_itself_first_by_every_leg(client: Client) -> None:
    for mode in ("look", "late", "hybrid"):
        for number in (1, 3):
            picture = data_url(noise_png(96, 64, seed=number))
            [hits] = client.search(SearchRequest(picture=picture, mode=mode, top_k=2)).results
            assert (hits[0].title, hits[0].page) == (f"picture{number}", 1)


def test_a_question_gets_hits_with_a_region_from_late_interaction(client: Client) -> None:
    response = client.search(SearchRequest(query="a red ship", mode="late", top_k=3))
    assert (response.mode, response.notices, len(response.results[0])) == ("late", [], 3)
    for hit in response.results[0]:
        assert hit.region is not None
        assert -1.0 <= hit.scores["late"] <= 1.0
    hybrid = client.search(SearchRequest(query="harbour at night", top_k=10))
    assert hybrid.retrieval_profile == "text + late + look + visual"
    assert hybrid.results[0][0].title == "note"


def test_pages_that_look_the_same_are_reported(client: Client) -> None:
    picture = data_url(noise_png(96, 64, seed=0))
    first, second = client.search(SearchRequest(picture=picture, mode="look", top_k=2)).results[0]
    assert {first.title, second.title} == {"copy", "picture0"}
    assert (first.duplicate_of, second.duplicate_of) == ("", first.passage_id)


def test_the_heat_map_of_a_question_tints_the_page(client: Client) -> None:
    [hit] = client.search(SearchRequest(query="a red ship", mode="late", top_k=1)).results[0]
    plain = client.page_png(hit.doc_id, 1)
    tinted = client.heatmap_png(hit.doc_id, 1, "a red ship")
    pictures = []
    for png in (plain, tinted):
        with Image.open(io.BytesIO(png)) as image:
            pictures.append(np.asarray(image.convert("RGB"), np.int16))
    assert pictures[0].shape == pictures[1].shape
    assert np.abs(pictures[0] - pictures[1]).max() > 50


def test_an_unknown_mode_is_refused_with_the_known_ones(client: Client) -> None:
    reply = httpx.post(f"{client.base_url}/v1/search", json={"query": "x", "mode": "nothing"}, timeout=HANGS_AFTER_S)
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, "mode")
    assert "hybrid, lexical, text, late, look, visual" in reply.json()["error"]["message"]
