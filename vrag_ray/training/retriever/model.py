"""The retriever in training: from a folder to vectors, with the model classes that an embedder of the folder uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vrag_ray.training.retriever.config import LateConfig, RetrieverConfig
from vrag_ray.training.retriever.inputs import Inputs
from vrag_ray.training.retriever.losses import Vectors
from vrag_ray.training.trainer.recomputing import recompute_activations
from vrag_ray.training.trainer.scorer import naming_model
from vrag_ray.training.trainer.sharding import shard
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel, ProcessorMixin

LATE = "colqwen2"
MADE_LATE = ("qwen2_vl", "qwen2_5_vl")
"""Qwen3-VL is not among them: what its vision tower feeds to later layers (DeepStack) has no place in ColQwen2."""
SINGLE = ("qwen2_5_vl", "qwen3_vl")
KINDS = "a ColQwen2 model, with `late` a Qwen2-VL or Qwen2.5-VL model, without it a Qwen2.5-VL or Qwen3-VL model"


class Retriever:
    """A model and what it is trained to give: one set of vectors a content, or two with ``late_weight``."""

    def __init__(self, model: PreTrainedModel, config: RetrieverConfig) -> None:
        self.model = model
        self.late = is_late(model.config)
        self._tokens_too = bool(config.late_weight)
        if config.late_weight and self.late:
            raise VragError("late_weight is for single-vector models: a late-interaction model has that loss already")
        self._call: Callable[[Inputs], tuple[Vectors, ...]] = self._encoded
        self.sharded = False

    def __call__(self, inputs: Inputs) -> tuple[Vectors, ...]:
        """Of each content: its tokens' vectors (late interaction), or its one, with ``late_weight`` its tokens' too."""
        return self._call(inputs)

    def shard(self, device: str, compute_dtype: str) -> None:
        """Spread the model over all ranks (``sharding.shard``); they must encode equally often from now on."""
        self._call = shard(self.model, inner_of(self.model), self._encoded, device, compute_dtype)
        self.sharded = True

    def _encoded(self, inputs: Inputs) -> tuple[Vectors, ...]:
        import torch
        from torch.nn.functional import normalize

        # Other ranks may gather the tower's weights in this pass: so must this one.
        blank = self._blank_picture() if self.sharded and "pixel_values" not in inputs.tensors else 0.0
        if self.late:
            output = self.model(**inputs.tensors, use_cache=False)
            # In single precision, as single vectors are: the scores of close negatives are equal in half of it.
            vectors: Tensor = output.embeddings.float() + blank
            return (Vectors(vectors, inputs.scored),)
        inner: Callable[..., object] = inner_of(self.model)
        hidden: Tensor = getattr(inner(**inputs.tensors, use_cache=False), "last_hidden_state")  # noqa: B009
        last = inputs.tensors["attention_mask"].sum(dim=1) - 1
        hidden = hidden + blank
        pooled = normalize(hidden[torch.arange(len(hidden), device=hidden.device), last].float(), dim=-1)[:, None]
        whole = Vectors(pooled, torch.ones(pooled.shape[:2], dtype=torch.bool, device=pooled.device))
        return (whole, Vectors(normalize(hidden.float(), dim=-1), inputs.scored)) if self._tokens_too else (whole,)

    def _blank_picture(self) -> Tensor:
        """Zero, as the vision tower makes it of one black visual token."""
        import torch

        tower = vision_of(self.model)
        vision = self.model.config.vlm_config.vision_config if self.late else self.model.config.vision_config
        merge = int(vision.spatial_merge_size)
        channels = int(getattr(vision, "in_channels", 3))
        values = channels * int(vision.temporal_patch_size) * int(vision.patch_size) ** 2
        pixels = torch.zeros((merge**2, values), dtype=self.model.dtype, device=self.model.device)
        grid = torch.tensor([[1, merge, merge]], device=self.model.device)
        encode: Callable[..., object] = tower
        seen: Tensor = getattr(encode(pixels, grid_thw=grid, return_dict=True), "pooler_output")  # noqa: B009
        return 0.0 * seen.sum()


def is_late(config: PretrainedConfig) -> bool:
    return str(config.model_type) == LATE


def load_retriever(config: RetrieverConfig, folder: str, *, given: str) -> PreTrainedModel:
    """The model in ``folder``, made a late-interaction model where ``config.late`` asks for that.

    All of it is to be trained but what ``config.model`` freezes. ``given`` is what the user calls the folder. Raises
    VragError for a model that no retriever is made of.
    """
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText, ColQwen2ForRetrieval

    with naming_model(given):
        model_config = AutoConfig.from_pretrained(folder)
    kind, dtype = str(model_config.model_type), getattr(torch, config.model.dtype)
    if kind == LATE:
        load: Callable[..., PreTrainedModel] = ColQwen2ForRetrieval.from_pretrained
        with naming_model(given):
            model = load(folder, dtype=dtype)
        if config.late is not None and config.late.dims != model.config.embedding_dim:
            raise VragError(
                f"late.dims is {config.late.dims}, but {given} has {model.config.embedding_dim}: leave it out"
            )
    elif kind in (MADE_LATE if config.late is not None else SINGLE):
        load = AutoModelForImageTextToText.from_pretrained
        with naming_model(given):
            model = load(folder, dtype=dtype)
        if config.late is not None:
            model = _made_late(model, config.late)
        elif not model.config.tie_word_embeddings:
            # The language head is not trained: without a gradient of its own it would only decay.
            model.lm_head.requires_grad_(False)
    else:
        raise VragError(f"model.path {given} is a {kind} model: training a retriever takes {KINDS}")
    if config.model.freeze_vision:
        vision_of(model).requires_grad_(False)
    if config.model.gradient_checkpointing:
        recompute_activations(model)
    if model.config.get_text_config().attention_dropout:
        raise VragError(f"{given} has attention_dropout: set it to 0, because a batch is computed in parts")
    # Activations are computed anew only in training mode; there is no dropout.
    model.train(config.model.gradient_checkpointing)
    return model


def load_processor(config: RetrieverConfig, folder: str, *, given: str) -> ProcessorMixin:
    """The processor in ``folder``, made ColQwen2's where ``config.late`` asks for that."""
    from transformers import AutoProcessor, ColQwen2Processor

    load: Callable[[str], ProcessorMixin] = AutoProcessor.from_pretrained
    with naming_model(given):
        processor = load(folder)
    if not hasattr(processor, "image_processor"):
        raise VragError(f"model.path {given} sees no pictures: training a retriever takes {KINDS}")
    late = config.late
    if isinstance(processor, ColQwen2Processor):
        if late is not None and (late.page_prompt or late.query_prefix):
            raise VragError(f"late.page_prompt and late.query_prefix: {given} has its own, leave them out")
        return processor
    if late is None:
        return processor
    return ColQwen2Processor(
        image_processor=processor.image_processor,
        tokenizer=processor.tokenizer,
        visual_prompt_prefix=late.page_prompt,
        query_prefix=late.query_prefix,
    )


def inner_of(model: PreTrainedModel) -> nn.Module:
    """The layers without what is made of their states."""
    inner: nn.Module = model.get_submodule("vlm" if is_late(model.config) else "model")
    return inner


def vision_of(model: PreTrainedModel) -> nn.Module:
    """The vision tower."""
    return inner_of(model).get_submodule("visual")


def _made_late(language: PreTrainedModel, late: LateConfig) -> PreTrainedModel:
    """ColQwen2 around the layers of a vision-language model, with a new projection, drawn from torch's generator."""
    import torch
    from transformers import ColQwen2Config, ColQwen2ForRetrieval

    config = ColQwen2Config(vlm_config=language.config.to_dict(), embedding_dim=late.dims)
    with torch.device("meta"):
        model = ColQwen2ForRetrieval(config)
    model.vlm = language.model
    projection = torch.nn.Linear(config.get_text_config().hidden_size, late.dims, dtype=language.dtype)
    torch.nn.init.normal_(projection.weight, std=config.get_text_config().initializer_range)
    torch.nn.init.zeros_(projection.bias)
    model.embedding_proj_layer = projection
    return model
