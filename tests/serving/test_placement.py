"""Which parts of the settings become which parts on GPUs: ingest's actors, the retriever's replica, shards, this
process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.planted import plant
from tests.support.planted_spaces import plant_space, stored_vectors
from vrag_ray.config import (
    IndexConfig,
    IndexKind,
    IngestConfig,
    RerankerConfig,
    ServingConfig,
    Settings,
    SpaceConfig,
    VllmConfig,
)
from vrag_ray.index.shards.shard_index import SpaceSpec, late_device, load_shard
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.ingest.spaces import embed
from vrag_ray.ingest.spaces.embed import _placed
from vrag_ray.placement import Cards
from vrag_ray.serving import placement as places
from vrag_ray.serving.app import application
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.placement import local_placement, served_placement
from vrag_ray.types import TEXT, VragError

ONE_GPU = Cards((1.0,), 1)
VISUAL = {"visual": SpaceConfig(model="owner/model")}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """With texts, a space of single vectors, ``visual``, and one of late interaction, ``late``."""
    root: Path = tmp_path_factory.mktemp("places") / "c"
    plant(root, {"a": ["one"], "b": ["two"]})
    rows = [stored_vectors(name, 1, np.eye(4, dtype=np.float32)[[n]]) for n, name in enumerate("ab")]
    plant_space(root, "visual", rows, dim=4, multi_vector=False)
    plant_space(root, "late", rows, dim=4)
    return str(root)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """One free GPU, in a cluster and in this process."""
    monkeypatch.setattr(places, "ray_cards", lambda most: Cards((1.0,), 1, most=most))
    monkeypatch.setattr(places, "local_cards", lambda most: Cards((1.0,), 1, most=most))


def test_the_actors_that_fill_spaces_share_a_free_gpu_and_the_collection_does_not_remember_it() -> None:
    spaces = [("visual", SpaceConfig(model="owner/a")), ("late", SpaceConfig(model="owner/b"))]
    configs, placement = _placed(spaces, Settings(), ONE_GPU)
    assert [(config.num_gpus, config.device) for config in configs] == [(0.5, "auto"), (0.5, "auto")]
    assert "embedding of visual on a GPU (0.5 of it)" in placement.line
    assert configs[0].anywhere == spaces[0][1] == SpaceConfig.from_record({"model": "owner/a", "num_gpus": 0.0})


def test_gpus_0_opts_out_of_everything_that_is_configured() -> None:
    spaces = {"visual": SpaceConfig(model="owner/a", device="cuda", num_gpus=1)}
    settings = Settings(gpus=0, spaces=spaces)
    cards = Cards((1.0,), 1, most=0)
    [config], placement = _placed(list(spaces.items()), settings, cards)
    assert (config.num_gpus, config.device) == (0.0, "cpu")
    assert placement.line == "embedding of visual on the CPU (gpus is 0)"


def test_a_device_that_cannot_be_had_is_refused_by_name() -> None:
    spaces = [("visual", SpaceConfig(model="owner/a", device="cuda"))]
    with pytest.raises(VragError, match=r"spaces\.visual\.device is cuda, and there is no GPU: set it to auto"):
        _placed(spaces, Settings(), Cards())
    refusal = r"spaces\.text\.num_gpus is 1, and minilm has no GPU code: set spaces\.text\.num_gpus to 0"
    with pytest.raises(VragError, match=refusal):
        _placed([("text", SpaceConfig(model="minilm", num_gpus=1))], Settings(), ONE_GPU)


def test_a_model_gets_one_actor_a_card_and_minilm_one_for_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "usable_cpus", lambda: 6)
    [model], _ = _placed([("text", SpaceConfig(model="owner/bge"))], Settings(), Cards((1.0, 1.0), 2))
    assert (model.num_gpus, model.actors) == (1.0, 2)
    [alone], _ = _placed([("text", SpaceConfig(model="owner/bge"))], Settings(), Cards())
    assert (alone.num_gpus, alone.actors) == (0.0, 1)
    [minilm], placement = _placed([("text", SpaceConfig(model="minilm"))], Settings(), ONE_GPU)
    assert (minilm.num_gpus, minilm.actors) == (0.0, 3)
    assert placement.notices == ("1 GPU is idle: embedding of text: minilm has no GPU code",)
    [set_], _ = _placed([("text", SpaceConfig(model="minilm"))], Settings(ingest=IngestConfig(concurrency=5)), ONE_GPU)
    assert set_.actors == 5


@pytest.mark.usefixtures("card")
def test_the_retrievers_replica_and_the_shards_of_late_interaction_get_a_free_gpu(root: str) -> None:
    placement = served_placement(Settings(collection=root, spaces=VISUAL))
    assert (placement.share("serving.num_gpus"), placement.share("index.num_gpus")) == (0.5, 0.5)
    two = served_placement(Settings(collection=root, spaces=VISUAL, index=IndexConfig(shards=3)))
    assert (two.share("serving.num_gpus"), two.share("index.num_gpus")) == (0.25, 0.25)


@pytest.mark.usefixtures("card")
def test_the_retrievers_deployment_asks_serve_for_its_share(root: str) -> None:
    settings = Settings(collection=root, spaces=VISUAL)
    gateway = application(settings, Security())
    retriever = gateway._bound_deployment.init_args[2]._bound_deployment
    assert retriever.ray_actor_options["num_gpus"] == 0.5
    assert retriever.init_args[1] == 0.5
    # A second replica beside it might find no room on the card.
    surges = (part._deployment_config.max_surge_percent for part in (retriever, gateway._bound_deployment))
    assert tuple(surges) == (0, 100)


@pytest.mark.usefixtures("card")
def test_a_language_model_that_has_the_gpu_leaves_queries_on_the_cpu_and_that_is_a_notice(root: str) -> None:
    placement = served_placement(Settings(collection=root, spaces=VISUAL, vllm=VllmConfig(model="m")))
    assert (placement.share("vllm.num_gpus"), placement.share("serving.num_gpus")) == (1.0, 0.0)
    [notice] = placement.notices
    assert "query embedding and search on the CPU, because no GPU is free: give every part its share" in notice
    shared = Settings(
        collection=root,
        vllm=VllmConfig(model="m", num_gpus=0.7),
        serving=ServingConfig(num_gpus=0.2),
        index=IndexConfig(num_gpus=0.1),
    )
    assert served_placement(shared).notices == ()
    with pytest.raises(VragError, match=r"gpus is 0 and vllm\.num_gpus is 1: set vllm\.num_gpus to 0"):
        served_placement(Settings(collection=root, gpus=0, vllm=VllmConfig(model="m")))


@pytest.mark.usefixtures("card")
def test_searching_in_this_process_uses_what_it_sees_and_says_so(root: str, tmp_path: Path) -> None:
    reranker = RerankerConfig(model="owner/reranker")
    placement = local_placement(Settings(collection=root, spaces=VISUAL, reranker=reranker))
    assert placement.line == "query embedding and reranking and search on 1 GPU"
    off = local_placement(Settings(collection=root, spaces=VISUAL, gpus=0))
    assert off.line == "query embedding and search on the CPU (gpus is 0)"
    plant(tmp_path / "words", {"a": ["one"]})
    lines: list[str] = []
    local_placement(Settings(collection=str(tmp_path / "words"))).report(lines.append)
    assert lines == []


SINGLE, LATE = SpaceSpec("visual", "visual/1"), SpaceSpec("late", "late/1", multi_vector=True, exhaustive_below=10)


@pytest.mark.parametrize(
    ("kind", "spec", "fault"),
    [
        (IndexKind.FLAT, SINGLE, r"index\.num_gpus is above 0 and FAISS sees no GPU"),
        (IndexKind.IVF_SQ, SINGLE, r"index\.num_gpus is above 0 and FAISS sees no GPU"),
        (IndexKind.FLAT, LATE, "device is cuda, but torch finds no GPU"),
    ],
)
def test_no_index_holds_a_share_of_a_gpu_that_it_does_not_use(
    root: str, kind: IndexKind, spec: SpaceSpec, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine without a GPU, that every index looks for one shows by its refusal."""
    import faiss
    import torch

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    files, version = CollectionFiles(root), Collection.open(root).version
    with pytest.raises(VragError, match=fault):
        load_shard(files, version, [spec], IndexConfig(kind=kind, num_gpus=0.5, recall_floor=0.0))
    for share in (0.0, None):
        shard = load_shard(files, version, [spec], IndexConfig(kind=kind, num_gpus=share, recall_floor=0.0))
        assert [status.device for status in shard.statuses] == ["cpu"]


def test_late_interaction_takes_a_gpu_that_its_process_has_and_falls_back_with_a_notice_where_it_does_not_fit(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from vrag_ray.index.shards import shard_index

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert late_device(IndexConfig()) == "cuda" and late_device(IndexConfig(num_gpus=0.0)) is None
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1, 1))
    files, version = CollectionFiles(root), Collection.open(root).version
    [status] = load_shard(files, version, [LATE], IndexConfig()).statuses
    assert status.device == "cpu" and "late is searched on the CPU: the vectors of late interaction" in status.notice
    with pytest.raises(VragError, match=r"set more index\.shards"):
        load_shard(files, version, [LATE], IndexConfig(num_gpus=0.5))
    # The same with torch's CPU device in the card's place.
    monkeypatch.setattr(shard_index, "late_device", lambda _: "cpu")
    by_torch = load_shard(files, version, [LATE], IndexConfig())
    query = [np.eye(4, dtype=np.float32)[[1, 2]]]
    monkeypatch.setattr(shard_index, "late_device", lambda _: None)
    plain = load_shard(files, version, [LATE], IndexConfig())
    assert by_torch.nearest("late", query, 2, None) == plain.nearest("late", query, 2, None)
    assert TEXT not in {status.space for status in by_torch.statuses}
