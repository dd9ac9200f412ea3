"""Text embedders that their folder describes in the files of sentence-transformers: an encoder, a pooling, prompts.

The files (``modules.json``, ``1_Pooling/config.json``, ``sentence_bert_config.json``, ``2_Dense``,
``config_sentence_transformers.json``) are read here without that library, whose vectors
``tests/embedding/models/test_text_encoder.py`` compares with these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import EmbedError, Modality, PictureSpec
from vrag_ray.embedding.models.architecture import (
    Architecture,
    Inputs,
    Prompt,
    TokenVectors,
    VllmPlan,
    as_array,
    cut_to,
    integer,
)
from vrag_ray.embedding.models.decoding import DecodedContent
from vrag_ray.embedding.source import ModelSource
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

MODULES_FILE = "modules.json"
PASSAGE_PROMPTS = ("document", "passage", "corpus")
"""Names of the prompt of passages, the first that is there, as sentence-transformers looks for them."""
MAX_TOKENS_OF_BGE_M3 = 8192
FIRST_POSITIONS = {"xlm-roberta": 2, "roberta": 2, "camembert": 2, "mpnet": 2}
"""Position numbers that no token has, by ``model_type``: this family counts from behind the padding's number."""
POOLERS = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")
"""Whose classes have a pooler of their own, which is not used here and lacks weights in many folders."""
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid")
"""Of a dense layer, classes of ``torch.nn``."""
DENSE = "sentence_dense"


class Pooling(StrEnum):
    """How the states of a text's tokens become one vector."""

    CLS = "cls"
    """The first token's."""
    MEAN = "mean"
    LAST = "lasttoken"
    MAX = "max"


