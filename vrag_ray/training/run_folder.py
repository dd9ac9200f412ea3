"""The folder of a training run: what was asked for, what came of it, and where everything is."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pydantic import BaseModel

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

TOLD = "progress.log"
POLL_S = 0.5
README = """\
# Training run {name}

- `config.yaml`: every setting of this run, defaults included. The same file continues or repeats it.
- `metrics.jsonl`: one line for each optimiser step or validation (`step` counts from 1); `tensorboard/` has the same.
- `progress.log`: the lines that were shown while it ran.
- `rollouts/step-….parquet`: the trajectories of each step (`vrag_ray.training.store.read_trajectories` reads them).
- `checkpoint_…/`: Ray Train's checkpoints. Each is a Hugging Face folder that vLLM serves as it is (`vllm.model` in
  a serve config), with the trainer's own state (`trainer.pt`) beside it.
- `final/`: the model at the end of the run.
{needs}"""


class RunFolder:
    """Written by one rank. A step that is done again after a restart replaces what was written of it before."""

    def __init__(self, folder: Path, config: BaseModel, name: str, needs: str) -> None:
        self.path = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(
            yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False), encoding="utf-8"
        )
        hardware = f"\nMade for: {needs}\n" if needs else ""
        (folder / "README.md").write_text(README.format(name=name, needs=hardware), encoding="utf-8")
        self._metrics = folder / "metrics.jsonl"
        self._board = self._points()

    def rewind(self, step: int) -> None:
        """Forget the metrics of steps after ``step``: they are about to be measured again."""
        if self._metrics.exists():
            lines = self._metrics.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if _written_in(line) <= step]
            self._metrics.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
            self._board.close()
            self._board = self._points(after=step)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append a line, and the same values for TensorBoard."""
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
        for name, value in values.items():
            self._board.add_scalar(name, value, step)
        self._board.flush()

    def tell(self, step: int, steps: int, words: str) -> None:
        """A line for who watches; ``told`` reads them."""
        with (self.path / TOLD).open("a", encoding="utf-8") as file:
            file.write(f"step {step}/{steps}: {words}\n")

    def close(self) -> None:
        self._board.close()

    def _points(self, after: int | None = None) -> SummaryWriter:
        """A file for TensorBoard, which takes back what earlier ones have of steps after ``after``."""
        from tensorboardX import SummaryWriter

        return SummaryWriter(str(self.path / "tensorboard"), purge_step=None if after is None else after + 1)


def _written_in(line: str) -> float:
    """The step that a line of metrics was written in: a validation after step 3 comes with step 4.

    One that a killed process half wrote is of no step that is over.
    """
    try:
        values = json.loads(line)
    except ValueError:
        return math.inf
    return int(values["step"]) + any(name.startswith("validation/") for name in values)


def told(folder: Path, tell: Callable[[str], None], over: threading.Event) -> None:
    """Give every line that the run in ``folder`` tells from now on to ``tell``, until it is ``over``. Blocking.

    Training happens in other processes, maybe on other machines: the folder is what they share with who watches.
    """
    path = folder / TOLD
    place = path.stat().st_size if path.exists() else 0
    last = False
    while not last:
        last = over.wait(POLL_S)
        if path.exists():
            with path.open("rb") as file:
                file.seek(place)
                # A line that is only half written comes next time.
                lines = file.read().rpartition(b"\n")[0]
            place += len(lines) + (1 if lines else 0)
            for line in lines.decode().splitlines():
                tell(line)
