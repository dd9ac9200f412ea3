"""Pictures as the model's own image processor cuts them up; each picture only once.

The sampler hands the same PNG to the same processor, so both see the same numbers.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.policies.vllm_prompt import pictures
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import ProcessorMixin

KEPT_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Patches:
    """One picture. ``values`` has shape [patches, channels * pixels of a patch]; ``grid`` is (time, rows, columns)."""

    values: Tensor
    grid: tuple[int, int, int]


class Pixels:
    """The last pictures are kept. ``image_token_id`` stands for a picture in prompts."""

    def __init__(self, processor: ProcessorMixin) -> None:
        # Each family's processor has it, their common base has not.
        self.image_token_id: int = getattr(processor, "image_token_id")  # noqa: B009
        self._process: Callable[..., Mapping[str, Tensor]] = processor.image_processor
        self._merge = int(processor.image_processor.merge_size) ** 2
        self._kept: OrderedDict[str, Patches] = OrderedDict()
        self._bytes = 0

    def patches(self, png: bytes) -> Patches:
        key = hashlib.sha256(png).hexdigest()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        done = self._process(images=list(pictures([png])), return_tensors="pt")
        time, rows, columns = (int(size) for size in done["image_grid_thw"][0])
        patches = Patches(done["pixel_values"], (time, rows, columns))
        self._kept[key] = patches
        self._bytes += patches.values.nbytes
        while self._bytes > KEPT_BYTES and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.values.nbytes
        return patches

    def visual_tokens(self, png: bytes) -> int:
        time, rows, columns = self.patches(png).grid
        return time * rows * columns // self._merge

    def widen(self, ids: tuple[int, ...], pngs: tuple[bytes, ...]) -> tuple[int, ...]:
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
