"""The first words to a model, from a file of the operator's: read once, and the same wherever a protocol is made."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from vrag_ray.agent.chat import Role
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.compat.agents import VRAG
from vrag_ray.config import AgentConfig, AgentName, CorpusConfig, OpenAiConfig, Settings, load_settings
from vrag_ray.policies.registry import InstructionError, ready_settings, wire_protocol
from vrag_ray.types import VragError

QUESTION = "How {many} cranes?"
TAGS = "Think, then <search> or <answer>; boxes are <bbox>[x1, y1, x2, y2]</bbox>. Question: {question}"
GRAPH = 'Call one tool as {"name": …}:\n{tools}\nNothing else.'


def first(protocol: WireProtocol) -> tuple[Role, str]:
    graph = MemoryGraph.start(QUESTION)
    prompt = Prompt(QUESTION, graph, observation=None, history=(), steps_left=5)
    message = protocol.messages(prompt)[0]
    return message.role, message.text


def put(folder: Path, text: str, name: str = "own.txt") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def protocol(agent: AgentName, file: str) -> WireProtocol:
    return wire_protocol(agent, AgentConfig.model_validate({"instruction": {agent: file}}), CorpusConfig(), None)


def test_the_file_is_the_prompt_byte_for_byte_with_the_question_in_its_place(tmp_path: Path) -> None:
    own = protocol(AgentName.VRAG, put(tmp_path, TAGS + "\n"))
    assert first(own) == (Role.USER, TAGS.replace("{question}", QUESTION))


def test_the_question_follows_an_instruction_that_has_no_place_for_it(tmp_path: Path) -> None:
    own = protocol(AgentName.VRAG, put(tmp_path, "<search>, <answer>."))
    assert first(own) == (Role.USER, f"<search>, <answer>.\nQuestion: {QUESTION}")


def test_the_tools_are_listed_where_the_file_says(tmp_path: Path) -> None:
    role, text = first(protocol(AgentName.VIMRAG, put(tmp_path, GRAPH)))
    before, after = GRAPH.split("{tools}")
    assert role is Role.SYSTEM
    assert text.startswith(before) and text.endswith(after)
    assert all(name in text for name in ("add_search_node", "summarize_and_memorize", "crop", "add_answer_node"))


def test_an_instruction_is_of_the_agent_that_it_is_for(tmp_path: Path) -> None:
    config = AgentConfig.model_validate({"instruction": {"vrag": put(tmp_path, TAGS)}})
    built_in = wire_protocol(AgentName.VIMRAG, AgentConfig(), CorpusConfig(), None)
    assert first(wire_protocol(AgentName.VIMRAG, config, CorpusConfig(), None)) == first(built_in)


def test_the_text_travels_with_the_settings_and_not_the_file(tmp_path: Path) -> None:
    file = put(tmp_path, TAGS)
    config = AgentConfig.model_validate({"instruction": {"vrag": file}})
    Path(file).unlink()
    for copy in (pickle.loads(pickle.dumps(config)), AgentConfig.model_validate_json(config.model_dump_json())):
        assert copy == config
        assert first(wire_protocol(AgentName.VRAG, copy, CorpusConfig(), None))[1].startswith("Think, then")


def test_a_file_and_a_variable_name_it_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path, TAGS)
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"agent: {{instruction: {{vrag: {file}}}}}", encoding="utf-8")
    from_file = load_settings(settings).agent
    monkeypatch.setenv("VRAG_AGENT__INSTRUCTION__VRAG", file)
    assert load_settings().agent == from_file
    assert from_file.instruction_of(AgentName.VRAG) == TAGS


@pytest.mark.parametrize(
    ("agent", "content", "problem"),
    [
        ("vrag", None, r"agent\.instruction\.vrag: .*cannot read .*own\.txt: No such file"),
        ("vrag", b" \n", r"agent\.instruction\.vrag: .*own\.txt is empty"),
        ("vimrag", b"caf\xe9 {tools}", r"agent\.instruction\.vimrag: .*own\.txt is not UTF-8"),
        ("extractive", b"<search> <answer>", r"agent\.instruction: .*extractive asks no model"),
        ("oracle", b"<search> <answer>", r"agent\.instruction\.oracle"),
    ],
)
def test_a_file_that_is_no_instruction_is_refused_by_name(
    tmp_path: Path, agent: str, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "own.txt"
    if content is not None:
        file.write_bytes(content)
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"agent: {{instruction: {{{agent}: {file}}}}}", encoding="utf-8")
    with pytest.raises(VragError, match=problem):
        load_settings(settings)


@pytest.mark.parametrize(
    ("agent", "text", "problem"),
    [
        ("vrag", "Answer in <answer></answer>.", r"agent\.instruction\.vrag: .*own\.txt does not name <search>"),
        ("vimrag", TAGS, r"agent\.instruction\.vimrag: .*does not name add_search_node, .*or put \{tools\} where"),
    ],
)
def test_an_instruction_without_what_the_protocol_needs_is_refused_at_start(
    tmp_path: Path, agent: str, text: str, problem: str
) -> None:
    settings = Settings(
        openai=OpenAiConfig(base_url="http://127.0.0.1:9/v1", model="stub"),
        agent=AgentConfig.model_validate({"instruction": {agent: put(tmp_path, text)}}),
    )
    with pytest.raises(InstructionError, match=problem):
        ready_settings(settings)


def test_the_originals_class_takes_one_too(tmp_path: Path) -> None:
    agent = VRAG(instruction=put(tmp_path, TAGS))
    assert first(agent.protocol())[1] == TAGS.replace("{question}", QUESTION)
    with pytest.raises(VragError, match="cannot read"):
        VRAG(instruction=str(tmp_path / "none.txt"))
