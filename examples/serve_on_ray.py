"""A collection served by Ray Serve: python examples/serve_on_ray.py my-collection "When was crane 2 inspected?"

Where RAY_ADDRESS names a cluster, the service is deployed there and stays; else a Ray of this machine ends with the
program. `serve deploy serve_configs/cluster.yaml` does the same from a file, with replicas that follow the load.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import vrag_ray as vrag
from vrag_ray.cluster import ray_session

PORT = int(os.environ.get("PORT", "8000"))


def main(collection: Path, question: str) -> None:
    with ray_session():
        # Ray and Serve read their variables when they are imported.
        from ray import serve

        from vrag_ray.config import Settings
        from vrag_ray.serving.app import APP_NAME, build

        # Two actors search, each with half of the documents; this machine alone may connect, so no key is needed.
        values = {"collection": str(collection), "index": {"shards": 2}, "serving": {"auth": "loopback"}}
        serve.start(http_options={"host": "127.0.0.1", "port": PORT, "request_timeout_s": None})
        serve.run(build(Settings.model_validate(values)), name=APP_NAME)
        with vrag.connect(f"http://127.0.0.1:{PORT}") as system:
            for name, part in system.ready().parts.items():
                print(f"{name}: {'ready' if part.ready else part.why}")
            print(system.ask(question).answer)
        if "RAY_ADDRESS" not in os.environ:
            serve.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2])
