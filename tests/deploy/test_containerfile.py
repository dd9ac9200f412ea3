"""The image: Ray's own of the version that the project pins, no root, only what is in the repository."""

from __future__ import annotations

import re
import shlex
import tomllib
from fnmatch import fnmatch
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement

from tests.deploy.containerfile import (
    CONTAINERFILE,
    WORKDIR,
    arguments,
    base,
    copied,
    instructions,
    of_the_image,
    values,
)
from tests.deploy.pods import cluster_spec, every_cluster
from tests.deploy.rendering import Object, image_names
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IGNORE = (ROOT / "deploy" / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()


def pinned_ray() -> str:
    [ray] = [requirement for requirement in map(Requirement, PROJECT["dependencies"]) if requirement.name == "ray"]
    [pin] = ray.specifier
    assert pin.operator == "=="
    return pin.version


def test_both_variants_are_built_on_rays_image_of_the_pinned_version():
    assert base() == f"docker.io/rayproject/ray:{pinned_ray()}-py311-cpu"
    assert base(PLATFORM="gpu") == f"docker.io/rayproject/ray:{pinned_ray()}-py311-gpu"
    assert pinned_ray() == version("ray")
    assert PROJECT["requires-python"] == ">=3.11"


@pytest.mark.parametrize("entry", every_cluster(), ids=lambda entry: f"{entry[0]}-{entry[1]['kind']}")
def test_a_cluster_says_the_version_of_ray_that_is_in_its_image(entry: tuple[str, Object]):
    assert cluster_spec(entry[1])["rayVersion"] == arguments()["RAY_VERSION"]


def test_the_images_are_those_that_the_file_says_how_to_build():
    text = CONTAINERFILE.read_text(encoding="utf-8")
    tags = set(re.findall(r"-t (\S+)", text))
    assert tags == set(image_names().values())
    assert {name.rpartition("-")[2] for name in tags} <= {*PROJECT["optional-dependencies"]}
    assert all(f":{PROJECT['version']}-" in name for name in tags)


def test_it_ends_as_rays_own_user_and_is_root_only_for_the_systems_packages():
    user, as_root = "", []
    for instruction in of_the_image():
        if instruction.name == "USER":
            user = instruction.value
        elif instruction.name == "RUN" and user == "root":
            as_root.append(instruction.value)
    assert user == "1000:100"
    assert [command.split()[0] for command in as_root] == ["apt-get"]


def test_nothing_is_fetched_but_packages():
    assert {instruction.name for instruction in of_the_image()} == {
        "ARG",
        "ENV",
        "FROM",
        "USER",
        "WORKDIR",
        "COPY",
        "RUN",
    }
    text = CONTAINERFILE.read_text(encoding="utf-8")
    assert not re.search(r"https?://|curl|wget|--from=", text)
    assert not re.search(r"KEY|TOKEN|PASSWORD|SECRET", text)


def test_everything_that_is_copied_exists_and_is_sent_to_the_builder():
    assert values("WORKDIR") == [str(WORKDIR)]
    sent = [line.removeprefix("!") for line in IGNORE if line.startswith("!")]
    assert "*" in IGNORE
    for sources, target in copied():
        for source in sources:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, pattern) for pattern in sent), f"{source} is ignored"
            # Where it is in the repository, so that what is installed in place is found.
            assert target in ("./", source, f"{source.rpartition('/')[0]}/"), (source, target)


def test_what_is_installed_in_place_has_the_names_of_the_packages_that_come_later():
    [stubs] = [value for value in values("RUN") if value.startswith("mkdir")]
    made = shlex.split(stubs.partition("&&")[0])[1:]
    packages = {name.rstrip("*") for name in ("vrag_ray*", "ui")}
    find = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"][
        "find"
    ]
    assert set(made) == packages == {name.rstrip("*") for name in find["include"]}
    order = [instruction.value for instruction in of_the_image()]
    assert all(order.index(stubs) < order.index(f"--chown=1000:100 {name} {name}") for name in made)


def test_continued_lines_and_comments_are_read():
    [first, second] = instructions("# one\nRUN a \\\n  b\n\n# two\nUSER x\n")
    assert (first.name, first.value.split(), second.value) == ("RUN", ["a", "b"], "x")
