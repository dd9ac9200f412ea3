"""Sizes of published models that are trained or embed pages, as far as they decide how much memory that takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VisionShape:
    """The vision tower. ``channels`` counts the values of a patch; ``merge`` patches become one visual token."""

    parameters: int
    depth: int
    hidden: int
    intermediate: int
    block_parameters: int
    channels: int
    merge: int = 4


@dataclass(frozen=True, slots=True)
class ModelShape:
    """``parameters`` are all, those of the vision tower too, each tied one once. ``block_parameters``: of one layer.

    ``norms_heads``: queries and keys are normalised head by head (Qwen3).
    """

    parameters: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    tied: bool
    norms_heads: bool
    block_parameters: int
    vision: VisionShape

    @property
    def queries(self) -> int:
        """Width of all query heads."""
        return self.heads * self.head_size

    @property
    def keys(self) -> int:
        """Width of all key heads, and of all value heads."""
        return self.kv_heads * self.head_size

    @property
    def outside_blocks(self) -> int:
        """Parameters that are in no layer: embeddings, output head, and what joins the two towers."""
        in_blocks = self.layers * self.block_parameters + self.vision.depth * self.vision.block_parameters
        return self.parameters - in_blocks


SHAPES = {
    # config.json of each model on the Hugging Face hub. A test counts the parameters with transformers.
    "Qwen/Qwen3-VL-2B-Instruct": ModelShape(
        parameters=2_127_532_032,
        layers=28,
        hidden=2048,
        intermediate=6144,
        heads=16,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        tied=True,
        norms_heads=True,
        block_parameters=50_336_000,
        vision=VisionShape(406_957_056, 24, 1024, 4096, 12_596_224, channels=3 * 2 * 16**2),
    ),
    "Qwen/Qwen3-VL-4B-Instruct": ModelShape(
        parameters=4_437_815_808,
        layers=36,
        hidden=2560,
        intermediate=9728,
        heads=32,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        tied=True,
        norms_heads=True,
        block_parameters=100_930_816,
        vision=VisionShape(415_347_712, 24, 1024, 4096, 12_596_224, channels=3 * 2 * 16**2),
    ),
    "Qwen/Qwen3-VL-8B-Instruct": ModelShape(
        parameters=8_767_123_696,
        layers=36,
        hidden=4096,
        intermediate=12_288,
        heads=32,
        kv_heads=8,
        head_size=128,
        vocabulary=151_936,
        tied=False,
        norms_heads=True,
        block_parameters=192_946_432,
        vision=VisionShape(576_388_336, 27, 1152, 4304, 15_239_504, channels=3 * 2 * 16**2),
    ),
    "Qwen/Qwen2.5-VL-7B-Instruct": ModelShape(
        parameters=8_292_166_656,
        layers=28,
        hidden=3584,
        intermediate=18_944,
        heads=28,
        kv_heads=4,
        head_size=128,
        vocabulary=152_064,
        tied=False,
        norms_heads=False,
        block_parameters=233_057_792,
        vision=VisionShape(676_550_144, 32, 1280, 3420, 19_702_200, channels=3 * 2 * 14**2),
    ),
    # Nothing here trains it; ColQwen2 is made of it.
    "Qwen/Qwen2-VL-2B-Instruct": ModelShape(
        parameters=2_208_985_600,
        layers=28,
        hidden=1536,
        intermediate=8960,
        heads=12,
        kv_heads=2,
        head_size=128,
        vocabulary=151_936,
        tied=True,
        norms_heads=False,
        block_parameters=46_797_824,
        vision=VisionShape(665_271_296, 32, 1280, 5120, 19_677_440, channels=3 * 2 * 14**2),
    ),
}


@dataclass(frozen=True, slots=True)
class EmbedderShape:
    """A published embedder: the ``shape`` underneath, the ``parameters`` that it loads (no output head where that is a
    matrix of its own), and the ``tokens`` of its largest page, the prompt around it included."""

    shape: ModelShape
    parameters: int
    tokens: int


def _without_head(shape: ModelShape) -> int:
    return shape.parameters - (0 if shape.tied else shape.vocabulary * shape.hidden)


PROMPT = 64
"""Tokens around a page, at most."""
_QWEN3_2B, _QWEN3_8B = SHAPES["Qwen/Qwen3-VL-2B-Instruct"], SHAPES["Qwen/Qwen3-VL-8B-Instruct"]
_QWEN2_2B, _QWEN25_7B = SHAPES["Qwen/Qwen2-VL-2B-Instruct"], SHAPES["Qwen/Qwen2.5-VL-7B-Instruct"]
EMBEDDERS = {
    "Qwen/Qwen3-VL-Embedding-2B": EmbedderShape(_QWEN3_2B, _without_head(_QWEN3_2B), 1800 + PROMPT),
    "Qwen/Qwen3-VL-Embedding-8B": EmbedderShape(_QWEN3_8B, _without_head(_QWEN3_8B), 1800 + PROMPT),
    "Alibaba-NLP/GVE-7B": EmbedderShape(_QWEN25_7B, _without_head(_QWEN25_7B), 256 + PROMPT),
    # Beside the model, a matrix that makes 128 dimensions of its 1,536.
    "vidore/colqwen2-v1.0-hf": EmbedderShape(_QWEN2_2B, _QWEN2_2B.parameters + 1536 * 128 + 128, 768 + PROMPT),
}
TEXT_EMBEDDERS = {"minilm": 0, "none": 0, "BAAI/bge-m3": 566_705_152}
"""Parameters on a GPU: minilm runs on the CPU wherever it is."""
