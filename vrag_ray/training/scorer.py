"""The model in training: log-probs of completion tokens, as the sampler computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from vrag_ray.training.batch import Batch
from vrag_ray.training.config import ModelConfig
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

UNSAID = -100.0
"""Added to the logits of tokens that stand for pictures and videos, in sampler and trainer alike: a reply that held one
would be read as a picture that is not there."""
CHUNK = 4096
"""Tokens whose logits over the whole vocabulary are held at once."""


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

    @property
    def device(self) -> torch.device:
        return self.model.device

    def __call__(self, batch: Batch) -> Scores:
        hidden = self._hidden(batch)[batch.rows, batch.columns - 1]
        return _joined([self._chunk(hidden[place], batch.labels[place]) for place in _chunks(len(batch.labels))])

    def _hidden(self, batch: Batch) -> Tensor:
        inner: Callable[..., object] = self.model.model
        seen: dict[str, object] = {}
        if batch.pixels is not None and batch.grids is not None and batch.shown is not None:
            encode: Callable[..., object] = self.model.model.get_image_features
            encoded = in_order(encode(batch.pixels, batch.grids, return_dict=True), batch.shown.tolist())
            seen = {"mm_encoder_outputs": {"image": encoded}, "image_grid_thw": batch.grids[batch.shown]}
        output = inner(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            mm_token_type_ids=batch.is_image,
            use_cache=False,
            **seen,
        )
        hidden: Tensor = getattr(output, "last_hidden_state")  # noqa: B009  its class differs by model
        return hidden

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
    """[vocabulary]: ``UNSAID`` for the tokens that stand for pictures and videos, 0 for the others."""
    import torch

    bias = torch.zeros(model.lm_head.weight.shape[0])
    bias[[model.config.image_token_id, model.config.video_token_id]] = UNSAID
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


def load_model(config: ModelConfig, folder: str) -> PreTrainedModel:
    """The model in ``folder``, ready to be trained as ``config`` says: what is frozen needs no gradient."""
    import torch
    from transformers import AutoModelForImageTextToText

    load: Callable[..., PreTrainedModel] = AutoModelForImageTextToText.from_pretrained
    model = load(folder, dtype=getattr(torch, config.dtype))
    if config.freeze_vision:
        model.model.visual.requires_grad_(False)
    if config.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    # Activations are computed anew only in training mode. There is no dropout: the sampler has none either.
    model.train(config.gradient_checkpointing)
    if model.config.get_text_config().attention_dropout:
        raise VragError(f"{folder} has attention_dropout: set it to 0, because the sampler samples without")
    return model


def _chunks(count: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, max(count, 1), CHUNK))


def _joined(scores: list[Scores]) -> Scores:
    import torch

    if len(scores) == 1:
        return scores[0]
    return Scores(torch.cat([one.logp for one in scores]), torch.cat([one.entropy for one in scores]))
