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
from pathlib import Path

import psutil

sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tools"))

from vrag_ray.cluster import start_ray
from vrag_ray.config import CorpusConfig, EmbedderConfig, Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedding
from vrag_ray.embedding.pictures import fitted_to
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.ingest import Progress, ingest
from vrag_ray.ingest.spaces import embed_spaces
from vrag_ray.ingest.spaces.stages import OVERSIZE

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
            embedder=EmbedderConfig(name="none"),
            spaces={},
        )
        start_ray(None)
        ingest([pdf], settings)
        ours, busy, memory = _graph(settings.model_copy(update={"spaces": {SPACE: space}}), arguments.pages)
        loop = _loop(pdf, space)
        print(f"graph {ours:.1f} pages/s, loop {loop:.1f} pages/s, ratio {ours / loop:.2f}")
        print(f"{busy}; driver grew by {memory:.0f} MB over {arguments.pages} pages")


def _graph(settings: Settings, pages: int) -> tuple[float, str, float]:
    """Pages a second once the model is loaded, the bottleneck in words, and the growth of this process in MB."""
    process = psutil.Process()
    before = process.memory_info().rss
    seen: list[tuple[float, int]] = []

    def note(progress: Progress) -> None:
        seen.append((time.monotonic(), progress.stages[-2].pages))

    [report] = embed_spaces(settings, on_progress=note)
    working = [(at, done) for at, done in seen if 0 < done < pages]
    first, last = working[0], working[-1]
    rate = (last[1] - first[1]) / (last[0] - first[0]) if last[0] > first[0] else pages / report.seconds
    return rate, f"bottleneck {report.bottleneck}", (process.memory_info().rss - before) / 1e6


def _loop(pdf: Path, space: SpaceConfig) -> float:
    """Pages a second of the plain loop, the model loaded."""
    import pymupdf

    embedder = space_embedder(space)
    spec = embedder.pictures
    assert spec is not None
    pixels = (spec.side**2 if spec.side is not None else spec.max_pixels) * OVERSIZE
    document = pymupdf.open(pdf)
    began, done = time.perf_counter(), 0
    for start in range(0, len(document), space.batch):
        contents = []
        for number in range(start, min(start + space.batch, len(document))):
            page = document[number]
            scale = (pixels / (page.rect.width * page.rect.height)) ** 0.5
            png = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale)).tobytes("png")
            contents.append(Content(picture=fitted_to(png, spec)))
        done += sum(isinstance(one, Embedding) for one in embedder.embed_passages(contents))
    return done / (time.perf_counter() - began)


def _model(folder: Path) -> Path:
    """A SigLIP-2 of some ten million random parameters: enough that embedding is the work."""
    from tests.support.tiny_embedders import tiny_siglip2

    return tiny_siglip2(folder)


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
