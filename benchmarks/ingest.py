"""Ingest against a plain loop that does the same work: extract text, cut windows, embed. No Ray, no disk.

    python benchmarks/ingest.py [PDF] [--sizes 100,300,1158]

All in one run, in turn. The loop comes three ways: with one thread; with every core on one text after another, as
ONNX Runtime spreads it; and with every core on a text of its own, as the embedder of this project does. Then
`ingest` of the whole PDF into an empty collection. Then `ingest` of evenly spaced pages of it, to see that time is
linear in pages; the last and largest of these is watched for memory: the proportional set size of the whole process
tree, Ray's own processes and shared memory included, once a second. Ray is started before and not timed. `start-up`
is what the graph needs until its readers are ready; it is inside the times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import psutil

from vrag_ray.config import CorpusConfig, Settings
from vrag_ray.corpus.windows import window_spans, without_leaders
from vrag_ray.ingest import IngestReport, ingest

BATCH_PAGES = 16


class Loop(StrEnum):
    ONE_THREAD = "one-thread"
    SPREAD = "spread"
    SIDE_BY_SIDE = "side-by-side"


LABELS = {
    Loop.ONE_THREAD: "loop, one thread",
    Loop.SPREAD: "loop, each text spread over {} threads",
    Loop.SIDE_BY_SIDE: "loop, {} texts at once",
}


def make_embed(kind: Loop, cpus: int) -> Callable[[list[str]], object]:
    from vrag_ray.embedding.minilm.minilm_graph import INPUT, build_session
    from vrag_ray.embedding.minilm.text import TextEmbedder
    from vrag_ray.embedding.minilm.weights import load_weights

    weights = load_weights(None)
    embedder = TextEmbedder(weights, threads=cpus if kind is Loop.SIDE_BY_SIDE else 1)
    if kind is not Loop.SPREAD:
        return embedder.vectors
    session = build_session(weights.tensors, intra_op_threads=cpus)
    return lambda texts: [session.run(None, {INPUT: embedder.token_ids(text)})[0] for text in texts]


def loop(pdf: Path, kind: Loop) -> float:
    """Pages a second of the plain loop, model loading left out."""
    import pymupdf

    embed = make_embed(kind, os.cpu_count() or 1)
    embed(["warm up"])
    config = CorpusConfig()
    began = time.perf_counter()
    document = pymupdf.open(pdf)
    for start in range(0, len(document), BATCH_PAGES):
        pages = range(start, min(start + BATCH_PAGES, len(document)))
        texts = [without_leaders(document[number].get_text()) for number in pages]
        windows = [
            text[start:stop]
            for text in texts
            for start, stop in window_spans(text, config.window_words, config.window_overlap)
        ]
        embed([window for window in windows if window.strip()])
    return len(document) / (time.perf_counter() - began)


class PeakMemory(threading.Thread):
    """Samples the memory of this process and all its descendants, the Ray cluster included."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(1.0):
            total = 0
            for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue  # it ended while we looked
            self.peak_mb = max(self.peak_mb, total / 2**20)

    def stop(self) -> float:
        self._over.set()
        self.join()
        return self.peak_mb


def every_nth_page(pdf: Path, pages: int, folder: Path) -> Path:
    """A PDF of ``pages`` evenly spaced pages, so that text density is that of the whole."""
    import pymupdf

    document = pymupdf.open(pdf)
    document.select([round(i * len(document) / pages) for i in range(pages)])
    target = folder / f"{pages}.pdf"
    document.save(target, garbage=3)
    return target


def run_ingest(pdf: Path, folder: Path) -> IngestReport:
    return ingest([pdf], Settings(collection=str(folder / f"collection-{pdf.stem}")))


def run_sizes(pdf: Path, sizes: list[int], folder: Path) -> None:
    """Time by pages, and pages a second of what each size has more than the one before."""
    before = None
    for size in sizes:
        memory = PeakMemory() if size == sizes[-1] else None
        if memory:
            memory.start()
        report = run_ingest(every_nth_page(pdf, size, folder), folder)
        line = f"{size:5d} pages: {report.seconds:6.1f} s, start-up {report.startup_s:4.1f} s, {report.windows} windows"
        if before:
            more_s = report.seconds - before.seconds
            line += f"; the last {size - before.pages} pages {(size - before.pages) / more_s:.1f} pages/s"
        print(line, flush=True)
        if memory:
            print(f"peak memory of the whole tree: {memory.stop():.0f} MB", flush=True)
        before = report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path, nargs="?", default=Path(__file__).parent / "data/octave.pdf")
    parser.add_argument("--sizes", default="100,300,1158")
    parser.add_argument("--loop", type=Loop, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.loop:
        print(loop(arguments.pdf, arguments.loop))
        return
    cpus = os.cpu_count() or 1
    rates = {}
    for kind in Loop:
        # A process of its own, so that nothing of one is warm for the next.
        command = [sys.executable, __file__, str(arguments.pdf), "--loop", kind]
        rates[kind] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{LABELS[kind].format(cpus):42} {rates[kind]:6.1f} pages/s", flush=True)
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    from vrag_ray.cluster import start_ray, stop_ray

    start_ray()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = run_ingest(arguments.pdf, folder)
        rate = whole.pages / whole.seconds
        print(f"ingest: {whole.pages} pages, {whole.windows} windows in {whole.seconds:.1f} s", end=" ")
        print(f"(of it start-up {whole.startup_s:.1f} s) = {rate:.1f} pages/s")
        for kind in Loop:
            print(f"  {rate / rates[kind]:.2f} x {LABELS[kind].format(cpus)}", flush=True)
        run_sizes(arguments.pdf, [int(part) for part in arguments.sizes.split(",")], folder)
    stop_ray()


if __name__ == "__main__":
    main()
