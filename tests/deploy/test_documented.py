"""What docs/deploy.md says of the manifests is what they say."""

from __future__ import annotations

import re

import pytest

from tests.deploy.pods import cluster_spec, every_cluster, pod_templates, quantity
from tests.deploy.rendering import FOLDERS, KUBERAY, rendered
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
GIB = 2**30


def requests(folder: str, bound: int) -> tuple[float, float, float]:
    """CPUs, GiB and GPUs of all pods of a folder, at its fewest (0) or most (1)."""
    cpus = memory = gpus = 0.0
    for pod in pod_templates(folder):
        cpus += pod.copies[bound] * pod.requested("cpu")
        memory += pod.copies[bound] * pod.requested("memory") / GIB
        gpus += pod.copies[bound] * pod.requested("nvidia.com/gpu")
    for where, manifest in every_cluster():
        options = cluster_spec(manifest).get("autoscalerOptions") if where == folder else None
        if options is not None:
            cpus += quantity(options["resources"]["requests"]["cpu"])
            memory += quantity(options["resources"]["requests"]["memory"]) / GIB
    return cpus, memory, gpus


def spread(least: float, most: float, unit: str, plural: str = "") -> str:
    if not most:
        return ""
    number = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return f"{number} {plural if most > 1 and plural else unit}"


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "shared"])
def test_the_page_says_what_a_folder_requests(folder: str):
    fewest, most = requests(folder, 0), requests(folder, 1)
    parts = [
        spread(fewest[0], most[0], "CPU"),
        spread(fewest[1], most[1], "GiB"),
        spread(fewest[2], most[2], "GPU", "GPUs"),
    ]
    [row] = re.findall(rf"^\| `{folder}` \|.*\| (.*) \|$", PAGE, re.MULTILINE)
    assert row == ", ".join(part for part in parts if part)


def test_every_folder_is_on_the_page_and_every_folder_of_the_page_is_there():
    assert set(re.findall(r"deploy/kuberay/([\w-]+)(?= |$|`)", PAGE)) <= set(FOLDERS)
    assert set(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE)) == set(FOLDERS)
    for path in re.findall(r"\(\.\./(deploy/[\w./-]+)\)", PAGE):
        assert (ROOT / path).is_file()
    assert (KUBERAY / "image" / "kustomization.yaml").is_file()


def test_objects_that_commands_name_are_those_of_the_manifests():
    objects = {
        (manifest["kind"].lower(), manifest["metadata"]["name"]) for folder in FOLDERS for manifest in rendered(folder)
    }
    named = {tuple(pair) for pair in re.findall(r"\b(rayjob|rayservice|raycluster|pod)/([\w-]+)", PAGE)}
    assert named and named <= objects
    # KubeRay names services after what they belong to.
    assert {name.removesuffix("-serve-svc") for name in re.findall(r"svc/([\w-]+-serve-svc)", PAGE)} == {"vrag"}
    assert {name.removesuffix("-head-svc") for name in re.findall(r"svc/([\w-]+-head-svc)", PAGE)} == {"vrag-jobs"}
    assert {("raycluster", "vrag-jobs"), ("rayservice", "vrag")} <= objects
    assert set(re.findall(r"secret generic ([\w-]+)", PAGE)) == {"vrag-keys", "vrag-redis"}
