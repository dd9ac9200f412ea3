"""Evaluation as a Ray job: ``ray job submit --working-dir . -- python jobs/evaluate.py outline URI...``.

Takes what ``vrag evaluate`` takes. The results are in the folder of ``--out``, which must outlive the job.
"""

from __future__ import annotations

import sys

from vrag_ray.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
