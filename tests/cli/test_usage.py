"""What the command line says to wrong use, in this process: none of this may start Ray."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import document, plant
from vrag_ray.cli.main import COMMANDS, main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_help_names_every_command(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert all(f"\n  {command.__name__}" in out for command in COMMANDS)


def test_no_arguments_show_the_help_as_wrong_use(capsys):
    code, out, _ = run(capsys)
    assert code == 2
    assert "Commands" in out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["find", "x"], "find"),
        (["ask", "  "], "empty"),
        (["ask", "x", "--picture", "no-such-picture.png"], "no-such-picture.png"),
        (["ask", "x", "--evidence", "sound"], "sound"),
        (["search", "x", " "], "empty"),
        (["search", "x", "--mode", ""], "--mode"),
        (["search", "x", "--kind", "song"], "song"),
        (["search", "x", "--url", "127.0.0.1:8000"], "write it as http://HOST:PORT"),
        (["ui", "--url", "localhost"], "'localhost' is no address"),
        (["search", "x", "--where", "year"], "year"),
        (["search", "x", "--top-k", "0"], "--top-k"),
        (["ingest", "no-such-file.pdf"], "no-such-file.pdf"),
        (["ingest", ".", "--meta", "=1"], "--meta"),
        (["serve", "no-such-config.yaml"], "no-such-config.yaml"),
        (["verify", "my-collection"], "my-collection"),
        (
            ["evaluate", "retrieval", __file__, "--url", "http://127.0.0.1:9", "--gpus", "0"],
            "--gpus is for this process",
        ),
        (["evaluate", "retrieval", "--run", __file__, "--qrels", __file__, "--gpus", "1"], "--gpus"),
    ],
)
def test_wrong_use_is_one_line_that_names_it_and_exit_code_2(capsys, arguments: list[str], named: str):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert named in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "-c", "{folder}"],
        ["versions", "-c", "{folder}"],
        ["documents", "-c", "{folder}"],
        ["delete", "0123456789ab", "-c", "{folder}"],
        ["search", "x", "-c", "{folder}"],
        ["ask", "what is it?", "-c", "{folder}"],
    ],
)
def test_a_folder_that_is_no_collection_is_named_in_one_line_with_exit_code_1(
    capsys, tmp_path: Path, arguments: list[str]
):
    folder = tmp_path / "nothing-here"
    code, out, err = run(capsys, *(argument.format(folder=folder) for argument in arguments))
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert str(folder) in err
    assert not folder.exists()


def test_a_picture_that_is_too_large_is_named_before_the_first_request(capsys, tmp_path: Path):
    large = tmp_path / "large.png"
    large.write_bytes(bytes((8 << 20) + 1))
    code, out, err = run(capsys, "ask", "x", "-c", str(tmp_path / "none"), "--picture", str(large))
    assert (code, out) == (1, "")
    assert str(large) in err and "8 MiB" in err


def test_a_port_that_is_taken_is_named_before_a_folder_is_read(capsys, tmp_path: Path):
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "note.txt").write_text("a note")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for option in ("--port", "--ui-port"):
            code, _, err = run(capsys, "up", str(papers), option, port)
            assert (code, err) == (1, f"vrag: port {port} of 127.0.0.1 cannot be used: choose another with {option}\n")
        code, _, err = run(capsys, "ui", "--port", port)
        assert (code, len(err.splitlines())) == (1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["papers"]


def test_a_server_that_is_not_there_is_named(capsys):
    code, _, err = run(capsys, "ask", "what is it?", "--url", "http://127.0.0.1:9")
    assert code == 1
    assert "http://127.0.0.1:9" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["documents", "serve"])
def test_a_misspelt_setting_is_named_with_its_file(capsys, tmp_path: Path, command: str):
    config = tmp_path / "settings.yaml"
    config.write_text("index:\n  shard: 2\n", encoding="utf-8")
    arguments = [command, str(config)] if command == "serve" else [command, "--config", str(config)]
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert str(config) in err
    assert "index.shard" in err


def test_debug_shows_where_an_error_comes_from(tmp_path: Path):
    command = [sys.executable, "-m", "vrag_ray.cli", "--debug", "documents", "-c", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_help_loads_no_heavy_package():
    heavy = {"ray", "torch", "lance", "faiss", "onnxruntime", "transformers", "pymupdf", "fastapi"}
    program = "import sys; from vrag_ray.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_AFTER_S, check=True
    )
    assert not heavy & set(done.stderr.split())


def test_several_deleted_documents_are_one_json_value(capsys, tmp_path: Path):
    root = tmp_path / "c"
    plant(root, {"a": ["alpha"], "b": ["beta"], "c": ["gamma"]}, embedded=False)
    ids = [document(name).doc_id for name in ("a", "b")]
    code, out, _ = run(capsys, "delete", *ids, "-c", str(root), "--json")
    assert code == 0
    assert [(row["doc_id"], row["collection_version"]) for row in json.loads(out)] == [(each, 2) for each in ids]


def test_an_empty_name_of_a_collection_is_called_empty(capsys, monkeypatch: pytest.MonkeyPatch):
    assert run(capsys, "documents", "-c", "")[2] == "vrag: Invalid value: --collection is empty: name a folder\n"
    monkeypatch.setenv("VRAG_COLLECTION", "")
    _, _, err = run(capsys, "documents")
    assert err == (
        "vrag: the configuration (environment) is wrong at collection: it is empty: name a folder or a URI\n"
    )


def test_a_file_in_the_place_of_a_collection_is_called_a_file(capsys, tmp_path: Path):
    file = tmp_path / "a.txt"
    file.write_text("alpha")
    code, _, err = run(capsys, "create", "-c", str(file))
    assert (code, err) == (1, f"vrag: {file} is a file: choose an empty or new folder for the collection\n")


@pytest.mark.parametrize("pages", ["nan", "inf", "1e30", "-5"])
def test_a_plan_for_no_number_of_pages_says_so_at_once(capsys, pages: str):
    code, _, err = run(capsys, "plan", "--pages", pages)
    assert code == 1
    assert "internal error" not in err
    assert ("give a number above 0" in err) or ("give fewer --pages" in err)
