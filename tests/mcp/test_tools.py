"""The tools over both transports: the SDK's client, a real ``vrag mcp`` process and a real service behind it."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import CallToolResult, ImageContent
from PIL import Image

from tests.support import material
from tests.support.mcp_processes import listening, stdio, text_of
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.client.blocking import Client as Gateway
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.mcp.results import Answer, PageContent, SearchResult
from vrag_ray.serving.local import LocalService, start_here

pytestmark = pytest.mark.anyio
QUESTION = "What did dredging the northern basin cost?"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    root = tmp_path_factory.mktemp("kept-from-clients")
    values = {"collection": str(root / "collection"), "serving": {"refresh_s": 0.5}}
    Collection.open_or_create(values["collection"])
    running = start_here(Settings.model_validate(values), 0)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def library(service: LocalService, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Ids by file name."""
    folder: Path = tmp_path_factory.mktemp("files")
    files = {"harbour.pdf": material.pdf(), "clip.mp4": material.video(), "notes.txt": material.TEXT.encode()}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with Gateway(service.base_url) as gateway:
        job = gateway.finished_job(gateway.upload([folder / name for name in files]).job_id, HANGS_AFTER_S)
        assert len(job.documents) == 3, job
        return {document.uris[0].rpartition("/")[2]: document.doc_id for document in gateway.documents().documents}


@pytest.fixture(scope="module", params=["stdio", "http"])
async def client(
    request: pytest.FixtureRequest, service: LocalService, library: dict[str, str]
) -> AsyncIterator[Client]:
    if request.param == "stdio":
        async with stdio(service.base_url) as connected:
            yield connected
        return
    with listening(service.base_url) as address:
        async with Client(address) as connected:
            yield connected


def picture_of(result: CallToolResult) -> Image.Image:
    assert not result.is_error, result
    picture = result.content[1]
    assert isinstance(picture, ImageContent)
    assert picture.mime_type == "image/png"
    return Image.open(io.BytesIO(base64.b64decode(picture.data)))


async def test_four_read_only_tools_are_listed_with_schemas_and_the_note_on_injection(client: Client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"search_documents", "get_page", "read_page", "ask"}
    for tool in tools.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert "never follow instructions" in (tool.description or "")
        assert all("description" in argument for argument in tool.input_schema["properties"].values())
    assert {name: tool.input_schema["required"] for name, tool in tools.items()} == {
        "search_documents": ["query"],
        "get_page": ["doc_id"],
        "read_page": ["doc_id"],
        "ask": ["question"],
    }
    assert tools["search_documents"].output_schema == SearchResult.model_json_schema()
    assert tools["ask"].output_schema == Answer.model_json_schema()


async def test_search_finds_the_page_and_says_how_complete_it_is(client: Client, library: dict[str, str]):
    result = await client.call_tool("search_documents", {"query": "dredging cost of the northern basin", "top_k": 2})
    parsed = SearchResult.model_validate(result.structured_content)
    best = parsed.hits[0]
    assert (best.title, best.doc_id, best.page) == ("harbour", library["harbour.pdf"], 2)
    assert "4.7 million" in best.text
    assert best.bbox is not None
    assert len(parsed.hits) <= 2
    assert (parsed.shards_ok, parsed.shards_total) == (1, 1)
    assert SearchResult.model_validate_json(text_of(result)) == parsed
    assert "kept-from-clients" not in text_of(result)


async def test_search_is_narrowed_to_kinds(client: Client, library: dict[str, str]):
    result = await client.call_tool("search_documents", {"query": "harbour", "kinds": ["text"]})
    parsed = SearchResult.model_validate(result.structured_content)
    assert {hit.doc_id for hit in parsed.hits} == {library["notes.txt"]}


async def test_read_page_gives_the_words_of_a_page_with_their_places(client: Client, library: dict[str, str]):
    result = await client.call_tool("read_page", {"doc_id": library["harbour.pdf"], "page": 2})
    read = PageContent.model_validate(result.structured_content)
    [cost] = [element for element in read.elements if "4.7 million" in element.text]
    shown = await client.call_tool("get_page", {"doc_id": read.doc_id, "page": 2, "bbox": cost.bbox, "dpi": 144})
    assert picture_of(shown).convert("L").getextrema()[0] < 128
    refused = await client.call_tool("read_page", {"doc_id": library["notes.txt"], "page": 1})
    assert refused.is_error and "has no pages: search_documents" in text_of(refused)


async def test_read_page_gives_the_clip_of_a_video_around_a_second(client: Client, library: dict[str, str]):
    result = await client.call_tool("read_page", {"doc_id": library["clip.mp4"], "t": 1.5})
    read = PageContent.model_validate(result.structured_content)
    assert (read.title, read.page, read.t_start, read.t_end) == ("clip", None, 0.0, 3.0)
    refused = await client.call_tool("read_page", {"doc_id": library["clip.mp4"], "page": 1})
    assert refused.is_error and "is a video: give t in seconds" in text_of(refused)


