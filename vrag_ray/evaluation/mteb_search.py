"""This engine as a model of mteb (arXiv 2210.07316), by its ``SearchProtocol``: its tasks and benchmarks, ViDoRe among
them, are run by mteb's own runner and measured by mteb's own measures."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.config.embedding import NO_MODEL
from vrag_ray.evaluation.run import Ingest
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.ingest.parquet.rows import row_names
from vrag_ray.types import HYBRID, TEXT, Query, SearchAnswer, VragError
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from datasets import Dataset
    from mteb.abstasks.abstask import AbsTask
    from mteb.abstasks.task_metadata import TaskMetadata
    from mteb.models.model_meta import ModelMeta
    from PIL.Image import Image

QUERIES_AT_ONCE = 64
_ROWS_TOGETHER = 100


class MtebSearch:
    """mteb's ``SearchProtocol`` over shard actors, for which Ray runs. A collection for each corpus, below ``root``."""

    def __init__(self, settings: Settings, root: Path, ingest: Ingest, mode: str = HYBRID) -> None:
        self._settings, self._root, self._ingest, self._mode = settings, root, ingest, mode
        self._served: Settings | None = None

    def index(
        self,
        corpus: Dataset,
        *,
        task_metadata: TaskMetadata,
        hf_split: str,
        hf_subset: str,
        encode_kwargs: Mapping[str, object],  # noqa: ARG002  (the protocol's)
        num_proc: int | None = None,  # noqa: ARG002
        **_: object,
    ) -> None:
        """Ingest the corpus: a document an item, of its text and title or of its picture. What is there is skipped."""
        folder = self._root / "-".join((task_metadata.name, task_metadata.revision, hf_subset, hf_split))
        folder.mkdir(parents=True, exist_ok=True)
        table = folder / "corpus.parquet"
        if not table.exists():
            _write_table(corpus, table)
        content = with_changes(self._settings.ingest, {"content_column": "content"})
        changes = {"collection": str(folder / "collection"), "collections": {}, "ingest": content}
        self._served = with_changes(self._settings, changes)
        self._ingest([table], self._served)

    def search(
        self,
        queries: Dataset,
        *,
        task_metadata: TaskMetadata,
        hf_split: str,  # noqa: ARG002
        hf_subset: str,  # noqa: ARG002
        top_k: int,
        encode_kwargs: Mapping[str, object],  # noqa: ARG002
        top_ranked: Mapping[str, list[str]] | None = None,
        num_proc: int | None = None,  # noqa: ARG002
        **_: object,
    ) -> dict[str, dict[str, float]]:
        """Score by item, by query. Raises VragError for tasks that only rerank."""
        if self._served is None:
            raise VragError("there is no corpus yet: mteb calls index first")
        if top_ranked is not None:
            raise VragError(f"{task_metadata.name} reranks what others found, and this is a search engine")
        return asyncio.run(self._searched(self._served, queries, top_k))

    @property
    def mteb_model_meta(self) -> ModelMeta:
        from mteb.models.model_meta import ModelMeta

        from vrag_ray import __version__

        texts = self._settings.filled_spaces.get(TEXT)
        model = NO_MODEL if texts is None else texts.model.rpartition("/")[2]
        name = f"vrag_ray/{model}-{self._mode}"
        return ModelMeta.create_empty({"name": name, "revision": __version__, "modalities": ["text", "image"]})

    async def _searched(self, settings: Settings, queries: Dataset, top_k: int) -> dict[str, dict[str, float]]:
        retriever = await ShardedRetriever.start(settings)
        try:
            names = row_names(retriever.collection.documents())
            scores: dict[str, dict[str, float]] = {}
            for uids, batch in _batches(queries):
                answer = await retriever.search(batch, top_k=top_k, mode=self._mode)
                scores |= dict(zip(uids, _scores(answer, names), strict=True))
            return scores
        finally:
            await retriever.close()


def tasks_named(names: Sequence[str]) -> list[AbsTask]:
    """mteb's tasks, and those of its benchmarks, by their names. Raises VragError without mteb, and for other names."""
    try:
        import mteb
    except ImportError as error:
        raise VragError("mteb is not installed: pip install '.[evaluation]' in the checkout") from error
    tasks: list[AbsTask] = []
    for name in names:
        try:
            tasks += mteb.get_benchmark(name).tasks
        except KeyError:
            try:
                tasks.append(mteb.get_task(name))
            except KeyError as error:
                raise VragError(f"mteb {mteb.__version__} has neither a benchmark nor a task {name}") from error
    return tasks


def run_mteb(
    settings: Settings, names: Sequence[str], out: Path, ingest: Ingest, modes: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Main score of each task, by mode. mteb's results and predictions are below ``out``: what is there is not run
    again. Ray runs."""
    tasks = tasks_named(names)
    import mteb
    from mteb.cache import ResultCache

    scores: dict[str, dict[str, float]] = {}
    for mode in modes:
        model = MtebSearch(settings, out / "corpora", ingest, mode)
        result = mteb.evaluate(
            model,
            tasks,
            cache=ResultCache(out / "results"),
            prediction_folder=out / "predictions" / mode,
            co2_tracker=False,
            show_progress_bar=False,
        )
        scores[mode] = {task_result.task_name: float(task_result.get_score()) for task_result in result.task_results}
    return scores


def _scores(answer: SearchAnswer, names: Mapping[str, Sequence[str]]) -> Iterator[dict[str, float]]:
    """Of each query: an item has the score of its best part."""
    for hits in answer.results:
        scores: dict[str, float] = {}
        for hit in hits:
            for name in names.get(hit.passage.doc_id, ()):
                scores[name] = max(hit.score, scores.get(name, hit.score))
        yield scores


def _batches(queries: Dataset) -> Iterator[tuple[list[str], list[str | Query]]]:
    uids: list[str] = []
    pending: list[str | Query] = []
    for row in queries:
        picture = row.get("image")
        text = str(row.get("text") or "")
        uids.append(str(row["id"]))
        pending.append(Query(text, _png(picture)) if picture is not None else text)
        if len(pending) == QUERIES_AT_ONCE:
            yield uids, pending
            uids, pending = [], []
    if pending:
        yield uids, pending


def _write_table(corpus: Dataset, target: Path) -> None:
    """Texts as text, pictures as PNG; nothing is in memory but a hundred rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    has_pictures = "image" in corpus.column_names
    content = pa.binary() if has_pictures else pa.string()
    schema = pa.schema([("id", pa.string()), ("content", content)])
    part = target.with_suffix(".part")
    with pq.ParquetWriter(part, schema) as writer:
        for start in range(0, len(corpus), _ROWS_TOGETHER):
            rows = [corpus[number] for number in range(start, min(start + _ROWS_TOGETHER, len(corpus)))]
            made = [
                {"id": str(row["id"]), "content": _png(row["image"]) if has_pictures else _text(row)} for row in rows
            ]
            writer.write_table(pa.Table.from_pylist([row for row in made if row["content"]], schema))
    part.rename(target)


def _text(row: Mapping[str, object]) -> str:
    return "\n\n".join(filter(None, (str(row.get("title") or "").strip(), str(row.get("text") or "").strip())))


def _png(picture: Image) -> bytes:
    stream = io.BytesIO()
    picture.convert("RGB").save(stream, "PNG")
    return stream.getvalue()
