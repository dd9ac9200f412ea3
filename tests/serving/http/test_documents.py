import hashlib
import io
import json
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.support.http_gateway import http
from tests.support.planted_spaces import painted
from tests.support.stand_in import DOC_ID, ELEMENT, ORIGINAL, StandIn
from vrag_ray.client.schemas import PageElements
from vrag_ray.config import ServingConfig
from vrag_ray.types import Box

pytestmark = pytest.mark.anyio


async def test_documents_are_listed_fetched_by_prefix_and_deleted(client: httpx.AsyncClient):
    assert (await client.get("/v1/documents", params={"limit": 1})).json()["total"] == 1
    assert (await client.get(f"/v1/documents/{DOC_ID[:8]}")).json()["doc_id"] == DOC_ID
    deleted = (await client.delete(f"/v1/documents/{DOC_ID}")).json()
    assert (deleted["doc_id"], deleted["collection_version"]) == (DOC_ID, 8)


@pytest.mark.parametrize("doc_id", ["cd" * 32, "..%2f..%2fblobs", "%2e%2e", "a%00b", "ab", "%ef%bc%8e%ef%bc%8e", "~"])
@pytest.mark.parametrize("rest", ["", "/pages/1.png", "/pages/1/elements", "/frames/0.png", "/original"])
async def test_unknown_and_hostile_document_ids_are_404(client: httpx.AsyncClient, doc_id: str, rest: str):
    reply = await client.get(f"/v1/documents/{doc_id}{rest}")
    assert reply.status_code == 404
    assert set(reply.json()) == {"error"}


async def test_a_page_is_drawn_as_requested_and_not_sent_twice(client: httpx.AsyncClient, backend: StandIn):
    url = f"/v1/documents/{DOC_ID}/pages/3.png"
    reply = await client.get(url, params={"dpi": 300, "bbox": "0.1,0.2,0.5,0.6"})
    assert reply.headers["content-type"] == "image/png"
    assert backend.drawn == [(DOC_ID, 3, 300.0, Box(0.1, 0.2, 0.5, 0.6))]
    again = await client.get(
        url, params={"dpi": 300, "bbox": "0.1,0.2,0.5,0.6"}, headers={"if-none-match": reply.headers["etag"]}
    )
    other = await client.get(url, headers={"if-none-match": reply.headers["etag"]})
    assert (again.status_code, other.status_code) == (304, 200)


async def test_the_elements_of_a_page_are_sent_with_their_boxes(client: httpx.AsyncClient):
    reply = await client.get(f"/v1/documents/{DOC_ID}/pages/3/elements")
    assert PageElements.model_validate_json(reply.content).elements == [ELEMENT]
    assert reply.json()["page"] == 3
    assert (await client.get(f"/v1/documents/{DOC_ID}/pages/0/elements")).status_code == 422


async def test_a_page_is_tinted_where_the_query_is_seen(client: httpx.AsyncClient, backend: StandIn):
    url = f"/v1/documents/{DOC_ID}/pages/1.png"
    backend.page = painted(["white"] * 16)
    tinted = await client.get(url, params={"heatmap": "a red cell", "dpi": 75})
    assert (tinted.headers["content-type"], tinted.headers["cache-control"]) == ("image/png", "private, no-store")
    assert backend.drawn == [(DOC_ID, 1, 75.0, None)]
    with Image.open(io.BytesIO(tinted.content)) as image:
        pixels = np.asarray(image)
    half = len(pixels) // 2
    assert (pixels[:half, :half] == 255).all() and (pixels[half:] == 255).all()
    assert (pixels[:half, half:, 1] < 120).all()


@pytest.mark.parametrize(
    ("page", "params", "status", "field"),
    [
        (1, {"heatmap": " "}, 422, "heatmap"),
        (1, {"heatmap": "q", "bbox": "0,0,1,1"}, 422, "bbox"),
        (2, {"heatmap": "q"}, 404, None),
    ],
)
async def test_a_heat_map_that_cannot_be_drawn_is_refused_with_the_reason(
    client: httpx.AsyncClient, page: int, params: dict[str, str], status: int, field: str | None
):
    reply = await client.get(f"/v1/documents/{DOC_ID}/pages/{page}.png", params=params)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, field)


