"""The Ray cluster of the service on this machine: a node for each pod, with the CPUs that Ray sees there.

Run as a program, with the number of CPUs of each node as arguments, the head's first, it prints the cluster's address.
Then, for each line that it reads, it prints the state of the Serve application and how many living replicas and shards
each node has, as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter


def main() -> None:
    import ray
    from ray import serve
    from ray._private.state import actors
    from ray.cluster_utils import Cluster

    answers, sys.stdout = sys.stdout, sys.stderr  # Ray prints what it notes of its nodes
    head_cpus, *worker_cpus = map(int, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="vrag-pods-", ignore_cleanup_errors=True) as folder:
        small = {"object_store_memory": 100 << 20, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": head_cpus, "temp_dir": folder, **small})
        for cpus in worker_cpus:
            cluster.add_node(num_cpus=cpus, **small)
        names = {cluster.head_node.node_id: "head"}
        ray.init(address=cluster.address, namespace="serve", log_to_driver=False)
        print(cluster.address, flush=True, file=answers)
        for _ in sys.stdin:
            status = serve.status().applications.get("vrag")
            placed: Counter[str] = Counter()
            for actor in actors().values():
                kind = _kind(str(actor["Name"]))
                if kind and actor["State"] == "ALIVE":
                    placed[f"{names.get(str(actor['Address']['NodeID']), 'worker')} {kind}"] += 1
            print(json.dumps([status and status.status, dict(placed)]), flush=True, file=answers)
        ray.shutdown()
        cluster.shutdown()


def _kind(name: str) -> str | None:
    if name.startswith("SERVE_REPLICA::vrag#"):
        return name.split("#")[1]
    return "shard" if name.startswith("vrag-") and "-shard-" in name else None


if __name__ == "__main__":
    main()
