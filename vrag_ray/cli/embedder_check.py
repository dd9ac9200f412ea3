"""One embedder tried on this machine: a text, a picture and a clip, made in memory."""

from __future__ import annotations

import io
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from vrag_ray.config import Engine, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, Embedding, EmbedError, Modality, PictureSpec
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

TEXT = "Revenue by quarter, 2023: which region grew most?"
SAMPLES = ("revenue by quarter", "季度收入", "выручка по кварталам")
RUNS = 3
CLIP_FRAMES = 4
FP16_BYTES = 2
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Tried:
    """One content: ``modality`` and side, what came of it, and how long it took once warm."""

    content: str
    vectors: int
    shortest: float
    longest: float
    milliseconds: float
    grid: tuple[int, int] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EmbedderCheck:
    """``bytes_a_page`` is what a page's vectors take in float16. ``cosines`` are the least between the two engines, by
    content; None where they were not compared, and ``comparison`` then says why."""

    id: str
    engine: str
    dim: int
    multi_vector: bool
    modalities: tuple[str, ...]
    readable: dict[str, float]
    tried: tuple[Tried, ...]
    bytes_a_page: int | None
    load_seconds: float
    memory_mib: int
    gpu_memory_mib: int | None
    cosines: dict[str, float] | None = None
    comparison: str = ""

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def check_embedder(name: str, settings: Settings, *, compare: bool = False) -> EmbedderCheck:
    """Try the embedder ``name``: a space of the settings, a hub id, a folder, ``package.module:factory`` or ``minilm``.

    With ``compare``, the same contents go through its other engine. Raises VragError where it cannot be loaded.
    """
    config = settings.filled_spaces.get(name) or SpaceConfig(model=name)
    started = time.perf_counter()
    embedder = space_embedder(config)
    seconds = time.perf_counter() - started
    contents = tuple(_contents(embedder))
    tried = tuple(_tried(embedder, label, content) for label, content in contents)
    page = next((trial for trial in tried if trial.content == "page" and trial.error is None), None)
    cosines, comparison = _compared(embedder, config, contents) if compare else (None, "")
    return EmbedderCheck(
        id=embedder.id,
        engine="its own" if config.is_minilm or config.is_factory else str(config.engine),
        dim=embedder.dim,
        multi_vector=embedder.multi_vector,
        modalities=tuple(sorted(embedder.modalities)),
        readable={text: float(share) for text, share in zip(SAMPLES, embedder.readable(SAMPLES), strict=True)},
        tried=tried,
        bytes_a_page=page.vectors * embedder.dim * FP16_BYTES if page is not None else None,
        load_seconds=seconds,
        memory_mib=_memory_mib(),
        gpu_memory_mib=_gpu_memory_mib(),
        cosines=cosines,
        comparison=comparison,
    )


def report_lines(check: EmbedderCheck) -> Iterator[str]:
    """What a terminal shows."""
    yield f"embedder {check.id}"
    kind = "one vector a token (late interaction)" if check.multi_vector else "one vector a content"
    yield f"  {check.dim} dimensions, {kind}; passages: {', '.join(check.modalities)}"
    gpu = "" if check.gpu_memory_mib is None else f", {check.gpu_memory_mib:,} MiB of GPU memory"
    yield f"  engine {check.engine}: loaded in {check.load_seconds:.1f} s, {check.memory_mib:,} MiB memory{gpu}"
    for trial in check.tried:
        if trial.error is not None:
            yield f"  {trial.content:8} {trial.error}"
            continue
        place = "" if trial.grid is None else f", grid of {trial.grid[0]} x {trial.grid[1]}"
        norms = f"norms {trial.shortest:.4f} to {trial.longest:.4f}"
        yield f"  {trial.content:8} {trial.vectors:,} vectors, {norms}, {trial.milliseconds:.1f} ms{place}"
    if check.bytes_a_page is not None:
        yield f"  a page takes {check.bytes_a_page:,} bytes in float16"
    yield "  reads " + ", ".join(f"{text}: {share:.2f}" for text, share in check.readable.items())
    if check.cosines is not None:
        least = ", ".join(f"{label} {cosine:.6f}" for label, cosine in check.cosines.items())
        yield f"  least cosine against the other engine: {least}"
    elif check.comparison:
        yield f"  not compared with the other engine: {check.comparison}"


