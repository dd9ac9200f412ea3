"""Where tokens stand for the rotary embedding of a model that sees pictures (M-RoPE, arXiv 2409.12191)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

Grid = tuple[int, int, int]
"""Of a picture's patches: (time, rows, columns)."""
CACHED_LAYOUTS = 128


class Positions:
    """What the model's own ``get_rope_index`` gives, which is called once for all prompts of one layout.

    It goes through a prompt in Python; the calls of a group have the same layout, and the next step asks again.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        # Both families have it, transformers' base class has not.
        self._index: Callable[..., tuple[Tensor, Tensor]] = model.model.get_rope_index
        self._cached = lru_cache(CACHED_LAYOUTS)(self._to_last_picture)

    def of(self, is_image: Tensor, grids: Sequence[tuple[Grid, ...]]) -> Tensor:
        """[3, calls, tokens]: time, row and column of every token, on the device of ``is_image`` ([calls, tokens]).

        ``grids`` has the pictures of each call, in order. Padding on the right counts on like text.
        """
        import torch

        calls, tokens = is_image.shape
        positions = torch.empty((3, calls, tokens), dtype=torch.long)
        for call, (kinds, shown) in enumerate(zip(is_image.tolist(), grids, strict=True)):
            length = tokens - kinds[::-1].index(1) if shown else 0
            following = 0
            if shown:
                head, following = self._cached(bytes(kinds[:length]), shown)
                positions[:, call, :length] = head
            positions[:, call, length:] = torch.arange(following, following + tokens - length)
        return positions.to(is_image.device)

    def _to_last_picture(self, kinds: bytes, grids: tuple[Grid, ...]) -> tuple[Tensor, int]:
        """[3, tokens] of a prompt that ends with a picture, and where the token after it stands."""
        import torch

        kinds_row = torch.tensor([list(kinds)])
        positions, _ = self._index(
            torch.zeros_like(kinds_row), mm_token_type_ids=kinds_row, image_grid_thw=torch.tensor(grids)
        )
        return positions[:, 0], int(positions.max()) + 1
