"""Conversations in sharegpt form: ours, the original's and LLaMA-Factory's own, and errors that say where."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vrag_ray.agent.chat import ImagePart, Message, Role
from vrag_ray.imaging.coordinates import Size
from vrag_ray.imaging.fitting import size_of
from vrag_ray.questions.rows import DataError
from vrag_ray.training.sharegpt.read import INFO, read_conversations, sharegpt_file
from vrag_ray.training.sharegpt.write import Exchange, conversations, write_sharegpt

Row = dict[str, Any]


def picture(form: str = "PNG", size: tuple[int, int] = (56, 28)) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", size, (200, 30, 40)).save(data, form)
    return data.getvalue()


def turns(*contents: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[place % 2], "content": content} for place, content in enumerate(contents)]


ROW: Row = {
    "messages": turns("Which colour?", "<think></think>\n<search>x</search>", "<image>", "<answer>red</answer>"),
    "images": ["images/a.png"],
}


def written(folder: Path, *rows: object, name: str = "sft.json") -> Path:
    (folder / "images").mkdir(exist_ok=True)
    (folder / "images/a.png").write_bytes(picture())
    (folder / name).write_text(json.dumps(list(rows)))
    return folder / name


def chats_of(file: Path) -> list[tuple[Message, ...]]:
    return [conversation.messages for conversation in read_conversations(file)]


def test_what_was_exported_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    page = ImagePart(picture())
    first = Exchange((Message.of(Role.SYSTEM, "Use tools."), Message.of(Role.USER, "see ", page, " here")), "one")
    more = (*first.messages, Message.of(Role.ASSISTANT, "one"), Message.of(Role.USER, page, page))
    write_sharegpt(tmp_path, [[first, Exchange(more, "two")], [first]])
    file = sharegpt_file(tmp_path)
    assert file == tmp_path / "sft.json"
    assert chats_of(file) == [*conversations([first, Exchange(more, "two")]), *conversations([first])]
    assert [conversation.where for conversation in read_conversations(file)] == [f"{file}: row 1", f"{file}: row 2"]


def test_a_file_without_a_description_is_read_by_the_names_in_it(tmp_path: Path) -> None:
    expected = chats_of(written(tmp_path, ROW))
    assert [message.role.value for message in expected[0]] == ["user", "assistant"] * 2
    theirs = [
        {"from": {"user": "human", "assistant": "gpt"}[message["role"]], "value": message["content"]}
        for message in ROW["messages"]
    ]
    row = {"conversations": theirs, "images": ROW["images"], "system": "", "tools": "", "id": 7}
    assert chats_of(written(tmp_path, row, name="llama.json")) == expected
    lines = tmp_path / "lines.jsonl"
    lines.write_text(f"{json.dumps(ROW)}\n{json.dumps(ROW)}\n\n")
    assert chats_of(lines) == expected * 2


def test_a_system_prompt_may_stand_beside_the_messages(tmp_path: Path) -> None:
    [chat] = chats_of(written(tmp_path, ROW | {"system": "Use tools."}))
    assert chat[0] == Message.of(Role.SYSTEM, "Use tools.")


def test_messages_may_be_lists_of_parts(tmp_path: Path) -> None:
    def parts(**named: str) -> Row:
        question = [{"type": "image", **named}, {"type": "text", "text": "Which colour?"}]
        reply = [{"type": "text", "text": "red"}]
        return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": reply}]}

    expected = chats_of(
        written(tmp_path, {"messages": turns("<image>Which colour?", "red"), "images": ["images/a.png"]})
    )
    assert chats_of(written(tmp_path, parts() | {"images": ["images/a.png"]})) == expected
    for key in ("image", "path", "url"):
        assert chats_of(written(tmp_path, parts(**{key: "images/a.png"}))) == expected
    with pytest.raises(DataError, match=r"row 1: images: name all pictures there, or each in its part"):
        chats_of(written(tmp_path, parts(path="images/a.png") | {"images": ["images/a.png"]}))
    heard = {"messages": [{"role": "user", "content": [{"type": "audio", "audio": "a.wav"}]}, *turns("", "x")[1:]]}
    with pytest.raises(DataError, match=r"row 1: messages\.0\.content: "):
        chats_of(written(tmp_path, heard))


def test_names_are_those_of_the_description(tmp_path: Path) -> None:
    row = {"talk": [{"who": "me", "says": "<image>?"}, {"who": "it", "says": "red"}], "shown": ["images/a.png"]}
    file = written(tmp_path, row, name="mine.json")
    columns = {"messages": "talk", "images": "shown"}
    tags = {"role_tag": "who", "content_tag": "says", "user_tag": "me", "assistant_tag": "it"}
    info = {"mine": {"file_name": "mine.json", "formatting": "sharegpt", "columns": columns, "tags": tags}}
    (tmp_path / INFO).write_text(json.dumps(info))
    assert chats_of(file) == [(Message.of(Role.USER, ImagePart(picture()), "?"), Message.of(Role.ASSISTANT, "red"))]
    row["talk"][0]["who"] = "them"
    with pytest.raises(DataError, match=r"mine\.json: row 1: talk\.0\.who: 'them' is none of me, it, system"):
        chats_of(written(tmp_path, row, name="mine.json"))
    row["talk"][0] = {"who": "me"}
    with pytest.raises(DataError, match=r"mine\.json: row 1: talk\.0\.says: Field required"):
        chats_of(written(tmp_path, row, name="mine.json"))


def test_a_picture_of_another_form_becomes_png_at_its_own_size(tmp_path: Path) -> None:
    file = written(tmp_path, ROW | {"images": [str(tmp_path / "b.jpg")]})
    (tmp_path / "b.jpg").write_bytes(picture("JPEG", (84, 56)))
    [chat] = chats_of(file)
    [shown] = [part for message in chat for part in message.parts if isinstance(part, ImagePart)]
    assert shown.png.startswith(b"\x89PNG") and size_of(shown.png) == Size(84, 56)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("a chat", "not an object with messages"),
        ({"images": []}, "messages: Field required"),
        (ROW | {"messages": []}, "messages: Tuple should have at least 1 item"),
        (ROW | {"messages": [{"role": "user"}]}, r"messages\.0\.content: Field required"),
        (ROW | {"messages": [{"role": "user", "content": 3}]}, r"messages\.0\.content: Input should be a valid string"),
        (ROW | {"messages": [{"role": "bot", "content": ""}]}, r"messages\.0\.role: 'bot' is none of user, assistant"),
        (ROW | {"messages": turns("q", "<image>")}, r"messages\.1\.content: only a user shows a picture"),
        (ROW | {"messages": turns("<image>", "a", "q")}, "messages: there is no reply to the last message"),
        (ROW | {"messages": turns("<image>", "a")[::-1]}, "messages: message 1 is by the assistant, not by the user"),
        (ROW | {"messages": turns("<image><image>", "a")}, "images: fewer than there are <image> in the messages"),
        (ROW | {"messages": turns("q", "a")}, "images: 1 more than there are <image> in the messages"),
        (ROW | {"images": ["images/b.png"]}, r"images: cannot read .*images/b\.png: No such file"),
        (ROW | {"images": ["sft.json"]}, r"images: .*sft\.json is no picture"),
        (ROW | {"images": [1]}, r"images\.0: Input should be a valid string"),
        (ROW | {"videos": ["a.mp4"]}, "videos: the agent's conversations have none"),
    ],
)
def test_a_bad_row_is_named_with_file_row_and_field(row: object, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"sft\.json: row 2: {problem}"):
        chats_of(written(tmp_path, ROW, row))


def test_a_picture_that_was_cut_off_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, ROW)
    (tmp_path / "images/a.png").write_bytes(picture()[:60])
    with pytest.raises(DataError, match=r"row 1: images: .*a\.png is no picture"):
        chats_of(file)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", "{", r"a\.json is not JSON"),
        ("a.json", "{}", r"a\.json is not a list of conversations"),
        ("a.jsonl", f"{json.dumps(ROW)}\n[\n", r"a\.jsonl: row 2: not JSON"),
        (INFO, "[]", "is not a description of data sets"),
        (INFO, '{"x": {}}', r"dataset_info\.json: x\.file_name: Field required"),
        (INFO, '{"x": {"file_name": "sft.json"}}', "x: formatting is 'alpaca'"),
    ],
)
def test_a_file_that_is_none_is_named(name: str, content: str, problem: str, tmp_path: Path) -> None:
    file = written(tmp_path, ROW)
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=problem):
        chats_of(file if name == INFO else tmp_path / name)


def test_a_folder_means_its_one_file(tmp_path: Path) -> None:
    assert sharegpt_file(tmp_path) is None
    assert sharegpt_file(tmp_path / "runs.parquet") is None
    file = written(tmp_path, ROW)
    assert sharegpt_file(tmp_path) == sharegpt_file(file) == file
    written(tmp_path, ROW, name="other.json")
    with pytest.raises(DataError, match=r"holds 2 data sets \(other\.json, sft\.json\): give the file of one"):
        sharegpt_file(tmp_path)
    (tmp_path / INFO).write_text(json.dumps({"x": {"file_name": "sft.json", "formatting": "sharegpt"}}))
    assert sharegpt_file(tmp_path) == file
