"""What each leg finds for the questions of one PDF, recorded once so that trying another fusion takes a second.

Questions are the PDF's outline titles and, where `<name>_paraphrases.json` lies beside this file, the same in other
words (query: the title it is about, or several). Recordings lie in `benchmarks/data/`, which git ignores, and are made
again when the PDF, the questions or the code of a leg changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from vrag_ray.config import DecodeLimits, Settings
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.embedding.base import Content, stacked
from vrag_ray.embedding.minilm import minilm_graph
from vrag_ray.embedding.minilm import text as text_embedder
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.evaluation.suites import toc
from vrag_ray.evaluation.suites.outline import read_paraphrases
from vrag_ray.evaluation.suites.toc import TocQuery, toc_queries
from vrag_ray.index.search import legs, lexical
from vrag_ray.index.search.fusion import Leg, best_windows
from vrag_ray.index.search.legs import lexical_leg
from vrag_ray.index.shards import flat_index
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.row_loader import load_space_rows
from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.storage import term_scores, terms
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.ingest import ingest
from vrag_ray.types import VragError

HERE = Path(__file__).parent
DATA = HERE / "data"
TOP_K = 10
"""The legs bring in what a search for so many pages would fuse; pages outside the body are left out afterwards."""
LEG_CODE = (text_embedder, minilm_graph, toc, legs, lexical, flat_index, term_scores, terms)
"""Modules whose change makes a recording stale."""

Ranges = tuple[tuple[int, int], ...]


class Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class Ranking(Record):
    """The pages of one leg: (window id, score), best first."""

    pages: tuple[tuple[str, float], ...]
    complete: bool

    def leg(self, name: str, weight: float = 1.0) -> Leg:
        return Leg(name, [Scored(*page) for page in self.pages], self.complete, weight)


class Question(Record):
    """A query, the page ranges that are right for it (1-based, inclusive) and what the legs found.

    ``ceiling`` is what a passage could score for it at most in the lexical leg.
    """

    text: str
    paraphrase: bool
    right: Ranges
    readable: float
    dense: Ranking
    lexical: Ranking
    ceiling: float


class Recording(Record):
    """All questions of one PDF and the pages of its body, first and last."""

    key: str
    name: str
    body: tuple[int, int]
    questions: tuple[Question, ...]


def recorded(pdf: Path, start_ray: Callable[[], None]) -> Recording:
    """The recording of ``pdf``, from its file where that still fits; else made anew, for which ingest needs Ray."""
    path = DATA / f"{pdf.stem}.legs.json"
    paraphrases = HERE / f"{pdf.stem}_paraphrases.json"
    sources = [
        Path(__file__),
        pdf,
        *([paraphrases] if paraphrases.exists() else []),
        *(Path(str(module.__file__)) for module in LEG_CODE),
    ]
    key = hashlib.sha256(b"".join(hashlib.sha256(source.read_bytes()).digest() for source in sources)).hexdigest()
    if path.exists() and (stored := Recording.model_validate_json(path.read_bytes())).key == key:
        return stored
    DATA.mkdir(exist_ok=True)
    start_ray()
    made = _record(pdf, paraphrases, key)
    path.write_text(made.model_dump_json(), encoding="utf-8")
    return made


def _record(pdf: Path, paraphrases: Path, key: str) -> Recording:
    with Sandbox(DecodeLimits()) as sandbox:
        probe = sandbox.probe(pdf, pdf.name)
    sections, body = toc_queries(probe.outline, probe.units)
    titles = [(section.title, ((section.first_page, section.last_page),)) for section in sections]
    queries = [*titles, *_paraphrases(paraphrases, sections)]
    texts = [text for text, _ in queries]
    settings = Settings(collection=str(DATA / "collections" / pdf.stem))
    report = ingest([pdf], settings)
    embedder = space_embedder(settings.filled_spaces["text"])
    if report.notices:
        raise VragError(f"the dense leg cannot be measured: {' '.join(report.notices)}")
    collection = Collection.open(settings.collection)
    index = FlatIndex(load_space_rows(collection, "text"), threads=2)
    candidates = settings.index.candidates
    windows = index.nearest(list(stacked(embedder.embed_queries([Content(text) for text in texts]))), candidates)
    dense = [Ranking(pages=_pairs(best_windows(scored)), complete=len(scored) < candidates) for scored in windows]
    collection.documents()  # read here, for the threads below to share
    with ThreadPoolExecutor(2) as pool:
        lexical = list(
            pool.map(lambda text: lexical_leg([(collection, None)], text, top_k=TOP_K, candidates=candidates), texts)
        )
    questions = (
        Question(
            text=text,
            paraphrase=number >= len(titles),
            right=right,
            readable=float(readable),
            dense=ranking,
            lexical=Ranking(pages=_pairs(leg.pages), complete=leg.complete),
            ceiling=collection.term_scores.ceiling(index_terms(text)),
        )
        for number, ((text, right), readable, ranking, leg) in enumerate(
            zip(queries, embedder.readable(texts), dense, lexical, strict=True)
        )
    )
    return Recording(key=key, name=pdf.stem, body=(body.start, body.stop - 1), questions=tuple(questions))


def _paraphrases(path: Path, sections: list[TocQuery]) -> Iterator[tuple[str, Ranges]]:
    if path.exists():
        for text, right in read_paraphrases(path, sections).items():
            yield text, tuple((section.first_page, section.last_page) for section in right)


def _pairs(pages: Sequence[Scored]) -> tuple[tuple[str, float], ...]:
    return tuple((page.id, page.score) for page in pages)
