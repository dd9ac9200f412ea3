"""``SearchEngine``: a collection from a Python program, with the arguments and results of the original's class."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from vrag_ray.compat.corpus_records import (
    PAGE_FOLDER,
    CorpusRecord,
    corpus_records,
    list_name,
    page_name,
    read_records,
    unit_of,
    write_records,
)
from vrag_ray.config import Settings, SpaceConfig, load_settings
from vrag_ray.config.embedding import NO_MODEL
from vrag_ray.embedding.base import Modality
from vrag_ray.embedding.registry import model_sees, space_embedder
from vrag_ray.index.search.leg_loader import LegLoader
from vrag_ray.index.search.served_legs import modalities_of
from vrag_ray.types import DENSE, HYBRID, LEXICAL, TEXT, DocumentKind, Hit, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import expanded
from vrag_ray.types.redaction import public_uri

if TYPE_CHECKING:
    from vrag_ray.index.search.retriever import ShardedRetriever
    from vrag_ray.index.storage.collection import Collection
    from vrag_ray.ingest import IngestReport

T = TypeVar("T")
logger = logging.getLogger(__name__)
NODE_FOLDER = "colqwen_ingestion"
"""Where the older engine keeps its nodes, below the data set."""
_MOST_OF_A_NAME = 26
"""Letters of a model's name in that of its space, which has at most 32."""
BATCH_TOP_K = 10
"""Results of the older engine."""


@dataclass(frozen=True, slots=True)
class _Shelf:
    """A collection that is searched, and where its records begin in the list of all."""

    folder: Path
    retriever: ShardedRetriever
    first: int
    positions: dict[str, int]


