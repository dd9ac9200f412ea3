"""all-MiniLM-L6-v2 as an ONNX graph of standard operators, made from the safetensors tensors.

One text a run, at its exact length: no padding to compute, no mask, and no way for a text's neighbours to change
its vector. Activations are ``(tokens, hidden)``, so every linear layer is one Gemm that reads the weights as stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.embedding.minilm.onnx_graph import LAYER_NORM_EPSILON, GraphBuilder
from vrag_ray.embedding.minilm.weights import Tensors

if TYPE_CHECKING:
    import onnxruntime

LAYERS = 6
HEADS = 12
HIDDEN = 384
MAX_TOKENS = 256
INPUT = "token_ids"
OUTPUT = "vector"


def build_session(tensors: Tensors, *, intra_op_threads: int = 1) -> onnxruntime.InferenceSession:
    """A session from ``token_ids`` (int64, ``(n,)``, 1 <= n <= 256) to ``vector`` (float32, ``(384,)``, length 1)."""
    from onnx import TensorProto, helper

    describe = _MiniLm(tensors)
    x = describe.embeddings()
    for layer in range(LAYERS):
        x = describe.layer(x, f"encoder.layer.{layer}")
    describe.pooled(x)
    return describe.graph.session(
        [helper.make_tensor_value_info(INPUT, TensorProto.INT64, ["tokens"])],
        helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [HIDDEN]),
        intra_op_threads=intra_op_threads,
    )


class _MiniLm:
    """The model's parts; each adds its nodes and returns the name of its output, named after its module."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.graph = GraphBuilder()
        self.axis_0 = self.graph.constant("axis_0", np.zeros(1, np.int64))
        self.split_heads = self.graph.constant("split_heads", np.array([0, HEADS, HIDDEN // HEADS], np.int64))
        self.join_heads = self.graph.constant("join_heads", np.array([0, HIDDEN], np.int64))
        self.scale = self.graph.constant("scale", np.array((HIDDEN // HEADS) ** -0.5, np.float32))

    def embeddings(self) -> str:
        """Word + position + segment 0, normalised. The last two do not depend on the words: added here, once."""
        words = self.graph.add("Gather", [self._weight("embeddings.word_embeddings.weight"), INPUT], "words")
        positions = self.tensors["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        segment = self.tensors["embeddings.token_type_embeddings.weight"][0]
        table = self.graph.weight("places", positions + segment)
        length = self.graph.add("Shape", [INPUT], "length")
        places = self.graph.add("Slice", [table, self.axis_0, length], "places_used")
        return self._layer_norm(self.graph.add("Add", [words, places], "placed"), "embeddings.LayerNorm")

    def layer(self, x: str, module: str) -> str:
        x = self._residual_norm(self._attention(x, f"{module}.attention"), x, f"{module}.attention.output.LayerNorm")
        inner = self._linear(x, f"{module}.intermediate.dense")
        inner = self.graph.add("Gelu", [inner], f"{module}.gelu", approximate="none")
        return self._residual_norm(self._linear(inner, f"{module}.output.dense"), x, f"{module}.output.LayerNorm")

    def pooled(self, x: str) -> str:
        """The mean over the tokens, at length 1."""
        mean = self.graph.add("ReduceMean", [x, self.axis_0], "mean", keepdims=0)
        norm = self.graph.add("ReduceL2", [mean, self.axis_0], "norm", keepdims=1)
        return self.graph.add("Div", [mean, norm], OUTPUT)

    def _attention(self, x: str, module: str) -> str:
        add = self.graph.add

        def project(name: str, axes: Sequence[int]) -> str:
            flat = self._linear(x, f"{module}.self.{name}")
            return add("Transpose", [add("Reshape", [flat, self.split_heads], f"{flat}.split")], f"{flat}.t", perm=axes)

        query, key, value = project("query", (1, 0, 2)), project("key", (1, 2, 0)), project("value", (1, 0, 2))
        scores = add("MatMul", [add("Mul", [query, self.scale], f"{query}.scaled"), key], f"{module}.scores")
        shares = add("Softmax", [scores], f"{module}.shares", axis=-1)
        context = add("MatMul", [shares, value], f"{module}.context")
        context = add("Transpose", [context], f"{module}.context.t", perm=(1, 0, 2))
        joined = add("Reshape", [context, self.join_heads], f"{module}.context.joined")
        return self._linear(joined, f"{module}.output.dense")

    def _linear(self, x: str, module: str) -> str:
        inputs = [x, self._weight(f"{module}.weight"), self._weight(f"{module}.bias")]
        return self.graph.add("Gemm", inputs, module, transB=1)

    def _layer_norm(self, x: str, module: str) -> str:
        inputs = [x, self._weight(f"{module}.weight"), self._weight(f"{module}.bias")]
        return self.graph.add("LayerNormalization", inputs, module, axis=-1, epsilon=LAYER_NORM_EPSILON)

    def _residual_norm(self, branch: str, x: str, module: str) -> str:
        return self._layer_norm(self.graph.add("Add", [branch, x], f"{module}.sum"), module)

    def _weight(self, name: str) -> str:
        return self.graph.weight(name, self.tensors[name])
