"""Many small files: does the cost of a file grow with their number, and what does the driver need?

    python benchmarks/many_files.py [--sizes 1000,10000] [--kind notes|pictures]

Each size is a folder of its own, of notes of sixty words or of pictures of 160 by 120 pixels that are not read by OCR,
and is ingested as a user does it: `vrag ingest FOLDER`, a process of its own that starts its own Ray. The rate is that
of the report's own seconds, Ray's start left out; the memory is the largest resident set of the command's process.
Ends with the time a file at the largest size over that at the smallest.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

WORDS_OF_A_NOTE = 60
LOOK_EVERY_S = 0.25
RUN_LIMIT_S = 3600


@dataclass(frozen=True)
class Run:
    files: int
    seconds: float
    whole_s: float
    driver_mb: float
    bottleneck: str


def write_notes(folder: Path, count: int) -> None:
    chance = random.Random(count)
    # Words as people write them: random letters would be four tokens each to the embedder.
    pages = Path(__file__).parent.parent.glob("docs/*.md")
    vocabulary = sorted({word for page in pages for word in re.findall(r"\b[a-z]{2,12}\b", page.read_text())})
    for number in range(count):
        words = " ".join(chance.choices(vocabulary, k=WORDS_OF_A_NOTE))
        (folder / f"note-{number:06d}.txt").write_text(f"Note {number}. {words}.\n")


def write_pictures(folder: Path, count: int) -> None:
    import numpy as np
    from PIL import Image

    chance = np.random.default_rng(count)
    for number in range(count):
        pixels = chance.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((160, 120)).save(folder / f"picture-{number:06d}.png")


def ingest(folder: Path, collection: Path, kind: str) -> Run:
    command = [sys.executable, "-m", "vrag_ray.cli", "ingest", str(folder), "--collection", str(collection), "--json"]
    environment = os.environ | ({"VRAG_CORPUS__OCR": "false"} if kind == "pictures" else {})
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True, env=environment)
        largest = 0.0
        watched = psutil.Process(process.pid)
        while process.poll() is None and time.monotonic() - began < RUN_LIMIT_S:
            largest = max(largest, watched.memory_info().rss / 1e6)
            time.sleep(LOOK_EVERY_S)
        process.kill()
        out.seek(0)
        err.seek(0)
        if process.wait():
            raise SystemExit(f"vrag ingest failed:\n{out.read()}{err.read()}")
        report = json.load(out)
    return Run(report["added"], report["seconds"], time.monotonic() - began, largest, report["bottleneck"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--kind", choices=["notes", "pictures"], default="notes")
    options = parser.parse_args()
    runs: list[Run] = []
    print(f"{'files':>8} {'files/s':>8} {'ms/file':>8} {'command s':>10} {'driver MB':>10}  bottleneck")
    for size in (int(part) for part in options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "in"
            source.mkdir()
            (write_notes if options.kind == "notes" else write_pictures)(source, size)
            run = ingest(source, Path(folder) / "collection", options.kind)
        if run.files != size:
            raise SystemExit(f"{run.files} of {size} files were added")
        runs.append(run)
        print(
            f"{run.files:8d} {run.files / run.seconds:8.1f} {run.seconds / run.files * 1e3:8.1f} {run.whole_s:10.1f} "
            f"{run.driver_mb:10.0f}  {run.bottleneck}",
            flush=True,
        )
    first, last = runs[0], runs[-1]
    print(f"time a file, largest over smallest: {last.seconds / last.files / (first.seconds / first.files):.2f}")


if __name__ == "__main__":
    main()
