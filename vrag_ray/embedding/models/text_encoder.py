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
from typing import TYPE_CHECKING, Literal

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


_POOLING_FLAGS = {
    "pooling_mode_cls_token": Pooling.CLS,
    "pooling_mode_mean_tokens": Pooling.MEAN,
    "pooling_mode_lasttoken": Pooling.LAST,
    "pooling_mode_max_tokens": Pooling.MAX,
}
_IN_VLLM: Mapping[Pooling, Literal["CLS", "MEAN", "LAST"]] = {
    Pooling.CLS: "CLS",
    Pooling.MEAN: "MEAN",
    Pooling.LAST: "LAST",
}


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
    for module in _modules(name, folder):
        kind, path = module["type"].rpartition(".")[2], folder / module["path"]
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
    encoder, described = (
        _read(folder / "sentence_bert_config.json"),
        _read(folder / "config_sentence_transformers.json"),
    )
    limit = encoder.get("max_seq_length")
    query, passage = _prompts(described)
    return Description(
        poolings[0],
        limit if isinstance(limit, int) else None,
        encoder.get("do_lower_case") is True,
        query,
        passage,
        tuple(dense),
    )


def _modules(name: str, folder: Path) -> list[dict[str, str]]:
    path = folder / MODULES_FILE
    try:
        modules: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise VragError(f"{name}: {path} cannot be read: {error}") from error
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise VragError(f"{name}: {path} is no list of modules")
    return [{"type": str(module.get("type", "")), "path": str(module.get("path", ""))} for module in modules]


def _read(path: Path) -> Mapping[str, object]:
    """A JSON object; empty where there is no such file. Raises VragError where it cannot be read."""
    if not path.is_file():
        return {}
    try:
        values: object = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise VragError(f"{path} cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise VragError(f"{path} is not a JSON object")
    return values


def _pooling(name: str, path: Path) -> Pooling:
    values = _read(path)
    if values.get("include_prompt") is False:
        raise VragError(f"{name}: {path} leaves the prompt out of the pooling, which is not done here")
    modes = values.get("pooling_mode")
    if modes is None:
        modes = [flag for flag, on in values.items() if flag.startswith("pooling_mode_") and on is True]
        modes = [_POOLING_FLAGS.get(flag, flag) for flag in modes] or [Pooling.MEAN]
    modes = [modes] if isinstance(modes, str) else modes
    known = [Pooling(mode) for mode in modes if mode in set(Pooling)] if isinstance(modes, list) else []
    if not isinstance(modes, list) or len(modes) != 1 or not known:
        raise VragError(f"{name}: {path} pools by {modes}: one of {', '.join(Pooling)} is read here")
    return known[0]


def _prompts(described: Mapping[str, object]) -> tuple[str, str]:
    """Those of queries and of passages."""
    prompts = described.get("prompts")
    known = {str(name): text for name, text in prompts.items() if text} if isinstance(prompts, dict) else {}
    default = str(known.get(str(described.get("default_prompt_name")), ""))
    names = [name for name in PASSAGE_PROMPTS if isinstance(prompts, dict) and prompts.get(name) is not None]
    passage = str(known.get(names[0], "")) if names else default
    has_query = isinstance(prompts, dict) and prompts.get("query") is not None
    return (str(known.get("query", "")) if has_query else default), passage


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
        return integer(_read(self.described.dense[-1] / "config.json"), "out_features")

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
    from safetensors.torch import load_file
    from torch import nn

    values = _read(folder / "config.json")
    activation = str(values.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS or values.get("use_residual") is True:
        raise VragError(f"{name}: {folder} has a dense layer of a form that is not read here ({activation})")
    weights = folder / "model.safetensors"
    if weights.is_file():
        tensors = load_file(weights)
    else:
        tensors = torch.load(folder / "pytorch_model.bin", map_location="cpu", weights_only=True)
    linear = nn.Linear(
        integer(values, "in_features"), integer(values, "out_features"), bias="linear.bias" in tensors, dtype=dtype
    )
    linear.load_state_dict({key.removeprefix("linear."): tensor.to(dtype) for key, tensor in tensors.items()})
    layer: nn.Module = getattr(nn, activation)()
    return nn.Sequential(linear, layer)