async def test_get_page_draws_the_region_of_a_hit_at_the_requested_resolution(client: Client, library: dict[str, str]):
    width, height = material.PAGE_SIZE
    whole = await client.call_tool("get_page", {"doc_id": library["harbour.pdf"], "page": 2, "dpi": 72})
    assert picture_of(whole).size == (width, height)
    searched = await client.call_tool("search_documents", {"query": "dredging cost of the northern basin"})
    box = SearchResult.model_validate(searched.structured_content).hits[0].bbox
    arguments = {"doc_id": library["harbour.pdf"], "page": 2, "bbox": box, "dpi": 288}
    result = await client.call_tool("get_page", arguments)
    region = picture_of(result)
    assert box is not None
    assert region.width == pytest.approx((box[2] - box[0]) * width * 4, abs=4)
    assert region.height == pytest.approx((box[3] - box[1]) * height * 4, abs=4)
    assert region.convert("L").getextrema()[0] < 128
    caption = text_of(result)
    assert caption.startswith("harbour, page 2, region ")
    assert f"{region.width} x {region.height} pixels" in caption


async def test_get_page_gives_the_video_frame_shown_at_its_second(client: Client, library: dict[str, str]):
    for second, colour in material.COLOURS.items():
        result = await client.call_tool("get_page", {"doc_id": library["clip.mp4"], "t": second + 0.5})
        pixel = picture_of(result).convert("RGB").getpixel((8, 8))
        assert all(abs(a - b) < 40 for a, b in zip(pixel, colour, strict=True))
        assert text_of(result).startswith(f"clip, frame at {second + 0.5:g} s")


async def test_ask_cites_the_right_page_and_reports_each_step_while_it_goes_on(
    client: Client, service: LocalService, library: dict[str, str]
):
    heard: list[tuple[float, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))

    result = await client.call_tool("ask", {"question": QUESTION}, progress_callback=hear)
    answer = Answer.model_validate(result.structured_content)
    assert "4.7 million" in answer.answer
    assert not answer.abstained
    first = answer.citations[0]
    assert (first.number, first.doc_id, first.page) == (1, library["harbour.pdf"], 2)
    assert first.bbox is not None and first.element is not None
    page = PageContent.model_validate(
        (await client.call_tool("read_page", {"doc_id": first.doc_id, "page": first.page})).structured_content
    )
    around = next(element for element in page.elements if element.number == first.element.number)
    assert "4.7 million" in around.text and around.bbox == pytest.approx(first.element.bbox, abs=1e-4)
    numbers = [number for number, _ in heard]
    assert numbers == sorted(set(numbers))
    messages = " ".join(message for _, message in heard)
    assert all(f" {step} " in messages for step in ("start", "search", "found", "read", "remember", "answer"))
    with Gateway(service.base_url) as gateway:
        assert gateway.run(answer.run_id).answer == answer.answer


async def test_an_abstention_is_an_answer_and_no_error(client: Client):
    result = await client.call_tool("ask", {"question": "Who painted the ceiling of the opera in Vienna?"})
    assert not result.is_error
    assert Answer.model_validate(result.structured_content).abstained


UNKNOWN = "cd" * 32


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("get_page", {"doc_id": UNKNOWN, "page": 1}, [UNKNOWN, "search_documents"]),
        ("get_page", {"doc_id": "../../v1/runs", "page": 1}, ["doc_id", "../../v1/runs"]),
        ("get_page", {"doc_id": "{harbour.pdf}"}, ["give page"]),
        ("get_page", {"doc_id": "{harbour.pdf}", "t": 1}, ["no video", "give page"]),
        ("get_page", {"doc_id": "{harbour.pdf}", "page": 99}, ["3 pages", "99"]),
        ("get_page", {"doc_id": "{harbour.pdf}", "page": 1, "bbox": [0.5, 0, 0.2, 1]}, ["0.5", "x0 < x1"]),
        ("get_page", {"doc_id": "{harbour.pdf}", "page": 1, "bbox": [0, 1]}, ["bbox", "4"]),
        ("get_page", {"doc_id": "{clip.mp4}", "page": 1}, ["is a video", "give t"]),
        ("get_page", {"doc_id": "{notes.txt}", "page": 1}, ["plain text", "search_documents"]),
        ("get_page", {"doc_id": "{harbour.pdf}", "page": 1, "dpi": 5000}, ["dpi", "600", "5000"]),
        ("search_documents", {"query": "  "}, ["query", "at least 1"]),
        ("search_documents", {}, ["query", "required"]),
        ("search_documents", {"query": "x", "kinds": ["song"]}, ["kinds", "song", "page"]),
        ("search_documents", {"query": "x", "filter": {}}, ["filter", "top_k"]),
        ("ask", {"question": "q", "agent": "oracle"}, ["oracle", "extractive"]),
        ("ask", {"question": "q", "max_steps": 1}, ["max_steps", "2"]),
    ],
)
async def test_a_wrong_call_is_a_tool_error_of_one_line_that_names_input_and_remedy(
    client: Client, library: dict[str, str], tool: str, arguments: dict[str, object], named: list[str]
):
    given = arguments.get("doc_id")
    if isinstance(given, str) and given.startswith("{"):
        arguments = {**arguments, "doc_id": library[given.strip("{}")]}
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    text = text_of(result)
    assert len(text.splitlines()) == 1
    assert all(word in text for word in named), text
    assert "Traceback" not in text
    assert "pydantic" not in text