class _File(BaseModel):
    """A file of sentence-transformers. Names unknown here are read over: newer versions of the library write more."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Module(_File):
    type: str = ""
    path: str = ""


class _Encoder(_File):
    """``sentence_bert_config.json``."""

    max_seq_length: int | None = None
    do_lower_case: bool = False


class _Prompts(_File):
    """``config_sentence_transformers.json``."""

    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None

    def prompt(self, *names: str) -> str:
        """The first of ``names`` that is there, else the default prompt, else none."""
        named = (self.prompts.get(name) for name in (*names, self.default_prompt_name or ""))
        return next((text for text in named if text is not None), "")


class _PoolingFile(_File):
    """``1_Pooling/config.json``, in its present form and in the earlier one with a flag for each mode."""

    pooling_mode: str | tuple[str, ...] | None = None
    include_prompt: bool = True
    pooling_mode_cls_token: bool = False
    pooling_mode_max_tokens: bool = False
    pooling_mode_mean_tokens: bool = False
    pooling_mode_mean_sqrt_len_tokens: bool = False
    pooling_mode_weightedmean_tokens: bool = False
    pooling_mode_lasttoken: bool = False

    @property
    def modes(self) -> tuple[str, ...]:
        if self.pooling_mode is not None:
            return (self.pooling_mode,) if isinstance(self.pooling_mode, str) else self.pooling_mode
        flags = {
            Pooling.CLS.value: self.pooling_mode_cls_token,
            Pooling.MAX.value: self.pooling_mode_max_tokens,
            Pooling.MEAN.value: self.pooling_mode_mean_tokens,
            "mean_sqrt_len_tokens": self.pooling_mode_mean_sqrt_len_tokens,
            "weightedmean": self.pooling_mode_weightedmean_tokens,
            Pooling.LAST.value: self.pooling_mode_lasttoken,
        }
        return tuple(mode for mode, on in flags.items() if on) or (Pooling.MEAN.value,)


class _DenseFile(_File):
    """``2_Dense/config.json``."""

    in_features: int
    out_features: int
    activation_function: str = "Tanh"
    use_residual: bool = False


_IN_VLLM: Mapping[Pooling, Literal["CLS", "MEAN", "LAST"]] = {
    Pooling.CLS: "CLS",
    Pooling.MEAN: "MEAN",
    Pooling.LAST: "LAST",
}
F = TypeVar("F", bound=_File)


@dataclass(frozen=True, slots=True)
class Description:
    """What a folder says of its encoder. ``max_tokens`` counts marks and prompts; None: as many as there are positions.

    ``dense`` are the folders of layers behind the pooling, in order.
    """

    pooling: Pooling
    max_tokens: int | None = None
    lower_case: bool = False
    query_prompt: str = ""
    passage_prompt: str = ""
    dense: tuple[Path, ...] = ()

    @property
    def is_bge_m3(self) -> bool:
        """Whether an XLM-RoBERTa with this description is read as bge-m3."""
        bare = not (self.query_prompt or self.passage_prompt or self.dense or self.lower_case)
        return bare and self.pooling is Pooling.CLS


def is_described(folder: Path) -> bool:
    """Whether ``folder`` has a ``modules.json``."""
    return (folder / MODULES_FILE).is_file()


def read_description(name: str, folder: Path) -> Description:
    """Raises VragError that names the file and what in it is not known here."""
    poolings: list[Pooling] = []
    dense: list[Path] = []
    for module in _modules(folder / MODULES_FILE):
        kind, path = module.type.rpartition(".")[2], folder / module.path
        if kind == "Pooling":
            poolings.append(_pooling(name, path / "config.json"))
        elif kind == "Dense":
            dense.append(path)
        elif kind == "Transformer" and path != folder:
            raise VragError(f"{name}: its transformer lies in {path.name}: move that folder's files to {folder}")
        elif kind not in ("Transformer", "Normalize"):
            raise VragError(
                f"{name}: {folder / MODULES_FILE} has a module {kind}, which is not read here (Transformer, Pooling, "
                "Dense and Normalize are): wrap the model in an embedder of your own, package.module:factory"
            )
    if len(poolings) != 1:
        raise VragError(f"{name}: {folder / MODULES_FILE} has {len(poolings)} poolings, and an encoder needs one")
    encoder = _read(folder / "sentence_bert_config.json", _Encoder)
    prompts = _read(folder / "config_sentence_transformers.json", _Prompts)
    return Description(
        poolings[0],
        encoder.max_seq_length,
        encoder.do_lower_case,
        prompts.prompt("query"),
        prompts.prompt(*PASSAGE_PROMPTS),
        tuple(dense),
    )


def _modules(path: Path) -> list[_Module]:
    try:
        return TypeAdapter(list[_Module]).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise VragError(f"{path} is no list of modules: {error}") from error


def _read(path: Path, form: type[F]) -> F:
    """A file, or the defaults where there is none. Raises VragError where it cannot be read."""
    try:
        return form.model_validate_json(path.read_bytes() if path.is_file() else b"{}")
    except (OSError, ValidationError) as error:
        raise VragError(f"{path} cannot be read as a part of a text embedder: {error}") from error


def _pooling(name: str, path: Path) -> Pooling:
    file = _read(path, _PoolingFile)
    if not file.include_prompt:
        raise VragError(f"{name}: {path} leaves the prompt out of the pooling, which is not done here")
    if len(file.modes) != 1 or file.modes[0] not in set(Pooling):
        raise VragError(f"{name}: {path} pools by {', '.join(file.modes)}: one of {', '.join(Pooling)} is read here")
    return Pooling(file.modes[0])


class TextEncoder(Architecture):
    """A model of transformers, pooled as its folder says; prompts stand before the text.

    ``instruction`` and ``passage_instruction`` of the space, then those of ``vrag_embedding.json``, take the place of
    the folder's prompts.
    """

    kind = "text-encoder"
    takes_instruction = True
    takes_passage_instruction = True

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        from transformers import AutoTokenizer

        super().__init__(source, config)
        if any("SequenceClassification" in name for name in source.architectures):
            raise VragError(f"{source.name} is a classifier ({', '.join(source.architectures)}), not an embedder")
        self.described = self._description()
        self.tokenizer = AutoTokenizer.from_pretrained(source.folder)
        self._max_tokens = self._token_limit()
        self._marks_of_a_text = self.tokenizer.num_special_tokens_to_add()

    def _description(self) -> Description:
        return read_description(self.source.name, self.source.folder)

    def _token_limit(self) -> int:
        limits = [self.described.max_tokens or self.tokenizer.model_max_length]
        positions = self.source.config.get("max_position_embeddings")
        if isinstance(positions, int):
            limits.append(positions - FIRST_POSITIONS.get(self.source.model_type, 0))
        return min(limits)

    @property
    def dim(self) -> int:
        if not self.described.dense:
            return integer(self.source.config, "hidden_size")
        return _read(self.described.dense[-1] / "config.json", _DenseFile).out_features

    @property
    def modalities(self) -> frozenset[Modality]:
        return frozenset({Modality.TEXT})

    @property
    def pictures(self) -> PictureSpec | None:
        return None

    @property
    def query_prompt(self) -> str:
        return _first(self.config.instruction, self.source.recipe.query_instruction, self.described.query_prompt)

    @property
    def passage_prompt(self) -> str:
        return _first(self.config.passage_instruction, self.source.recipe.instruction, self.described.passage_prompt)

    @property
    def preprocessing(self) -> tuple[str, ...]:
        parts = [self.described.pooling.value, f"tokens{self._max_tokens}"]
        if self.query_prompt or self.passage_prompt:
            both = json.dumps([self.query_prompt, self.passage_prompt]).encode()
            parts.append(f"prompt-{hashlib.sha256(both).hexdigest()[:8]}")
        if self.described.lower_case:
            parts.append("lower")
        if self.described.dense:
            state = hashlib.sha256()
            for file in (file for folder in self.described.dense for file in sorted(folder.iterdir())):
                state.update(file.read_bytes())
            parts.append(f"dense-{state.hexdigest()[:8]}")
        return tuple(parts)

    def prompts(self, content: DecodedContent, *, query: bool) -> tuple[Prompt, ...]:
        before = self.query_prompt if query else self.passage_prompt
        words = self.words(content.text)
        if self.described.lower_case:
            before, words = before.lower(), words.lower()
        # Here, and not by the tokenizer, so that every engine reads the same beginning.
        room = self._max_tokens - self._marks_of_a_text
        text = cut_to(before + words, self.tokenizer, room)
        if len(text) <= len(before) and words.strip():
            raise EmbedError(f"the prompt of {self.source.name} takes all of the {room} tokens that it can read")
        if not text and not self._marks_of_a_text:
            raise EmbedError("there are no words to embed")
        return (Prompt(text, (min(len(before), len(text)), len(text))),)

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import AutoModel

        without_pooler = {"add_pooling_layer": False} if self.source.model_type in POOLERS else {}
        model: PreTrainedModel = AutoModel.from_pretrained(self.source.folder, dtype=dtype, **without_pooler)
        for number, folder in enumerate(self.described.dense):
            model.add_module(f"{DENSE}_{number}", _dense(self.source.name, folder, dtype))
        return model

    def encode(self, prompts: Sequence[Prompt]) -> Inputs:
        encoded = self.tokenizer([prompt.text for prompt in prompts], padding=True, return_tensors="pt")
        return {name: encoded[name] for name in ("input_ids", "attention_mask", "token_type_ids") if name in encoded}

    def forward(self, model: PreTrainedModel, inputs: Inputs) -> list[TokenVectors]:
        pooled = _pooled(model(**inputs).last_hidden_state, inputs["attention_mask"], self.described.pooling)
        for number in range(len(self.described.dense)):
            layer = model.get_submodule(f"{DENSE}_{number}")
            pooled = layer(pooled.to(next(layer.parameters()).dtype))
        return [TokenVectors((), row[None]) for row in as_array(pooled)]

    def vllm_plan(self) -> VllmPlan | None:
        pooling = _IN_VLLM.get(self.described.pooling)
        if pooling is None or self.described.dense:
            return None
        return VllmPlan("embed", pooling, self._max_tokens)


class BgeM3(TextEncoder):
    """bge-m3 (BAAI/bge-m3), the dense vector of its three: also where the folder of an XLM-RoBERTa says nothing.

    The vector of the first token, no prompt on either side, at most 8,192 tokens of a text.
    """

    kind = "bge-m3"
    takes_instruction = False
    takes_passage_instruction = False

    def _description(self) -> Description:
        return Description(Pooling.CLS, MAX_TOKENS_OF_BGE_M3)


def _first(*prompts: str | None) -> str:
    return next((prompt for prompt in prompts if prompt is not None), "")


def _pooled(states: torch.Tensor, mask: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """[texts, tokens, dim] to [texts, dim]; ``mask`` [texts, tokens] is 1 on tokens, wherever the padding is."""
    import torch

    rows = torch.arange(len(states), device=states.device)
    if pooling is Pooling.CLS:
        return states[rows, mask.argmax(dim=1)]
    if pooling is Pooling.LAST:
        return states[rows, mask.shape[1] - 1 - mask.flip(1).argmax(dim=1)]
    if pooling is Pooling.MAX:
        return states.masked_fill(mask[..., None] == 0, float("-inf")).amax(dim=1)
    # Sums of hundreds of tokens lose digits in half precision.
    weights = mask[..., None].float()
    return (states.float() * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1e-9)


def _dense(name: str, folder: Path, dtype: torch.dtype) -> nn.Module:
    """A linear layer with its activation. Raises VragError for another form of it."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from torch import nn

    file = _read(folder / "config.json", _DenseFile)
    activation = file.activation_function.rpartition(".")[2]
    if activation not in ACTIVATIONS or file.use_residual:
        raise VragError(f"{name}: {folder} has a dense layer of a form that is not read here ({activation})")
    weights = folder / "model.safetensors"
    try:
        if weights.is_file():
            tensors = load_file(weights)
        else:
            tensors = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    except (OSError, SafetensorError, RuntimeError, UnpicklingError) as error:
        raise VragError(f"{name}: the dense layer in {folder} cannot be loaded: {error}") from error
    linear = nn.Linear(file.in_features, file.out_features, bias="linear.bias" in tensors, dtype=dtype)
    linear.load_state_dict({key.removeprefix("linear."): tensor.to(dtype) for key, tensor in tensors.items()})
    layer: nn.Module = getattr(nn, activation)()
    return nn.Sequential(linear, layer)