async def test_a_frame_is_addressed_by_seconds(client: httpx.AsyncClient, backend: StandIn):
    assert (await client.get(f"/v1/documents/{DOC_ID}/frames/12.5.png")).status_code == 200
    assert backend.drawn == [(DOC_ID, 12.5)]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("pages/0.png", "n"),
        ("pages/x.png", "n"),
        ("pages/1.png?dpi=0", "dpi"),
        ("pages/1.png?dpi=inf", "dpi"),
        ("pages/1.png?dpi=1e9", "dpi"),
        ("pages/1.png?bbox=0,0,1", "bbox"),
        ("pages/1.png?bbox=0,0,2,1", "bbox"),
        ("pages/1.png?bbox=.5,.5,.5,.5", "bbox"),
        ("pages/1.png?bbox=nan,0,1,1", "bbox"),
        ("frames/-1.png", "t"),
        ("frames/nan.png", "t"),
        ("frames/x.png", "t"),
    ],
)
async def test_a_wrong_page_frame_dpi_or_box_is_422(client: httpx.AsyncClient, path: str, field: str):
    reply = await client.get(f"/v1/documents/{DOC_ID}/{path}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, field)


async def test_the_original_is_a_download_that_runs_nothing(client: httpx.AsyncClient):
    reply = await client.get(f"/v1/documents/{DOC_ID}/original")
    assert reply.content == ORIGINAL
    assert reply.headers["content-disposition"].startswith(
        "attachment; filename=\"a _quoted____ber.pdf\"; filename*=UTF-8''a%20%22quoted%22%0D%0A"
    )
    assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert reply.headers["x-content-type-options"] == "nosniff"


async def test_the_original_can_be_shown_by_a_browser_and_runs_nothing_there_either(client: httpx.AsyncClient):
    reply = await client.get(f"/v1/documents/{DOC_ID}/original", params={"disposition": "inline"})
    assert reply.headers["content-disposition"].startswith(
        "inline; filename=\"a _quoted____ber.pdf\"; filename*=UTF-8''a%20%22quoted%22"
    )
    assert reply.headers["content-security-policy"].startswith("default-src 'none';")
    assert "script-src" not in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"
    wrong = await client.get(f"/v1/documents/{DOC_ID}/original", params={"disposition": "run"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (422, "disposition")


@pytest.mark.parametrize(
    ("header", "status", "start", "stop"),
    [
        ("bytes=0-99", 206, 0, 100),
        ("bytes=1000-", 206, 1000, 1024),
        ("bytes=-24", 206, 1000, 1024),
        ("bytes=0-999999", 200, 0, 1024),
        ("bytes=5-2", 416, 0, 0),
        ("bytes=2000-", 416, 0, 0),
        ("bytes=0-1,5-6", 200, 0, 1024),
        ("pages=1-2", 200, 0, 1024),
    ],
)
async def test_a_byte_range_is_honoured(client: httpx.AsyncClient, header: str, status: int, start: int, stop: int):
    reply = await client.get(f"/v1/documents/{DOC_ID}/original", headers={"Range": header})
    assert reply.status_code == status
    if status != 416:
        assert reply.content == ORIGINAL[start:stop]


async def test_a_byte_range_of_other_bytes_is_all_of_these(client: httpx.AsyncClient):
    path = f"/v1/documents/{DOC_ID}/original"
    tag = (await client.get(path)).headers["etag"]
    for condition, status in ((tag, 206), ('"x"', 200), ("Sun, 29 Nov 2026 13:00:00 GMT", 200)):
        reply = await client.get(path, headers={"Range": "bytes=0-3", "If-Range": condition})
        assert (reply.status_code, len(reply.content)) == (status, 4 if status == 206 else len(ORIGINAL))


async def test_uploads_are_streamed_to_disk_under_safe_names(
    client: httpx.AsyncClient, backend: StandIn, tmp_path: Path
):
    names = [
        "../../etc/passwd",
        "C:\\secret\\a.pdf",
        "..",
        "a\x1b[2J.txt",
        "übér.PDF",
        "x" * 400 + ".pdf",
        "a.pdf",
        "a.pdf",
        'a"b;c %41.md',
    ]
    files = [("files", (name, f"bytes of {number}".encode())) for number, name in enumerate(names)]
    reply = await client.post("/v1/documents", files=files, data={"meta": json.dumps({"team": "x", "year": 2026})})
    assert reply.status_code == 202
    assert reply.headers["location"] == reply.json()["url"]
    [(saved, meta)] = backend.submitted
    assert meta == {"team": "x", "year": 2026}
    assert [file.name for file in saved[:5]] == ["passwd", "a.pdf", "upload", "a[2J.txt", "übér.PDF"]
    assert len(saved[5].name.encode()) <= 200
    assert saved[8].name == 'a"b;c %41.md'
    for number, file in enumerate(saved):
        assert file.path.resolve().is_relative_to(tmp_path / "uploads")
        assert file.path.read_bytes() == f"bytes of {number}".encode()
        assert file.doc_id == hashlib.sha256(file.path.read_bytes()).hexdigest()
    assert len({file.path for file in saved}) == len(names)


async def test_an_upload_beyond_the_limit_is_413_and_leaves_nothing(tmp_path: Path):
    backend = StandIn(tmp_path / "runs")
    async with http(backend, tmp_path, ServingConfig(max_upload_mb=1)) as client:
        fits = await client.post("/v1/documents", files={"files": ("a.pdf", b"x" * (1 << 20))})
        large = await client.post("/v1/documents", files={"files": ("a.pdf", b"x" * (3 << 20))})
    assert (fits.status_code, large.status_code) == (202, 413)
    assert len(list((tmp_path / "uploads").iterdir())) == 1


@pytest.mark.parametrize("meta", ["{", "[]", '{"a": [1]}', '{"a": null}'])
async def test_meta_that_is_no_object_of_plain_values_is_422(client: httpx.AsyncClient, meta: str):
    reply = await client.post("/v1/documents", files={"files": ("a.txt", b"x")}, data={"meta": meta})
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, "meta")


async def test_an_upload_without_files_is_422(client: httpx.AsyncClient):
    for reply in (
        await client.post("/v1/documents", json={"path": "/etc/passwd"}),
        await client.post("/v1/documents", data={"files": "text"}),
    ):
        assert (reply.status_code, reply.json()["error"]["param"]) == (422, "files")
    broken = await client.post(
        "/v1/documents", content=b"--x\r\nbroken", headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert broken.status_code in (400, 422)
    assert "JSON" not in broken.text


async def test_an_unknown_job_is_404(client: httpx.AsyncClient):
    assert (await client.get("/v1/jobs/..%2fx")).status_code == 404
    assert (await client.get("/v1/jobs/none")).status_code == 404


@pytest.mark.parametrize("path", ["/healthz", "/v1/models", f"/v1/documents/{DOC_ID}/pages/1.png",
                                  f"/v1/documents/{DOC_ID}/original", "/v1/documents"])  # fmt: skip
async def test_head_is_what_get_is_without_its_body(client: httpx.AsyncClient, path: str):
    get, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    names = ("content-type", "content-length", "etag", "content-disposition")
    assert [head.headers.get(name) for name in names] == [get.headers.get(name) for name in names]


@pytest.mark.parametrize("form", ["{tag}", "W/{tag}", '"other", {tag}', "*"])
@pytest.mark.parametrize("path", ["pages/1.png", "frames/1.500.png", "original"])
async def test_a_known_tag_in_any_form_needs_no_body(client: httpx.AsyncClient, path: str, form: str):
    url = f"/v1/documents/{DOC_ID}/{path}"
    tag = (await client.get(url)).headers["etag"]
    known = await client.get(url, headers={"if-none-match": form.format(tag=tag)})
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
    assert (await client.get(url, headers={"if-none-match": '"other"'})).status_code == 200


async def test_a_range_that_there_is_not_says_how_many_bytes_there_are(client: httpx.AsyncClient):
    reply = await client.get(f"/v1/documents/{DOC_ID}/original", headers={"range": "bytes=2000-"})
    assert (reply.status_code, reply.headers["content-range"]) == (416, f"bytes */{len(ORIGINAL)}")


@pytest.mark.parametrize(
    "meta", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": "\\ud83d"}', '{"\\ude00": 1}']
)
async def test_meta_that_no_job_on_disk_can_hold_is_422(client: httpx.AsyncClient, backend: StandIn, meta: str):
    reply = await client.post("/v1/documents", files={"files": ("a.txt", b"x")}, data={"meta": meta})
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, "meta")
    assert backend.submitted == []
