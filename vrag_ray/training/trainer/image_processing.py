"""Pictures as the model's own image processor cuts them up; each picture only once.

The sampler hands the same PNG to the same processor, so both see the same numbers.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import Image

from vrag_ray.caching import SizedLRU
from vrag_ray.policies.llm.vllm_prompt import pictures
from vrag_ray.training.trainer.mrope import Grid
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import ProcessorMixin

CACHED_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Patches:
    """One picture. ``values`` has shape [patches, channels * pixels of a patch]; ``grid`` is that of its patches."""

    values: Tensor
    grid: Grid


class Pixels:
    """The last pictures are cached. ``image_token_id`` stands for a picture in prompts."""

    def __init__(self, processor: ProcessorMixin) -> None:
        # Each family's processor has it, their common base has not.
        self.image_token_id: int = getattr(processor, "image_token_id")  # noqa: B009
        self._process: Callable[..., Mapping[str, Tensor]] = processor.image_processor
        self._count: Callable[[int, int], int] = processor.image_processor.get_number_of_image_patches
        self._merge = int(processor.image_processor.merge_size) ** 2
        self._cached: SizedLRU[str, Patches] = SizedLRU(
            CACHED_BYTES, lambda patches: int(patches.values.nbytes), keep_newest=True
        )

    def patches(self, pngs: Sequence[bytes]) -> list[Patches]:
        """Of each picture. Those that are not cached are cut up together: one by one, most of the time is overhead."""
        names = [hashlib.sha256(png).hexdigest() for png in pngs]
        known = {name: cached for name in names if (cached := self._cached.get(name)) is not None}
        missing = {name: png for name, png in zip(names, pngs, strict=True) if name not in known}
        if missing:
            for name, patches in zip(missing, self._cut_up(list(missing.values())), strict=True):
                known[name] = patches
                self._cached.put(name, patches)
        return [known[name] for name in names]

    def visual_tokens(self, png: bytes) -> int:
        """How often the image token stands in the prompt for this picture: derived from its size alone."""
        with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
            width, height = picture.size
        return self._count(height, width) // self._merge

    def _cut_up(self, pngs: Sequence[bytes]) -> list[Patches]:
        import torch

        done = self._process(images=list(pictures(pngs)), return_tensors="pt")
        grids = [(int(time), int(rows), int(columns)) for time, rows, columns in done["image_grid_thw"]]
        values = torch.split(done["pixel_values"], [time * rows * columns for time, rows, columns in grids])
        # Copies: a part would hold on to the pictures that it was cut up with.
        return [Patches(value.clone(), grid) for value, grid in zip(values, grids, strict=True)]

    def expand_image_tokens(self, ids: tuple[int, ...], pngs: tuple[bytes, ...]) -> tuple[int, ...]:
        """``ids`` with each picture's one image token repeated for every visual token, as the model reads it.

        Raises VragError unless there is one image token for each picture.
        """
        if ids.count(self.image_token_id) != len(pngs):
            raise VragError(f"{len(pngs)} pictures and {ids.count(self.image_token_id)} image tokens in one prompt")
        left = iter(pngs)
        wide: list[int] = []
        for token in ids:
            wide.extend([token] * (self.visual_tokens(next(left)) if token == self.image_token_id else 1))
        return tuple(wide)
