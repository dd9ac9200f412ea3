"""From a model's name to a folder with its files, and to a name of exactly these files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vrag_ray.embedding.recipe import RECIPE_FILE, Recipe, read_recipe
from vrag_ray.types import VragError
from vrag_ray.types.file_names import expanded

CONFIG_FILE = "config.json"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""The second where the first is absent: torch reads it as tensors only, and runs no code of it."""
DESCRIPTIONS = ("*.json", "*.jinja", "*.model", "*.txt")
IN_IDENTITY = (
    CONFIG_FILE, RECIPE_FILE, "tokenizer.json", "tokenizer_config.json", "processor_config.json",
    "preprocessor_config.json", "video_preprocessor_config.json", "chat_template.jinja", "chat_template.json",
    "tokenizer.model",
)  # fmt: skip
"""Files beside the weights that change a vector."""
SAMPLES = 64
SAMPLE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ModelSource:
    """``identity`` names the contents: a commit of the hub, or a hash of a local folder. ``config`` is config.json."""

    name: str
    identity: str
    folder: Path
    config: Mapping[str, object]
    recipe: Recipe

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    @property
    def architectures(self) -> tuple[str, ...]:
        named = self.config.get("architectures")
        return tuple(map(str, named)) if isinstance(named, list) else ()


def find_model(model: str, revision: str | None = None) -> ModelSource:
    """The files of a hub id or a folder; what the hub has and this machine lacks is downloaded.

    Raises VragError that names the model, what was tried and what to do.
    """
    folder = expanded(model)
    if folder.is_dir():
        if revision is not None:
            raise VragError(f"{model} is a folder, which has no revisions: leave `revision` ({revision}) out")
        return _described(folder.resolve().name, fingerprint(folder), folder)
    if model.count("/") != 1 or model.startswith(("/", ".", "~")):
        raise VragError(f"there is no folder {model}, and it is not a hub id (owner/name): give one of the two")
    folder = _snapshot(model, revision)
    return _described(model, folder.name[:12], folder)


def fingerprint(folder: Path) -> str:
    """Eight hex digits that name the contents of a model folder, wherever it lies and whatever it is called.

    SHA-256 over the files that shape its input, and of each file of weights its name, size, head (the first 4 KiB and
    the safetensors header) and 64 samples of 4 KiB spread evenly: training changes every tensor, so a sample sees it,
    and 16 GB are named in a fraction of a second. A folder altered by hand in a few bytes may keep its name.
    """
    state = hashlib.sha256()
    for name in IN_IDENTITY:
        path = folder / name
        if path.is_file():
            data = path.read_bytes()
            state.update(f"{name}:{len(data)}:".encode() + data)
    for path in sorted(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        state.update(f"{path.name}:{path.stat().st_size}:".encode())
        for sample in _samples(path):
            state.update(sample)
    return state.hexdigest()[:8]


def _samples(path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
        yield head
        header = int.from_bytes(head[:8], "little")
        file.seek(0)
        yield file.read(min(8 + header, size, 64 << 20))
        for place in range(SAMPLES):
            file.seek(max(0, size - SAMPLE_BYTES) * place // (SAMPLES - 1))
            yield file.read(SAMPLE_BYTES)


def _described(name: str, identity: str, folder: Path) -> ModelSource:
    path = folder / CONFIG_FILE
    try:
        config: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise VragError(f"{name}: {path} cannot be read, so {folder} is no model folder: {error}") from error
    if not isinstance(config, dict):
        raise VragError(f"{name}: {path} is not a JSON object, so {folder} is no model folder")
    return ModelSource(name, identity, folder, config, read_recipe(folder))


def _snapshot(model: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

    at = f"{model} at revision {revision}" if revision else model
    try:
        folder = Path(snapshot_download(model, revision=revision, allow_patterns=[*DESCRIPTIONS, WEIGHTS[0]]))
        if not any(folder.glob(WEIGHTS[0])):
            folder = Path(snapshot_download(model, revision=revision, allow_patterns=[*DESCRIPTIONS, WEIGHTS[1]]))
        return folder
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise VragError(
            f"{at} is not in the hub's cache on this machine, and the hub cannot be asked (HF_HUB_OFFLINE, or no "
            "network): connect and try again, or copy the model's folder here and name that folder"
        ) from error
    except HFValidationError as error:
        raise VragError(f"{at} is neither a folder here nor a hub id: {error}") from error
    except (HfHubHTTPError, OSError) as error:
        raise VragError(
            f"{at} could not be fetched from the hub: {error}; check name, revision and access, or name a folder"
        ) from error
