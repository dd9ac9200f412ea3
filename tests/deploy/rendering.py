"""What ``kubectl apply -k deploy/kuberay/FOLDER`` applies: the part of kustomize that these folders use, and no more.

``test_rendering`` holds it to the real one, where there is one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.paths import ROOT

Object = dict[str, Any]
KUBERAY = ROOT / "deploy" / "kuberay"
FOLDERS = ("shared", "service", "service-gpu", "ingest", "train", "cluster", "toolbox")
RAY_KINDS = ("RayCluster", "RayJob", "RayService")
_KNOWN = {
    "apiVersion",
    "kind",
    "namespace",
    "images",
    "resources",
    "components",
    "patches",
    "configMapGenerator",
    "generatorOptions",
}


def documents(path: Path) -> list[Object]:
    return [manifest for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8")) if manifest]


def rendered(folder: str) -> list[Object]:
    """The objects of a folder of ``deploy/kuberay``, each call's its own."""
    return copy.deepcopy(_built(KUBERAY / folder))


def every_object() -> list[tuple[str, Object]]:
    """With the folder that it is of. Those of ``service`` are there again, as ``service-gpu`` changes them."""
    return [(folder, manifest) for folder in FOLDERS for manifest in rendered(folder)]


def only(folder: str, kind: str) -> Object:
    [chosen] = [manifest for manifest in rendered(folder) if manifest["kind"] == kind]
    return chosen


def image_names() -> dict[str, str]:
    """The real name of each image by the one that manifests use."""
    return {
        image["name"]: f"{image['newName']}:{image['newTag']}" for image in _kustomization(KUBERAY / "image")["images"]
    }


@cache
def _built(folder: Path) -> list[Object]:
    kustomization = _kustomization(folder)
    objects: list[Object] = []
    for name in kustomization.get("resources", []):
        path = folder / name
        objects += copy.deepcopy(_built(path.resolve())) if path.is_dir() else documents(path)
    objects += [_config_map(generator, folder) for generator in kustomization.get("configMapGenerator", [])]
    for name in kustomization.get("components", []):
        component = (folder / name).resolve()
        _transform(objects, _kustomization(component), component)
    return objects


def _kustomization(folder: Path) -> Object:
    [values] = documents(folder / "kustomization.yaml")
    assert set(values) <= _KNOWN, f"{folder.name}: teach {Path(__file__).name} what {set(values) - _KNOWN} means"
    return values


def _config_map(generator: Object, folder: Path) -> Object:
    data = {Path(name).name: (folder / name).read_text(encoding="utf-8") for name in generator["files"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": data}


def _transform(objects: list[Object], component: Object, folder: Path) -> None:
    for patch in component.get("patches", []):
        target = patch["target"]
        [patched] = [
            manifest
            for manifest in objects
            if (manifest["kind"], manifest["metadata"]["name"]) == (target["kind"], target["name"])
        ]
        for operation in documents(folder / patch["path"])[0]:
            _patch(patched, operation)
    if "namespace" in component:
        for manifest in objects:
            if manifest["kind"] != "Namespace":
                manifest["metadata"]["namespace"] = component["namespace"]
    images = {image["name"]: f"{image['newName']}:{image['newTag']}" for image in component.get("images", [])}
    for container in (container for manifest in objects for container in _containers(manifest)):
        container["image"] = images.get(container["image"], container["image"])


def _patch(target: Object, operation: Object) -> None:
    """JSON 6902: ``add`` at the end of a list, and ``replace``."""
    *way, last = operation["path"].strip("/").split("/")
    place: Any = target
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    if operation["op"] == "add" and last == "-":
        place.append(copy.deepcopy(operation["value"]))
    elif operation["op"] == "replace":
        assert last in place, f"{operation['path']} replaces nothing"
        place[last] = operation["value"]
    else:
        raise AssertionError(f"teach {Path(__file__).name} the operation {operation['op']} {operation['path']}")


def _containers(value: Any) -> Iterator[Object]:
    """Every container, at any depth, as kustomize finds them."""
    children: Sequence[Any] = ()
    if isinstance(value, dict):
        yield from (container for key in ("containers", "initContainers") for container in value.get(key, []))
        children = list(value.values())
    elif isinstance(value, list):
        children = value
    for child in children:
        yield from _containers(child)
