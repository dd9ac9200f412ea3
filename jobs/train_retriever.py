"""Train a retriever: ``ray job submit --working-dir . -- python jobs/train_retriever.py --config run.yaml``.

Takes what ``vrag train retriever`` takes. The workers run on the cluster that it was submitted to, so model, pairs and
storage must be readable from every node.
"""

from __future__ import annotations

import sys

from vrag_ray.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "retriever", *sys.argv[1:]]))
