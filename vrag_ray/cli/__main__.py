"""``python -m vrag_ray.cli``: the same as ``vrag``."""

import sys

from vrag_ray.cli.main import main

sys.exit(main())
