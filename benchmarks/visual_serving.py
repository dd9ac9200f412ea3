"""The retriever that benchmarks/visual_retrieval.py trained, behind the real service: what it finds over HTTP, where
its heat maps point, and whether an agent answers questions about pages whose names it is not told.

    python benchmarks/visual_serving.py FOLDER_OF_VISUAL_RETRIEVAL --queries 100

A toy world: mechanics, and no word on published models.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

# So that `python benchmarks/visual_serving.py` finds the packages beside it.
sys.path[0] = str(Path(__file__).parents[1])

from benchmarks.mosaic.retrieval_task import FAMILY, PAGES, SIZES, Query, file_name, held_out, read_queries
from benchmarks.mosaic.world.agent import mosaic_agent, mosaic_protocol
from benchmarks.mosaic.world.colours import COLOURS, Colour
from benchmarks.mosaic.world.drawing import page_side
from benchmarks.mosaic.world.page import CELLS, cell_at, cell_box
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.driver import Run
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Say
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import SearchRequest
from vrag_ray.cluster import start_ray
from vrag_ray.config import CorpusConfig, Settings, SpaceConfig
from vrag_ray.ingest import ingest
from vrag_ray.library.evidence import CollectionEvidence
from vrag_ray.serving.local import start_serving
from vrag_ray.types import LEXICAL, TEXT, Completion

SPACE = "seen"


@dataclass(frozen=True, slots=True)
class Answered:
    """Over the queries of one size: shares of all."""

    first: float
    fits: float
    among_ten: float
    on_named_cell: float
    """The centre of the first hit's region lies in a cell that the query names."""
    within_named_cells: float
    """And the whole region lies in such cells."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="--out of benchmarks/visual_retrieval.py")
    parser.add_argument("--seed", type=int, default=1, help="that the folder was made with")
    parser.add_argument("--queries", type=int, default=100, help="of each size")
    parser.add_argument("--questions", type=int, default=60, help="asked of the agent")
    arguments = parser.parse_args()
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    model = arguments.folder / "late-run" / "final"
    settings = Settings(
        collection=str(arguments.folder / "served-collection"),
        # Mosaics have no words, and looking for some on a thousand pages takes a quarter of an hour.
        corpus=CorpusConfig(ocr=False),
        # As it was trained to see them: one visual token a cell.
        spaces={SPACE: SpaceConfig(model=str(model), max_pixels=page_side(FAMILY) ** 2)},
        agent=mosaic_agent(),
    )
    service = start_serving(settings, 0) if Path(settings.collection).exists() else None
    if service is None:
        start_ray(None)
        began = time.monotonic()
        report = ingest([arguments.folder / "held-out" / PAGES], settings)
        print(f"ingest: {report.pages} pages in {time.monotonic() - began:.0f} s; {report.spaces}", flush=True)
        service = start_serving(settings, 0)
    queries = read_queries(arguments.folder / "held-out")
    try:
        with Client(service.base_url, timeout_s=300) as client:
            print("| cells named | first | first fits | among ten | region on named cell | region within named cells |")
            print("|---|---|---|---|---|---|")
            for size in SIZES:
                of_size = [query for query in queries if len(query.cells) == size][: arguments.queries]
                seen = _search_each(client, of_size, SPACE)
                print(
                    f"| {size} | {seen.first:.3f} | {seen.fits:.3f} | {seen.among_ten:.3f} | {seen.on_named_cell:.3f} "
                    f"| {seen.within_named_cells:.3f} |",
                    flush=True,
                )
            for mode in (LEXICAL, TEXT):
                words = _search_each(
                    client, [query for query in queries if len(query.cells) == 3][: arguments.queries], mode
                )
                print(f"{mode}: three-cell first {words.first:.3f}, among ten {words.among_ten:.3f}", flush=True)
        right = asyncio.run(_agent(settings, arguments.seed, queries, arguments.questions))
        print(
            f"agent: {right:.3f} of {arguments.questions} questions about pages whose names it was not told", flush=True
        )
    finally:
        service.stop()


def _search_each(client: Client, queries: list[Query], mode: str) -> Answered:
    response = client.search(SearchRequest(queries=[query.text for query in queries], mode=mode, top_k=10))
    first = fits = ten = centre = within = 0
    for query, hits in zip(queries, response.results, strict=True):
        names = [hit.uri for hit in hits]
        first += names[:1] == [query.target]
        fits += bool(names) and names[0] in query.fitting
        ten += query.target in names
        region = hits[0].region if hits else None
        if region is not None:
            x0, y0, x1, y1 = region
            centre += cell_at((x0 + x1) / 2, (y0 + y1) / 2) in query.cells
            corners = [cell_at(x, y) for x in (x0 + 0.01, x1 - 0.01) for y in (y0 + 0.01, y1 - 0.01)]
            within += all(corner in query.cells for corner in corners)
    count = max(1, len(queries))
    return Answered(first / count, fits / count, ten / count, centre / count, within / count)


async def _agent(settings: Settings, seed: int, queries: tuple[Query, ...], questions: int) -> float:
    """The share of right answers of an agent that searches by the description and reads the cell in the picture."""
    evidence = await CollectionEvidence.open(settings)
    pages = {file_name(page): page for page in held_out(seed).pages}
    chance, right = random.Random(seed), 0
    chosen = [query for query in queries if len(query.cells) == 4][:questions]
    try:
        for number, query in enumerate(chosen):
            cell = chance.choice([candidate for candidate in CELLS if candidate not in query.cells])
            run = Run(
                f"q{number}",
                f"What colour is cell {cell} of the page with {query.text}?",
                policy=Reader(query.text, cell, mosaic_protocol()),
                source=evidence.source,
                config=settings.agent,
                clock=time.monotonic,
                protocol=mosaic_protocol(),
            )
            record = await run.finish()
            right += record.answer == pages[query.target].colour(cell).value
    finally:
        await evidence.close()
    return right / max(1, len(chosen))


@dataclass(frozen=True, slots=True)
class Reader:
    """A ``Policy`` with eyes and no knowledge: it searches for the description that the question gives, and reads the
    asked cell off the first picture that it is shown."""

    description: str
    cell: str
    protocol: WireProtocol
    reads_pages: bool = False
    sees_pictures: bool = True

    async def complete(self, prompt: Prompt, say: Say) -> Completion:  # noqa: ARG002  its replies come whole
        return Completion(text=self.protocol.render(self._decide(prompt)))

    def _decide(self, prompt: Prompt) -> Action:
        if prompt.observation is not None and prompt.observation.sightings:
            first = prompt.observation.sightings[0]
            entries = tuple(
                MemorizeEntry(
                    information_id=sighting.id,
                    is_useful=sighting is first,
                    priority_score=5 if sighting is first else 1,
                )
                for sighting in prompt.observation.sightings
            )
            png = next(picture.png for request, picture in prompt.pictures.items() if request.doc_id == first.doc_id)
            return SummarizeAndMemorize(summarize=_colour_of(png, self.cell).value, memorize=entries)
        last = prompt.graph.nodes[-1]
        if last.summary:
            return AddAnswerNode(parent_ids=(last.id,), answer=last.summary)
        return AddSearchNode(id=f"s{len(prompt.graph.nodes)}", parent_ids=(last.id,), query=self.description)


def _colour_of(png: bytes, cell: str) -> Colour:
    """The colour in the middle of a cell of a page's picture."""
    from PIL import Image

    box = cell_box(cell)
    with Image.open(io.BytesIO(png)) as image:
        pixel = image.convert("RGB").getpixel(
            (int((box.x0 + box.x1) / 2 * image.width), int((box.y0 + box.y1) / 2 * image.height))
        )
    assert isinstance(pixel, tuple)
    return min(COLOURS, key=lambda colour: sum((a - b) ** 2 for a, b in zip(colour.rgb, pixel, strict=True)))


if __name__ == "__main__":
    main()
