"""The actor stages after ``register``. Each handles its own bad input, because Ray Data's unit of failure is a block.

What travels between them:
``Register``: a group of sources → rows of one decode ``task`` (JSON) each; file bytes never travel.
``Decode``: a task → one row a unit: ``plan``, ``unit``, ``error``, ``notices`` (a JSON list), ``transient``,
``holds``, ``passages`` (JSON without text) and ``texts``. A unit that the next run decodes again has no passages.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import uuid4

from vrag_ray.config import Settings
from vrag_ray.corpus.formats.media.speech import model_folder
from vrag_ray.corpus.model import DecodedUnit, DecodeError, DecodeOptions, WorkItem
from vrag_ray.corpus.passages import holds_of, passages_of, unit_notices
from vrag_ray.corpus.sandbox.isolate import NEXT_RUN, decode_isolating, failed_unit
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.index.storage.errors import StorageError, storage_faults
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import passage_to_json
from vrag_ray.ingest.plan import PlannedRange, pages_file, sidecar_files, task_from_json, waits
from vrag_ray.ingest.progress import Board, Work
from vrag_ray.ingest.report import unforeseen
from vrag_ray.types import Passage

log = logging.getLogger("vrag_ray.ingest")

NO_UNIT = -1
"""The ``unit`` of a row that only carries a plan, for a document with nothing to decode."""
LATER = -2
"""The ``unit`` of a row that carries, as its ``plan``, a whole task that was put off."""


class Decode:
    """Ranges of units → one row a unit, in a killable child. A unit that cannot be read has an error and no text.

    With ``puts_off`` a task that takes long is not done but handed on, in a row with the unit ``LATER``.
    """

    def __init__(self, root: str, settings: Settings, board: Board, puts_off: bool = False) -> None:
        self._puts_off = puts_off
        self._files = CollectionFiles(root)
        self._config = settings.corpus
        options = DecodeOptions.from_config(settings.corpus)
        self._options = replace(options, speech_model=model_folder(options.speech_model))
        self._sandbox = Sandbox(settings.corpus.limits)
        self._board, self._worker = board, uuid4().hex
        board.worker_ready()

    def __call__(self, row: Mapping[str, str]) -> Iterator[dict[str, object]]:
        began = time.perf_counter()
        pages: dict[str, int] = {}
        task = task_from_json(str(row["task"]))
        is_slow = waits(task, self._config)
        if is_slow and self._puts_off:
            yield _row(str(row["task"]), LATER)
            return
        for part in task:
            plan = part.plan
            if part.start == part.stop:
                yield _row(plan.to_json(), NO_UNIT)
                continue
            try:
                units = self._units(part)
            except StorageError as error:
                yield _row(replace(plan, fault=error.failure.as_dict()).to_json(), NO_UNIT)
                return
            pages[plan.uri] = pages.get(plan.uri, 0) + len(units)
            text = plan.to_json()
            for unit in units:
                passages = () if unit.transient else passages_of(plan.doc_id, unit, self._config, plan.meta)
                yield _row(text, unit.unit, unit, passages)
        if pages:
            count = sum(pages.values())
            slow = count if is_slow else 0
            self._board.add(Work("decode", self._worker, count, time.perf_counter() - began, pages, slow))

    def stop(self) -> None:
        """From another thread: the task that is under way ends at once, and its rows mean nothing."""
        self._sandbox.stop()

    def close(self) -> None:
        """End the decoding child. In an actor, the actor's end does that."""
        self._sandbox.close()

    def _units(self, planned: PlannedRange) -> list[DecodedUnit]:
        item = planned.item
        try:
            with storage_faults(self._files.root, f"reading {planned.plan.name} from it"):
                path = pages_file(planned.plan, self._files)
                item = replace(item, sidecars=sidecar_files(planned.plan, self._files))
                return decode_isolating(self._sandbox, path, item, self._options)
        except DecodeError as error:
            return self._failed(item, str(error))
        except OSError as error:
            reason = f"{item.name}: its copy in the collection cannot be read ({error.strerror or error}); {NEXT_RUN}"
            return self._failed(item, reason, transient=True)
        except StorageError:
            raise
        except Exception as error:
            # A fault of this program: it costs this file, and the next run, perhaps of a mended program, tries again.
            log.exception("reading %s failed", item.name)
            return self._failed(item, unforeseen(item.name, error), transient=True)

    def _failed(self, item: WorkItem, error: str, *, transient: bool = False) -> list[DecodedUnit]:
        units = range(item.start, item.stop)
        return [failed_unit(item, unit, self._options, error, transient=transient) for unit in units]


def _row(
    plan: str, number: int, unit: DecodedUnit | None = None, passages: Sequence[Passage] = ()
) -> dict[str, object]:
    return {
        "plan": plan,
        "unit": number,
        "error": unit.error if unit is not None else "",
        "notices": json.dumps(unit_notices(unit) if unit is not None else []),
        "transient": unit is not None and unit.transient,
        "holds": str(holds_of(unit.kind, unit.text, unit.meta)) if unit is not None else "",
        "passages": json.dumps([passage_to_json(passage) for passage in passages]),
        "texts": [passage.text for passage in passages],
    }
