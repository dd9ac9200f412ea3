"""What only a GPU can show, in one table: embedders, search and optimiser steps at real size, with random weights.

    python benchmarks/gpu.py --out FOLDER [--only PART ...] [--minutes 9]

Nothing is downloaded, and Ray, vLLM, FAISS and Arrow are not needed; docs/results/gpu.md says what is. Parts run in the
order of their worth, each in its own process with a time limit. FOLDER/gpu.md and gpu.json are written after every row,
and the same FOLDER goes on after the parts that ended in it. ``--tiny`` runs all of it on small models, on the CPU too.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

# ``benchmarks.…`` is found from the repository's root, which Python does not look in for a script below it.
ROOT = str(Path(__file__).resolve().parents[1])
sys.path[0] = ROOT

from benchmarks.card.embedders import embed_pages
from benchmarks.card.runner import Part, Row, Setup, Table, run_parts
from benchmarks.card.search import engines, exact_search, faiss_search, max_sim
from benchmarks.card.training import optimiser_step


def the_card(setup: Setup) -> Iterator[Row]:
    """What every other figure is to be held against."""
    import torch

    if setup.device == "cuda":
        card = torch.cuda.get_device_properties(0)
        yield Row(card.name, card.total_memory / 1e9, "GB", remark=f"torch {torch.__version__}")
    else:
        yield Row("no card", remark=f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    side = 256 if setup.tiny else 8192
    dtype = torch.bfloat16
    left, right = (torch.randn((side, side), device=setup.device, dtype=dtype) for _ in range(2))
    yield Row(
        f"product of {side} x {side} in bfloat16", 2 * side**3 / _seconds(lambda: left @ right, setup) / 1e12, "TFLOP/s"
    )
    values = torch.empty(1 << (18 if setup.tiny else 30), device=setup.device, dtype=torch.uint8)
    yield Row("copy, read and written", 2 * len(values) / _seconds(values.clone, setup) / 1e12, "TB/s")


def _seconds(run: object, setup: Setup, rounds: int = 10) -> float:
    from benchmarks.card.models import wait

    assert callable(run)
    for _ in range(3):
        run()
    wait(setup.device)
    began = time.perf_counter()
    for _ in range(rounds):
        run()
    wait(setup.device)
    return (time.perf_counter() - began) / rounds


PARTS = (
    Part("card", 30, the_card),
    Part("embed-qwen3-vl-2b", 90, partial(embed_pages, space="qwen3-vl-2b")),
    Part("lora-2b", 75, partial(optimiser_step, part="lora-2b")),
    Part("maxsim", 75, max_sim),
    Part("embed-colqwen2", 90, partial(embed_pages, space="colqwen2")),
    Part("lora-7b", 100, partial(optimiser_step, part="lora-7b")),
    Part("embed-gve-7b", 90, partial(embed_pages, space="gve-7b")),
    Part("full-2b", 100, partial(optimiser_step, part="full-2b")),
    Part("full-2b-float32", 100, partial(optimiser_step, part="full-2b-float32")),
    Part("embed-qwen3-vl-8b", 100, partial(embed_pages, space="qwen3-vl-8b")),
    Part("search", 75, exact_search),
    Part("full-7b", 120, partial(optimiser_step, part="full-7b")),
    Part("full-7b-bf16", 100, partial(optimiser_step, part="full-7b-bf16")),
    Part("faiss", 120, faiss_search),
    Part("engines", 240, engines),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [part.name for part in PARTS]
    parser.add_argument("--out", type=Path, default=Path("gpu-results"), help="where the table goes")
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="PART", help=f"of {', '.join(names)}"
    )
    parser.add_argument("--minutes", type=float, default=9.0, help="for all parts together")
    parser.add_argument(
        "--tiny", action="store_true", help="small models: shows that the script works, measures nothing"
    )
    parser.add_argument("--model", default="", help="a text embedder, for the part `engines`")
    parser.add_argument("--join", type=Path, nargs="+", default=[], help="gpu.json of earlier runs, to print one table")
    chosen = parser.parse_args()
    if chosen.join:
        return _joined(chosen.join)
    # Processes of the parts import this package, from whatever folder they are started.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
    if not chosen.model:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    device = "cuda" if _has_card() else "cpu"
    if device == "cpu" and not chosen.tiny:
        print("nothing was measured: PyTorch sees no GPU here (--tiny tries the script on the CPU)")
        return 0
    where = "small models of a dry run: the figures mean nothing" if chosen.tiny else "random weights of real size"
    table = Table.open(chosen.out, f"Measured with `benchmarks/gpu.py`, {where}.")
    parts = [part for part in PARTS if part.name in chosen.only]
    setup = Setup(device, chosen.tiny, chosen.out.absolute(), chosen.model)
    whole = run_parts(parts, setup, table, seconds=60 * chosen.minutes, tell=lambda text: print(text, flush=True))
    print(f"\n{table}\n\n{table.out / 'gpu.md'}")
    return 0 if whole else 1


def _has_card() -> bool:
    """Asked in a process of its own: one that has asked CUDA cannot give it to its children."""
    import subprocess

    script = "import torch; print(torch.cuda.is_available())"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return answer.stdout.strip() == "True"


def _joined(files: list[Path]) -> int:
    table = Table(files[0].parent, "")
    for file in files:
        table.take(file)
    print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
