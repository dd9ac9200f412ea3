"""The documentation names only what exists: the drawn architecture, the layers, paths and links of every page."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import draw_architecture
import pytest

from tests.support.paths import ROOT

ARCHITECTURE = ROOT / "docs/architecture.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?:vrag_ray|jobs|ui|tests|benchmarks|serve_configs|tools|docs)/[\w./*-]*")
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
LAYER = re.compile(r"^\| (\d+) \| `([\w/.]+)` \|.*\| ([\w ]+) \|$", re.MULTILINE)
"""A row of the table of packages: layer, path, what it may import."""


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of the headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    slugs = set()
    for heading in HEADING.findall(prose(page)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        slugs.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return frozenset(slugs)


def dead_links(page: Path) -> Iterator[str]:
    for target in LINK.findall(CODE.sub("", prose(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not file.exists() or (anchor and anchor not in anchors(file.resolve())):
            yield target


def missing_paths(page: Path) -> Iterator[str]:
    """Of the repository's paths in inline code, those that name nothing."""
    for code in CODE.findall(prose(page)):
        for word in code.split():
            path = PATH.fullmatch(word)
            if path and not any(ROOT.glob(path[0].rstrip("/"))):
                yield path[0]


def test_the_committed_picture_is_what_the_script_draws():
    assert draw_architecture.PICTURE.read_text(encoding="utf-8") == draw_architecture.draw()


def test_every_package_of_the_picture_is_a_folder_with_code():
    boxes = [*draw_architecture.BOXES.values(), draw_architecture.PIPELINE]
    assert [box.name for box in boxes if not (box.folder / "__init__.py").is_file()] == []
    labels = re.findall(r">([\w/]+)/</text>", draw_architecture.draw())
    assert sorted(labels) == sorted(box.name for box in boxes)


def test_the_table_of_packages_has_the_layers_that_lint_checks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    checked = {
        (number, module.strip())
        for number, layer in enumerate(reversed(layers), start=1)
        for module in re.split(r"[|:]", layer)
    }
    rows = LAYER.findall(ARCHITECTURE.read_text(encoding="utf-8"))
    modules = {(int(number), path.removesuffix(".py").strip("/").replace("/", ".")) for number, path, _ in rows}
    assert modules == checked
    below = {1: "none", 2: "1"}
    assert [row for row in rows if row[2] != below.get(int(row[0]), f"1 to {int(row[0]) - 1}")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_names_only_paths_and_links_that_exist(page: Path):
    assert (list(missing_paths(page)), list(dead_links(page))) == ([], [])


def test_a_dead_link_and_a_missing_path_are_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One `name`\n## Here, there\n## Here there\n"
        "[a](#one-name) [b](#here-there-1) [c](gone.md) [d](page.md#nowhere)\n"
        "![e](gone.png) [f](https://example.org) `[g](h)`\n`vrag_ray/gone.py` `python tools/*.py` `tests/support/`\n"
        "```\n[i](gone.md) `docs/gone.md`\n```\n",
        encoding="utf-8",
    )
    assert list(dead_links(page)) == ["gone.md", "page.md#nowhere", "gone.png"]
    assert list(missing_paths(page)) == ["vrag_ray/gone.py"]
