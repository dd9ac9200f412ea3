"""Ingest as a Ray job: ``ray job submit --working-dir . -- python jobs/ingest.py PATH... --collection URI``.

Takes what ``vrag ingest`` takes. The job runs on the cluster that it was submitted to, so paths and collection must be
readable from every node.
"""

from __future__ import annotations

import sys

from vrag_ray.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["ingest", *sys.argv[1:]]))
