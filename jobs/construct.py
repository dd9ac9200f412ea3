"""Trajectories of two experts as a Ray job: ``ray job submit --working-dir . -- python jobs/construct.py --config …``.

Takes what ``vrag train construct`` takes. It runs on the cluster that it was submitted to, so ``output`` must be
writable from every node, and the endpoints' keys must be in every node's environment.
"""

from __future__ import annotations

import sys

from vrag_ray.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "construct", *sys.argv[1:]]))
