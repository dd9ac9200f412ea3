"""FAISS, of which exactly one wheel may be installed: ``faiss-cpu`` and ``faiss-gpu`` own one folder ``faiss``."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from types import ModuleType

from vrag_ray.types import VragError

INSTALL = "in the checkout, pip install '.[embedded]' (CPU), '.[cpu]' (with vLLM) or '.[gpu]' (NVIDIA)"


_NAMES = ("faiss", "faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12", "faiss-gpu-cu13")
"""What has the package ``faiss``. Asking for each is quick; listing all that is installed is not."""


@dataclass(frozen=True, slots=True)
class FaissWheel:
    """An installed distribution whose files are the package ``faiss``."""

    name: str
    version: str


def faiss_wheels() -> tuple[FaissWheel, ...]:
    """The FAISS distributions on this Python's path, by name: one where the installation is sound."""
    wheels = []
    for name in _NAMES:
        try:
            wheels.append(FaissWheel(name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(wheels)


def too_many_wheels(wheels: tuple[FaissWheel, ...], *, gpu: bool) -> str:
    """What is wrong with more than one wheel, and the commands that mend it; empty for one or none.

    ``gpu`` says whether the machine has a GPU, and so which of them to keep.
    """
    if len(wheels) < 2:
        return ""
    keep = next((wheel for wheel in wheels if ("gpu" in wheel.name) == gpu), wheels[0])
    names = " ".join(wheel.name for wheel in wheels)
    listed = " and ".join(f"{wheel.name} {wheel.version}" for wheel in wheels)
    return (
        f"FAISS is installed {len(wheels)} times over in one folder ({listed}): which files won is chance; "
        f"pip uninstall -y {names} && pip install {keep.name}=={keep.version}"
    )


def load_faiss() -> ModuleType:
    """The module ``faiss``. Raises VragError with the remedy where it is absent or its files are damaged."""
    try:
        import faiss
    except ImportError as error:
        wheels = faiss_wheels()
        if not wheels:
            raise VragError(f"FAISS is not installed, and searching needs it: {INSTALL}") from error
        raise VragError(_damaged(wheels, str(error))) from error
    # An uninstalled second wheel takes files of the first along: what is left can import as an empty namespace.
    if not hasattr(faiss, "IndexScalarQuantizer"):
        raise VragError(_damaged(faiss_wheels(), "its files are incomplete"))
    module: ModuleType = faiss
    return module


def _damaged(wheels: tuple[FaissWheel, ...], reason: str) -> str:
    twice = too_many_wheels(wheels, gpu=False)
    remedy = twice or (
        f"pip install --force-reinstall --no-deps {wheels[0].name}=={wheels[0].version}" if wheels else INSTALL
    )
    return f"FAISS cannot be used ({reason}): {remedy}"
