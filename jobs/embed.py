"""Fill vector spaces as a Ray job: ``ray job submit --working-dir . -- python jobs/embed.py --collection URI``.

Takes what ``vrag embed`` takes. Models named by folder must be readable from every node.
"""

from __future__ import annotations

import sys

from vrag_ray.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["embed", *sys.argv[1:]]))
