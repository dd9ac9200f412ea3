"""The tower with its windows together gives what it gives with its windows one by one."""

from unittest.mock import Mock

import pytest
from transformers import AttentionInterface

from benchmarks.card.models import QWEN3_2B, QWEN25_7B, page_embedder, page_png
from vrag_ray.packed_attention import NAME, use_packed_attention


@pytest.fixture
def images():
    import io

    from PIL import Image

    # Different sizes: windows at the edges are smaller, and each picture has its own.
    return [Image.open(io.BytesIO(page_png(number, 30 + 10 * number))) for number in range(3)]


@pytest.mark.parametrize(("name", "packed"), [(QWEN25_7B, True), (QWEN3_2B, False)])
def test_windows_together_and_one_by_one(name, packed, images, tmp_path):
    import torch
    from transformers import AutoProcessor

    model = page_embedder(tmp_path, name, tiny=True).make(torch.float32, "cpu")
    inputs = AutoProcessor.from_pretrained(tmp_path).image_processor(images, return_tensors="pt")
    with torch.no_grad():
        apart = model.visual(inputs["pixel_values"], inputs["image_grid_thw"]).pooler_output
        use_packed_attention(model)
        attention = Mock(wraps=AttentionInterface()[NAME])
        AttentionInterface.register(NAME, attention)
        together = model.visual(inputs["pixel_values"], inputs["image_grid_thw"]).pooler_output
    torch.testing.assert_close(together, apart, rtol=1e-5, atol=1e-6)
    # Of the two layers one attends within windows, the other within whole pictures; each is a single call.
    windows = sorted(len(call.kwargs["cu_seq_lens_q"]) - 1 for call in attention.call_args_list)
    assert (len(windows) == 2 and windows[0] == len(images) < windows[1]) if packed else not windows
    assert model.language_model.config._attn_implementation == "sdpa"


def test_an_attention_that_was_chosen_stays(tmp_path):
    import torch

    model = page_embedder(tmp_path, QWEN25_7B, tiny=True).make(torch.float32, "cpu")
    model.visual.config._attn_implementation = "eager"
    use_packed_attention(model)
    assert model.visual.config._attn_implementation == "eager"
