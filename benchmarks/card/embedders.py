"""How fast the product's own embedders are on a card, and what they take of it, against what was computed."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from benchmarks.card.models import (
    QWEN3_2B,
    QWEN3_8B,
    QWEN25_7B,
    Built,
    late_embedder,
    page_embedder,
    page_png,
    peak_bytes,
    released_memory,
    wait,
)
from benchmarks.card.runner import Row, Setup
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, PictureSpec
from vrag_ray.embedding.engines.engine import TransformersEngine
from vrag_ray.embedding.model_embedder import CALLS_AT_ONCE, ModelEmbedder
from vrag_ray.embedding.models.architecture import Architecture, Inputs
from vrag_ray.embedding.models.catalog import architecture_of
from vrag_ray.embedding.models.decoding import decoded_content
from vrag_ray.embedding.pictures import fitted_to
from vrag_ray.embedding.source import find_model
from vrag_ray.packed_attention import NAME
from vrag_ray.planning.memory_plan import OVERHEAD, embedding_phase

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

BATCHES = (8, 32)
"""Pages at once: as a space has it by default, and more."""
LEAST_S, MOST_PAGES = 5.0, 256
MODEL_ROUNDS = 3
TINY_PIXELS = 16 * 32 * 32
GB = 1e9


@dataclass(frozen=True, slots=True)
class PageModel:
    """``space`` is its name in ``vrag plan``, ``published`` that of its sizes in the memory plan."""

    space: str
    published: str
    build: Callable[[Path, bool], Built]


PAGE_MODELS = (
    PageModel("qwen3-vl-2b", "Qwen/Qwen3-VL-Embedding-2B", lambda to, tiny: page_embedder(to, QWEN3_2B, tiny=tiny)),
    PageModel("colqwen2", "vidore/colqwen2-v1.0-hf", lambda to, tiny: late_embedder(to, tiny=tiny)),
    PageModel("gve-7b", "Alibaba-NLP/GVE-7B", lambda to, tiny: page_embedder(to, QWEN25_7B, tiny=tiny)),
    PageModel("qwen3-vl-8b", "Qwen/Qwen3-VL-Embedding-8B", lambda to, tiny: page_embedder(to, QWEN3_8B, tiny=tiny)),
)


def embed_pages(setup: Setup, space: str) -> Iterator[Row]:
    """Pages a second, peak memory, and whether a page's vectors depend on its batch, of one embedder in bfloat16."""
    page_model = next(known for known in PAGE_MODELS if known.space == space)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        built = page_model.build(Path(folder), setup.tiny)
        embedder, architecture, model = _embedder(built, setup, batch=1)
        yield Row("weights drawn and loaded", time.perf_counter() - began, "s")
        computed = None if setup.tiny else embedding_phase(page_model.published, 1).parts["weights"] / GB
        nbytes = sum(weight.nbytes for weight in model.parameters())
        yield Row("weights", nbytes / GB, "GB", computed)
        spec = embedder.pictures
        assert spec is not None
        most = 1 if setup.tiny else MOST_PAGES
        pages = _pages(spec, 3 if setup.tiny else 8, 40 if setup.tiny else 160)
        alone = _vectors(embedder.embed_passages(pages[:2]))
        for batch in (2,) if setup.tiny else BATCHES:
            embedder, architecture, _ = _embedder(built, setup, batch=batch, model=model)
            yield from _speed(embedder, pages, batch, most, setup, page_model)
        yield from _parts(architecture, model, pages, setup)
        together = _vectors(embedder.embed_passages(pages))[: len(alone)]
        yield Row("lowest cosine of a vector alone and in a batch", _lowest_cosine(alone, together), "")
        if _windows_one_by_one(model):
            apart = _vectors(embedder.embed_passages(pages))[: len(alone)]
            yield Row("lowest cosine, windows of the tower together and one by one", _lowest_cosine(apart, together))
            yield from _parts(architecture, model, pages, setup, "windows one by one")


def _windows_one_by_one(model: PreTrainedModel) -> bool:
    """Undo ``use_packed_attention``; whether it had done anything."""
    from transformers import PreTrainedModel

    modules = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    packed = [module for module in modules if module.config._attn_implementation == NAME]
    for module in packed:
        module.config._attn_implementation = "sdpa"
    return bool(packed)


def _lowest_cosine(left: Sequence[NDArray[np.float32]], right: Sequence[NDArray[np.float32]]) -> float:
    return min(float((a * b).sum(axis=1).min()) for a, b in zip(left, right, strict=True))


