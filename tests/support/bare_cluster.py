"""A Ray cluster of its own, as `ray start --head` makes one: in another folder, with another environment.

Run as a program, it prints the cluster's address and then, for each line it reads, the state of the Serve application.
"""

from __future__ import annotations

import json
import sys
import tempfile


def main() -> None:
    import ray
    from ray import serve

    with tempfile.TemporaryDirectory(prefix="vrag-ray-", ignore_cleanup_errors=True) as folder:
        context = ray.init(num_cpus=8, include_dashboard=False, object_store_memory=100 << 20, _temp_dir=folder)
        print(context.address_info["gcs_address"], flush=True)
        for line in sys.stdin:
            status = serve.status().applications.get(line.strip())
            print(json.dumps(None if status is None else [status.status, status.message]), flush=True)
        ray.shutdown()


if __name__ == "__main__":
    main()
