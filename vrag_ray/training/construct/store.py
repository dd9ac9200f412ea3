"""Constructed runs at rest: one Parquet file a run, pictures included, written whole as soon as the run is over.

The file's presence is the mark that its example is finished, so a construction that was killed goes on with the rest.
Runs that are not to be learnt from are stored too, with the reason.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from vrag_ray.agent.chat import ImagePart, Message, Part, Role, TextPart
from vrag_ray.agent.record import RunRecord
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.questions.examples import Example
from vrag_ray.training.construct.experts import Turns
from vrag_ray.training.construct.filters import Shape, balanced, shape_of
from vrag_ray.training.rewards.reward import Reward
from vrag_ray.training.sharegpt.write import Exchange, Exported, conversations, write_sharegpt
from vrag_ray.types import VragError

RUNS = "runs"
FAILURES = "failures.json"


@dataclass(frozen=True, slots=True)
class Constructed:
    """A finished run. ``refused`` says why it is not to be learnt from; where it is "", ``reward`` is known.

    ``experts`` names the models: planner, grounding expert and what judged.
    """

    example: Example
    record: RunRecord
    exchanges: tuple[Exchange, ...]
    refused: str
    reward: Reward | None
    turns: Turns
    experts: Mapping[str, str]


class RunOutline(NamedTuple):
    """The facts of a finished run that are known without reading its pictures."""

    shape: Shape
    refused: str


class ConstructStore:
    """Finished runs below ``root``, a folder or object-store prefix that every worker can write to."""

    def __init__(self, root: str) -> None:
        self._files = CollectionFiles(root)
        self.root = self._files.root

    def finished(self, uids: Iterable[str]) -> frozenset[str]:
        """Those of ``uids`` whose run is there."""
        there = set(self._files.list(RUNS))
        return frozenset(uid for uid in uids if _name(uid) in there)

    def put(self, run: Constructed) -> None:
        self._files.write(_name(run.example.uid), _encoded(run))

    def get(self, uid: str) -> Constructed:
        """Raises ``VragError`` where there is no such run."""
        name = _name(uid)
        if not self._files.exists(name):
            raise VragError(f"{self._files.root} holds no run of example {uid!r}")
        return _decoded(self._files.read(name))

    def summaries(self) -> list[RunOutline]:
        """All runs, those refused too, by uid."""
        import pyarrow.parquet as pq

        outlines = []
        for name in self._files.list(RUNS):
            table = pq.read_table(io.BytesIO(self._files.read(name)), columns=["uid", "steps", "actions", "refused"])
            [row] = table.to_pylist()
            outlines.append(RunOutline(Shape(row["uid"], row["steps"], tuple(row["actions"])), row["refused"]))
        return sorted(outlines, key=lambda stored: stored.shape.uid)

    def chosen(self, total: int | None = None) -> tuple[str, ...]:
        """The uids of runs to learn from, in a balanced mix of at most ``total``."""
        return balanced((summary.shape for summary in self.summaries() if not summary.refused), total)

    def write_failures(self, failures: Mapping[str, str]) -> None:
        """What could not be run, uid by error: an outage and not a verdict, so the next construction tries again."""
        self._files.write(FAILURES, json.dumps(dict(failures), ensure_ascii=False, indent=1).encode())


def export_sharegpt(store: ConstructStore, folder: Path, total: int | None = None) -> Exported:
    """A balanced mix of at most ``total`` runs, in LLaMA-Factory's form, which our own fine-tuning reads too."""
    return write_sharegpt(folder, (store.get(uid).exchanges for uid in store.chosen(total)))


def _name(uid: str) -> str:
    """A uid may hold anything; a file name may not."""
    return f"{RUNS}/{hashlib.sha256(uid.encode()).hexdigest()[:40]}.parquet"


def _encoded(run: Constructed) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    chats = conversations(run.exchanges)
    pngs: dict[str, bytes] = {}
    stored = [[_stored(message, pngs) for message in chat] for chat in chats]
    shape = shape_of(run.example.uid, run.record)
    row = {
        "uid": run.example.uid,
        "refused": run.refused,
        "steps": shape.steps,
        "actions": list(shape.actions),
        "example": run.example.model_dump_json(),
        "record": run.record.to_json(),
        "reward": json.dumps(asdict(run.reward)) if run.reward is not None else None,
        "turns": json.dumps(asdict(run.turns)),
        "experts": json.dumps(dict(run.experts)),
        "chats": json.dumps(stored, ensure_ascii=False),
        "exchanges": json.dumps([_place(exchange, chats) for exchange in run.exchanges]),
        "images": [{"sha256": name, "png": png} for name, png in pngs.items()],
    }
    text = pa.string()
    names = ("uid", "refused", "example", "record", "reward", "turns", "experts", "chats", "exchanges")
    schema = pa.schema(
        [
            *((name, text) for name in names),
            ("steps", pa.int32()),
            ("actions", pa.list_(text)),
            ("images", pa.list_(pa.struct([("sha256", text), ("png", pa.binary())]))),
        ]
    )
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row], schema=schema), buffer)
    return buffer.getvalue()


def _decoded(data: bytes) -> Constructed:
    import pyarrow.parquet as pq

    [row] = pq.read_table(io.BytesIO(data)).to_pylist()
    pngs = {image["sha256"]: image["png"] for image in row["images"]}
    chats = [[_message(message, pngs) for message in chat] for chat in json.loads(row["chats"])]
    reward = row["reward"]
    return Constructed(
        example=Example.model_validate_json(row["example"]),
        record=RunRecord.from_json(row["record"]),
        exchanges=tuple(
            Exchange(tuple(chats[chat][:end]), chats[chat][end].text) for chat, end in json.loads(row["exchanges"])
        ),
        refused=row["refused"],
        reward=Reward(**json.loads(reward)) if reward is not None else None,
        turns=Turns(**json.loads(row["turns"])),
        experts=json.loads(row["experts"]),
    )


def _place(exchange: Exchange, chats: Sequence[tuple[Message, ...]]) -> tuple[int, int]:
    """In which chat the exchange stands, and at which message of it its reply."""
    whole = (*exchange.messages, Message.of(Role.ASSISTANT, exchange.reply))
    place = next(number for number, chat in enumerate(chats) if chat[: len(whole)] == whole)
    return place, len(whole) - 1


def _stored(message: Message, pngs: dict[str, bytes]) -> dict[str, object]:
    parts: list[dict[str, str]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append({"text": part.text})
        else:
            name = hashlib.sha256(part.png).hexdigest()
            pngs[name] = part.png
            parts.append({"image": name})
    return {"role": message.role.value, "parts": parts}


def _message(stored: Mapping[str, object], pngs: Mapping[str, bytes]) -> Message:
    parts = stored["parts"]
    assert isinstance(parts, list)
    read: list[Part] = [ImagePart(pngs[part["image"]]) if "image" in part else TextPart(part["text"]) for part in parts]
    return Message(Role(str(stored["role"])), tuple(read))
