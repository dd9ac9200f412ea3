"""One construction in a process of its own, so that a test can kill it: ``python … RAY_ADDRESS CONFIG``."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    address, config = sys.argv[1:]
    import ray

    from vrag_ray.questions.files import load_examples
    from vrag_ray.training.config import load_training
    from vrag_ray.training.construct.config import ConstructConfig
    from vrag_ray.training.construct.pipeline import construct

    ray.init(address=address, logging_level="WARNING", log_to_driver=False)
    settings = load_training(Path(config), ConstructConfig)
    construct(load_examples(settings.examples), settings, lambda outcome: print(outcome.uid, flush=True))


if __name__ == "__main__":
    main()
