"""What computes: transformers, one batch at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import EmbedError, Modality, Residence
from vrag_ray.embedding.models.architecture import Architecture, Inputs, Prompt, TokenVectors
from vrag_ray.embedding.runtime import chosen_device, chosen_dtype, is_out_of_memory

logger = logging.getLogger(__name__)


class Engine(Protocol):
    """Runs prompts through a model; called by one thread at a time. Contents that it ``lacks`` do not come to it."""

    @property
    def lacks(self) -> frozenset[Modality]: ...

    @property
    def residence(self) -> Residence | None:
        """Where the weights lie; None where that is not known."""

    def run(self, prompts: Sequence[Prompt]) -> list[TokenVectors | EmbedError]:
        """One result each, in order."""


class TransformersEngine:
    """The model's own class, eager, on one device.

    A batch that cannot be processed or does not fit the memory is run again one by one, with a warning: then only
    those prompts fail that fail alone. Every other error of the model (a wrong kernel, a lost GPU) is no fault of a
    prompt and goes up to the caller, or a whole ingest would be marked as broken documents.
    """

    lacks: frozenset[Modality] = frozenset()

    def __init__(self, architecture: Architecture, config: SpaceConfig) -> None:
        from torch.nn import Module

        device = chosen_device(config.device)
        self._architecture = architecture
        self._device = device
        self._model = architecture.load(chosen_dtype(config.dtype, device))
        self._model.train(mode=False)
        Module.to(self._model, device)

    @property
    def residence(self) -> Residence:
        # ``parameters`` names a tied weight once.
        return Residence(self._device, sum(weight.nbytes for weight in self._model.parameters()))

    def run(self, prompts: Sequence[Prompt]) -> list[TokenVectors | EmbedError]:
        try:
            return [*self._run(prompts)]
        except Exception as error:
            reason = _reason(error)
            if reason is None:
                raise
        if len(prompts) == 1:
            return [EmbedError(reason)]
        logger.warning("a batch of %d contents is embedded one by one: %s", len(prompts), reason)
        return [result for prompt in prompts for result in self.run([prompt])]

    def _run(self, prompts: Sequence[Prompt]) -> list[TokenVectors]:
        import torch

        try:
            inputs: Inputs = self._architecture.encode(prompts)
        except (ValueError, TypeError, IndexError) as error:
            # Processors refuse by plain errors: an aspect ratio, a size, a placeholder without a picture.
            raise _UnprocessableError(str(error)) from error
        with torch.inference_mode():
            on_device = {name: value.to(self._device) for name, value in inputs.items()}
            return self._architecture.forward(self._model, on_device)


class _UnprocessableError(Exception):
    """The processor refuses this batch; the text says why."""


def _reason(error: Exception) -> str | None:
    """Why a prompt cannot be embedded; None where that is no fault of a prompt."""
    if isinstance(error, _UnprocessableError):
        return f"the model's processor refuses it: {error}"
    if is_out_of_memory(error):
        _forget_cached_memory()
        return f"it does not fit the memory ({error}): set a lower max_pixels or max_frames, or a lower batch"
    return None


def _forget_cached_memory() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
