"""The instructions of ``deploy/Containerfile``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.support.paths import ROOT

CONTAINERFILE = ROOT / "deploy" / "Containerfile"
WORKDIR = PurePosixPath("/home/ray/vrag")


@dataclass(frozen=True)
class Instruction:
    name: str
    value: str


def instructions(text: str) -> list[Instruction]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [Instruction(*line.split(maxsplit=1)) for line in whole.splitlines()]


def of_the_image() -> list[Instruction]:
    return instructions(CONTAINERFILE.read_text(encoding="utf-8"))


def values(name: str) -> list[str]:
    return [instruction.value for instruction in of_the_image() if instruction.name == name]


def arguments() -> dict[str, str]:
    """Build arguments and their defaults."""
    return dict(value.split("=", 1) for value in values("ARG"))


def base(**given: str) -> str:
    """The image that is built upon, with these build arguments."""
    [name] = values("FROM")
    known = arguments() | given
    return re.sub(r"\$\{(\w+)\}", lambda match: known[match[1]], name)


def copied() -> list[tuple[list[str], str]]:
    """Sources and target of each COPY from the build's context."""
    copies = []
    for value in values("COPY"):
        *sources, target = [word for word in value.split() if not word.startswith("--")]
        copies.append((sources, target))
    return copies
