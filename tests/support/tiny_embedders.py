"""Embedding models of random weights from their real config classes: folders that prove mechanics, not quality.

Each function writes one folder, as a hub snapshot would look, and returns it. The same seed writes the same weights.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tiny_model import Family, save_tiny_model

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import nn
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

WEIGHT_STD = 0.2
BIAS_STD = 0.1
"""Not zero, as initialised: an engine that drops a bias would not be noticed."""
WORDS = (
    "a red blue green square circle table of revenue in the first second quarter what colour is 2023 page 表 图 红 蓝"
)
CHAT_TEMPLATE = """\
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\\n' -}}
  {%- if message.content is string -%}{{ message.content }}
  {%- else -%}
    {%- for part in message.content -%}
      {%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
      {%- elif part.type == 'video' -%}<|vision_start|><|video_pad|><|vision_end|>
      {%- else -%}{{ part.text }}{%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
QWEN_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"]
QWEN_PADS = ["<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]


def tiny_qwen3_vl_embedding(folder: Path, seed: int = 0) -> Path:
    """128 dimensions; patches of 32 px."""
    _qwen_vl(folder, Family.QWEN3_VL, seed)
    # The published model's, for pictures and clips alike: vLLM takes one mean for both.
    path = folder / "processor_config.json"
    settings = json.loads(path.read_text())
    for part in ("image_processor", "video_processor"):
        settings[part] |= {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    path.write_text(json.dumps(settings, indent=1))
    return folder


def tiny_qwen3_vl_reranker(folder: Path, seed: int = 0) -> Path:
    """As ``tiny_qwen3_vl_embedding``, with "yes" and "no" among its tokens."""
    from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

    tiny_qwen3_vl_embedding(folder, seed)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["yes", "no"])
    tokenizer.save_pretrained(folder)
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.save_pretrained(folder)
    return folder


def tiny_gve(folder: Path, seed: int = 0) -> Path:
    """128 dimensions; patches of 28 px."""
    return _qwen_vl(folder, Family.QWEN2_5_VL, seed)


def _word_tokenizer(marks: Sequence[str], before: str, after: str, max_length: int) -> PreTrainedTokenizerFast:
    """A vocabulary of whole words, so that other words are unknown to it. ``marks``: begin, padding, end, unknown."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    known = [*marks, *WORDS.split(), *"abcdefghijklmnopqrstuvwxyz"[1:]]
    places = {word: place for place, word in enumerate(known)}
    tokenizer = Tokenizer(models.WordLevel(places, unk_token=marks[3]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{before} $A {after}".strip(), special_tokens=[(mark, places[mark]) for mark in (before, after) if mark]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=marks[0], eos_token=marks[2], unk_token=marks[3], pad_token=marks[1],
        cls_token=marks[0], sep_token=marks[2], model_max_length=max_length,
    )  # fmt: skip


def tiny_bge_m3(folder: Path, seed: int = 0) -> Path:
    """Text only: 64 dimensions."""
    from transformers import XLMRobertaConfig, XLMRobertaModel

    fast = _word_tokenizer(("<s>", "<pad>", "</s>", "<unk>"), "<s>", "</s>", 64)
    config = XLMRobertaConfig(
        vocab_size=len(fast), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
        max_position_embeddings=66, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2,
        initializer_range=WEIGHT_STD,
    )  # fmt: skip
    # As the published file has it, and vLLM wants it.
    config.position_embedding_type = "absolute"
    return _save(folder, seed, lambda: XLMRobertaModel(config), fast)


def tiny_bert(folder: Path, seed: int = 0) -> Path:
    """Text only: 64 dimensions, at most 64 tokens."""
    from transformers import BertConfig, BertModel

    fast = _word_tokenizer(("[CLS]", "[PAD]", "[SEP]", "[UNK]"), "[CLS]", "[SEP]", 64)
    config = BertConfig(
        vocab_size=len(fast), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
        max_position_embeddings=64, pad_token_id=1, initializer_range=WEIGHT_STD,
    )  # fmt: skip
    config.position_embedding_type = "absolute"
    return _save(folder, seed, lambda: BertModel(config), fast)


def tiny_qwen3(folder: Path, seed: int = 0) -> Path:
    """A causal model as Qwen3-Embedding is one: 64 dimensions, an end mark behind each text."""
    from transformers import Qwen3Config, Qwen3Model

    fast = _word_tokenizer(("<s>", "<pad>", "<end>", "<unk>"), "", "<end>", 64)
    fast.padding_side = "left"
    config = Qwen3Config(
        vocab_size=len(fast), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        head_dim=32, intermediate_size=128, max_position_embeddings=64, pad_token_id=1, eos_token_id=2,
        initializer_range=WEIGHT_STD,
    )  # fmt: skip
    return _save(folder, seed, lambda: Qwen3Model(config), fast)


def described(folder: Path, pooling: str, *, dense: int = 0, prompts: dict[str, str] | None = None) -> Path:
    """``folder``, whose encoder sentence-transformers describes there."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling
    from torch import manual_seed

    manual_seed(3)
    encoder = Transformer(str(folder), processor_kwargs={"model_max_length": 48})
    size = encoder.model.config.hidden_size
    modules: list[nn.Module] = [encoder, Pooling(size, pooling)]
    modules += [Dense(size, dense)] if dense else []
    SentenceTransformer(modules=[*modules, Normalize()], prompts=prompts, device="cpu").save(str(folder))
    return folder


def tiny_siglip2(folder: Path, seed: int = 0) -> Path:
    """SigLIP-2 of any aspect (NaFlex): 64 dimensions, at most 64 patches of 16 px."""
    from transformers import Siglip2Config, Siglip2ImageProcessor, Siglip2Model, Siglip2Processor

    tokenizer = _gemma_tokenizer()
    config = Siglip2Config(
        text_config=_siglip_text(len(tokenizer)),
        vision_config=_siglip_vision() | {"num_patches": 64},
    )
    processor = Siglip2Processor(Siglip2ImageProcessor(patch_size=16, max_num_patches=64), tokenizer)
    return _save(folder, seed, lambda: Siglip2Model(config), processor)


def tiny_siglip(folder: Path, seed: int = 0) -> Path:
    """SigLIP, and SigLIP-2 of one fixed picture size: 64 dimensions, 64 x 64 px."""
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel, SiglipProcessor

    tokenizer = _gemma_tokenizer()
    config = SiglipConfig(
        text_config=_siglip_text(len(tokenizer)),
        vision_config=_siglip_vision() | {"image_size": 64},
    )
    processor = SiglipProcessor(SiglipImageProcessor(size={"height": 64, "width": 64}), tokenizer)
    return _save(folder, seed, lambda: SiglipModel(config), processor)


def tiny_colqwen2(folder: Path, seed: int = 0, embedding_dim: int = 32, base: str = "qwen2_vl") -> Path:
    """Late interaction: ``embedding_dim`` a token; at most 64 visual tokens of 28 px.

    ``base`` is the model underneath: ``qwen2_vl`` of the published ones, ``qwen2_5_vl`` of those trained here.
    """
    from transformers import ColQwen2Config, ColQwen2ForRetrieval, ColQwen2Processor, Qwen2VLImageProcessor

    tokenizer = _qwen_tokenizer()
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in QWEN_TOKENS + QWEN_PADS}
    text = {
        "vocab_size": len(tokenizer), "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 4096,
        "rope_parameters": {"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 10_000.0},
        "initializer_range": WEIGHT_STD, "bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    }  # fmt: skip
    vision: dict[str, object] = {
        "depth": 2, "num_heads": 2, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
        "initializer_range": WEIGHT_STD,
    }  # fmt: skip
    if base == "qwen2_vl":
        vision |= {"embed_dim": 64, "hidden_size": 128, "mlp_ratio": 2}
    else:
        vision |= {"hidden_size": 64, "intermediate_size": 128, "out_hidden_size": 128, "window_size": 112}
        vision |= {"fullatt_block_indexes": [1]}
    vlm = {
        "model_type": base, "text_config": text, "vision_config": vision, "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"], "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }  # fmt: skip
    config = ColQwen2Config(vlm_config=vlm, embedding_dim=embedding_dim, initializer_range=WEIGHT_STD)
    pictures = Qwen2VLImageProcessor(
        patch_size=14, merge_size=2, size={"shortest_edge": 4 * 28 * 28, "longest_edge": 64 * 28 * 28}
    )
    return _save(folder, seed, lambda: ColQwen2ForRetrieval(config), ColQwen2Processor(pictures, tokenizer))


def tiny_colpali(folder: Path, seed: int = 0, embedding_dim: int = 32) -> Path:
    """Late interaction: ``embedding_dim`` a token; 4 x 4 visual tokens of a picture of 56 x 56 px."""
    from transformers import ColPaliConfig, ColPaliForRetrieval, ColPaliProcessor, SiglipImageProcessor

    pictures = SiglipImageProcessor(size={"height": 56, "width": 56})
    pictures.image_seq_length = 16
    processor = ColPaliProcessor(pictures, _gemma_tokenizer("<image>"))
    tokenizer = processor.tokenizer
    text = {
        "model_type": "gemma", "vocab_size": len(tokenizer), "hidden_size": 128, "intermediate_size": 256,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64,
        "max_position_embeddings": 1024, "initializer_range": WEIGHT_STD, "pad_token_id": 0, "eos_token_id": 1,
        "bos_token_id": 2,
    }  # fmt: skip
    vision = _siglip_vision() | {
        "model_type": "siglip_vision_model",
        "patch_size": 14,
        "image_size": 56,
        "vision_use_head": False,
    }
    vlm = {
        "model_type": "paligemma", "text_config": text, "vision_config": vision, "projection_dim": 128,
        "hidden_size": 128, "image_token_index": processor.image_token_id, "vocab_size": len(tokenizer),
        "pad_token_id": 0,
    }  # fmt: skip
    config = ColPaliConfig(vlm_config=vlm, embedding_dim=embedding_dim)
    return _save(folder, seed, lambda: ColPaliForRetrieval(config), processor)


def tiny_colmodernvbert(folder: Path, seed: int = 0, embedding_dim: int = 32) -> Path:
    """Late interaction: ``embedding_dim`` a token; tiles of 64 px with 2 x 2 visual tokens, longest side 128 px."""
    from transformers import (
        ColModernVBertConfig,
        ColModernVBertForRetrieval,
        ColModernVBertProcessor,
        Idefics3ImageProcessor,
        PreTrainedTokenizerFast,
    )

    marks = ["<row_1_col_1>", "<row_1_col_2>", "<row_2_col_1>", "<row_2_col_2>", "<global-img>", "<|begin_of_text|>"]
    special = ["[PAD]", "[CLS]", "[SEP]", "<fake_token_around_image>", "<image>", "<end_of_utterance>", *marks]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_byte_bpe(special), pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        eos_token="[SEP]", model_max_length=512,
    )  # fmt: skip
    pictures = Idefics3ImageProcessor(size={"longest_edge": 128}, max_image_size={"longest_edge": 64})
    processor = ColModernVBertProcessor(pictures, tokenizer, image_seq_len=4)
    text = {
        "model_type": "modernbert", "vocab_size": len(tokenizer), "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 3, "num_attention_heads": 2, "max_position_embeddings": 1024, "local_attention": 32,
        "global_attn_every_n_layers": 2, "initializer_range": WEIGHT_STD, "pad_token_id": 0, "cls_token_id": 1,
        "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip
    vision = _siglip_vision() | {
        "model_type": "siglip_vision_model",
        "image_size": 64,
        "vision_use_head": False,
    }
    vlm = {
        "model_type": "modernvbert", "text_config": text, "vision_config": vision, "pixel_shuffle_factor": 2,
        "image_token_id": processor.image_token_id, "initializer_range": WEIGHT_STD,
    }  # fmt: skip
    config = ColModernVBertConfig(vlm_config=vlm, embedding_dim=embedding_dim, initializer_range=WEIGHT_STD)
    return _save(folder, seed, lambda: ColModernVBertForRetrieval(config), processor)


def _qwen_vl(folder: Path, family: Family, seed: int) -> Path:
    save_tiny_model(folder, family, seed)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    return folder


def _save(folder: Path, seed: int, build: object, processor: object) -> Path:
    import torch

    assert callable(build)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = build()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.endswith("bias"):
                    parameter.normal_(0.0, BIAS_STD)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _byte_bpe(special: list[str]) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=alphabet, show_progress=False, special_tokens=special[:3]
    )
    bpe.train_from_iterator([WORDS], trainer)
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return bpe


def _qwen_tokenizer() -> object:
    from transformers import Qwen2Tokenizer

    return Qwen2Tokenizer(
        tokenizer_object=_byte_bpe(QWEN_TOKENS + QWEN_PADS),
        bos_token=None,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )


def _gemma_tokenizer(*more: str) -> object:
    """Pad, end and begin are 0, 1 and 2, as Gemma has them; words beside the corpus are spelled in bytes."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<eos>", "<bos>", "<unk>", *more]
    bpe = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    bpe.normalizer = normalizers.Replace(" ", "▁")
    bpe.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    bpe.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    spelled = [f"<0x{value:02X}>" for value in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=500, show_progress=False, special_tokens=[*special[:4], *spelled])
    bpe.train_from_iterator([WORDS, "▁" * 8], trainer)
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    bpe.add_tokens([AddedToken("\n", normalized=False)])
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token="<pad>", eos_token="<eos>", bos_token="<bos>", unk_token="<unk>",
        padding_side="right",
    )  # fmt: skip


def _siglip_text(vocabulary: int) -> dict[str, object]:
    return {
        "vocab_size": vocabulary, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 2,
        "eos_token_id": 1, "projection_size": 64,
    }  # fmt: skip


def _siglip_vision() -> dict[str, object]:
    return {
        "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "patch_size": 16,
    }  # fmt: skip
