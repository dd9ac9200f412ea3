"""The documentation as its reader uses it: every command and program of README and docs is run as it is written.

A block that cannot be run here has a mark on the line before it, ``<!-- not run: reason -->``, with one of the reasons
below. A YAML or JSON block whose first line is a comment with a file's name is written to that file first.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.support.documentation_blocks import Block, blocks, commands, indented_code
from tests.support.paths import ROOT
from tests.support.stranger import Stranger

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
REASONS = (
    "needs a GPU",
    "needs a key",
    "needs a model endpoint",
    "needs files of your own",
    "needs a Kubernetes cluster",
    "takes hours",
    "takes minutes",
    "sets up this machine",
    "runs all tests",
    "a part of another program",
)
RUN = {"sh", "python"}
RUNNABLE = [path for path in PAGES if any(block.language in RUN and not block.unrun for block in blocks(path))]


def test_no_command_hides_from_these_tests():
    for path in PAGES:
        assert indented_code(path) == [], path.name
        for block in blocks(path):
            assert not block.unrun or block.unrun.startswith(REASONS), f"{path.name}:{block.line}: {block.unrun}"
            if block.language == "sh":
                assert list(commands(block.text)), f"{path.name}:{block.line} has no command"


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    """In a checkout with some documents, a shell with `vrag` on its path, and nothing else of ours."""
    from vrag_ray.samples.demo.corpus import make_corpus

    folder = tmp_path_factory.mktemp("checkout")
    for name in ("jobs", "serve_configs", "tools", "vrag_ray", "ui", "benchmarks"):
        # Benchmarks fetch their documents into a folder of their own.
        left_out = ("__pycache__", "data") if name == "benchmarks" else ("__pycache__",)
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*left_out))
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / ".gitignore").write_text(".venv\n*.log\n", encoding="utf-8")
    corpus = {path.suffix: path for path in make_corpus(folder / "made")}
    for target, suffixes in (("papers", (".md", ".jpg")), ("talks", (".mp4",))):
        (folder / target).mkdir()
        for suffix in suffixes:
            shutil.copy(corpus[suffix], folder / target)
    shutil.copy(next(path for path in (folder / "made").glob("*yearbook*.pdf")), folder / "papers")
    shutil.copy(next(path for path in (folder / "made").glob("*.md")), folder / "report.md")
    (folder / "home").mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("VRAG_", "RAY_", "OPENAI_"))}
    path = os.pathsep.join((str(Path(sys.executable).parent), inherited.get("PATH", "")))
    # Unix sockets have short names.
    with tempfile.TemporaryDirectory(prefix="vrag-", ignore_cleanup_errors=True) as ray_folder:
        own = {"PATH": path, "HOME": str(folder / "home"), "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": ray_folder}
        somebody = Stranger(folder, inherited | own)
        try:
            somebody.run("vrag ingest papers/ talks/ --collection my-collection")
            yield somebody
        finally:
            somebody.leave()


# Quick form: ``test_documented_syntax``, the same commands parsed and not run; ``cli/test_up`` runs `vrag up`.
@pytest.mark.exhaustive
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_the_page_does_what_it_says(page: Path, stranger: Stranger):
    # From the beginning of the page: commands that start a Ray of their own must not be confused by it.
    with stranger.cluster() if "ray job submit" in page.read_text(encoding="utf-8") else nullcontext():
        _follow(page, stranger)


def _follow(page: Path, stranger: Stranger) -> None:
    programs: list[str] = []
    for block in blocks(page):
        if block.unrun:
            continue
        if block.file is not None:
            (stranger.folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            for command in commands(block.text):
                stranger.run(command)
        elif block.language == "python":
            # Later programs of a page go on where the first left off.
            programs.append(block.text)
            stranger.run_python("\n".join(programs))
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "jsonl":
            assert all(isinstance(json.loads(line), dict) for line in block.text.splitlines())


def test_a_mark_and_a_file_name_are_read(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: needs a GPU, of 24 GB -->\n```sh\nvrag up\n```\n\n```yaml\n# run.yaml\nname: x\n```\n"
        "```sh\n# only words\necho 'two\nlines' \\\n  more  # why\nls\n```\n",
        encoding="utf-8",
    )
    marked, config, shell = blocks(page)
    assert marked == Block("page.md", 2, "sh", "vrag up", "needs a GPU, of 24 GB")
    assert (config.file, config.unrun) == ("run.yaml", "")
    assert list(commands(shell.text)) == ["echo 'two\nlines' \\\n  more  # why", "ls"]
    page.write_text("A sentence.\n\n    vrag up\n\n- a list\n\n    its paragraph\n", encoding="utf-8")
    assert indented_code(page) == ["vrag up"]
