"""What readers thought of runs, one small file each, with all that is needed to learn from it."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import Feedback, RatedRun, Rating
from vrag_ray.questions.unified import MetaInfo, UnifiedExample
from vrag_ray.serving.files import utc_now, write_atomically
from vrag_ray.types import NotFoundError
from vrag_ray.views.words import without_note

log = logging.getLogger("vrag_ray.serving")
_MARK = re.compile(r"\s*\[\d+\]")


class FeedbackStore:
    """Ids become file names: the caller has looked the run up first."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def put(self, record: RunRecord, feedback: Feedback) -> RatedRun:
        """Store the feedback on a finished run; a second verdict on the same run replaces the first."""
        rated = rated_run(record, feedback)
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._path(record.run_id), rated.model_dump_json())
        return rated

    def get(self, run_id: str) -> RatedRun:
        """Raises NotFoundError for a run that nobody rated."""
        stored = _read(self._path(run_id))
        if stored is None:
            raise NotFoundError(f"run {run_id} has no feedback")
        return stored

    def all(self) -> list[RatedRun]:
        """Newest first; a file that cannot be read is left out, and the log says which."""
        stored = [rated for path in self._folder.glob("*.json") if (rated := _read(path)) is not None]
        return sorted(stored, key=lambda rated: rated.rated_at, reverse=True)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.json"


def rated_run(record: RunRecord, feedback: Feedback) -> RatedRun:
    """The record to store. A run's own answer and pages count as right only where a reader liked them."""
    liked = feedback.rating is Rating.UP
    cited = [
        citation
        for citation in record.citations
        if citation.page is not None and citation.uri == record.citations[0].uri
    ]
    own = _MARK.sub("", without_note(record.answer)).strip()
    return RatedRun(
        run_id=record.run_id,
        question=record.question,
        picture_sha256=record.picture.sha256 if record.picture is not None else "",
        agent=record.agent,
        rating=feedback.rating,
        comment=feedback.comment.strip(),
        right_answer=feedback.answer.strip() or (own if liked and not record.abstained else ""),
        file_name=cited[0].uri.rpartition("/")[2] if liked and cited else "",
        pages=sorted({citation.page for citation in cited if citation.page is not None}) if liked else [],
        rated_at=utc_now(),
    )


def unified_lines(rated: Iterable[RatedRun]) -> Iterator[str]:
    """Those whose right answer is known, as lines of the unified data set form, which training and evaluation read.

    Questions about a picture are left out: it is not stored, and without it they ask for something else.
    """
    for run in rated:
        if not run.right_answer or run.picture_sha256:
            continue
        meta = MetaInfo(source_type="feedback")
        if run.file_name:
            meta = MetaInfo(source_type="feedback", file_name=run.file_name, reference_page=tuple(run.pages))
        example = UnifiedExample(uid=run.run_id, query=run.question, reference_answer=run.right_answer, meta_info=meta)
        yield json.dumps(example.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False) + "\n"


def _read(path: Path) -> RatedRun | None:
    try:
        return RatedRun.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("the feedback %s cannot be read and is left out: %s", path.name, error)
        return None
