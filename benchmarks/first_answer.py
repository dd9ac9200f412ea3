"""Seconds from a PDF and no collection to the first cited answer: `vrag ingest`, then `vrag ask`, as a user types them.

python benchmarks/first_answer.py [PDF] [--question TEXT]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VRAG = [sys.executable, "-m", "vrag_ray.cli"]


def run(*arguments: str) -> dict[str, object]:
    done = subprocess.run([*VRAG, *arguments, "--json"], check=True, stdout=subprocess.PIPE, text=True)
    value: dict[str, object] = json.loads(done.stdout)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pdf", type=Path, nargs="?", default=Path(__file__).parent / "data/octave.pdf")
    parser.add_argument("--question", default="Which function computes the condition number of a matrix?")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        collection = str(Path(folder) / "collection")
        began = time.perf_counter()
        report = run("ingest", str(arguments.pdf), "--collection", collection)
        ingested = time.perf_counter()
        record = run("ask", arguments.question, "--collection", collection)
        ended = time.perf_counter()
    print(f"{report['pages']} pages; ingest {ingested - began:.1f} s, ask {ended - ingested:.1f} s")
    print(f"first cited answer after {ended - began:.1f} s: {record['answer']}")
    print(f"citations: {json.dumps(record['citations'])}")


if __name__ == "__main__":
    main()