def _contents(embedder: Embedder) -> Iterator[tuple[str, Content]]:
    yield "query", Content(TEXT)
    if Modality.TEXT in embedder.modalities:
        yield "text", Content(TEXT)
    spec = embedder.pictures
    if spec is None:
        return
    if Modality.PICTURE in embedder.modalities:
        yield "page", Content(picture=_drawn(spec, spec.max_pixels, 0))
    if Modality.CLIP in embedder.modalities:
        frames = [_drawn(spec, spec.frame_pixels or spec.max_pixels, place) for place in range(CLIP_FRAMES)]
        yield "clip", Content(frames=tuple(frames), frame_times=tuple(map(float, range(CLIP_FRAMES))))


def _drawn(spec: PictureSpec, pixels: int, shift: int) -> bytes:
    """A page in portrait, of about ``pixels``: lines, bars and a circle, ``shift`` patches lower."""
    from PIL import Image, ImageDraw

    ratio = 1.0 if spec.side else 2**0.5
    width = spec.side or max(spec.patch, int((pixels / ratio) ** 0.5) // spec.patch * spec.patch)
    height = spec.side or max(spec.patch, pixels // width // spec.patch * spec.patch)
    page = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(page)
    for line in range(shift, max(1, height // spec.patch), 2):
        pen.line((width // 10, line * spec.patch, width * 9 // 10, line * spec.patch), fill="black", width=3)
    for bar, colour in enumerate(("crimson", "seagreen", "royalblue")):
        left = width * (2 + bar * 2) // 10
        pen.rectangle((left, height * (6 - bar) // 10, left + width // 10, height * 9 // 10), fill=colour)
    pen.ellipse((width * 6 // 10, height // 10, width * 9 // 10, height * 3 // 10), fill="orange")
    data = io.BytesIO()
    page.save(data, "PNG", compress_level=1)
    return data.getvalue()


def _embed(embedder: Embedder, label: str, content: Content) -> Embedding | EmbedError:
    embed = embedder.embed_queries if label == "query" else embedder.embed_passages
    return embed([content])[0]


def _tried(embedder: Embedder, label: str, content: Content) -> Tried:
    embedding = _embed(embedder, label, content)
    if isinstance(embedding, EmbedError):
        return Tried(label, 0, 0.0, 0.0, 0.0, error=str(embedding))
    started = time.perf_counter()
    for _ in range(RUNS):
        _embed(embedder, label, content)
    took = (time.perf_counter() - started) / RUNS
    lengths = np.linalg.norm(embedding.vectors, axis=1)
    return Tried(label, len(embedding.vectors), float(lengths.min()), float(lengths.max()), took * 1000, embedding.grid)


def _compared(
    embedder: Embedder, config: SpaceConfig, contents: Sequence[tuple[str, Content]]
) -> tuple[dict[str, float] | None, str]:
    engine = Engine.VLLM if config.engine is Engine.TRANSFORMERS else Engine.TRANSFORMERS
    try:
        other = space_embedder(with_changes(config, {"engine": engine}))
    except VragError as error:
        return None, str(error)
    if other.id != embedder.id:
        return None, f"its id is {other.id}"
    cosines = {}
    for label, content in contents:
        first, second = _embed(embedder, label, content), _embed(other, label, content)
        if (
            isinstance(first, EmbedError)
            or isinstance(second, EmbedError)
            or first.vectors.shape != second.vectors.shape
        ):
            return None, f"the two engines do not give as many vectors for the {label}"
        cosines[label] = float((first.vectors * second.vectors).sum(axis=1).min())
    return cosines, ""


def _memory_mib() -> int:
    """The most that this process has held."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held // MIB if sys.platform == "darwin" else held // 1024


def _gpu_memory_mib() -> int | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return int(torch.cuda.max_memory_allocated()) // MIB
