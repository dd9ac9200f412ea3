"""Attention of a vision tower within all windows of a batch in one kernel, by torch alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

NAME = "packed_flash"
"""Of this attention in transformers; because "flash" is in it, towers pass the boundaries of their windows."""
FAMILY = "qwen2_5_vl"
"""The family whose tower attends within windows: some hundred a page in most layers. Towers that attend within whole
pictures gain nothing (measured with Qwen3-VL and Qwen2-VL, docs/results/gpu.md)."""


def use_packed_attention(model: PreTrainedModel) -> None:
    """Let the vision tower of a Qwen2.5-VL model compute all windows together, in place; other models stay.

    Without the package flash-attn, transformers computes them one by one, and a GPU waits for their launches: a page
    takes two and a half times as long. A tower that uses flash-attn keeps it.
    """
    from transformers import AttentionInterface, PreTrainedModel

    AttentionInterface.register(NAME, _packed)
    for module in model.modules():
        is_tower = isinstance(module, PreTrainedModel) and hasattr(module, "patch_embed")
        if is_tower and module.config.model_type.startswith(FAMILY) and module.config._attn_implementation == "sdpa":
            module.config._attn_implementation = NAME


def _packed(
    _module: Module, query: Tensor, key: Tensor, value: Tensor, *, cu_seq_lens_q: Tensor, max_length_q: int | Tensor,
    **_: object,
) -> tuple[Tensor, None]:  # fmt: skip
    """As transformers calls an attention: [1, heads, patches, dim] each; the result is [1, patches, heads, dim].

    Window ``i`` holds the patches from ``cu_seq_lens_q[i]`` to ``cu_seq_lens_q[i + 1]``. The tower has no mask and no
    dropout, and its scale is the default, 1 / sqrt(dim). Half precision on a GPU takes torch's kernel; all else is
    computed window by window.
    """
    import torch

    if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16):
        from torch.nn.attention.varlen import varlen_attn

        longest = int(max_length_q)
        query, key, value = (states[0].transpose(0, 1).contiguous() for states in (query, key, value))
        attended = varlen_attn(query, key, value, cu_seq_lens_q, cu_seq_lens_q, longest, longest)
        assert isinstance(attended, torch.Tensor)
        return attended[None], None
    bounds = cu_seq_lens_q[1:-1].tolist()
    windows = zip(*(torch.tensor_split(states, bounds, dim=2) for states in (query, key, value)), strict=True)
    attended = torch.cat([torch.nn.functional.scaled_dot_product_attention(*window) for window in windows], dim=2)
    return attended.transpose(1, 2).contiguous(), None
