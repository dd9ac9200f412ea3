"""What a trained retriever finds among held-out pages, asked directly; and what the legs of text find."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.mosaic.retrieval_task import FAMILY, PAGES, read_queries
from benchmarks.mosaic.world.drawing import page_side
from vrag_ray.embedding.base import Content
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.types import LEXICAL, TEXT

if TYPE_CHECKING:
    from torch import Tensor

    from vrag_ray.config import Settings
    from vrag_ray.training.retriever.inputs import Form
    from vrag_ray.training.retriever.losses import Vectors
    from vrag_ray.training.retriever.model import Retriever

AT_ONCE = 64
TOP = 10


def ranked_by_model(model: Path, held_out: Path, threads: int) -> list[list[str]]:
    """The first pages for each query of ``held_out``, by the retriever in the folder ``model``."""
    import torch
    from transformers import AutoConfig

    from vrag_ray.training.retriever.contents import ContentReader
    from vrag_ray.training.retriever.inputs import picture_spec
    from vrag_ray.training.retriever.losses import maxsim
    from vrag_ray.training.retriever.model import Retriever, load_processor, load_retriever
    from vrag_ray.training.retriever.pairs import Item
    from vrag_ray.training.retriever.recipe import form_of

    torch.set_num_threads(threads)
    config = RetrieverConfig(name="judge", model=ModelConfig(path=str(model)), pairs="")
    processor = load_processor(config, str(model), given=str(model))
    retriever = Retriever(load_retriever(config, str(model), given=str(model)), config)
    form = form_of(AutoConfig.from_pretrained(str(model)), processor, config, str(model))
    files = sorted((held_out / PAGES).iterdir())
    area = page_side(FAMILY) ** 2
    with ContentReader(picture_spec(processor, area), None) as reader:
        pages = reader.read([Item(picture=str(file)) for file in files])
    queries = [Content(text=query.text) for query in read_queries(held_out)]
    with torch.no_grad():
        scores = maxsim(_encoded(retriever, form, queries, asks=True), _encoded(retriever, form, pages, asks=False))
        best = scores.topk(min(TOP, len(files)), dim=1).indices.tolist()
    return [[files[place].name for place in row] for row in best]


def _encoded(retriever: Retriever, form: Form, contents: Sequence[Content], *, asks: bool) -> Vectors:
    from vrag_ray.training.retriever.step import padded

    rows: list[tuple[Tensor, Tensor]] = []
    for start in range(0, len(contents), AT_ONCE):
        vectors = retriever(form.inputs(contents[start : start + AT_ONCE], queries=asks))[0]
        rows.extend(zip(vectors.values, vectors.scored, strict=True))
    return padded(rows)


def ranked_by_text(held_out: Path, collection: Path) -> dict[str, list[list[str]]]:
    """The same by the lexical leg and by the text embedder, over a collection of the held-out pages.

    Pages are ingested without OCR: there is nothing to read on them.
    """
    import asyncio

    from vrag_ray.config import CorpusConfig, Settings
    from vrag_ray.ingest import ingest

    settings = Settings(collection=str(collection), corpus=CorpusConfig(ocr=False))
    ingest([held_out / PAGES], settings)
    texts = [query.text for query in read_queries(held_out)]
    return {mode: asyncio.run(_ranked(settings, texts, mode)) for mode in (LEXICAL, TEXT)}


async def _ranked(settings: Settings, texts: Sequence[str], mode: str) -> list[list[str]]:
    from vrag_ray.index.search.retriever import ShardedRetriever

    retriever = await ShardedRetriever.start(settings)
    try:
        ranked: list[list[str]] = []
        for start in range(0, len(texts), AT_ONCE):
            answer = await retriever.search(list(texts[start : start + AT_ONCE]), top_k=TOP, filter=None, mode=mode)
            ranked.extend([hit.uri.rpartition("/")[2] for hit in hits] for hits in answer.results)
        return ranked
    finally:
        await retriever.close()
