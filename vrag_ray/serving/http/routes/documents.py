"""Documents: uploaded, listed, deleted; their pages and frames as pictures; their original bytes."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.datastructures import UploadFile

from vrag_ray.client.contract import DRAWN_DPI
from vrag_ray.client.schemas import DocumentDeleted, DocumentInfo, DocumentsPage, IngestJob, PageElements
from vrag_ray.serving.contract import Original
from vrag_ray.serving.error_body import vrag_error_response
from vrag_ray.serving.http.middleware import head_only
from vrag_ray.serving.http.routes.deps import ERRORS, DocId, Gate, GateDep
from vrag_ray.serving.uploads import parse_meta
from vrag_ray.types import Box, InvalidError, VragError

router = APIRouter(prefix="/v1", tags=["documents"], responses=ERRORS)


class Disposition(StrEnum):
    """What a browser should do with a document."""

    ATTACHMENT = "attachment"
    INLINE = "inline"


_POLICIES = {
    Disposition.ATTACHMENT: "default-src 'none'; sandbox",
    # A browser shows no PDF in a sandbox, and lays pictures and videos out with a style of its own.
    Disposition.INLINE: "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'",
}


_MULTIPART = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "meta": {"type": "string", "description": "JSON object of plain values."},
                    },
                }
            }
        },
    }
}
CollectionParam = Annotated[
    str, Query(max_length=255, description="One of several collections that are served, by name; else the main one.")
]
_PNG = {"content": {"image/png": {}}, "description": "The picture."}


@router.post("/documents", status_code=202, response_model=IngestJob, openapi_extra=_MULTIPART)
async def upload(request: Request, response: Response, gate: GateDep, collection: CollectionParam = "") -> IngestJob:
    """Take files into a collection; the reply names the job to poll. Searches go on while it runs."""
    async with request.form(max_files=1000, max_fields=16) as form:
        parts = [part for _, part in form.multi_items() if isinstance(part, UploadFile)]
        if not parts:
            raise InvalidError("send one or more files as multipart/form-data in the field files", param="files")
        meta_field = form.get("meta")
        meta = parse_meta(meta_field if isinstance(meta_field, str) else None)
        files = [(part.filename or "", part.file) for part in parts]
        job = await gate.system.upload(files, meta, collection=collection)
    response.headers["Location"] = job.url
    return job


@router.get("/jobs/{job_id}", response_model=IngestJob)
async def job(job_id: str, gate: GateDep) -> IngestJob:
    """How far an ingest job is."""
    return await gate.system.job(job_id)


@router.get("/documents", response_model=DocumentsPage)
async def list_documents(
    gate: GateDep,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    collection: CollectionParam = "",
) -> DocumentsPage:
    """The documents of a collection by name, broken ones with their error included."""
    return await gate.system.documents(limit, offset, collection=collection)


@router.get("/documents/{doc_id}", response_model=DocumentInfo)
async def document(doc_id: DocId, gate: GateDep) -> DocumentInfo:
    return await gate.system.document(doc_id)


@router.delete("/documents/{doc_id}", response_model=DocumentDeleted)
async def delete_document(
    doc_id: DocId,
    gate: GateDep,
    collection: Annotated[
        str, Query(max_length=255, description="Where to delete it, if several collections that are served have it.")
    ] = "",
) -> DocumentDeleted:
    """Delete a document. No search that starts after the reply finds it there."""
    return await gate.system.delete_document(doc_id, collection=collection)


@router.get("/documents/{doc_id}/pages/{n}.png", response_class=Response, responses={200: _PNG, 304: {}})
async def page_png(
    doc_id: DocId,
    n: Annotated[int, Path(ge=1, le=10**6, description="Page, from 1; 1 for a picture.")],
    request: Request,
    gate: GateDep,
    dpi: Annotated[float, Query(ge=9, le=1200, allow_inf_nan=False)] = DRAWN_DPI,
    bbox: Annotated[str | None, Query(description="x0,y0,x1,y1 in fractions of the page, origin top left.")] = None,
    heatmap: Annotated[
        str | None, Query(max_length=4096, description="A query: the whole page is tinted where it is seen.")
    ] = None,
) -> Response:
    """A page, or a part of it, drawn anew from the source at ``dpi``, or with the heat map of a query over it."""
    box = _parse_box(bbox)
    if heatmap is not None:
        if box is not None:
            raise InvalidError("bbox: a heat map is of the whole page: give one of bbox and heatmap", param="bbox")
        if not heatmap.strip():
            raise InvalidError("heatmap: the query is empty", param="heatmap")
        png = await gate.system.heatmap_png(doc_id, n, heatmap, dpi=dpi)
        # Vectors may change under the same page: this is drawn anew each time.
        return Response(png, media_type="image/png", headers={"Cache-Control": "private, no-store"})
    tag = _tag(doc_id, f"p{n}", f"{dpi:g}", str(box))
    if await _unchanged(request, gate, doc_id, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return _png(await gate.system.page_png(doc_id, n, dpi=dpi, box=box), tag)


@router.get("/documents/{doc_id}/pages/{n}/elements", response_model=PageElements)
async def page_elements(
    doc_id: DocId, n: Annotated[int, Path(ge=1, le=10**6, description="Page, from 1; 1 for a picture.")], gate: GateDep
) -> PageElements:
    """What is on a page in reading order: headings, paragraphs, tables and their cells, pictures, each with its box."""
    return await gate.system.page_elements(doc_id, n)


@router.get("/documents/{doc_id}/frames/{t}.png", response_class=Response, responses={200: _PNG, 304: {}})
async def frame_png(
    doc_id: DocId,
    t: Annotated[float, Path(ge=0, le=10**7, allow_inf_nan=False, description="Seconds from the start.")],
    request: Request,
    gate: GateDep,
) -> Response:
    """The frame of a video that is shown at ``t``."""
    tag = _tag(doc_id, f"t{t:.3f}")
    if await _unchanged(request, gate, doc_id, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return _png(await gate.system.frame_png(doc_id, t), tag)


@router.get("/documents/{doc_id}/frames/{t}/elements", response_model=PageElements)
async def frame_elements(
    doc_id: DocId,
    t: Annotated[float, Path(ge=0, le=10**7, allow_inf_nan=False, description="Seconds from the start.")],
    gate: GateDep,
) -> PageElements:
    """What is spoken, written and shown, and when, in the clip of a video around ``t``."""
    return await gate.system.frame_elements(doc_id, t)


@router.get("/documents/{doc_id}/original", response_class=StreamingResponse, responses={206: {}, 304: {}, 416: {}})
async def original(
    doc_id: DocId,
    request: Request,
    gate: GateDep,
    disposition: Annotated[Disposition, Query(description="inline: shown by the browser, where it can.")] = (
        Disposition.ATTACHMENT
    ),
) -> Response:
    """The bytes as they were taken in. One byte range is honoured, so that videos can be sought."""
    file = await gate.system.parts.documents.original(doc_id)
    tag = _tag(file.doc_id, "original")
    if is_listed(tag, request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers={"ETag": tag})
    headers = {
        "ETag": tag,
        "Content-Disposition": _disposition(disposition, file.name),
        # Whatever a browser is talked into, the bytes run no script and load nothing.
        "Content-Security-Policy": _POLICIES[disposition],
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
    }
    # A part of other bytes than those the caller has is of no use: it is sent all of them.
    is_current = request.headers.get("if-range", tag) == tag
    try:
        start, stop = _byte_range(request.headers.get("range") if is_current else None, file)
    except RangeError as error:
        refusal = vrag_error_response(error)
        refusal.headers["Content-Range"] = f"bytes */{file.size}"
        return refusal
    status = 200
    if (start, stop) != (0, file.size):
        status = 206
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{file.size}"
    headers["Content-Length"] = str(stop - start)
    if head_only(request):
        return Response(status_code=status, headers=headers, media_type=file.media_type)
    body = gate.system.parts.documents.original_bytes(file.doc_id, start, stop)
    return StreamingResponse(body, status, headers, file.media_type)


def _parse_box(text: str | None) -> Box | None:
    if text is None:
        return None
    try:
        x0, y0, x1, y1 = (float(part) for part in text.split(","))
        return Box(x0, y0, x1, y1)
    except (ValueError, VragError) as error:
        reason = str(error) if isinstance(error, VragError) else "give four numbers x0,y0,x1,y1"
        raise InvalidError(f"bbox: {reason}", param="bbox") from error


_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


def _byte_range(header: str | None, file: Original) -> tuple[int, int]:
    """The half-open range to send. A header that is no single byte range is ignored, as RFC 9110 says."""
    match = _RANGE.fullmatch(header) if header else None
    if match is None or match.groups() == ("", ""):
        return 0, file.size
    first, last = match.groups()
    start = int(first) if first else max(0, file.size - int(last))
    stop = min(file.size, int(last) + 1) if first and last else file.size
    if start >= stop:
        raise RangeError(f"the range {header} is outside the document's {file.size} bytes", param="Range")
    return start, stop


class RangeError(VragError):
    """No byte of the requested range exists."""

    status = 416
    code = "range_not_satisfiable"


def _tag(*parts: str) -> str:
    return f'"{hashlib.sha256("|".join(parts).encode()).hexdigest()[:32]}"'


async def _unchanged(request: Request, gate: Gate, doc_id: str, tag: str) -> bool:
    """Whether the caller has this very picture. Raises NotFoundError for a document that is gone meanwhile."""
    if not is_listed(tag, request.headers.get("if-none-match", "")):
        return False
    # A full id names the content; a prefix may come to name another document.
    return (await gate.system.document(doc_id)).doc_id == doc_id


def is_listed(tag: str, header: str) -> bool:
    """Whether ``If-None-Match`` names ``tag``: a list, weak tags and ``*`` included (RFC 9110, 13.1.2)."""
    tags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return tag in tags or "*" in tags


def _disposition(disposition: Disposition, name: str) -> str:
    """With the name in ASCII for old programs, and whole for the others (RFC 6266)."""
    plain = name.encode("ascii", "replace").decode().replace("?", "_")
    plain = re.sub(r'[\x00-\x1f"\\%]', "_", plain)
    return f"{disposition}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _png(data: bytes, tag: str) -> Response:
    # no-cache: cached, but validated each time, so that a deleted document is gone from a browser too.
    return Response(data, media_type="image/png", headers={"ETag": tag, "Cache-Control": "private, no-cache"})
