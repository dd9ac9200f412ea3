"""ColModernVBERT (ModernVBERT/colmodernvbert-merged) by transformers' own class: a quarter of a billion parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import PictureSpec
from vrag_ray.embedding.models.architecture import Inputs, Prompt
from vrag_ray.embedding.models.late_interaction import AUGMENTATION, LateInteraction
from vrag_ray.embedding.source import ModelSource
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PreTrainedModel


class ColModernVBert(LateInteraction):
    """A page is enlarged to a longest side of ``size`` px and cut into square tiles, followed by the whole page as one
    more tile. Tiles are read left to right and down, each in its own order: ``reading_order`` makes rows of the page
    of them. The whole page's tokens come behind the grid and have no place."""

    kind = "colmodernvbert"
    latin_only = True

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        from transformers import ColModernVBertProcessor

        self.processor = ColModernVBertProcessor.from_pretrained(source.folder)
        super().__init__(source, config, self.processor.tokenizer)
        if config.max_pixels is not None:
            raise VragError(f"{source.name} enlarges every page to one size: leave `max_pixels` out")
        pictures = self.processor.image_processor
        self.longest = int(pictures.size["longest_edge"])
        self.tile = int(pictures.max_image_size["longest_edge"])
        self.split = bool(pictures.do_image_splitting)
        self.tile_tokens = int(self.processor.image_seq_len)
        self.visual_token = int(self.processor.image_token_id)

    @property
    def pictures(self) -> PictureSpec:
        # The processor brings a page's longest side to ``longest``, and its sides to whole tiles.
        frames, area = self.config.max_frames, self.longest**2
        return PictureSpec(patch=16, min_pixels=area // 4, max_pixels=area, max_frames=frames, frame_pixels=area)

    @property
    def preprocessing(self) -> tuple[str, ...]:
        tiles = f"side{self.longest}-tile{self.tile}" if self.split else f"tile{self.tile}"
        return (f"score-{self.score}", tiles, f"frames{self.config.max_frames}")

    def query_text(self, words: str) -> tuple[str, int]:
        prefix = self.processor.query_prefix
        return f"{prefix}{words}{self.processor.query_augmentation_token * AUGMENTATION}", len(prefix)

    def page_text(self) -> str:
        return str(self.processor.visual_prompt_prefix)

    def encode_pictures(self, pictures: Sequence[Image]) -> Inputs:
        inputs = self.processor.process_images(images=list(pictures))
        names = ("input_ids", "attention_mask", "pixel_values", "pixel_attention_mask")
        return {name: inputs[name] for name in names if name in inputs}

    def grid(self, prompt: Prompt, visual: int) -> tuple[int, int] | None:
        tiles = self._tiles(prompt, visual)
        side = math.isqrt(self.tile_tokens)
        return (tiles[0] * side, tiles[1] * side) if tiles is not None else None

    def reading_order(self, prompt: Prompt, visual: int) -> Sequence[int]:
        tiles = self._tiles(prompt, visual)
        if tiles is None:
            return range(visual)
        down, across = tiles
        side = math.isqrt(self.tile_tokens)
        placed = [
            (row * across + column) * self.tile_tokens + y * side + x
            for row in range(down)
            for y in range(side)
            for column in range(across)
            for x in range(side)
        ]
        return [*placed, *range(len(placed), visual)]

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import ColModernVBertForRetrieval

        return ColModernVBertForRetrieval.from_pretrained(self.source.folder, dtype=dtype)

    def _tiles(self, prompt: Prompt, visual: int) -> tuple[int, int] | None:
        """Rows and columns of tiles that cover the page evenly; None where the tokens do not tell."""
        assert prompt.picture is not None
        if math.isqrt(self.tile_tokens) ** 2 != self.tile_tokens:
            return None
        tiles = visual // self.tile_tokens
        if tiles == 1:
            return (1, 1)
        # The longer side becomes `longest`, and both are stretched to whole tiles; the last tile is the whole page.
        long = math.ceil(self.longest / self.tile)
        short = (tiles - 1) // long
        if long * short != tiles - 1:
            return None
        width, height = prompt.picture.size
        return (short, long) if width >= height else (long, short)
