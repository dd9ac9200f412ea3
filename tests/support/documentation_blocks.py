"""The code blocks of a Markdown page, and the commands in them. Pure."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)$")
_MARK = re.compile(r"^<!-- not run: (.+) -->$")
_FILE = re.compile(r"^# ([\w./-]+\.(?:yaml|jsonl|json))$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. ``line`` is that of its fence, from 1; ``unrun`` says why the tests do not run it, if so."""

    page: str
    line: int
    language: str
    text: str
    unrun: str

    @property
    def file(self) -> str | None:
        """The file that the block is the content of: its first line is a comment with the name alone."""
        match = _FILE.match(self.text.partition("\n")[0])
        return match[1] if match else None


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a page. A mark, ``<!-- not run: reason -->``, stands on the line before the fence."""
    collected: list[Block] = []
    opened: tuple[int, str, str] | None = None
    text: list[str] = []
    before = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            mark = _MARK.match(before)
            opened, text = (number, fence[1], mark[1] if mark else ""), []
        elif opened is not None and line == "```":
            collected.append(Block(path.name, opened[0], opened[1], "\n".join(text), opened[2]))
            opened = None
        elif opened is not None:
            text.append(line)
        before = line or before
    if opened is not None:
        raise ValueError(f"{path.name}:{opened[0]}: the block is not closed")
    return collected


def indented_code(path: Path) -> list[str]:
    """Lines of indented code blocks outside of lists: commands that no test would find."""
    lines = path.read_text(encoding="utf-8").splitlines()
    commands = []
    fenced = listed = False
    for before, line in zip(["", *lines], lines, strict=False):
        if line.startswith("```"):
            fenced = not fenced
        if line and not line.startswith(" "):
            listed = bool(re.match(r"([-*]|\d+\.) ", line))
        if not fenced and not listed and line.startswith("    ") and not before.strip():
            commands.append(line.strip())
    return commands


def commands(text: str) -> Iterator[str]:
    """The commands of a shell block, each as many lines as bash takes for one; comments left out."""
    pending = ""
    for line in text.splitlines():
        pending += f"{line}\n"
        if line.endswith("\\") or not _is_whole(pending):
            continue
        if any(part.strip() and not part.lstrip().startswith("#") for part in pending.splitlines()):
            yield pending.strip()
        pending = ""
    if pending.strip():
        raise ValueError(f"no whole command: {pending}")


def _is_whole(text: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0
