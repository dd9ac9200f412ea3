"""Each way to install the project ends with exactly one FAISS: two wheels own one folder, and pip removes none."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from setup_plan import ACCELERATORS, needed_extras, single_faiss

from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PATHS = re.compile(r"(?:vrag-ray|['\" ]\.)\[([a-z]+(?:,[a-z]+)*)\]")
"""The extras of ``pip install 'vrag-ray[a,b]'`` and ``pip install -e '.[a,b]'``."""
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "serve_configs").glob("*.yaml"),
)


def faiss_of(extras: frozenset[str]) -> list[str]:
    """The FAISS distributions that pip installs for the project with ``extras``, on this machine."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in sorted(extras))]
    requirements = [Requirement(text) for texts in lists for text in texts]
    return sorted(
        {
            requirement.name
            for requirement in requirements
            if requirement.name.startswith("faiss") and (requirement.marker is None or requirement.marker.evaluate())
        }
    )


def documented() -> set[frozenset[str]]:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    return {frozenset(names.split(",")) for text in texts for names in PATHS.findall(text)}


def test_the_documents_name_paths_to_install():
    assert frozenset({"gpu"}) in documented()


@pytest.mark.parametrize("extras", sorted(documented(), key=sorted), ids=lambda extras: ",".join(sorted(extras)))
def test_each_documented_path_ends_with_one_faiss(extras: frozenset[str]):
    # The web interface is a client of the service: it alone needs none.
    assert len(faiss_of(extras)) == (0 if extras == {"ui"} else 1)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_make_demo_and_make_setup_end_with_one_faiss_in_either_order(accelerator: str):
    demo, test = needed_extras("demo", accelerator), needed_extras("test", accelerator)
    assert len(faiss_of(demo)) == len(faiss_of(test)) == len(faiss_of(single_faiss(demo | test))) == 1


@pytest.mark.parametrize(("extra", "wheel"), [("embedded", "faiss-cpu"), ("cpu", "faiss-cpu"), ("gpu", "faiss-gpu")])
def test_an_extra_brings_the_faiss_that_fits_it_and_the_base_brings_none(extra: str, wheel: str):
    assert faiss_of(frozenset({extra, "ui"})) == [wheel]
    assert faiss_of(frozenset()) == []
