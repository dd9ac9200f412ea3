"""``vrag up``: one command from a folder to a running system, and back to nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import psutil
import pytest
import typer
from typer.testing import CliRunner

from tests.support import material
from tests.support.ingest_material import settings_for
from tests.support.openai_stub import images_of, openai_stub
from tests.support.patience import HANGS_AFTER_S
from tests.support.signals import heeding_interrupts
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.events import AnswerEvent
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.cli.commands.up import (
    collection_beside,
    files_below,
    follow,
    free_port,
    ingest_new,
    starting_agent,
    with_model,
)
from vrag_ray.cli.main import make_app
from vrag_ray.client.blocking import Client
from vrag_ray.client.schemas import RunRequest, SearchRequest
from vrag_ray.config import OpenAiConfig, Settings, SpaceConfig
from vrag_ray.index.storage.collection import Collection
from vrag_ray.types import VragError

TIMEOUT_S = 240
TURNS = (
    AddSearchNode(id="cost", parent_ids=("root",), query="dredging cost northern basin"),
    SummarizeAndMemorize(
        summarize="It cost 4.7 million.",
        memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=5),),
    ),
    AddAnswerNode(parent_ids=("cost",), answer="4.7 million euros [1].", citations=("cost#1",)),
)
ENDPOINT = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}


def _lines_until(process: subprocess.Popen[str], marker: str) -> Iterator[str]:
    assert process.stderr is not None
    for line in process.stderr:
        yield line
        if marker in line:
            return
    raise AssertionError(f"it ended with {process.wait()} before it said {marker!r}")


@contextmanager
def running_up(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """``vrag up papers`` in ``folder``: its process, what it printed until it was up, and the gateway's address.

    Its ``papers`` are a report and a broken file. At the end it is killed, should it still run.
    """
    papers = folder / "papers"
    papers.mkdir()
    (papers / "report.pdf").write_bytes(material.pdf())
    (papers / "broken.pdf").write_bytes(material.pdf()[:200])
    command = heeding_interrupts(sys.executable, "-m", "vrag_ray.cli", "up", "papers", "--port", "0", *options)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAG_")}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            output = "".join(_lines_until(process, "Ctrl-C stops everything"))
            [address] = re.findall(r"serving .*papers-collection at (http\S+)", output)
            yield process, output, address
        finally:
            process.kill()


def test_a_folder_becomes_a_running_system_and_ctrl_c_leaves_nothing_behind(tmp_path: Path):
    interface = free_port()
    with openai_stub(lambda _, number: GraphProtocol().render(TURNS[min(number, 2)])) as stub:
        options = ("--openai", stub.base_url, "--model", "stub", "--agent", "vimrag", "--ui-port", str(interface))
        with running_up(tmp_path, *options) as (process, output, address):
            assert "1 added" in output
            assert "error: broken.pdf" in output
            assert httpx.get(f"{address}/readyz").json()["collection"]["name"] == "papers-collection"
            assert httpx.get(f"http://127.0.0.1:{interface}/_stcore/health").status_code == 200
            assert [path.name for path in (tmp_path / "papers").iterdir() if path.name.startswith(".")] == []
            started = psutil.Process(process.pid).children(recursive=True)
            assert started
            with Client(address) as client:
                assert client.models().default_agent == "vimrag"
                [*_, last] = client.events(RunRequest(question="What did dredging cost?"))
            assert isinstance(last, AnswerEvent)
            assert last.answer == "4.7 million euros [1]."
            assert [citation.page for citation in last.citations] == [2]
            assert {body["model"] for body in stub.requests} == {"stub"}
            # The pages that were found are shown to the model.
            assert [len(images_of(body)) for body in stub.requests][:2] == [0, 3]
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 0
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
    assert psutil.wait_procs(started, timeout=HANGS_AFTER_S)[1] == []


def test_a_watched_folder_is_followed_and_ctrl_c_ends_it(tmp_path: Path):
    with running_up(tmp_path, "--no-ui", "--watch") as (process, _, address):
        (tmp_path / "papers" / "deep").mkdir()
        (tmp_path / "papers" / "deep" / "late.txt").write_text("The lantern keeper of Skarholm is Aslaug Dahl.")
        assert "the folder has changed: ingesting" in "".join(_lines_until(process, "1 added"))
        deadline = time.monotonic() + HANGS_AFTER_S
        with Client(address) as client:
            # The service looks for new versions every two seconds.
            while client.search(SearchRequest(query="lantern keeper of Skarholm")).results[0][0].title != "late":
                assert time.monotonic() < deadline
                time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 0


def test_a_file_that_came_after_the_first_look_at_a_watched_folder_is_ingested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "papers").mkdir()
    settings = Settings(collection=str(tmp_path / "c"), spaces={"text": SpaceConfig(model="none")})
    before, stop = files_below([tmp_path / "papers"]), Event()
    (tmp_path / "papers" / "late.txt").write_text("The lantern keeper of Skarholm is Aslaug Dahl.")
    following = Thread(target=follow, args=([tmp_path / "papers"], settings, stop, before))
    following.start()
    try:
        deadline, output = time.monotonic() + HANGS_AFTER_S, ""
        while "1 added" not in output:
            assert time.monotonic() < deadline and following.is_alive()
            time.sleep(0.1)
            output += capsys.readouterr().err
    finally:
        stop.set()
        following.join()
    [document] = Collection.open(settings.collection).documents()
    assert document.title == "late"


@pytest.mark.parametrize(
    ("openai", "model", "vllm", "problem"),
    [
        ("http://127.0.0.1:9/v1", None, None, "needs --model"),
        (None, "m", None, "needs --openai"),
        ("http://127.0.0.1:9/v1", "m", "org/name", "give one of them"),
        (None, None, "./nowhere", "the folder ./nowhere does not exist"),
        (None, None, "nowhere", "the folder nowhere does not exist"),
    ],
)
def test_options_that_do_not_name_one_model_are_refused(
    openai: str | None, model: str | None, vllm: str | None, problem: str
):
    with pytest.raises(VragError, match=problem):
        with_model(Settings(), openai, model, vllm)


@pytest.mark.parametrize(("openai", "model", "field"), [("x", "m", "base_url"), ("http://h/v1", "", "model")])
def test_an_option_that_names_no_endpoint_is_refused(openai: str, model: str, field: str) -> None:
    for settings in (Settings(), Settings(openai=OpenAiConfig(base_url="http://a/v1", model="a"))):
        with pytest.raises(typer.BadParameter, match=f"^{field}: "):
            with_model(settings, openai, model, None)


@pytest.mark.parametrize("values", [{}, {"openai": ENDPOINT}])
def test_a_name_that_is_no_agent_is_refused(values: dict[str, object]):
    with pytest.raises(VragError, match=r"--agent 'bogus' is no agent: use one of extractive"):
        starting_agent(Settings.model_validate(values), "bogus")


@pytest.mark.parametrize(
    ("values", "agent", "problem"),
    [
        ({}, "vimrag", "needs a model"),
        ({"openai": ENDPOINT | {"max_images": 2}}, "vimrag", r"vimrag cannot be served: .* > openai.max_images 2"),
        (
            {"openai": ENDPOINT | {"max_images": 10}, "agent": {"tags_results": 9}},
            "vrag",
            r"--agent vrag cannot be served: .*results 9 .* > openai.max_images 10",
        ),
    ],
)
def test_an_agent_that_would_not_be_served_is_refused(values: dict[str, object], agent: str, problem: str):
    with pytest.raises(VragError, match=problem):
        starting_agent(Settings.model_validate(values), agent)


def test_the_service_begins_with_the_named_agent_or_with_the_models_own():
    without, endpoint = Settings(), Settings.model_validate({"openai": ENDPOINT})
    assert starting_agent(without, None) == starting_agent(without, "extractive") == "extractive"
    assert starting_agent(endpoint, None) == "vimrag"
    assert [starting_agent(endpoint, name) for name in ("vrag", "extractive")] == ["vrag", "extractive"]


def test_a_wrong_agent_is_refused_before_anything_is_ingested(tmp_path: Path):
    (tmp_path / "papers").mkdir()
    command = ["up", str(tmp_path / "papers"), "--openai", ENDPOINT["base_url"], "--model", "m", "--agent", "bogus"]
    done = CliRunner().invoke(make_app(), command)
    assert isinstance(done.exception, VragError)
    assert "no agent" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["papers"]


def test_the_named_model_replaces_that_of_the_configuration_and_keeps_its_other_settings():
    base = Settings.model_validate({"openai": {"base_url": "http://a/v1", "model": "a", "api_key_env": "HARBOUR_KEY"}})
    endpoint = with_model(base, "http://b/v1", "b", None).openai
    assert endpoint is not None
    assert (endpoint.base_url, endpoint.model, endpoint.api_key_env) == ("http://b/v1", "b", "HARBOUR_KEY")
    served = Settings.model_validate({"vllm": {"model": "a", "num_gpus": 0, "max_num_seqs": 3}})
    loaded = with_model(served, None, None, "org/name").vllm
    assert loaded is not None and (loaded.model, loaded.max_num_seqs) == ("org/name", 3)


@pytest.mark.parametrize(
    ("config", "evidence", "images", "context"),
    [
        ({"model_type": "qwen2_5_vl", "max_position_embeddings": 128_000, "vision_config": {}}, "picture", 32, 12_288),
        ({"model_type": "qwen3_vl", "text_config": {"max_position_embeddings": 4096}}, "picture", 32, 4096),
        ({"model_type": "llama", "max_position_embeddings": 2048}, "text", 0, 2048),
    ],
)
def test_a_model_alone_is_given_limits_and_budgets_that_fit(
    config: dict[str, object], evidence: str, images: int, context: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", "")  # no driver is found: the model runs on the CPU
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    settings = with_model(Settings(), None, None, str(tmp_path))
    assert settings.vllm is not None
    assert (settings.vllm.max_images, settings.vllm.max_model_len, settings.vllm.num_gpus) == (images, context, 0)
    assert settings.agent.evidence == evidence
    assert starting_agent(settings, None) == "vimrag"


def test_a_model_that_cannot_be_served_is_refused_before_anything_is_ingested(tmp_path: Path):
    for name in ("papers", "model"):
        (tmp_path / name).mkdir()
    config = {"model_type": "no-such-model", "vision_config": {}}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    done = CliRunner().invoke(make_app(), ["up", str(tmp_path / "papers"), "--vllm", str(tmp_path / "model")])
    assert "model_type is 'no-such-model'" in str(done.exception)
    assert not (tmp_path / "papers-collection").exists()


def test_each_folder_has_a_collection_of_its_own(tmp_path: Path):
    assert collection_beside(tmp_path / "papers") == str(tmp_path / "papers-collection")
    (tmp_path / "one.pdf").touch()
    assert collection_beside(tmp_path / "one.pdf") == str(tmp_path / "one-collection")


@pytest.mark.usefixtures("local_ray")
def test_what_had_errors_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    settings = settings_for(tmp_path / "c")
    for _ in range(2):
        ingest_new([tmp_path / "broken.pdf"], settings)
        output = capsys.readouterr().err
        assert "0 unchanged, 1 with errors" in output
        assert "--retry-errors" not in output


def test_the_collection_of_a_folder_whose_name_is_not_utf8_has_a_name_that_is(tmp_path: Path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xfccher"))
    odd.mkdir()
    assert collection_beside(odd) == str(tmp_path / "b%FCcher-collection")
