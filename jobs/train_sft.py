"""Fine-tuning as a Ray job: ``ray job submit --working-dir . -- python jobs/train_sft.py --config run.yaml``.

Takes what ``vrag train sft`` takes. The workers run on the cluster that it was submitted to, so model, data and storage
must be readable from every node.
"""

from __future__ import annotations

import sys

from vrag_ray.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", "sft", *sys.argv[1:]]))
