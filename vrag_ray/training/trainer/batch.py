"""Calls side by side in one forward pass: padded tokens, each different picture once, and which tokens are scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.training.trainer.mrope import Grid
from vrag_ray.training.trajectory import Call
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """``input_ids``, ``attention_mask`` and ``is_image``: [calls, tokens], padded on the right.

    ``pixels`` ([patches, values]) and ``grids`` ([pictures, 3]) hold every different picture once; ``shown`` ([images])
    is the picture of each image in the order of the prompts, and ``layouts`` has the grids of each call's images.
    ``rows`` and ``columns`` ([scored]) are the places of the completion tokens, call after call; ``labels`` ([scored])
    are these tokens. ``lengths`` counts them by call.
    """

    input_ids: Tensor
    attention_mask: Tensor
    is_image: Tensor
    pixels: Tensor | None
    grids: Tensor | None
    shown: Tensor | None
    rows: Tensor
    columns: Tensor
    labels: Tensor
    lengths: tuple[int, ...]
    layouts: tuple[tuple[Grid, ...], ...]

    def to(self, device: torch.device) -> Batch:
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return Batch(
            self.input_ids.to(device),
            self.attention_mask.to(device),
            self.is_image.to(device),
            moved(self.pixels),
            moved(self.grids),
            moved(self.shown),
            self.rows.to(device),
            self.columns.to(device),
            self.labels.to(device),
            self.lengths,
            self.layouts,
        )


def collate(calls: Sequence[Call], pixels: Pixels, pad_id: int) -> Batch:
    """Raises VragError where the image tokens of a prompt are not those of its pictures."""
    import torch

    longest = max(call.tokens for call in calls)
    input_ids = torch.full((len(calls), longest), pad_id)
    attention_mask = torch.zeros((len(calls), longest), dtype=torch.long)
    numbers: dict[bytes, int] = {}
    shown: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    labels: list[int] = []
    for row, call in enumerate(calls):
        start = len(call.prompt_ids)
        input_ids[row, : call.tokens] = torch.tensor((*call.prompt_ids, *call.completion_ids))
        attention_mask[row, : call.tokens] = 1
        shown.extend(numbers.setdefault(png, len(numbers)) for png in call.images)
        rows.extend([row] * len(call.completion_ids))
        columns.extend(range(start, call.tokens))
        labels.extend(call.completion_ids)
        expected = call.prompt_ids.count(pixels.image_token_id)
        real = sum(pixels.visual_tokens(png) for png in call.images)
        if expected != real:
            raise VragError(f"a prompt has {expected} image tokens for pictures of {real} visual tokens")
        if pixels.image_token_id in call.completion_ids:
            raise VragError("a reply holds a token that stands for a picture: the sampler must not say it")
    is_image = (input_ids == pixels.image_token_id).long()
    patches = pixels.patches(list(numbers))
    return Batch(
        input_ids,
        attention_mask,
        is_image,
        torch.cat([patch.values for patch in patches]) if patches else None,
        torch.tensor([patch.grid for patch in patches]) if patches else None,
        torch.tensor(shown) if patches else None,
        torch.tensor(rows),
        torch.tensor(columns),
        torch.tensor(labels),
        tuple(len(call.completion_ids) for call in calls),
        tuple(tuple(patches[numbers[png]].grid for png in call.images) for call in calls),
    )


def parts(sizes: Sequence[Sequence[int]], budget: int) -> Iterator[list[int]]:
    """Numbers of groups of calls, in parts whose padded tokens stay within ``budget``; groups are not cut.

    ``sizes`` has the tokens of each group's calls. Groups of like length come together. One that is larger than
    ``budget`` stands alone. The same sizes give the same parts.
    """
    longest_first = sorted(range(len(sizes)), key=lambda number: (-max(sizes[number]), number))
    part: list[int] = []
    calls = 0
    longest = 0
    for number in longest_first:
        longest_with = max(longest, *sizes[number])
        if part and (calls + len(sizes[number])) * longest_with > budget:
            yield part
            part, calls, longest_with = [], 0, max(sizes[number])
        part.append(number)
        calls += len(sizes[number])
        longest = longest_with
    if part:
        yield part
