"""Ingest against a plain loop that does the same work: extract text, cut windows, embed. No Ray, no disk.

    python benchmarks/ingest.py [PDF] [--sizes 100,300,1158]

All in one run, in turn: the loop with one ONNX thread, the loop with all, then `ingest` into an empty collection,
for the whole PDF; then `ingest` of evenly spaced pages of it, to see that time is linear in pages. Ray is started
before and timed apart; `startup` is what the graph needs until its embedding actors have their model, and it is
inside the times given unless a column says otherwise. Memory is the proportional set size of the whole process
tree, Ray's own processes and shared memory included, sampled four times a second.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from vrag_ray.config import CorpusConfig, EmbedderConfig, Settings
from vrag_ray.corpus.windows import split_windows
from vrag_ray.ingest import IngestReport, ingest

BATCH_PAGES = 16


def loop(pdf: Path, threads: int) -> float:
    """Pages a second of the plain loop, model loading left out."""
    import pymupdf

    from vrag_ray.embedding.load import load_embedder

    embedder = load_embedder(EmbedderConfig(threads=threads)).embedder
    assert embedder is not None
    embedder.embed_passages(["warm up"])
    config = CorpusConfig()
    began = time.perf_counter()
    document = pymupdf.open(pdf)
    for start in range(0, len(document), BATCH_PAGES):
        pages = range(start, min(start + BATCH_PAGES, len(document)))
        texts = [document[number].get_text() for number in pages]
        windows = [w for text in texts for w in split_windows(text, config.window_words, config.window_overlap)]
        embedder.embed_passages([window for window in windows if window.strip()])
    return len(document) / (time.perf_counter() - began)


class PeakMemory(threading.Thread):
    """Samples the memory of this process and all its descendants, the Ray cluster included."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.25):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path, nargs="?", default=Path(__file__).parent / "data/octave.pdf")
    parser.add_argument("--sizes", default="100,300,1158")
    parser.add_argument("--loop", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.loop:
        print(loop(arguments.pdf, arguments.loop))
        return
    cpus = os.cpu_count() or 1
    rates = {}
    for threads in (1, cpus):
        # A process of its own, so that ONNX Runtime starts with that number of threads.
        command = [sys.executable, __file__, str(arguments.pdf), "--loop", str(threads)]
        rates[threads] = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"loop, {threads} thread(s): {rates[threads]:6.1f} pages/s", flush=True)
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray

    memory = PeakMemory()
    memory.start()
    ray.init(
        num_cpus=16, include_dashboard=False, object_store_memory=300 << 20, logging_level="ERROR", log_to_driver=False
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = run_ingest(arguments.pdf, folder)
        rate = whole.pages / whole.seconds
        print(f"ingest: {whole.pages} pages, {whole.windows} windows in {whole.seconds:.1f} s", end=" ")
        print(f"(of it start-up {whole.startup_s:.1f} s) = {rate:.1f} pages/s")
        print(f"ratio to the loop with 1 thread: {rate / rates[1]:.2f}, with {cpus}: {rate / rates[cpus]:.2f}")
        print(f"peak memory of the whole tree: {memory.stop():.0f} MB", flush=True)
        for size in [int(part) for part in arguments.sizes.split(",")]:
            report = run_ingest(every_nth_page(arguments.pdf, size, folder), folder)
            working = report.seconds - report.startup_s
            print(
                f"{size:5d} pages: {report.seconds:6.1f} s, start-up {report.startup_s:4.1f} s, "
                f"{report.windows} windows, {size / working:5.1f} pages/s after start-up",
                flush=True,
            )
    ray.shutdown()


if __name__ == "__main__":
    main()
