"""Hand-made pages and an in-memory ``EvidenceSource`` of them: the IO boundary of the agent, and nothing else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from hypothesis import strategies as st
from PIL import Image

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.ports import EvidenceSource
from vrag_ray.corpus.elements import elements
from vrag_ray.imaging.coordinates import Size, model_size
from vrag_ray.policies.extractive.lexicon import stems
from vrag_ray.types import (
    FULL_PAGE,
    HYBRID,
    Box,
    Hit,
    Locator,
    PageText,
    Passage,
    PassageKind,
    Query,
    SearchAnswer,
    VragError,
    Word,
    document_id,
    passage_id,
)
from vrag_ray.types.filters import SearchFilter

WIDTH, HEIGHT = 600.0, 800.0
LETTER, LINE = 6.0, 12.0


def put(x: float, y: float, text: str) -> list[Word]:
    """``text`` set in letters of 6 by 12 points from (x, y), one space between words."""
    words: list[Word] = []
    for token in text.split():
        right = x + LETTER * len(token)
        words.append(Word(token, Box(x / WIDTH, y / HEIGHT, right / WIDTH, (y + LINE) / HEIGHT)))
        x = right + LETTER * 0.6
    return words


def prose(y: float, *lines: str) -> list[Word]:
    return [word for index, line in enumerate(lines) for word in put(50, y + index * LINE * 1.2, line)]


def table(x: float, y: float, columns: Sequence[float], *rows: Sequence[str]) -> list[Word]:
    """Cells at the offsets ``columns``, 20 points a row."""
    return [
        word
        for index, row in enumerate(rows)
        for offset, cell in zip(columns, row, strict=True)
        for word in put(x + offset, y + index * 20, cell)
    ]


def scattered(*texts: str, most: int) -> st.SearchStrategy[list[Word]]:
    """Up to ``most`` words anywhere on a page, over each other too."""
    coordinate, size = st.floats(0, 0.9), st.floats(0.001, 0.1)
    word = st.builds(
        lambda text, x, y, w, h: Word(text, Box(x, y, x + w, y + h)),
        st.sampled_from(texts),
        coordinate,
        coordinate,
        size,
        size,
    )
    return st.lists(word, max_size=most)


@dataclass
class Shelf:
    """Documents of one page each, found by the number of words shared with the query.

    One that was added with a ``region`` is also found by what it shows, whatever is asked for: that counts as ``shown``
    words, and is seen in the region.
    """

    hits: list[Hit] = field(default_factory=list)
    pages: dict[tuple[str, str], PageText] = field(default_factory=dict)
    shards: tuple[int, int] = (1, 1)
    notices: tuple[str, ...] = ()
    broken_search: str = ""
    broken_pages: set[str] = field(default_factory=set)
    queries: list[str] = field(default_factory=list)
    pictures_asked: list[bytes | None] = field(default_factory=list)
    drawn: list[PictureRequest] = field(default_factory=list)

    @property
    def source(self) -> EvidenceSource:
        return EvidenceSource(self, self)

    def add(
        self,
        title: str,
        words: Sequence[Word] = (),
        *,
        text: str = "",
        kind: PassageKind = PassageKind.PAGE,
        locator: Locator | None = None,
        region: Box | None = None,
        shown: float = 0.5,
    ) -> str:
        doc_id = document_id(title.encode())
        where = locator or Locator(page=1)
        content = text or " ".join(word.text for word in words)
        box = reduce(Box.union, (word.box for word in words)) if words else None
        passage = Passage(passage_id(doc_id, where, 0), doc_id, kind, where, 0, content, box)
        self.hits.append(Hit(passage, title, f"file:{title}", shown if region is not None else 0.0, region=region))
        parts = elements(words, WIDTH / HEIGHT)
        self.pages[doc_id, where.key] = PageText(doc_id, where, content, tuple(words), WIDTH, HEIGHT, elements=parts)
        return doc_id

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        [query] = map(Query.of, queries)
        self.queries.append(query.text)
        self.pictures_asked.append(query.picture)
        if self.broken_search:
            raise VragError(self.broken_search)
        query_stems = stems(query.text)
        scored = [
            replace(hit, score=hit.score + len(query_stems & stems(hit.passage.text + " " + hit.title)))
            for hit in self.hits
        ]
        best = sorted((hit for hit in scored if hit.score > 0), key=lambda hit: -hit.score)[:top_k]
        ok, total = self.shards
        return SearchAnswer((tuple(best),), ok, total, HYBRID, 7, self.notices)

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return [
            VragError("the decoder was killed") if doc_id in self.broken_pages else self.pages[doc_id, locator.key]
            for doc_id, locator in pages
        ]

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return [self._picture(request) for request in requests]

    def _picture(self, request: PictureRequest) -> Picture | VragError:
        """A flat picture of the right size: what it shows is not the agent's business."""
        if request.doc_id in self.broken_pages:
            return VragError("the decoder was killed")
        self.drawn.append(request)
        region = request.region or FULL_PAGE
        dots = 200 / 72
        raw = Size(
            max(1, round(WIDTH * dots * (region.x1 - region.x0))),
            max(1, round(HEIGHT * dots * (region.y1 - region.y0))),
        )
        size = model_size(raw, patch=request.patch, min_pixels=request.min_pixels, max_pixels=request.max_pixels)
        buffer = io.BytesIO()
        Image.new("L", (size.width, size.height), 200).save(buffer, "PNG")
        return Picture(buffer.getvalue(), size)


def library() -> Shelf:
    """A sales report with prose and a table, a chart picture, a captioned clip and a text file."""
    shelf = Shelf()
    shelf.add(
        "Annual report",
        [
            *put(50, 40, "Sales by region"),
            *prose(
                70,
                "The company sold wooden boats in three regions and kept its",
                "workshop in Harlow. The workshop was founded in 1987 by Maria Lund.",
                "Delivery of a boat takes 14 weeks on average.",
            ),
            *put(50, 140, "Units sold by region and year"),
            *table(
                50,
                170,
                (0, 150, 250, 350),
                ("Region", "2021", "2022", "2023"),
                ("North", "12", "15", "18"),
                ("South", "21", "24", "27"),
                ("West coast", "31", "36", "39"),
            ),
        ],
    )
    shelf.add(
        "Visitors chart",
        [
            *put(50, 30, "Visitors of the boat museum"),
            *put(100, 300, "410"),
            *put(200, 260, "520"),
            *put(300, 220, "675"),
            *put(100, 500, "Mon"),
            *put(200, 500, "Tue"),
            *put(300, 500, "Wed"),
        ],
        kind=PassageKind.IMAGE,
    )
    shelf.add(
        "Launch film",
        text="[0.0-9.5] The boat leaves the workshop.\n[10.0-19.5] A crane lifts the keel.\n"
        "[20.0-29.5] The mast is raised.",
        kind=PassageKind.CLIP,
        locator=Locator(t_start=0.0, t_end=30.0),
    )
    shelf.add(
        "Care notes",
        text="Oak hulls are oiled every spring. The oil needs 48 hours to dry.\n\nNever store a hull under black foil.",
        kind=PassageKind.TEXT,
        locator=Locator(span_start=0, span_end=101),
    )
    return shelf
