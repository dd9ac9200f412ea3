"""The sharegpt export of real runs: chats, pictures and the frames of boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.support.agent_pages import library
from tests.support.pictures import grey_png
from tests.support.scripted_agent import Watcher, pictures_in, run_to_end
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.chat import ImagePart, Message, Role
from vrag_ray.agent.events import CropEvent
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.imaging.coordinates import FAMILIES, Size, View, with_margin
from vrag_ray.training.sharegpt.write import DATASET, Exchange, Exported, content_of, conversations, write_sharegpt
from vrag_ray.types import FULL_PAGE, Box, FamilyName, VragError

SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region")
ANSWER = AddAnswerNode(parent_ids=("a",), answer="15")
KEEP = SummarizeAndMemorize(
    summarize="North sold 15", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4),)
)


def exchanges_of(protocol: WireProtocol, *actions: Action | str) -> tuple[list[Exchange], RunRecord]:
    policy = Watcher(*actions, protocol=protocol)
    run, _ = run_to_end(policy, library())
    replies = [policy.lines[min(number, len(policy.lines) - 1)] for number in range(len(policy.chats))]
    return [Exchange(*both) for both in zip(policy.chats, replies, strict=True)], run.record()


def written(folder: Path, *runs: list[Exchange]) -> tuple[list[dict[str, Any]], Exported]:
    exported = write_sharegpt(folder, runs)
    return json.loads((folder / "sft.json").read_text()), exported


def size_in(folder: Path, name: str) -> Size:
    with Image.open(folder / name) as image:
        return Size(*image.size)


def test_a_run_of_tags_is_one_chat_as_the_policy_saw_it(tmp_path: Path) -> None:
    exchanges, _ = exchanges_of(TagsProtocol(), SEARCH, Crop(bbox=(10, 20, 300, 200)), ANSWER)
    [row], exported = written(tmp_path, exchanges)
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"] * 3
    contents = [message["content"] for message in row["messages"]]
    assert contents[0].endswith("What was North in 2022?")
    assert contents[1] == "<think></think>\n<search>units sold by region</search>"
    assert contents[2] == contents[4] == "<image>"
    assert contents[3] == "<think></think>\n<bbox>[10, 20, 300, 200]</bbox>"
    sizes = [size_in(tmp_path, name) for name in row["images"]]
    assert sizes == [Size(*size) for size in pictures_in(exchanges[-1].messages)]
    assert exported == Exported(conversations=1, images=2, largest_pixels=max(size.pixels for size in sizes))


def test_a_run_of_the_graph_is_a_chat_for_each_context_and_every_reply_is_learnt_once(tmp_path: Path) -> None:
    crop = Crop(information_id="Picture 1", bbox=(0, 0, 500, 500))
    exchanges, _ = exchanges_of(GraphProtocol(), SEARCH, crop, KEEP, ANSWER)
    rows, _ = written(tmp_path, exchanges)
    assert [[message["role"] for message in row["messages"]] for row in rows] == [
        ["system", *["user", "assistant"] * 3],
        ["system", "user", "assistant"],
    ]
    learnt = [message["content"] for row in rows for message in row["messages"] if message["role"] == "assistant"]
    assert learnt == [GraphProtocol().render(action) for action in (SEARCH, crop, KEEP, ANSWER)]
    for row in rows:
        shown = sum(message["content"].count("<image>") for message in row["messages"])
        assert shown == len(row["images"]) > 0


TARGET = Box(0.31, 0.27, 0.55, 0.41)
PIXELS, PER_MILLE = FAMILIES[FamilyName.QWEN2_5_VL], FAMILIES[FamilyName.QWEN3_VL]


@pytest.mark.parametrize(
    "protocol",
    [TagsProtocol(), TagsProtocol(family=PER_MILLE), GraphProtocol(family=PIXELS), GraphProtocol()],
    ids=["tags-pixels", "tags-per-mille", "graph-pixels", "graph-per-mille"],
)
@pytest.mark.parametrize("crops", [1, 2])
def test_a_box_means_the_same_region_of_the_page_in_the_export_as_in_the_run(
    protocol: WireProtocol, crops: int, tmp_path: Path
) -> None:
    codec = protocol.family.codec
    first, _ = exchanges_of(protocol, SEARCH, ANSWER)
    view = View(FULL_PAGE, Size(*pictures_in(first[1].messages)[0]))
    # ``tags`` has no word for which picture is meant: it is the last one.
    names = [f"Picture {number + 1}" if protocol.rules.names_nodes else "" for number in range(crops)]
    crop_actions = [Crop(information_id=name, bbox=codec.encode(TARGET, view)) for name in names]
    exchanges, record = exchanges_of(protocol, SEARCH, *crop_actions, ANSWER)
    places = [event.place.bbox for event in record.events if isinstance(event, CropEvent)]

    rows, _ = written(tmp_path, exchanges)
    sizes = iter([size_in(tmp_path, name) for name in rows[0]["images"]])
    region, decoded = FULL_PAGE, []
    for message in rows[0]["messages"]:
        for _ in range(message["content"].count("<image>")):
            view = View(region, next(sizes))
        action = protocol.parse(message["content"]).action if message["role"] == "assistant" else None
        if isinstance(action, Crop):
            region = with_margin(codec.decode(action.bbox, view))
            decoded.append(region.as_tuple())
    assert len(places) == len(decoded) == crops
    assert places == [pytest.approx(box, abs=1e-9) for box in decoded]
    assert places[0] == pytest.approx(with_margin(TARGET).as_tuple(), abs=0.01)


def test_the_folder_is_a_dataset_dir(tmp_path: Path) -> None:
    exchanges, _ = exchanges_of(GraphProtocol(), SEARCH, ANSWER)
    written(tmp_path, exchanges)
    info = json.loads((tmp_path / "dataset_info.json").read_text())[DATASET]
    assert (tmp_path / info["file_name"]).exists()
    assert (info["formatting"], info["columns"]) == ("sharegpt", {"messages": "messages", "images": "images"})
    assert info["tags"]["system_tag"] == "system"


def test_the_same_picture_is_one_file(tmp_path: Path) -> None:
    exchanges, _ = exchanges_of(TagsProtocol(), SEARCH, ANSWER)
    rows, exported = written(tmp_path, exchanges, exchanges)
    assert (len(rows), exported.images) == (2, 1)
    assert rows[0] == rows[1]
    assert len(list((tmp_path / "images").iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a page that says <image> twice: <image>", "a page that says < image> twice: < image>"),
        ("<video> and <audio>", "< video> and < audio>"),
        ("<|image_pad|><|im_end|>", "< |image_pad|>< |im_end|>"),
        ("<images> <Image> a < b > c <||>", "<images> <Image> a < b > c <||>"),
        ("<<image>>", "<< image>>"),
    ],
)
def test_words_forge_no_placeholder_and_no_special_token(text: str, expected: str) -> None:
    assert content_of(Message.of(Role.USER, text)) == expected


pieces = st.lists(
    st.sampled_from(["<", "<ima", "ge>", "<image>", "image>", ">", "< image>", "x", "<|im_", "end|>", grey_png(1)]),
    max_size=8,
)


@settings(deadline=None)
@given(pieces)
def test_there_are_as_many_placeholders_as_pictures_however_text_is_cut(parts: list[str | bytes]) -> None:
    message = Message.of(Role.USER, *[ImagePart(part) if isinstance(part, bytes) else part for part in parts])
    content = content_of(message)
    assert content.count("<image>") == sum(isinstance(part, bytes) for part in parts)
    assert "<|im_end|>" not in content


def test_a_reply_forges_none_either(tmp_path: Path) -> None:
    exchanges = [Exchange((Message.of(Role.USER, "see", ImagePart(grey_png(3))),), "the <image> shows it")]
    [row], _ = written(tmp_path, exchanges)
    assert [message["content"] for message in row["messages"]] == ["see<image>", "the < image> shows it"]


def test_turns_that_do_not_alternate_are_refused_and_not_dropped_later(tmp_path: Path) -> None:
    twice = Exchange((Message.of(Role.USER, "a"), Message.of(Role.USER, "b")), "c")
    with pytest.raises(VragError, match="message 2 of a chat is by user"):
        write_sharegpt(tmp_path, [[twice]])


def test_a_context_that_only_looks_alike_begins_a_chat_of_its_own() -> None:
    first = Exchange((Message.of(Role.USER, "q", ImagePart(grey_png(1))),), "one")
    other = Exchange((Message.of(Role.USER, "q", ImagePart(grey_png(2))), Message.of(Role.ASSISTANT, "one")), "two")
    assert len(conversations([first, other])) == 2
    goes_on = Exchange((*first.messages, Message.of(Role.ASSISTANT, "one"), Message.of(Role.USER, "more")), "two")
    assert [len(chat) for chat in conversations([first, goes_on])] == [4]
