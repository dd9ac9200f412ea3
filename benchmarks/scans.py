"""Ingest of a scan: pages a second, the first time and again, and the memory that it takes.

    python benchmarks/scans.py [PDF] [--pages 100]

Evenly spaced pages of the PDF become pictures of 200 dpi in a PDF without a text layer. That is ingested into an empty
collection with an empty cache, and then into another empty collection. Memory is the proportional set size of the whole
process tree, Ray's own processes and shared memory included, once a second. Ray is started before and not timed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import pymupdf

from benchmarks.ingest import PeakMemory
from vrag_ray.config import Settings
from vrag_ray.ingest import ingest

DPI = 200


def scan_of(pdf: Path, pages: int, target: Path) -> Path:
    """Evenly spaced pages of ``pdf``, as JPEGs."""
    scan = pymupdf.open()
    with pymupdf.open(pdf) as document:
        for number in range(pages):
            page = document[number * len(document) // pages]
            picture = page.get_pixmap(dpi=DPI).tobytes("jpeg", jpg_quality=80)
            sheet = scan.new_page(width=page.rect.width, height=page.rect.height)
            sheet.insert_image(sheet.rect, stream=picture)
    scan.save(target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path, nargs="?", default=Path(__file__).parent / "data/octave.pdf")
    parser.add_argument("--pages", type=int, default=100)
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Every process of Ray is to use the cache of this run.
        os.environ["VRAG_CACHE_HOME"] = str(folder / "cache")
        from vrag_ray.cluster import start_ray, stop_ray

        scan = scan_of(arguments.pdf, arguments.pages, folder / "scan.pdf")
        start_ray()
        for time in ("first", "again"):
            memory = PeakMemory()
            memory.start()
            report = ingest([scan], Settings(collection=str(folder / time)))
            rate = report.pages / report.seconds
            print(
                f"{time}: {report.pages} pages, {report.windows} windows in {report.seconds:.1f} s (of it start-up "
                f"{report.startup_s:.1f} s) = {rate:.2f} pages/s; {report.bottleneck}; peak {memory.stop():.0f} MB",
                flush=True,
            )
    stop_ray()


if __name__ == "__main__":
    main()
