"""How much memory of a GPU a configuration takes, phase by phase: arithmetic on published sizes, no measurement.

The engine and the trainer have a GPU in turns, so what counts is the largest phase. Everything is in bytes a GPU.
Activations are counted tensor by tensor, in the manner of Korthikanti et al. (arXiv 2205.05198, section 4.1), for
layers with grouped queries and a gated MLP; a test holds them against what torch counts when it runs one layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vrag_ray.config.embedding import MINILM
from vrag_ray.training.algorithms.algorithm import Credit
from vrag_ray.training.config import ModelConfig, RLConfig, preset_config
from vrag_ray.training.model_shapes import EMBEDDERS, SHAPES, TEXT_EMBEDDERS, ModelShape
from vrag_ray.training.trainer.scorer import CHUNK
from vrag_ray.types import TEXT, VragError

GIB = 1 << 30
MIB = 1 << 20
CARDS = {24: 23_034 * MIB, 80: 81_559 * MIB}
"""What ``nvidia-smi`` reports as the total of the smallest card sold with this many GB: L4, H100."""
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2}
OVERHEAD = 2 * GIB
"""Assumed, not measured: CUDA's context, buffers of cuBLAS and NCCL, and what allocators cannot use of their blocks."""
GRAPHS = GIB // 2
"""Assumed, not measured: the engine's CUDA graphs, where it makes some."""
SLACK = 1.1
"""Assumed: activations come in blocks of many sizes, and not all of a freed one is used again."""
WORKING = 1.2
"""What a layer that is computed anew takes at most, as a multiple of what its backward pass keeps."""
FORWARD = 0.6
"""The same of a layer without a backward pass."""
SCORED = 16
"""Bytes a scored token and word of the vocabulary: ``Scorer`` has four copies of the logits in float32 at once."""
WHOLE_SCORES = 16
"""Bytes a query head and pair of tokens, where attention's scores are whole: four copies in float32 at once. Measured
on an H100 (docs/results/gpu.md)."""
SEGMENT_CALLS = 3
"""Calls of a node that are planned for: its search, one crop, what it remembers. More of them have to be shorter."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a step, and what is on the GPU at its largest moment."""

    name: str
    parts: Mapping[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """``capacity`` of a GPU, and the phases in order.

    ``kv_tokens``: tokens of context that the engine's cache holds. ``sample_tokens``: padded tokens of the largest
    group of calls that is learnt at once, for which ``update`` is computed.
    """

    capacity: int
    phases: tuple[Phase, ...]
    kv_tokens: int
    sample_tokens: int

    @property
    def peak(self) -> Phase:
        return max(self.phases, key=lambda phase: phase.total)

    @property
    def fits(self) -> bool:
        return self.peak.total <= self.capacity

    def __str__(self) -> str:
        phases = ", ".join(f"{phase.name} {phase.total / GIB:.1f}" for phase in self.phases)
        return (
            f"GiB of {self.capacity / GIB:.1f} a GPU (computed, not measured): {phases}; the engine caches "
            f"{self.kv_tokens:,} tokens, an update takes {self.sample_tokens:,} at once"
        )


def preset_plan(name: str) -> MemoryPlan | None:
    """Of a preset on the GPUs that it is made for; None where it is made for none."""
    config = preset_config(name)
    return None if config.gpu_memory_gb is None else memory_plan(config, CARDS[config.gpu_memory_gb])


def memory_plan(config: RLConfig, capacity: int, spaces: Sequence[str] = ()) -> MemoryPlan:
    """For colocated reinforcement learning on GPUs of ``capacity`` bytes.

    ``spaces`` are the models of the collection's vector spaces beside that of the texts, which only the collection
    knows: each worker loads its own copy of them and of that of the texts on its GPU. Raises VragError for a model of
    unknown size.
    """
    shape = SHAPES.get(config.model.path)
    if shape is None:
        raise VragError(f"the sizes of {config.model.path} are not known: choose from {', '.join(SHAPES)}")
    trainer = Trainer(config, shape)
    engine = _engine(config, shape, capacity)
    resident, held = trainer.resident, {"overhead": float(OVERHEAD)}
    # They are loaded after the engine, and stay.
    held_later = {**held, "embedders of its searches": searching_bytes((_text_model(config), *spaces))}
    transfer = {"engine's weights": engine["weights"], "one weight, whole": trainer.whole_weight}
    phases = (
        Phase("start", {**resident, **held, "all weights, before they are spread": trainer.before_spreading}),
        Phase(
            "rollout",
            {**resident, **held_later, "engine": sum(engine.values()), "left gathered": trainer.left_gathered},
        ),
        Phase("update", {**resident, **held_later, **trainer.backward}),
        Phase(
            "optimiser",
            {**resident, **held_later, "gradients": trainer.gradients, "AdamW's copies": trainer.gradients},
        ),
        Phase("weights", {**resident, **held_later, **transfer, "left gathered": trainer.left_gathered}),
    )
    per_token = 2 * shape.layers * shape.keys * SIZES[config.rollout.engine.dtype]
    return MemoryPlan(capacity, phases, int(engine["cache"] // per_token), trainer.sample_tokens)


def _text_model(config: RLConfig) -> str:
    texts = config.environment.spaces.get(TEXT)
    return MINILM if texts is None else texts.model


def searching_bytes(models: Sequence[str]) -> float:
    """Weights, in bfloat16, of the embedders that each worker of a training run loads on its GPU for its searches.

    Queries come a few at a time: what their passes add is within ``OVERHEAD``. Raises VragError for a model of unknown
    size.
    """
    parameters = {name: embedder.parameters for name, embedder in EMBEDDERS.items()} | TEXT_EMBEDDERS
    unknown = [name for name in models if name not in parameters]
    if unknown:
        raise VragError(f"the size of the embedder {unknown[0]} is not known: choose from {', '.join(parameters)}")
    return float(SIZES["bfloat16"] * sum(parameters[name] for name in models))


def embedding_phase(model: str, batch: int) -> Phase:
    """What a published embedder of pages takes of a GPU, in bfloat16, while it embeds ``batch`` of its largest pages.

    The vision tower and the language layers work one after the other: the larger of the two passes counts. Raises
    VragError for a model of unknown size.
    """
    embedder = EMBEDDERS.get(model)
    if embedder is None:
        raise VragError(f"the size of the embedder {model} is not known: choose from {', '.join(EMBEDDERS)}")
    shape, size = embedder.shape, SIZES["bfloat16"]
    tokens = batch * embedder.tokens
    patches = tokens * shape.vision.merge
    passes = FORWARD * max(layer_bytes(shape, size) * tokens, vision_block_bytes(shape, size) * patches)
    parts = {
        "weights": float(embedder.parameters * size),
        "pixels": float(shape.vision.channels * (SIZES["float32"] + size) * patches),
        "the layer at work": SLACK * passes,
        "overhead": float(OVERHEAD),
    }
    return Phase("embedding", parts)


@dataclass(frozen=True, slots=True)
class Trainer:
    """The trainer's part on one GPU."""

    config: RLConfig
    shape: ModelShape

    @property
    def model(self) -> ModelConfig:
        return self.config.model

    @property
    def ranks(self) -> int:
        """Over how many GPUs weights, gradients and optimiser state are spread."""
        return self.config.workers.count if self.model.sharded else 1

    @property
    def weight_size(self) -> int:
        return SIZES[self.model.dtype]

    @property
    def compute_size(self) -> int:
        return SIZES[self.model.computed_in]

    @property
    def trained(self) -> int:
        """Parameters that have a gradient."""
        if self.model.lora_rank:
            return self.shape.layers * self.model.lora_rank * _adapter_width(self.shape)
        return self.shape.parameters - (self.shape.vision.parameters if self.model.freeze_vision else 0)

    @property
    def gradients(self) -> float:
        return self.trained * self.weight_size / self.ranks

    @property
    def has_reference(self) -> bool:
        """Whether a frozen copy of the model is held; adapters can be switched off instead."""
        return self.config.recipe.kl > 0 and not self.model.lora_rank

    @property
    def resident(self) -> dict[str, float]:
        """What is there in every phase, from the first step on."""
        weights = self.shape.parameters * self.weight_size / self.ranks
        parts = {"weights": weights, "AdamW's state": 2 * self.gradients}
        if self.model.lora_rank:
            parts["adapters"] = self.gradients
        if self.has_reference:
            parts["reference model"] = weights
        return parts

    @property
    def before_spreading(self) -> float:
        """Each worker reads the whole model before it keeps its part."""
        return self.shape.parameters * self.weight_size if self.model.sharded else 0.0

    @property
    def whole_weight(self) -> float:
        """The largest weight on its way to the engine: as the trainer gathers it, and as the engine buffers it."""
        embedding = self.shape.vocabulary * self.shape.hidden
        gathered = embedding * self.weight_size if self.model.sharded else 0
        return gathered + embedding * SIZES[self.config.rollout.engine.dtype]

    @property
    def left_gathered(self) -> float:
        """What FSDP keeps whole after a pass without a backward one: the weights outside of layers."""
        if not self.model.sharded:
            return 0.0
        return self.shape.outside_blocks * self.compute_size * (2 if self.has_reference else 1)

    @property
    def gathered(self) -> float:
        """What FSDP holds whole in a backward pass, beside the parts: weights, their gradients, and these in float32
        while they are summed over the ranks; of the layers two at a time."""
        if not self.model.sharded:
            return 0.0
        each = 2 * self.compute_size + SIZES["float32"]
        layers = 2 * self.shape.block_parameters
        reference = self.shape.outside_blocks * self.compute_size if self.has_reference else 0
        return (self.shape.outside_blocks + layers) * each + reference

    @property
    def sample_tokens(self) -> int:
        """Calls of one sample are never in different passes, and are padded to the longest."""
        calls = (
            self.config.environment.agent.max_steps if self.config.recipe.credit is Credit.TRAJECTORY else SEGMENT_CALLS
        )
        return max(self.model.tokens_per_batch, calls * self.config.rollout.engine.max_model_len)

    @property
    def patches(self) -> int:
        """Of the pictures of a pass: each different one is seen once, and they fit in the longest prompt."""
        longest = max(self.model.tokens_per_batch, self.config.rollout.engine.max_model_len)
        return longest * self.shape.vision.merge

    @property
    def attention(self) -> float:
        """Attention's own scores in the layer at work: they are whole in float32 alone, where torch has no kernel for
        queries that share keys."""
        if self.model.computed_in != "float32" or self.shape.heads == self.shape.kv_heads:
            return 0.0
        length = self.config.rollout.engine.max_model_len
        return float(WHOLE_SCORES * self.shape.heads * length * self.sample_tokens)

    @property
    def backward(self) -> dict[str, float]:
        """What a forward and backward pass over the largest sample adds."""
        text_layer = layer_bytes(self.shape, self.compute_size) * self.sample_tokens
        vision_layer = vision_block_bytes(self.shape, self.compute_size) * self.patches
        inputs = self.shape.hidden * self.compute_size * self.sample_tokens * self.shape.layers
        vision = self.shape.vision
        seen = 0.0
        if not self.model.freeze_vision and not self.model.lora_rank:
            each = vision.hidden * self.compute_size * self.patches
            seen = vision.depth * (each if self.model.gradient_checkpointing else vision_layer)
        scores = SCORED * min(CHUNK, self.sample_tokens) * self.shape.vocabulary
        working = max(WORKING * text_layer + self.attention, WORKING * vision_layer, scores)
        activations = inputs if self.model.gradient_checkpointing else text_layer * self.shape.layers
        return {
            "gradients": self.gradients,
            "gathered": self.gathered,
            "pixels": float(vision.channels * SIZES["float32"] * self.patches),
            "kept for the backward pass": SLACK * (activations + seen),
            "the layer at work, or the scores": SLACK * working,
        }


def layer_bytes(shape: ModelShape, size: int) -> float:
    """What the backward pass of one language layer keeps of a token, all of it counted though some is shared.

    Each norm: its input in float32, normalised, and its output. Attention without its scores (they are never whole):
    queries, keys and values; these normalised and turned; keys and values repeated for every query head; what comes
    out. The MLP: gate, its activation, up, their product.
    """
    hidden, queries, keys = shape.hidden, shape.queries, shape.keys
    norms = 2 * 4 * hidden
    heads = 3 * (queries + keys) if shape.norms_heads else 0
    attention = queries + 2 * keys + heads + queries + keys + 2 * queries + queries
    return float(size * (norms + 2 * hidden + attention + 4 * shape.intermediate))


def vision_block_bytes(shape: ModelShape, size: int) -> float:
    """The same of a patch in a block of the vision tower, whose heads are all as wide as the block together."""
    vision = shape.vision
    return float(size * (16 * vision.hidden + 4 * vision.intermediate))


def _engine(config: RLConfig, shape: ModelShape, capacity: int) -> dict[str, float]:
    """What vLLM takes while it is awake: its share of the GPU. What weights and activations leave of it is cache."""
    engine = config.rollout.engine
    size = SIZES[engine.dtype]
    tokens = max(engine.max_model_len, engine.max_batched_tokens)
    weights = float(shape.parameters * size)
    passes = FORWARD * max(
        layer_bytes(shape, size) * tokens, vision_block_bytes(shape, size) * tokens * shape.vision.merge
    )
    samples = float(SCORED * engine.max_num_seqs * shape.vocabulary)
    graphs = 0.0 if engine.enforce_eager else float(GRAPHS)
    cache = capacity * engine.gpu_memory_utilization - weights - passes - samples - graphs
    return {"weights": weights, "passes": passes, "samples": samples, "graphs": graphs, "cache": max(cache, 0.0)}


def _adapter_width(shape: ModelShape) -> int:
    """Inputs and outputs of all linear layers of one language layer."""
    hidden, queries, keys = shape.hidden, shape.queries, shape.keys
    attention = 2 * (hidden + queries) + 2 * (hidden + keys)
    return attention + 3 * (hidden + shape.intermediate)
