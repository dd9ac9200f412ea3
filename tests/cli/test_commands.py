"""The commands as a user runs them: real processes, real files, a real server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import material
from tests.support.patience import HANGS_AFTER_S

VRAG = [sys.executable, "-m", "vrag_ray.cli"]
TIMEOUT_S = 240


def vrag(*arguments: str, code: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*VRAG, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env=os.environ | variables,
    )
    assert done.returncode == code, f"{arguments}: {done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "report.pdf").write_bytes(material.pdf())
    (folder / "notes.txt").write_text(material.TEXT, encoding="utf-8")
    (folder / "broken.pdf").write_bytes(material.pdf()[:200])
    return folder


@pytest.fixture(scope="module")
def ingested(files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, subprocess.CompletedProcess[str]]:
    root = str(tmp_path_factory.mktemp("root") / "collection")
    return root, vrag("ingest", str(files), "-c", root, "--meta", "year=2024", "--json")


@pytest.fixture(scope="module")
def collection(ingested: tuple[str, subprocess.CompletedProcess[str]]) -> str:
    return ingested[0]


def test_ingest_takes_the_good_files_and_lists_the_broken_one(ingested):
    root, done = ingested
    report = json.loads(done.stdout)
    assert (report["collection"], report["added"], report["pages"]) == (root, 2, 4)
    (problem,) = report["failed"]
    assert problem["uri"].endswith("broken.pdf")
    assert problem["error"]


def test_ingest_again_changes_nothing_and_strict_makes_the_broken_file_a_failure(collection, files):
    done = vrag("ingest", str(files), "-c", collection, "--strict", "--retry-errors", code=1)
    assert "0 added" in done.stdout
    assert "2 unchanged" in done.stdout
    assert "error: broken.pdf" in done.stdout
    assert "Traceback" not in done.stderr


def test_documents_and_versions_are_listed(collection):
    listed = {
        d["uris"][0].rsplit("/", 1)[-1]: d for d in json.loads(vrag("documents", "-c", collection, "--json").stdout)
    }
    assert {name: d["status"] for name, d in listed.items()} == {
        "report.pdf": "ready",
        "notes.txt": "ready",
        "broken.pdf": "error",
    }
    assert listed["report.pdf"]["meta"]["year"] == 2024
    versions = json.loads(vrag("versions", "-c", collection, "--json").stdout)
    assert [record["number"] for record in versions] == sorted({record["number"] for record in versions})
    assert "3 documents" in vrag("documents", "-c", collection).stdout


def test_files_of_the_same_name_are_shown_with_the_folders_that_differ(tmp_path):
    for year, boats in (("2023", 41), ("2024", 58)):
        (tmp_path / "in" / year).mkdir(parents=True)
        (tmp_path / "in" / year / "report.txt").write_text(f"The yard of {year} built {boats} boats of oak.\n")
    (tmp_path / "in" / "pilots.txt").write_text("Nine pilots work in the port.\n")
    root = str(tmp_path / "c")
    vrag("ingest", str(tmp_path / "in"), "-c", root)
    listed = vrag("documents", "-c", root).stdout
    assert [line.split()[-1] for line in listed.splitlines()[:-1]] == [
        "2023/report.txt",
        "2024/report.txt",
        "pilots.txt",
    ]
    for year, boats in (("2023", 41), ("2024", 58)):
        printed = vrag("ask", f"How many boats of oak did the yard of {year} build?", "-c", root).stdout
        assert f"  [1] report ({year}), characters" in printed and f"built {boats} boats" in printed
    assert "  1. pilots, the text" in vrag("search", "pilots of the port", "-c", root).stdout
    [doc_id] = [line.split()[0] for line in listed.splitlines() if "2023/" in line]
    assert vrag("delete", doc_id, "-c", root).stdout.startswith("report (2023) is deleted;")
    assert "  1. report, the text" in vrag("search", "boats of oak", "-c", root).stdout


@pytest.fixture(scope="module")
def no_ray(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of a process in which importing Ray fails."""
    folder = tmp_path_factory.mktemp("no-ray")
    (folder / "ray.py").write_text("raise ImportError('this process must not need Ray')\n", encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path}


def test_what_reads_a_local_collection_runs_in_its_own_process_without_ray(collection, no_ray):
    response = json.loads(
        vrag("search", "dredging the basin", "-c", collection, "--where", "year=2024", "--json", **no_ray).stdout
    )
    assert response["results"][0][0]["page"] == 2
    assert (response["shards_ok"], response["shards_total"], response["mode"]) == (1, 1, "hybrid")
    assert "3 documents" in vrag("documents", "-c", collection, **no_ray).stdout
    assert "sound" in vrag("verify", "-c", collection, **no_ray).stdout
    answer = vrag("ask", "How much did dredging the northern basin cost?", "-c", collection, **no_ray)
    assert "4.7 million euros" in answer.stdout
    assert "report.pdf" not in answer.stderr
    assert "page 2, box" in answer.stdout
    for shown in ("search", "found", "read", "look", "remember", "Answer", "Sources", "Graph"):
        assert shown in answer.stdout


def test_what_needs_a_service_says_so(collection, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("vllm: {model: some/model}\n", encoding="utf-8")
    refused = vrag("ask", "why?", "-c", collection, "--agent", "vimrag", "--config", str(settings), code=1)
    assert "vrag serve" in refused.stderr
    assert "--url" in refused.stderr


def test_create_makes_an_empty_collection_once(tmp_path):
    root = str(tmp_path / "new")
    for _ in range(2):
        assert "0 documents" in vrag("create", "-c", root).stdout


def test_verify_names_the_flipped_byte_and_exits_1(collection, tmp_path):
    # A collection is complete in itself: a copy of its folder is one.
    root = str(shutil.copytree(collection, tmp_path / "copy"))
    assert "sound" in vrag("verify", "-c", root).stdout
    blob = next(path for path in Path(root).rglob("*") if path.is_file() and path.parent.name == "blobs")
    data = bytearray(blob.read_bytes())
    data[3] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(data)
    done = vrag("verify", "-c", root, "--json", code=1)
    report = json.loads(done.stdout)
    assert not report["sound"]
    assert any(blob.name in name for name in report["damaged"])


@pytest.fixture(scope="module")
def server(collection: str) -> Iterator[str]:
    process = subprocess.Popen(
        [*VRAG, "serve", "-c", collection, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield json.loads(line)["url"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANGS_AFTER_S) == 0
        assert process.stdout.read() == ""
    finally:
        if process.poll() is None:
            process.kill()


def test_serve_prints_its_address_and_answers_by_url_until_interrupted(server, tmp_path):
    result = vrag("search", "apprentices", "--url", server)
    assert "page 3" in result.stdout
    graph = tmp_path / "graph.dot"
    question = "Where does the harbour master keep a copy?"
    record = json.loads(vrag("ask", question, "--url", server, "--json", "--dot", str(graph)).stdout)
    assert record["status"] == "answered"
    assert "in the tower" in record["answer"]
    assert record["citations"][0]["uri"] == "notes.txt"
    assert '"q1" -> "answer"' in graph.read_text(encoding="utf-8")


def test_doctor_says_which_profile_would_run():
    report = json.loads(vrag("doctor", "--json").stdout)
    assert report["profile"]
    assert {package["name"] for package in report["packages"]} >= {"ray", "pymupdf"}
    assert os.cpu_count() == report["machine"]["cpus"]