def _speed(
    embedder: ModelEmbedder, pages: Sequence[Content], batch: int, most: int, setup: Setup, page_model: PageModel
) -> Iterator[Row]:
    released_memory(setup.device)
    with _warnings() as warned:
        embedder.embed_passages([pages[place % len(pages)] for place in range(batch)])
    if warned:
        # The engine goes on one by one where a batch does not fit: that is not the speed of this batch.
        yield Row(f"A4 pages, {batch} at once", None, "pages/s", remark=warned[0][:200])
        return
    for calls in (1, CALLS_AT_ONCE):
        speed = _pages_per_s(embedder, pages, batch, most, calls)
        remark = "one call after the other" if calls == 1 else f"{calls} calls at once, as an embedding actor has them"
        yield Row(f"A4 pages, {batch} at once", speed, "pages/s", remark=f"with the processor; {remark}")
    peak = peak_bytes(setup.device)
    computed = None
    if not setup.tiny:
        # The memory plan counts CUDA's own part too, which torch does not see.
        computed = (embedding_phase(page_model.published, batch).total - OVERHEAD) / GB
    yield Row(f"peak, {batch} at once", peak and peak / GB, "GB", computed, "" if peak else "no card")
    if setup.device == "cuda" and not setup.tiny:
        (setup.out / f"units-{page_model.space}.json").write_text(units_text(speed, batch), encoding="utf-8")


def _parts(
    architecture: Architecture, model: PreTrainedModel, pages: Sequence[Content], setup: Setup, remark: str = ""
) -> Iterator[Row]:
    """How fast the processor and the model are by themselves: a space is filled at the pace of the slower at best."""
    import torch

    decoded = [decoded_content(page) for page in pages]
    prompts = [prompt for page in decoded for prompt in architecture.prompts(page, query=False)]
    began = time.perf_counter()
    inputs = architecture.encode(prompts)
    yield Row("the processor alone", len(pages) / (time.perf_counter() - began), "pages/s", remark="on the CPU")
    try:
        yield _model_alone(architecture, model, inputs, len(pages), setup, remark)
    except torch.OutOfMemoryError as error:
        yield Row("the model alone", None, "pages/s", remark=f"out of memory: {error}"[:200])


def _model_alone(
    architecture: Architecture, model: PreTrainedModel, inputs: Inputs, pages: int, setup: Setup, remark: str
) -> Row:
    import torch

    with torch.inference_mode():
        there = {name: value.to(setup.device) for name, value in inputs.items()}
        architecture.forward(model, there)
        wait(setup.device)
        began = time.perf_counter()
        for _ in range(MODEL_ROUNDS):
            architecture.forward(model, there)
        wait(setup.device)
    seconds = (time.perf_counter() - began) / MODEL_ROUNDS
    tokens = int(inputs["input_ids"].numel()) / pages
    details = f"{pages} at once, {tokens:.0f} tokens each; its inputs on the device already"
    return Row(f"the model alone{', ' * bool(remark)}{remark}", pages / seconds, "pages/s", remark=details)


def _pages_per_s(embedder: ModelEmbedder, pages: Sequence[Content], batch: int, most: int, calls: int) -> float:
    """With ``calls`` of ``batch`` pages under way at once, for ``LEAST_S`` or ``most`` pages."""
    began = time.perf_counter()

    def embed(first: int) -> int:
        """How many pages were embedded: none once time is up."""
        if first and time.perf_counter() - began > LEAST_S:
            return 0
        for embedded in embedder.embed_passages([pages[(first + place) % len(pages)] for place in range(batch)]):
            if isinstance(embedded, EmbedError):
                raise embedded
        return batch

    with ThreadPoolExecutor(calls) as pool:
        done = sum(pool.map(embed, range(0, most, batch)))
    return done / (time.perf_counter() - began)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the engine warns of within the block."""
    messages: list[str] = []

    class Taken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    engine, handler = logging.getLogger(TransformersEngine.__module__), Taken(logging.WARNING)
    engine.addHandler(handler)
    try:
        yield messages
    finally:
        engine.removeHandler(handler)


def units_text(speed: float, batch: int) -> str:
    """A file for ``vrag plan --units``."""
    source = f"benchmarks/gpu.py, random weights, {batch} pages at once, with the processor in the same process"
    return json.dumps({"pages_per_gpu_s": {"value": speed, "source": source}}) + "\n"


def _embedder(
    built: Built, setup: Setup, *, batch: int, model: PreTrainedModel | None = None
) -> tuple[ModelEmbedder, Architecture, PreTrainedModel]:
    """The product's embedder over ``built``, with random weights where it would read a checkpoint's."""
    config = SpaceConfig(
        model=str(built.folder), device=setup.device, dtype="bfloat16", batch=batch,
        max_pixels=TINY_PIXELS if setup.tiny else None,
    )  # fmt: skip
    architecture = architecture_of(find_model(config.model), config)
    drawn: list[PreTrainedModel] = []

    def load(dtype: torch.dtype) -> PreTrainedModel:
        drawn.append(built.make(dtype, setup.device) if model is None else model)
        return drawn[0]

    architecture.load = load  # type: ignore[method-assign]
    engine = TransformersEngine(architecture, config)
    return ModelEmbedder(architecture, engine, config), architecture, drawn[0]


def _pages(spec: PictureSpec, count: int, dpi: int) -> list[Content]:
    """Pages as ingest hands them over: drawn larger than the embedder's limit, and fitted to it."""
    return [Content(picture=fitted_to(page_png(number, dpi), spec)) for number in range(count)]


def _vectors(embedded: Sequence[Embedding | EmbedError]) -> list[NDArray[np.float32]]:
    rows: list[NDArray[np.float32]] = []
    for result in embedded:
        if isinstance(result, EmbedError):
            raise result
        rows.append(result.vectors)
    return rows
