"""Filling a vector space against a hand-written loop with the same model, and how busy the embedding stage is.

    python benchmarks/embed_pipeline.py --pages 300

A PDF of coloured shapes is ingested without vectors; then the graph fills a space with one embedding actor, and a plain
loop draws the same pages with MuPDF and embeds them with the same model in batches of the same size. The model is a
small SigLIP-2 of random weights that this script makes: what is compared is the way to it. Both run in one process tree
on the same machine, the loop after the graph.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from vrag_ray.types.copies import with_changes

sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tools"))

from vrag_ray.cluster import start_ray
from vrag_ray.config import CorpusConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding
from vrag_ray.embedding.pictures import fitted_to
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.ingest import Progress, ingest
from vrag_ray.ingest.spaces import embed_spaces
from vrag_ray.ingest.spaces.stages import OVERSIZE
from vrag_ray.types.dotted_path import load_object

SPACE = "look"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--model", type=Path, help="another model of pictures than the small one")
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    with tempfile.TemporaryDirectory(prefix="vrag-embed-") as folder:
        home = Path(folder)
        model = arguments.model or _model(home / "model")
        pdf = _shapes(home / "shapes.pdf", arguments.pages)
        space = SpaceConfig(model=str(model), batch=arguments.batch)
        settings = Settings(
            collection=str(home / "collection"),
            corpus=CorpusConfig(ocr=False),
            spaces={"text": SpaceConfig(model="none")},
        )
        start_ray(None)
        ingest([pdf], settings)
        seen = _graph(with_changes(settings, {"spaces": {SPACE: space, **settings.spaces}}), arguments.pages)
        loop = _loop(pdf, space)
        print(f"graph {seen.rate:.1f} pages/s, loop {loop:.1f} pages/s, ratio {seen.rate / loop:.2f}")
        print(f"embedding busy {seen.busy:.0%} of the time between its first and its last page; {seen.bottleneck}")
        print(
            f"{arguments.pages} pages: driver {seen.driver_mb[0]:.0f} MB before, {seen.driver_mb[1]:.0f} at the half, "
            f"{seen.driver_mb[2]:.0f} at the end; object store at most {seen.store_mb:.0f} MB"
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """``rate`` in pages a second once the model is loaded; ``driver_mb`` before, at the half and at the end."""

    rate: float
    busy: float
    bottleneck: str
    driver_mb: tuple[float, float, float]
    store_mb: float


def _graph(settings: Settings, pages: int) -> Seen:
    import ray

    process = psutil.Process()
    memory = [process.memory_info().rss / 1e6]
    store = ray.cluster_resources()["object_store_memory"]
    most = 0.0
    seen: list[tuple[float, int, float]] = []

    def note(progress: Progress) -> None:
        nonlocal most
        stage = progress.stages[-2]
        seen.append((time.monotonic(), stage.pages, stage.pages_per_s))
        most = max(most, store - ray.available_resources().get("object_store_memory", store))
        if len(memory) == 1 and stage.pages >= pages / 2:
            memory.append(process.memory_info().rss / 1e6)

    [report] = embed_spaces(settings, on_progress=note)
    working = [sample for sample in seen if 0 < sample[1] < pages]
    (began, first, _), (ended, last, _) = working[0], working[-1]
    rate = (last - first) / (ended - began)
    half = memory[1] if len(memory) > 1 else memory[0]
    # A stage's own rate is that of its working time, so the share of it that was reached is the time it worked.
    return Seen(
        rate, rate / seen[-1][2], report.bottleneck, (memory[0], half, process.memory_info().rss / 1e6), most / 1e6
    )


def _loop(pdf: Path, space: SpaceConfig) -> float:
    """Pages a second of the plain loop, the model loaded."""
    import pymupdf

    embedder = space_embedder(space)
    spec = embedder.pictures
    assert spec is not None
    pixels = (spec.side**2 if spec.side is not None else spec.max_pixels) * OVERSIZE
    document = pymupdf.open(pdf)
    began, done = time.perf_counter(), 0
    for start in range(0, len(document), space.batch_size):
        contents = []
        for number in range(start, min(start + space.batch_size, len(document))):
            page = document[number]
            scale = (pixels / (page.rect.width * page.rect.height)) ** 0.5
            png = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale)).tobytes("png")
            contents.append(Content(picture=fitted_to(png, spec)))
        done += sum(isinstance(result, Embedding) for result in embedder.embed_passages(contents))
    return done / (time.perf_counter() - began)


def _model(folder: Path) -> Path:
    """A small SigLIP-2 of random weights."""
    # The one that the tests build; named, not imported, because tests are no part of what is type-checked.
    load_object("tests.support.tiny_embedders:tiny_siglip2", "the benchmark's model")(folder)
    return folder


def _shapes(path: Path, pages: int) -> Path:
    import pymupdf

    chance, document = random.Random(1), pymupdf.open()
    for _ in range(pages):
        page = document.new_page(width=595, height=842)
        for _ in range(60):
            x, y = chance.uniform(0, 500), chance.uniform(0, 750)
            colour = (chance.random(), chance.random(), chance.random())
            page.draw_rect(pymupdf.Rect(x, y, x + chance.uniform(10, 90), y + chance.uniform(10, 90)), fill=colour)
    document.save(path)
    return path


if __name__ == "__main__":
    main()
