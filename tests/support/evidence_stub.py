"""A gateway's search and pages over real HTTP, from the pages of ``tests.support.agent_pages``."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

from PIL import Image

from tests.support.agent_pages import HEIGHT, WIDTH, Shelf, library
from tests.support.loopback import QuietHandler, loopback_server
from vrag_ray.client.hits import search_hit
from vrag_ray.client.schemas import DocumentInfo, DocumentsPage, SearchRequest, SearchResponse
from vrag_ray.types import DocumentKind, DocumentStatus, Hit, PassageKind


def paper() -> Shelf:
    """The library without clips and texts: what has pages."""
    shelf = library()
    shelf.hits = [hit for hit in shelf.hits if hit.passage.kind in (PassageKind.PAGE, PassageKind.IMAGE)]
    return shelf


@contextmanager
def evidence_stub(shelf: Shelf | None = None) -> Iterator[str]:
    """The base URL."""
    shelf = shelf or paper()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  called by http.server
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = SearchRequest.model_validate_json(body)
            answer = asyncio.run(shelf.search(request.queries_with(None), top_k=request.top_k))
            response = SearchResponse(
                results=[[search_hit(hit) for hit in hits] for hits in answer.results],
                shards_ok=1,
                shards_total=1,
                mode=answer.mode,
                retrieval_profile="stub",
                collection_version=1,
            )
            self.send(response.model_dump_json().encode(), "application/json")

        def do_GET(self) -> None:  # noqa: N802  called by http.server
            if urlsplit(self.path).path == "/v1/documents":
                listed = [_listed(hit) for hit in shelf.hits]
                page = DocumentsPage(documents=listed, total=len(listed), collection_version=1)
                self.send(page.model_dump_json().encode(), "application/json")
                return
            parameters = parse_qs(urlsplit(self.path).query)
            x0, y0, x1, y1 = map(float, parameters.get("bbox", ["0,0,1,1"])[0].split(","))
            dots = float(parameters["dpi"][0]) / 72
            size = (max(1, round(WIDTH * dots * (x1 - x0))), max(1, round(HEIGHT * dots * (y1 - y0))))
            buffer = io.BytesIO()
            Image.new("L", size, 200).save(buffer, "PNG")
            self.send(buffer.getvalue(), "image/png")

    with loopback_server(Handler) as address:
        yield address


def _listed(hit: Hit) -> DocumentInfo:
    """A PDF of one page that is named by its title."""
    return DocumentInfo(
        doc_id=hit.passage.doc_id,
        uris=[f"upload:x/{hit.title}.pdf"],
        title=hit.title,
        kind=DocumentKind.PDF,
        status=DocumentStatus.READY,
        units=1,
        size_bytes=1,
        added_at="2026-01-01T00:00:00Z",
    )
