"""Searches from more and more clients, and then from one again: does the service shed and recover, or pile up?

    python benchmarks/overload.py [--notes 3000] [--clients 1,8,…,1024] [--seconds 6] [--picture FILE.svg]

The clients, on the machine of the service, ask for searches by meaning (`mode: text`) without a pause; one that is
answered 429 waits as long as `Retry-After` asks for. The last line is one client
after the greatest load: its median against that of the first line is the recovery. The picture shows replies and
refusals a second, and the median and 99th percentile of replies, over the number of clients.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.serving import Load, ask, served_notes

DEFAULT = "1,8,32,64,128,256,512,768,1024"


def measured(url: str, clients: Sequence[int], seconds: float) -> list[tuple[int, Load]]:
    loads = []
    for number in (*clients, clients[0]):
        load = ask(url, "text", number, seconds)
        refused = load.others[429] / seconds
        print(f"{number:5d} clients  {load.line()}  refused {refused:.1f}/s", flush=True)
        loads.append((number, load))
    return loads


def draw(loads: Sequence[tuple[int, Load]], target: Path) -> None:
    from matplotlib import pyplot as plt

    rising = loads[:-1]
    numbers = [str(number) for number, _ in rising]
    figure, (rates, times) = plt.subplots(2, 1, figsize=(7, 6), sharex=True)
    rates.plot(numbers, [load.rate for _, load in rising], marker="o", label="answered")
    rates.plot(numbers, [load.others[429] / load.seconds for _, load in rising], marker="x", label="refused (429)")
    rates.set_ylabel("requests a second")
    rates.legend()
    times.plot(numbers, [load.percentile(50) / 1e3 for _, load in rising], marker="o", label="median")
    times.plot(numbers, [load.percentile(99) / 1e3 for _, load in rising], marker="x", label="99th percentile")
    times.set_ylabel("seconds of an answer")
    times.set_xlabel("clients that ask without a pause")
    times.legend()
    for axes in (rates, times):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=3000)
    parser.add_argument("--clients", default=DEFAULT)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()

    with served_notes(options.notes) as (base_url, _):
        url = f"{base_url}/v1/search"
        ask(url, "text", 2, 2.0)
        loads = measured(url, [int(part) for part in options.clients.split(",")], options.seconds)
    first, last = loads[0][1], loads[-1][1]
    print(f"recovered: median of one client {last.percentile(50) / first.percentile(50):.2f} of what it was before")
    if options.picture is not None:
        draw(loads, options.picture)


if __name__ == "__main__":
    main()
