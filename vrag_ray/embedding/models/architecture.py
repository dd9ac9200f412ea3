"""What differs between embedding models: how a content becomes input, and how output becomes vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Embedding, EmbedError, Modality, PictureSpec
from vrag_ray.embedding.models.decoding import DecodedContent
from vrag_ray.embedding.source import ModelSource
from vrag_ray.embedding.words import encodable, latin_share, special_tokens, without_special
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

Inputs = Mapping[str, "torch.Tensor"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """What one forward pass reads: ``text`` with one placeholder for a picture or a clip, as the template has it.

    ``body`` (start, stop) are the characters of ``text`` that are the content's own words.
    """

    text: str = ""
    body: tuple[int, int] = (0, 0)
    picture: Image | None = None
    frames: tuple[Image, ...] = ()
    times: tuple[float, ...] = ()

    @property
    def modality(self) -> Modality:
        return Modality.of(self.picture, self.frames)


@dataclass(frozen=True, slots=True)
class TokenVectors:
    """What a model made of one prompt: ``token_ids`` (n,) without padding, and a vector for each, (n, dim).

    Of a model of single vectors: no ids, and one row. Not yet normalised, nor truncated.
    """

    token_ids: tuple[int, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VllmPlan:
    """How vLLM runs this architecture: its pooling ``task``, for single vectors where it pools, what ``sees`` a prompt
    may show, and how its processor is called."""

    task: Literal["embed", "token_embed"]
    pooling: Literal["CLS", "LAST", "MEAN"] | None
    max_tokens: int
    sees: frozenset[Modality] = frozenset()
    lacks: frozenset[Modality] = frozenset()
    """Contents that transformers embeds and vLLM does not, or not alike."""
    processor_arguments: Mapping[str, object] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    """Classes of our own that vLLM lacks, ``module:class`` by the name of the architecture."""
    config: Callable[[PretrainedConfig], PretrainedConfig] | None = None
    """What vLLM gets instead of the folder's configuration."""


class Architecture(ABC):
    """One family of models. ``prompts``, ``embedding`` and ``join`` know no engine; ``encode`` and ``forward`` are
    for transformers, whose classes and processors they use."""

    kind: ClassVar[str]
    """Its name in embedder ids: what was done to contents, as far as the class decides it."""
    multi_vector: ClassVar[bool] = False
    trained_for_mrl: ClassVar[bool] = False
    takes_instruction: ClassVar[bool] = False
    takes_passage_instruction: ClassVar[bool] = False
    latin_only: ClassVar[bool] = False
    """Trained on texts of Latin letters only, whatever its tokenizer can spell."""

    tokenizer: PreTrainedTokenizerBase

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        if config.instruction is not None and not self.takes_instruction:
            raise VragError(f"{source.name} ({self.kind}) was not trained on instructions: leave `instruction` out")
        if config.passage_instruction is not None and not self.takes_passage_instruction:
            raise VragError(f"{source.name} ({self.kind}) has no prompt of passages: leave `passage_instruction` out")
        self.source = source
        self.config = config

    @property
    @abstractmethod
    def dim(self) -> int:
        """Of the model's vectors, before truncation."""

    @property
    @abstractmethod
    def modalities(self) -> frozenset[Modality]: ...

    @property
    @abstractmethod
    def pictures(self) -> PictureSpec | None: ...

    @property
    @abstractmethod
    def preprocessing(self) -> tuple[str, ...]:
        """What else decides a vector, for the embedder's id: prompts, pixel limits, which tokens are scored."""

    @abstractmethod
    def prompts(self, content: DecodedContent, *, query: bool) -> tuple[Prompt, ...]:
        """One forward pass each; their results are joined. Raises EmbedError where the content cannot be embedded."""

    @abstractmethod
    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        """The model's weights, on the CPU."""

    @abstractmethod
    def encode(self, prompts: Sequence[Prompt]) -> Inputs:
        """A batch as transformers' processor makes it. Raises ValueError where a prompt cannot be processed."""

    @abstractmethod
    def forward(self, model: PreTrainedModel, inputs: Inputs) -> list[TokenVectors]:
        """The batch's output on ``model``'s device, one for each prompt."""

    def embedding(self, prompt: Prompt, output: TokenVectors) -> Embedding:  # noqa: ARG002
        """The vectors that count, with their places; here: all."""
        return Embedding(output.vectors)

    def join(self, parts: Sequence[Embedding]) -> Embedding:
        """The embedding of a content whose parts were embedded apart; vectors of length 1 go in."""
        if len(parts) != 1:
            raise NotImplementedError(f"{self.kind} has no contents of several parts")
        return parts[0]

    def vllm_plan(self) -> VllmPlan | None:
        """None: vLLM has no class that gives this architecture's vectors."""
        return None

    def clip_metadata(self, times: Sequence[float]) -> Mapping[str, object]:
        """The times of a clip's frames in the form that the model's video processor reads."""
        raise NotImplementedError(f"{self.kind} has no clips with times ({len(times)})")

    @cached_property
    def _marks(self) -> tuple[str, ...]:
        return special_tokens(self.tokenizer)

    def words(self, text: str) -> str:
        """``text`` as it can stand in a prompt."""
        return without_special(encodable(text), self._marks)

    def readable(self, text: str) -> float:
        """1 - share of unknown pieces; of a model for Latin letters, the share of those."""
        text = encodable(text)
        if self.latin_only:
            return latin_share(text)
        unknown = self.tokenizer.unk_token_id
        pieces = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        if unknown is None or not pieces:
            return 1.0
        missed = sum(1 for piece in pieces if piece == unknown)
        return float(1.0 - missed / len(pieces))


def cut_to(text: str, tokenizer: PreTrainedTokenizerBase, room: int) -> str:
    """The beginning of ``text`` that takes at most ``room`` tokens. Raises EmbedError where there is no room at all."""
    if room < 1:
        raise EmbedError("the picture or clip alone takes all tokens that the model can read: set a lower max_pixels")
    if len(text.encode()) <= room:
        return text
    pieces = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    ends = [stop for _, stop in pieces["offset_mapping"]]
    return text if len(ends) <= room else text[: ends[room - 1]]


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return unit


def as_array(tensor: torch.Tensor) -> NDArray[np.float32]:
    """On the CPU, in float32."""
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array


def integer(config: Mapping[str, object], *path: str) -> int:
    """The whole number at ``path`` in a config.json. Raises VragError where there is none."""
    value: object = config
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, int):
        raise VragError(f"config.json has no number {'.'.join(path)}: it is not of the model that its model_type says")
    return value
