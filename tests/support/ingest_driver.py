"""One ingest in a process of its own, so that a test can kill it: ``python driver.py RAY_ADDRESS CONFIG PATH…``."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    address, config, *paths = sys.argv[1:]
    import ray

    from vrag_ray.config import load_settings
    from vrag_ray.ingest import ingest

    ray.init(address=address, logging_level="WARNING", log_to_driver=False)
    print("started", flush=True)
    report = ingest(paths, load_settings(Path(config)))
    print(f"pages {report.pages}", flush=True)


if __name__ == "__main__":
    main()
