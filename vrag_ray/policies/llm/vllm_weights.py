"""A checkpoint to load into a running engine: brought to this node, and looked at before anything is touched."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.types import VragError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

INDEX = "model.safetensors.index.json"
SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "depth",
    "num_heads",
    "out_hidden_size",
    "patch_size",
)
"""The settings of a text or vision model on which the shapes of its weights depend."""


@asynccontextmanager
async def checked_folder(source: str, model: str) -> AsyncIterator[Path]:
    """A local folder with the files of ``source``, a folder or an object-store URI; copies are removed afterwards.

    Raises VragError unless it is a whole checkpoint of the architecture and sizes of ``model``.
    """
    if "://" not in source or source.startswith("file://"):
        folder = Path(source.removeprefix("file://"))
        await asyncio.to_thread(_check, folder, source, model)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="vrag-weights-") as copy:
        await asyncio.to_thread(_fetch, source, copy)
        await asyncio.to_thread(_check, Path(copy), source, model)
        yield Path(copy)


def _fetch(source: str, target: str) -> None:
    from pyarrow import fs

    try:
        fs.copy_files(source, f"file://{target}")
    except (OSError, ValueError) as error:
        raise VragError(f"cannot read the weights at {source}: {error}") from error


def _check(folder: Path, source: str, model: str) -> None:
    from safetensors import SafetensorError, safe_open
    from transformers import AutoConfig

    try:
        names = {file.name for file in folder.glob("*.safetensors")}
        if (folder / INDEX).exists():
            names |= set(json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
        if not names:
            raise VragError(f"{source} holds no *.safetensors: give the folder that the model was saved to")
        for name in sorted(names):
            # Opening reads the header, which does not fit a file that was cut short.
            with safe_open(folder / name, framework="numpy"):
                pass
        read: Callable[[str | Path], PreTrainedConfig] = AutoConfig.from_pretrained
        new, served = _shape(read(folder)), _shape(read(model))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise VragError(f"the weights in {source} cannot be read: {error}. Save the model again.") from error
    if new != served:
        raise VragError(f"the weights in {source} are of another model than {model}: {new} instead of {served}")


def _shape(config: PreTrainedConfig) -> dict[str, object]:
    parts = {"text": config.get_text_config(), "vision": getattr(config, "vision_config", None)}
    sizes = {f"{part}.{name}": getattr(parts[part], name, None) for part in parts for name in SIZES}
    return {"architectures": config.architectures} | {name: size for name, size in sizes.items() if size is not None}
