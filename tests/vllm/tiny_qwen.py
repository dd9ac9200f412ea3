"""A Qwen2.5-VL of random weights, small enough for a test: it proves mechanics, it says nothing of quality."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, Qwen2_5_VLConfig, Qwen2_5_VLProcessor

IM_START, IM_END = "<|im_start|>", "<|im_end|>"
VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD = (
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
SPECIAL_TOKENS = ["<|endoftext|>", IM_START, IM_END, VISION_START, VISION_END, "<|vision_pad|>", IMAGE_PAD, VIDEO_PAD]
PATCH = 14
MERGE = 2
# Ten times the usual: at 0.02 all next tokens are about equally likely and no input changes that.
WEIGHT_STD = 0.2
CORPUS = ["Which colour is the cell in the first row and the second column of the picture?", "a b c d e f g h 0 1 2 3"]


def image_prompt(question: str) -> str:
    """A chat turn with one image before ``question``, in Qwen's own template."""
    picture = f"{VISION_START}{IMAGE_PAD}{VISION_END}"
    return f"{IM_START}user\n{picture}{question}{IM_END}\n{IM_START}assistant\n"


def build_tiny_qwen(folder: Path, seed: int = 0) -> None:
    """Save model (float32), tokenizer and processor to ``folder``, as a hub snapshot would look."""
    import torch
    from transformers import Qwen2_5_VLForConditionalGeneration

    processor = _processor()
    tokenizer = processor.tokenizer
    torch.manual_seed(seed)
    model = Qwen2_5_VLForConditionalGeneration(_config(tokenizer)).to(torch.float32).eval()
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def _processor() -> Qwen2_5_VLProcessor:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import Qwen2_5_VLProcessor, Qwen2TokenizerFast, Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False))
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer = Qwen2TokenizerFast(tokenizer_object=bpe, eos_token=IM_END, pad_token="<|endoftext|>")
    size = {"shortest_edge": (PATCH * MERGE) ** 2, "longest_edge": (PATCH * MERGE) ** 2 * 64}
    return Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=PATCH, merge_size=MERGE, size=size),
        video_processor=Qwen2VLVideoProcessor(patch_size=PATCH, merge_size=MERGE),
        tokenizer=tokenizer,
    )


def _config(tokenizer: PreTrainedTokenizerBase) -> Qwen2_5_VLConfig:
    from transformers import Qwen2_5_VLConfig

    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "initializer_range": WEIGHT_STD,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 1024,
        "rope_parameters": {"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 10_000.0},
        "bos_token_id": ids["<|endoftext|>"],
        "eos_token_id": ids[IM_END],
        "pad_token_id": ids["<|endoftext|>"],
        "tie_word_embeddings": False,
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "initializer_range": WEIGHT_STD,
        "intermediate_size": 128,
        "num_heads": 2,
        "out_hidden_size": text["hidden_size"],
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "temporal_patch_size": 2,
        "window_size": 112,
        "fullatt_block_indexes": [1],
    }
    return Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=ids[IMAGE_PAD],
        video_token_id=ids[VIDEO_PAD],
        vision_start_token_id=ids[VISION_START],
        vision_end_token_id=ids[VISION_END],
        tie_word_embeddings=False,
    )
