"""Parts of a measurement, each in a process of its own with a time limit, and a table that is written after every row.

A card may be at hand for minutes only: a part that hangs, runs out of memory or is cut off must cost no other part its
figures, and what was measured must be on disk already.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path

JSON_FILE, TABLE_FILE = "gpu.json", "gpu.md"
START_S = 120.0
LEAST_S = 10.0
"""A part is not begun with less time left."""
PRELOADED = (
    "torch", "transformers", "peft", "benchmarks.card.embedders", "benchmarks.card.training",
    "transformers.models.qwen2_5_vl.modeling_qwen2_5_vl", "transformers.models.qwen2_5_vl.processing_qwen2_5_vl",
    "transformers.models.qwen3_vl.modeling_qwen3_vl", "transformers.models.qwen3_vl.processing_qwen3_vl",
    "transformers.models.colqwen2.modeling_colqwen2", "transformers.models.colqwen2.processing_colqwen2",
)  # fmt: skip
"""Imported once for all processes. None of them may ask CUDA anything: a process forked after that cannot use it."""
FORK_REFUSED = "Cannot re-initialize CUDA in forked subprocess"
HEADER = "| part | what | measured | computed | of it | remark |\n|---|---|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``value`` is None where there is none, and ``remark`` says why.

    ``computed`` is the same figure as ``vrag plan`` or the memory plan has it, None where they have none.
    """

    what: str
    value: float | None = None
    unit: str = ""
    computed: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """Where to measure, at which sizes. ``model`` is an embedder of the user's own for the part ``engines``."""

    device: str
    tiny: bool
    out: Path
    model: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """``measure`` yields rows as soon as it has them; ``limit_s`` ends it, counted from the start of its process."""

    name: str
    limit_s: float
    measure: Callable[[Setup], Iterator[Row]]


@dataclass
class Table:
    """The rows so far, and the parts that came to their end. On disk after every change."""

    out: Path
    heading: str
    rows: list[tuple[str, Row]] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, out: Path, heading: str) -> Table:
        """With what an earlier run left in ``out``."""
        out.mkdir(parents=True, exist_ok=True)
        table = cls(out, heading)
        file = out / JSON_FILE
        if file.exists():
            table.take(file)
        return table

    def take(self, file: Path) -> None:
        """The rows and ended parts of an earlier run's JSON file; parts that this table has stay."""
        saved = json.loads(file.read_text(encoding="utf-8"))
        known = {part for part, _ in self.rows}
        self.heading = self.heading or saved["heading"]
        self.rows += [(row.pop("part"), Row(**row)) for row in saved["rows"] if row["part"] not in known]
        self.done += [part for part in saved["done"] if part not in self.done]

    def add(self, part: str, row: Row) -> None:
        self.rows.append((part, row))
        self._write()

    def forget(self, part: str) -> None:
        self.rows = [(name, row) for name, row in self.rows if name != part]
        self.done = [name for name in self.done if name != part]

    def end(self, part: str) -> None:
        self.done.append(part)
        self._write()

    def _write(self) -> None:
        rows = [{"part": part, **asdict(row)} for part, row in self.rows]
        saved = {"heading": self.heading, "done": self.done, "rows": rows}
        # Whole or not at all: the process may be killed at any moment.
        for name, text in ((JSON_FILE, json.dumps(saved, indent=1)), (TABLE_FILE, str(self))):
            fresh = self.out / f"{name}.new"
            fresh.write_text(text + "\n", encoding="utf-8")
            fresh.replace(self.out / name)

    def __str__(self) -> str:
        return "\n".join([self.heading, "", HEADER, *(line(part, row) for part, row in self.rows)])


def line(part: str, row: Row) -> str:
    """A row of the Markdown table."""
    share = f"{row.value / row.computed:.2f}" if row.value is not None and row.computed else ""
    cells = (part, row.what, _with_unit(row.value, row.unit), _with_unit(row.computed, row.unit), share, row.remark)
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def run_parts(
    parts: Sequence[Part], setup: Setup, table: Table, *, seconds: float, tell: Callable[[str], None]
) -> bool:
    """Measure ``parts`` in order within ``seconds``; whether every one of them came to its end.

    A part that ended in an earlier run is left out.
    """
    began = time.monotonic()
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    start = _Start()
    whole = True
    for part in parts:
        if part.name in table.done:
            tell(f"{part.name}: measured before")
            continue
        table.forget(part.name)
        left = seconds - (time.monotonic() - began)
        if left < LEAST_S:
            table.add(part.name, Row("nothing", remark=f"not begun: {left:.0f} s were left"))
            whole = False
            continue
        ended = _run(part, setup, min(part.limit_s, left), start, partial(_taken, part, table, tell))
        if ended:
            table.end(part.name)
        whole = whole and ended
    return whole


def _taken(part: Part, table: Table, tell: Callable[[str], None], row: Row) -> None:
    table.add(part.name, row)
    tell(line(part.name, row))


class _Start:
    """How processes are started: forked from a server that has the imports, or fresh where CUDA refuses that."""

    def __init__(self) -> None:
        self.context: ForkServerContext | SpawnContext = get_context("forkserver")
        self.context.set_forkserver_preload(list(PRELOADED))

    def refused(self) -> bool:
        """From now on afresh; whether that is another way than before."""
        forked = isinstance(self.context, ForkServerContext)
        self.context = get_context("spawn")
        return forked


def _run(part: Part, setup: Setup, limit_s: float, start: _Start, take: Callable[[Row], None]) -> bool:
    """Whether the part came to its end."""
    ours, theirs = start.context.Pipe(duplex=False)
    process = start.context.Process(target=_measured, args=(part, setup, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        # On a busy machine, a process may take longer to start than a part may take.
        if not ours.poll(START_S):
            take(Row("cut off", remark=f"its process did not start within {START_S:.0f} s"))
            return False
        ours.recv()
        deadline = time.monotonic() + limit_s
        while ours.poll(max(0.0, deadline - time.monotonic())):
            message: Mapping[str, object] = ours.recv()
            match message:
                case {"row": Row() as row}:
                    take(row)
                case {"failed": str(reason)} if FORK_REFUSED in reason and start.refused():
                    return _run(part, setup, deadline - time.monotonic(), start, take)
                case {"failed": str(reason)}:
                    take(Row("failed", remark=reason))
                    return False
                case _:
                    return True
        take(Row("cut off", remark=f"after {limit_s:.0f} s"))
    except EOFError:
        process.join(LEAST_S)
        take(Row("failed", remark=f"its process ended with exit status {process.exitcode}"))
    finally:
        process.kill()
        process.join()
        ours.close()
    return False


def _measured(part: Part, setup: Setup, pipe: Connection) -> None:
    """What the part's process does: it says that it has started, then every row at once, then how it ended."""
    try:
        pipe.send({"started": True})
        for row in part.measure(setup):
            pipe.send({"row": row})
        pipe.send({"ended": True})
    except Exception as error:  # noqa: BLE001  whatever it is, it is this part's result
        traceback.print_exc()
        pipe.send({"failed": f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"[:300]})


def _with_unit(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 3 if abs(value) >= 0.01 else 6
    return f"{value:,.{digits}f} {unit}".strip()
