"""One vector leg of a search: an embedder, the space that holds its vectors, and what it makes of a query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, Embedding, EmbedError, Modality, PictureSpec
from vrag_ray.embedding.pictures import fitted_to
from vrag_ray.index.search.titles import TitleVectors
from vrag_ray.index.shards.shard_index import SpaceSpec
from vrag_ray.types import Query


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """What an embedder makes of a query: the share of it that it can read, 1 for one with a picture, and its vectors,
    or why it has none; None where they were not made."""

    share: float
    embedded: Embedding | EmbedError | None


@dataclass(frozen=True)
class VectorLeg:
    """``weight`` is its say among the vector legs of a hybrid search."""

    spec: SpaceSpec
    embedder: Embedder
    weight: float = 1.0
    titles: TitleVectors | None = None
    """Of an embedder of texts."""

    @property
    def name(self) -> str:
        return self.spec.name

    def part_of(self, query: Query) -> Query | None:
        """What of ``query`` this embedder takes: all, its words alone, or nothing."""
        if query.picture is None or self.sees:
            return query
        return Query(query.text) if query.text.strip() else None

    @property
    def sees(self) -> bool:
        """Whether a query may be a picture."""
        return Modality.PICTURE in self.embedder.modalities

    async def read(self, queries: Sequence[Query], *, least_readable: float = 0.0) -> list[ReadQuery]:
        """Each query with its vectors, of those of which the embedder can read at least ``least_readable``."""
        return await asyncio.to_thread(self._read, queries, least_readable)

    def _read(self, queries: Sequence[Query], least_readable: float) -> list[ReadQuery]:
        pairs = zip(queries, self.embedder.readable([query.text for query in queries]), strict=True)
        shares = [1.0 if query.picture is not None else float(share) for query, share in pairs]
        numbers = [n for n, share in enumerate(shares) if share >= least_readable]
        contents = [_content(queries[n], self.embedder.pictures) for n in numbers]
        vectors = dict(zip(numbers, self.embedder.embed_queries(contents), strict=True)) if contents else {}
        return [ReadQuery(share, vectors.get(n)) for n, share in enumerate(shares)]


def leg_of(name: str, config: SpaceConfig, embedder: Embedder, titles: TitleVectors | None) -> VectorLeg:
    """The leg of a space that ``embedder`` fills; ``titles`` are vectors by the same embedder."""
    spec = SpaceSpec(
        name=name,
        embedder_id=embedder.id,
        multi_vector=embedder.multi_vector,
        binary=config.binary,
        exhaustive_below=config.exhaustive_below,
        candidates=config.candidates,
    )
    return VectorLeg(spec, embedder, config.weight, titles)


def reads_words_alone(embedder: Embedder) -> bool:
    """Whether it gives each text one vector, and takes nothing else: such a leg compares titles with queries too."""
    return embedder.modalities == {Modality.TEXT} and not embedder.multi_vector


def _content(query: Query, spec: PictureSpec | None) -> Content:
    if query.picture is None or spec is None:
        return Content(query.text)
    return Content(query.text, picture=fitted_to(query.picture, spec))
