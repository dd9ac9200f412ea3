"""What computes: transformers, one batch at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import EmbedError, Modality, Residence
from vrag_ray.embedding.models.architecture import Architecture, Inputs, Prompt, TokenVectors
from vrag_ray.embedding.runtime import chosen_device, chosen_dtype, is_out_of_memory
from vrag_ray.packed_attention import use_packed_attention

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch on its way to the model. ``inputs`` is what the processor made of it on the CPU: None where it refused
    the batch, or where the engine has a processor of its own."""

    prompts: Sequence[Prompt]
    inputs: Inputs | None = None


class Engine(Protocol):
    """Runs prompts through a model: ``prepare`` on the CPU, ``run`` on the device. Each is called by one thread at a
    time, but one batch may be prepared while another runs. Contents that it ``lacks`` do not come to it."""

    @property
    def lacks(self) -> frozenset[Modality]: ...

    @property
    def residence(self) -> Residence | None:
        """Where the weights lie; None where that is not known."""

    def prepare(self, prompts: Sequence[Prompt]) -> Prepared: ...

    def run(self, prepared: Prepared) -> list[TokenVectors | EmbedError]:
        """One result for each prompt, in order."""


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
        if device == "cuda":
            use_packed_attention(self._model)

    @property
    def residence(self) -> Residence:
        # ``parameters`` names a tied weight once.
        return Residence(self._device, sum(weight.nbytes for weight in self._model.parameters()))

    def prepare(self, prompts: Sequence[Prompt]) -> Prepared:
        try:
            return Prepared(prompts, self._inputs(prompts))
        except _UnprocessableError:
            return Prepared(prompts)

    def run(self, prepared: Prepared) -> list[TokenVectors | EmbedError]:
        prompts = prepared.prompts
        try:
            return [*self._run(prepared)]
        except Exception as error:
            reason = _reason(error)
            if reason is None:
                raise
        if len(prompts) == 1:
            return [EmbedError(reason)]
        logger.warning("a batch of %d contents is embedded one by one: %s", len(prompts), reason)
        return [result for prompt in prompts for result in self.run(Prepared([prompt]))]

    def _inputs(self, prompts: Sequence[Prompt]) -> Inputs:
        try:
            return self._architecture.encode(prompts)
        except (ValueError, TypeError, IndexError) as error:
            # Processors refuse by plain errors: an aspect ratio, a size, a placeholder without a picture.
            raise _UnprocessableError(str(error)) from error

    def _run(self, prepared: Prepared) -> list[TokenVectors]:
        import torch

        inputs = self._inputs(prepared.prompts) if prepared.inputs is None else prepared.inputs
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
