"""Folders of the form of BEIR (arXiv 2104.08663): ``corpus.jsonl``, ``queries.jsonl``, ``qrels/SPLIT.tsv``."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vrag_ray.client.schemas import SearchHit
from vrag_ray.evaluation.suites.suite import RetrievalQuery, RetrievalSuite
from vrag_ray.ingest.parquet.rows import row_names
from vrag_ray.types import Document, VragError

_ROWS_TOGETHER = 1_000
CORPUS, TABLE = "corpus.jsonl", "corpus.parquet"


def is_beir(folder: Path) -> bool:
    return (folder / CORPUS).is_file() and (folder / "queries.jsonl").is_file()


def judged_queries(folder: Path, split: str) -> list[RetrievalQuery]:
    """Raises VragError that names file and line for what is not of the form, and for a split that is not there."""
    qrels = _qrels(folder, split)
    texts = {str(row["_id"]): str(row["text"]) for row in _objects(folder / "queries.jsonl", ("_id", "text"))}
    if missing := [query for query in qrels if query not in texts]:
        raise VragError(f"{folder / 'queries.jsonl'} has no query {missing[0]}, which qrels/{split}.tsv judges")
    return [RetrievalQuery(query, texts[query], grades) for query, grades in qrels.items()]


def beir_suite(name: str, queries: Sequence[RetrievalQuery], documents: Sequence[Document]) -> RetrievalSuite:
    """``documents`` are those made of ``corpus_table``."""
    names = row_names(documents)

    def items_of(_query: RetrievalQuery, hit: SearchHit) -> Sequence[str]:
        # Texts that the corpus has twice are one document here, with both names.
        return names.get(hit.doc_id, ())

    return RetrievalSuite(name, queries, items_of)


def corpus_table(folder: Path, target: Path) -> Path:
    """``corpus.jsonl`` as a Parquet file whose rows ingest makes documents of, named by ``_id``; title and text are
    searched together, as BEIR has it. Nothing is held in memory but a thousand rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.string()), ("title", pa.string()), ("text", pa.string())])
    part = target.with_suffix(".part")
    with pq.ParquetWriter(part, schema) as writer:
        rows: list[dict[str, str]] = []
        for row in _objects(folder / CORPUS, ("_id",)):
            title, text = str(row.get("title") or ""), str(row.get("text") or "")
            together = "\n\n".join(filter(None, (title.strip(), text.strip())))
            if together:
                rows.append({"id": str(row["_id"]), "title": title, "text": together})
            if len(rows) == _ROWS_TOGETHER:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows = []
        if rows:
            writer.write_table(pa.Table.from_pylist(rows, schema))
    part.rename(target)
    return target


def _qrels(folder: Path, split: str) -> dict[str, dict[str, int]]:
    path = folder / "qrels" / f"{split}.tsv"
    if not path.is_file():
        there = sorted(file.stem for file in path.parent.glob("*.tsv"))
        raise VragError(f"{folder} has no qrels/{split}.tsv: splits there are {', '.join(there) or 'none'}")
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    with path.open(encoding="utf-8", newline="") as stream:
        for number, fields in enumerate(csv.reader(stream, delimiter="\t"), start=1):
            if number == 1 and fields[:1] == ["query-id"]:
                continue
            try:
                query, item, grade = fields
                qrels[query][item] = int(grade)
            except ValueError as error:
                raise VragError(f"{path}, line {number}: it is not query-id, corpus-id and score") from error
    return dict(qrels)


def _objects(path: Path, fields: Sequence[str]) -> Iterator[Mapping[str, object]]:
    try:
        with path.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict) or any(name not in row for name in fields):
                    raise VragError(f"{path}, line {number}: it is no object with {', '.join(fields)}")
                yield row
    except (OSError, ValueError) as error:
        raise VragError(f"{path} cannot be read: {error}") from error
