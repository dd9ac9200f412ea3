"""The folder of a training run: its configuration, its results, and where everything is."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import yaml
from pydantic import BaseModel

from vrag_ray.training.run.storage import RunStorage
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter

logger = logging.getLogger(__name__)
METRICS = "metrics.jsonl"
PROGRESS = "progress.log"
FINAL = "final"
KIND = "kind.txt"
ERRORS = "errors.log"
POLL_S, REMOTE_POLL_S = 0.5, 5.0
README = """\
# Training run {name}

- `config.yaml`: every setting of this run, defaults included. The same file continues or repeats it. Once there is a
  checkpoint, settings that decide the weights cannot change under this name; how far it goes and where it runs can.
- `inputs.yaml`: sizes and hashes of what it learns from. With other contents it does not go on, unless this file is
  removed.
- `kind.txt`: supervised fine-tuning, reinforcement learning or retriever training.
- `metrics.jsonl`: one line for each step or validation, of imitation for every tenth step (`step` counts from 1);
  `tensorboard/` has the same.
- `progress.log`: the lines that were shown while it ran; `errors.log`: tracebacks of the last failure, if any.
- `rollouts/step-….parquet`: the trajectories of each step (read by
  `vrag_ray.training.rollout.trajectory_store.read_trajectories`).
- `checkpoint_…/`: Ray Train's checkpoints. Each is a Hugging Face folder that vLLM serves as it is (`vllm.model` in
  a serve config), with the trainer's own state (`trainer.pt`) beside it, and the sizes of its files (`files-….json`):
  where these do not hold, it is not whole.
- `lowest/`: of imitation with held-out replies, the model whose loss on these was the lowest so far.
- `final/`: the model at the end of the run; `finished.yaml`: how far it went. A run that ended so does nothing when it
  is started again, until it is to go further.
{made_for}"""


class RunFolder:
    """Written by one rank. A step that is done again after a restart replaces what was written of it before."""

    def __init__(self, storage: RunStorage, config: BaseModel, name: str, made_for: str) -> None:
        self._storage = storage
        storage.write("config.yaml", yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False).encode())
        hardware = f"\nMade for: {made_for}\n" if made_for else ""
        storage.write("README.md", README.format(name=name, made_for=hardware).encode())
        self._open = ExitStack()
        self._points = self._open.enter_context(storage.staged("tensorboard"))
        self._board = self._begun()

    def rewind(self, step: int) -> None:
        """Forget the metrics of steps after ``step``: they are about to be measured again."""
        lines = self._storage.read(METRICS).decode().splitlines()
        if lines:
            remaining = [line for line in lines if _written_in(line) <= step]
            self._storage.write(METRICS, "".join(f"{line}\n" for line in remaining).encode())
            self._board.close()
            self._board = self._begun(after=step)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Append a line, and the same values for TensorBoard, whose writer is a thread: they may come with the next."""
        self._storage.append(METRICS, (json.dumps({"step": step, **values}) + "\n").encode())
        for name, value in values.items():
            self._board.add_scalar(name, value, step)
        self._board.flush()
        self._points.publish()

    def report(self, step: int, steps: int, words: str) -> None:
        """Append a line of progress, which ``follow_progress`` reads."""
        self._storage.append(PROGRESS, f"step {step}/{steps}: {words}\n".encode())

    def note(self, words: str) -> None:
        """A line that belongs to no step."""
        self._storage.append(PROGRESS, f"{words}\n".encode())

    def lowest(self, name: str) -> tuple[float, int] | None:
        """The lowest value that was logged as ``name``, and the first step that had it."""
        lines = [json.loads(line) for line in self._storage.read(METRICS).decode().splitlines()]
        return min(((line[name], line["step"]) for line in lines if name in line), default=None)

    def close(self) -> None:
        self._board.close()
        self._open.close()

    def _begun(self, after: int | None = None) -> SummaryWriter:
        """A file for TensorBoard, which takes back what earlier ones have of steps after ``after``."""
        from tensorboardX import SummaryWriter

        return SummaryWriter(str(self._points.path), purge_step=None if after is None else after + 1)


def claim(storage: RunStorage, kind: str) -> None:
    """Say of which kind the run in ``storage`` is. Raises VragError where one of another kind is there: checkpoints of
    one cannot be continued by the other."""
    refuse_other_kind(storage, kind)
    storage.write(KIND, f"{kind}\n".encode())


def refuse_other_kind(storage: RunStorage, kind: str) -> None:
    """As ``claim``, and writes nothing."""
    there = storage.read(KIND).decode().strip()
    if there and there != kind:
        raise VragError(
            f"{storage.uri()} is a run of {there}, and this is one of {kind}: give it another name, or another storage"
        )


def _written_in(line: str) -> float:
    """The step that a line of metrics was written in: a validation after step 3 comes with step 4.

    One that a killed process half wrote is of no step that is over.
    """
    try:
        values = json.loads(line)
    except ValueError:
        return math.inf
    return int(values["step"]) + any(name.startswith("validation/") for name in values)


def follow_progress(storage: RunStorage, on_line: Callable[[str], None], over: threading.Event) -> None:
    """Call ``on_line`` with every line that the run in ``storage`` reports from now on, until it is ``over``. Blocking.

    Training happens in other processes, maybe on other machines: the storage is what they share with this one.
    """
    place = storage.size(PROGRESS)
    last = False
    while not last:
        last = over.wait(POLL_S if storage.is_local else REMOTE_POLL_S)
        try:
            written = storage.read(PROGRESS, place)
        except OSError as error:
            # What cannot be read now comes next time; the run itself does not depend on it.
            logger.warning("cannot read the progress of %s: %s", storage.uri(), error)
            continue
        # A line that is only half written comes next time.
        lines = written.rpartition(b"\n")[0]
        place += len(lines) + (1 if lines else 0)
        for line in lines.decode().splitlines():
            on_line(line)
