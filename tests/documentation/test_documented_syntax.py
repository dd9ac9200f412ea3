"""What the documentation shows is what the programs take: every command's options, every YAML file's settings, every
import. Nothing is run; ``test_documented_commands`` does that.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from pydantic import BaseModel

from tests.support.command_line import assert_taken
from tests.support.documentation_blocks import Block, blocks, commands
from tests.support.paths import ROOT
from vrag_ray.config import Settings, load_settings
from vrag_ray.training.config import RLConfig, SFTConfig, load_training
from vrag_ray.training.construct.config import ConstructConfig
from vrag_ray.training.retriever.config import RetrieverConfig

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL = [block for page in PAGES for block in blocks(page)]
SERVE_CONFIGS = sorted((ROOT / "serve_configs").glob("*.yaml"))
_ASSIGNED = re.compile(r"\w+=")
_SHELL = {"|", ">", ">>", "<", "&&", "||", ";", "&", "2>", "2>&1"}


def words_of(command: str) -> list[str]:
    """The first simple command, without variables before it and without what the shell does with its output."""
    words = shlex.split(command, comments=True)
    while words and _ASSIGNED.match(words[0]):
        words.pop(0)
    end = next((place for place, word in enumerate(words) if word in _SHELL), len(words))
    return words[:end]


def documented(program: str) -> Iterator[tuple[str, list[str]]]:
    for block in ALL:
        if block.language == "sh":
            for command in commands(block.text):
                words = words_of(command)
                if words and words[0].removeprefix(".venv/bin/") == program:
                    yield f"{block.page}:{block.line}: {command}", words[1:]


def header_commands(config: Path) -> list[str]:
    """The commands in the comment at the top of a YAML file: its lines of `#   ` and a command."""
    header = itertools.takewhile(lambda line: line.startswith("#"), config.read_text(encoding="utf-8").splitlines())
    return [match[1] for line in header if (match := re.match(r"#   (\S.*)$", line))]


def test_every_vrag_command_is_one_that_the_command_line_takes():
    wrong = []
    shown = list(documented("vrag"))
    for where, arguments in shown:
        try:
            assert_taken(arguments)
        except typer.TyperException as error:
            wrong.append(f"{where}\n  {error.format_message()}")
    assert wrong == []
    assert {arguments[0] for _, arguments in shown} >= {"up", "ingest", "search", "ask", "serve", "ui", "train"}


@pytest.mark.parametrize("wrong", [["serch", "x"], ["search", "x", "--colection", "c"], ["train", "sft"], ["ask"]])
def test_a_command_that_the_command_line_does_not_take_is_found(wrong: list[str]):
    with pytest.raises(typer.TyperException):
        assert_taken(wrong)


@pytest.mark.parametrize("config", SERVE_CONFIGS, ids=lambda config: config.stem)
def test_the_commands_at_the_top_of_a_serve_config_are_ones_that_are_taken(config: Path):
    programs = set()
    for command in header_commands(config):
        variables = [word.partition("=")[0] for word in shlex.split(command) if word.startswith("VRAG_")]
        assert [name for name in variables if not is_setting(name)] == [], command
        program, *arguments = words_of(command)
        programs.add(program)
        if program == "vrag":
            assert_taken(arguments)
        elif program == "serve":
            assert arguments[0] in ("run", "deploy"), command
            assert arguments[1:] == [f"serve_configs/{config.name}"], command
        elif program == "python":
            assert (ROOT / arguments[0]).is_file(), command
        elif program == "pip":
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            [extra] = re.findall(r"\.\[(\w+)\]", command)
            assert extra in extras["optional-dependencies"], command
        else:
            assert program in ("curl", "export"), command
    assert programs >= {"vrag", "serve"}


def is_setting(variable: str) -> bool:
    """Whether the service reads it: ``VRAG_SERVING__AUTH`` is ``serving.auth``."""
    model: object = Settings
    for name in variable.removeprefix("VRAG_").lower().split("__"):
        if not (isinstance(model, type) and issubclass(model, BaseModel) and name in model.model_fields):
            return False
        model = model.model_fields[name].annotation
    return True


def test_a_variable_that_is_no_setting_is_found():
    assert is_setting("VRAG_SERVING__AUTH")
    assert not is_setting("VRAG_SERVING__ATUH")
    assert not is_setting("VRAG_COLECTION")


def test_every_script_that_is_run_is_there():
    scripts = {
        word
        for block in ALL
        if block.language == "sh"
        for command in commands(block.text)
        for word in shlex.split(command, comments=True)
        if re.fullmatch(r"(jobs|benchmarks|tools)/\w+\.py", word)
    }
    assert [script for script in sorted(scripts) if not (ROOT / script).is_file()] == []
    assert {"jobs/ingest.py", "jobs/train_rl.py", "jobs/train_sft.py"} <= scripts


def test_every_settings_file_is_one_that_is_read(tmp_path: Path):
    read = []
    for block in ALL:
        if block.language != "yaml":
            continue
        values = yaml.safe_load(block.text)
        if block.file is None or not isinstance(values, dict):
            continue
        file = tmp_path / Path(block.file).name
        file.write_text(block.text, encoding="utf-8")
        try:
            _load(file, values)
        except Exception as error:
            raise AssertionError(f"{block.page}:{block.line}: {block.file}: {error}") from error
        read.append(block.file)
    assert read


def _load(file: Path, values: dict[str, object]) -> None:
    applications = values.get("applications")
    if isinstance(applications, list):
        for application in applications:
            Settings.model_validate(application.get("args", {}))
    elif "environment" in values:
        load_training(file, RLConfig)
    elif "trajectories" in values:
        load_training(file, SFTConfig)
    elif "pairs" in values:
        load_training(file, RetrieverConfig)
    elif "planner" in values:
        load_training(file, ConstructConfig)
    else:
        load_settings(file)


def python_blocks() -> list[Block]:
    return [block for block in ALL if block.language == "python"]


@pytest.mark.parametrize("block", python_blocks(), ids=lambda block: f"{block.page}:{block.line}")
def test_every_program_imports_what_there_is(block: Block):
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("vrag_ray", "tests"):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module} has no {name.name}"
