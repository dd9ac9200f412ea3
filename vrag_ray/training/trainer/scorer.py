"""The model in training: log-probs of completion tokens, as the sampler computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from vrag_ray.packed_attention import use_packed_attention
from vrag_ray.policies.llm.chat_model import BANNED_LOGIT
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.trainer.batch import Batch
from vrag_ray.training.trainer.mrope import Positions
from vrag_ray.training.trainer.recomputing import recompute_activations
from vrag_ray.training.trainer.sharding import shard
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

CHUNK = 1024
"""Tokens whose logits over the whole vocabulary are held at once: of 150,000 words four copies take 2.5 GB."""


class Scores(NamedTuple):
    """Of each scored token, [scored]: its natural log-prob, and the entropy of what it was drawn from."""

    logp: Tensor
    entropy: Tensor


class Scorer:
    """``temperature`` divides the logits, as when the tokens were drawn. ``entropy_learns``: it carries a gradient."""

    def __init__(self, model: PreTrainedModel, temperature: float = 1.0, *, entropy_learns: bool = False) -> None:
        self.model = model
        self._temperature = temperature
        self._entropy_learns = entropy_learns
        self._bias = bias(model)
        self._positions = Positions(model)
        self._score: Callable[[Batch], Scores] = self._scored
        self.sharded = False

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    def __call__(self, batch: Batch) -> Scores:
        return self._score(batch)

    def shard(self, device: str, compute_dtype: str) -> None:
        """Spread the model over all ranks (``sharding.shard``); they must score equally often from now on."""
        self._score = shard(self.model, self.model.model, self._scored, device, compute_dtype)
        self.sharded = True

    def _scored(self, batch: Batch) -> Scores:
        hidden = self._hidden(batch)[batch.rows, batch.columns - 1]
        return _joined([self._chunk(hidden[place], batch.labels[place]) for place in _chunks(len(batch.labels))])

    def _hidden(self, batch: Batch) -> Tensor:
        inner: Callable[..., object] = self.model.model
        seen: dict[str, object] = {}
        # Other ranks may gather the tower's weights in this pass: so must this one, and at the same moment.
        blank = self._blank_picture() if self.sharded and batch.pixels is None else None
        if batch.pixels is not None and batch.grids is not None and batch.shown is not None:
            encode: Callable[..., object] = self.model.model.get_image_features
            encoded = in_order(encode(batch.pixels, batch.grids, return_dict=True), batch.shown.tolist())
            seen = {"mm_encoder_outputs": {"image": encoded}, "image_grid_thw": batch.grids[batch.shown]}
        output = inner(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            position_ids=self._positions.of(batch.is_image, batch.layouts),
            mm_token_type_ids=batch.is_image,
            use_cache=False,
            **seen,
        )
        hidden: Tensor = getattr(output, "last_hidden_state")  # noqa: B009  its class differs by model
        return hidden if blank is None else hidden + 0.0 * blank

    def _blank_picture(self) -> Tensor:
        """The sum of what the vision tower makes of one black visual token."""
        import torch

        vision = self.model.config.vision_config
        merge = int(vision.spatial_merge_size)
        channels = int(getattr(vision, "in_channels", 3))
        values = channels * int(vision.temporal_patch_size) * int(vision.patch_size) ** 2
        pixels = torch.zeros((merge**2, values), dtype=self.model.dtype, device=self.device)
        encode: Callable[..., object] = self.model.model.get_image_features
        output = encode(pixels, torch.tensor([[1, merge, merge]], device=self.device), return_dict=True)
        pooled: Sequence[Tensor] = getattr(output, "pooler_output")  # noqa: B009  its class differs by model
        return pooled[0].sum()

    def _chunk(self, hidden: Tensor, labels: Tensor) -> Scores:
        import torch

        def score(states: Tensor) -> tuple[Tensor, Tensor]:
            logits = self.model.lm_head(states).float()
            logits = (logits + self._bias.to(logits.device)) / self._temperature
            logp = torch.log_softmax(logits, dim=-1)
            with torch.set_grad_enabled(self._entropy_learns and torch.is_grad_enabled()):
                entropy = -(logp.exp() * logp).sum(dim=-1)
            return logp.gather(1, labels.unsqueeze(1)).squeeze(1), entropy

        if torch.is_grad_enabled() and self.model.config.get_text_config().vocab_size > CHUNK:
            # Logits of a large vocabulary are the largest tensor of all: compute them again instead of keeping them.
            from torch.utils.checkpoint import checkpoint

            run: Callable[..., tuple[Tensor, Tensor]] = checkpoint
            return Scores(*run(score, hidden, use_reentrant=False))
        return Scores(*score(hidden))


def bias(model: PreTrainedModel) -> Tensor:
    """[vocabulary]: ``BANNED_LOGIT`` for the tokens that stand for pictures and videos, 0 for the others.

    The sampler has the same: a reply that held one would be read as a picture that is not there.
    """
    import torch

    bias = torch.zeros(model.lm_head.weight.shape[0])
    bias[[model.config.image_token_id, model.config.video_token_id]] = BANNED_LOGIT
    return bias


def in_order(output: object, places: Sequence[int]) -> object:
    """``output`` of the vision tower, of different pictures, as that of the images of the prompts.

    ``pooler_output``, and for each of some layers Qwen3-VL's ``deepstack_features``, have one tensor a picture.
    """
    pooled: Sequence[Tensor] = getattr(output, "pooler_output")  # noqa: B009  its class differs by model
    deep: Sequence[Sequence[Tensor]] = getattr(output, "deepstack_features", None) or ()
    output.pooler_output = [pooled[place] for place in places]  # type: ignore[attr-defined]
    if deep:
        output.deepstack_features = [[layer[place] for place in places] for layer in deep]  # type: ignore[attr-defined]
    return output


@contextmanager
def naming_model(path: str) -> Iterator[None]:
    """What transformers raises for a folder or hub id that it cannot load, as a VragError that names ``path``."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise VragError(f"model.path {path} cannot be loaded: {reason}") from error


def load_model(config: ModelConfig, folder: str) -> PreTrainedModel:
    """The model in ``folder``, all of it to be trained but what ``config`` freezes."""
    import torch
    from transformers import AutoModelForImageTextToText

    load: Callable[..., PreTrainedModel] = AutoModelForImageTextToText.from_pretrained
    return prepared(load(folder, dtype=getattr(torch, config.dtype)), config, folder)


def prepared(model: PreTrainedModel, config: ModelConfig, name: str) -> PreTrainedModel:
    """``model``, called ``name`` in errors, as it is trained: what ``config`` freezes, and when it computes again."""
    import torch

    if torch.cuda.is_available():
        use_packed_attention(model)
    if config.freeze_vision:
        model.model.visual.requires_grad_(False)
    if config.gradient_checkpointing:
        recompute_activations(model)
    # Activations are computed anew only in training mode. There is no dropout: the sampler has none either.
    model.train(config.gradient_checkpointing)
    if model.config.get_text_config().attention_dropout:
        raise VragError(f"{name} has attention_dropout: set it to 0, because the sampler samples without")
    return model


def _chunks(count: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, max(count, 1), CHUNK))


def _joined(scores: list[Scores]) -> Scores:
    import torch

    if len(scores) == 1:
        return scores[0]
    return Scores(torch.cat([score.logp for score in scores]), torch.cat([score.entropy for score in scores]))