class SearchEngine:
    """Builds and searches collections in this process. Only ``build_index`` needs Ray, and starts one where none runs.

    Close it, or use it as a context manager, when it is no longer needed.
    """

    def __init__(
        self,
        embed_model_name: str = "minilm",
        *,
        dataset_dir: str | Path | None = None,
        node_dir_prefix: str | None = None,
    ) -> None:
        """``embed_model_name`` names an embedder: see ``space_embedder``, which refuses what it does not know. A model
        that sees (Qwen3-VL-Embedding, ColQwen2, …) embeds pages, pictures and clips as they look, in a vector space of
        its own, and that space alone is searched.

        ``dataset_dir`` and ``node_dir_prefix`` open the collection ``<dataset_dir>/<node_dir_prefix>``, as the older
        engine does; ``vrag ingest <dataset_dir>/img --collection <dataset_dir>/<node_dir_prefix>`` makes one.
        Raises VragError for a model that there is not, NotFoundError where there is no collection.
        """
        if dataset_dir is None and node_dir_prefix is not None:
            raise VragError(f"node_dir_prefix={node_dir_prefix!r} needs the dataset_dir below which it is")
        self.embed_model_name = embed_model_name
        self._settings, self._space = _settings_of(embed_model_name)
        self.file_data_list: list[dict[str, object]] = []
        self._shelves: list[_Shelf] = []
        self._loop: _LoopThread | None = None
        self._loader = LegLoader()
        if dataset_dir is not None:
            folder = Path(dataset_dir) / (node_dir_prefix or NODE_FOLDER)
            records = folder / list_name(embed_model_name)
            # Only ``search`` needs records; a collection of `vrag ingest` has none.
            self._add(folder, read_records(records) if records.exists() else [])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what is loaded. The engine can load again."""
        if self._loop is not None:
            for shelf in self._shelves:
                self._loop.run(shelf.retriever.close())
            self._loop.close()
        self._loop, self._shelves, self.file_data_list = None, [], []

    def build_index(
        self,
        input_dir: str | Path,
        index_output_path: str | Path,
        corpus_output_path: str | Path,
        bs: int = 2,
        save_interval: int = 512,
    ) -> IngestReport:
        """Add the files of a folder (not of folders below it), or of a ``.jsonl`` file, and load the result.

        The collection is ``index_output_path``. The record list ``<model>_file_data_list.jsonl`` is written there and
        into ``corpus_output_path``, with pictures of PDF pages in its folder ``pages``. ``bs`` texts or pictures are
        embedded in one call; after every ``save_interval`` pages the work is committed. What is in the collection
        already is skipped; files that cannot be read are logged and named in the report. Raises VragError where nothing
        can be read, or a folder not be written, and where the collection has vectors of another model of that name.
        """
        from vrag_ray.cluster import ray_session
        from vrag_ray.index.storage.collection import Collection
        from vrag_ray.ingest import ingest

        for name, value in {"bs": bs, "save_interval": save_interval}.items():
            if value < 1:
                raise VragError(f"{name}={value}: it must be at least 1")
        index, corpus = Path(index_output_path), Path(corpus_output_path)
        settings = with_changes(
            self._settings,
            {
                "collection": str(index),
                "spaces": {name: with_changes(space, {"batch": bs}) for name, space in self._settings.spaces.items()},
                "ingest": with_changes(self._settings.ingest, {"commit_pages": save_interval}),
            },
        )
        files = _files_of(Path(input_dir))
        with ray_session(at_once=False):
            report = ingest(files, settings)
        for notice in report.notices:
            logger.warning("%s", notice)
        for problem in (*report.failed, *(failed for space in report.spaces for failed in space.failed)):
            logger.warning("left out: %s", problem.error)
        if self._space and self._space not in {space.name for space in report.spaces}:
            raise VragError(f"{index} cannot be searched by {self.embed_model_name}: {'; '.join(report.notices)}")
        self._warn_of_texts(Collection.open(index))
        records = list(corpus_records(Collection.open(index), settings.corpus, corpus / PAGE_FOLDER))
        for folder in {index.absolute(), corpus.absolute()}:
            write_records(folder / list_name(self.embed_model_name), records)
        self.load_index(index)
        return report

    def load_index(self, input_dir: str | Path) -> None:
        """Search the collection that ``build_index`` made at ``input_dir``, and only that.

        Raises NotFoundError where there is none of this model, VragError for one of another model.
        """
        self.load_multi_index_corpus_together([input_dir])

    def load_multi_index_corpus_together(self, input_dir_list: Sequence[str | Path]) -> None:
        """Search several collections as one, in place of what was loaded before. Raises as ``load_index``."""
        name = list_name(self.embed_model_name)
        lists = {Path(folder): read_records(Path(folder) / name) for folder in input_dir_list}
        self.close()
        for folder, records in lists.items():
            self._add(folder, records)

    def search(self, queries: str | Sequence[str], top_k: int = 3) -> list[dict[str, object]]:
        """For each query ``{"score": […], "indice": […], "data": […]}``, best first.

        ``data`` holds records, ``indice`` their places in ``file_data_list``. Words and vectors are searched, or the
        vectors alone of a model that sees; several collections as one: a page that two of them hold is found once.
        Scores are comparable within one result only.
        Raises VragError where nothing is loaded, the query is empty, or vectors of the collections do not compare.
        """
        results = self._hits_of([queries] if isinstance(queries, str) else list(queries), top_k)
        return [self._columns(hits) for hits in results]

    def batch_search(self, queries: Sequence[str]) -> list[list[str]]:
        """For each query the names of up to ten files, best first; a page of a PDF is ``<name>_<page>.jpg``."""
        results = self._hits_of(list(queries), BATCH_TOP_K)
        return [list(dict.fromkeys(self._file_name(shelf, hit) for shelf, hit in hits)) for hits in results]

    def _hits_of(self, queries: list[str], top_k: int) -> list[list[tuple[_Shelf, Hit]]]:
        if not self._shelves or self._loop is None:
            raise VragError("no collection is loaded: call build_index or load_index first")
        if top_k < 1:
            raise VragError(f"top_k={top_k}: it must be at least 1")
        if not all(query.strip() for query in queries):
            raise VragError("a query is empty: say what to search for")
        from vrag_ray.index.search.joint_search import search_each

        shelves = {str(shelf.folder): shelf for shelf in self._shelves}
        snapshots = [shelf.retriever.snapshot for shelf in self._shelves]
        index = self._settings.index
        mode = HYBRID if self._space in ("", TEXT) else self._space
        [answer] = self._loop.run(search_each(snapshots, [queries], top_k=top_k, mode=mode, filter=None, index=index))
        for notice in answer.notices:
            logger.warning("%s", notice)
        return [[(shelves[hit.collection], hit) for hit in hits] for hits in answer.results]

    def _warn_of_texts(self, collection: Collection) -> None:
        """Of texts that a model of pages has no vectors of: searches do not return them."""
        record = collection.find_space(self._space)
        if record is None or Modality.TEXT in modalities_of(record):
            return
        texts = sum(document.kind is DocumentKind.TEXT for document in collection.documents())
        if texts:
            logger.warning(
                "%d text documents are not found by %s, which embeds pictures alone", texts, self.embed_model_name
            )

    def _columns(self, hits: list[tuple[_Shelf, Hit]]) -> dict[str, object]:
        places = [self._place(shelf, hit) for shelf, hit in hits]
        return {
            "score": [hit.score for _, hit in hits],
            "indice": places,
            "data": [self.file_data_list[place] for place in places],
        }

    def _place(self, shelf: _Shelf, hit: Hit) -> int:
        place = shelf.positions.get(unit_of(hit.passage))
        if place is None:
            raise VragError(f"{hit.title} is not in the record list of {shelf.folder}: call build_index again")
        return shelf.first + place

    def _file_name(self, shelf: _Shelf, hit: Hit) -> str:
        name = public_uri(hit.uri).rpartition("/")[2]
        document = shelf.retriever.collection.document(hit.passage.doc_id)
        page = hit.passage.locator.page
        return page_name(name, page) if document.kind is DocumentKind.PDF and page is not None else name

    def _add(self, folder: Path, records: Sequence[CorpusRecord]) -> None:
        if self._loop is None:
            self._loop = _LoopThread()
        try:
            retriever = self._opened(folder, self._loop)
        except BaseException:
            self.close()
            raise
        positions = {record.unit: number for number, record in enumerate(records)}
        self._shelves.append(_Shelf(folder, retriever, len(self.file_data_list), positions))
        self.file_data_list += [record.as_json() for record in records]

    def _opened(self, folder: Path, loop: _LoopThread) -> ShardedRetriever:
        from vrag_ray.index.search.retriever import ShardedRetriever
        from vrag_ray.system.here import require_collection

        require_collection(str(folder))
        settings = with_changes(self._settings, {"collection": str(folder)})
        retriever = loop.run(ShardedRetriever.start_local(settings, name=str(folder), loader=self._loader))
        if self._space and self._space not in retriever.status().legs:
            notices = "; ".join(retriever.status().notices)
            loop.run(retriever.close())
            raise VragError(
                f"{folder} is not searched by {self.embed_model_name}: {notices}; call build_index again, or open it "
                "with the model that it was built with"
            )
        return retriever


def _settings_of(model: str) -> tuple[Settings, str]:
    """Settings in which ``model`` alone embeds, and the name of its vector space; "" where nothing does.

    Raises VragError for a model that there is not.
    """
    settings = load_settings()
    if model == NO_MODEL:
        return with_changes(settings, {"spaces": {TEXT: SpaceConfig(model=NO_MODEL)}}), ""
    sees = model_sees(model)
    name = _space_name(model) if sees else TEXT
    known = settings.spaces.get(name)
    space = SpaceConfig(model=model) if known is None else with_changes(known, {"model": model})
    spaces = {name: space.with_absolute_model()}
    if sees:
        # Words have no vectors of another model: what is searched is the model that was named.
        spaces[TEXT] = SpaceConfig(model=NO_MODEL)
    else:
        space_embedder(spaces[TEXT])
    return with_changes(settings, {"spaces": spaces}), name


def _space_name(model: str) -> str:
    """A name for the vector space of a model: ``qwen3-vl-embedding-2b``, whatever folder or owner it is below."""
    name = re.sub(r"[^a-z0-9_-]+", "-", model.rstrip("/").rpartition("/")[2].lower())[:_MOST_OF_A_NAME]
    return name if name[:1].isalpha() and name not in (HYBRID, LEXICAL, TEXT, DENSE) else f"model-{name}"


def _files_of(path: Path) -> list[Path]:
    """The files to add. Raises VragError where there are none."""
    from vrag_ray.corpus.sniff import SUFFIXES

    path = expanded(path)
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
    known = [file for file in files if file.suffix.lower() in SUFFIXES and not file.name.endswith(list_name(""))]
    if not known:
        raise VragError(f"nothing to index in {path}: known are {' '.join(sorted(SUFFIXES))}")
    return known


class _LoopThread:
    """An event loop in a thread, for callers that have none or are inside of one (notebooks)."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="search-engine", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
