"""Questions to the agent without a model on dense pages: how many runs a second, from one client and from several?

    python -m benchmarks.dense_pages COLLECTION [--clients 1,16] [--seconds 20]

COLLECTION holds ingested manuals (`vrag ingest benchmarks/data/*.pdf -c COLLECTION`). The whole service
runs on it; a run ends when its last event has been read. The client is that of `benchmarks/serving.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.serving import RUN, ask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--clients", default="1,16")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()

    from vrag_ray.cluster import ray_session
    from vrag_ray.config import Settings
    from vrag_ray.serving.local import start_serving

    with ray_session():
        service = start_serving(Settings(collection=str(options.collection.absolute())), 0)
        try:
            url = f"{service.base_url}/v1/runs"
            ask(url, RUN, 2, 5.0)
            for clients in (int(part) for part in options.clients.split(",")):
                print(f"{clients:4d} clients  {ask(url, RUN, clients, options.seconds).line()}", flush=True)
        finally:
            service.stop()


if __name__ == "__main__":
    main()
