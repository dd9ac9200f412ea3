"""The pods that a rendered object leads to, and the sizes in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.deploy.rendering import FOLDERS, RAY_KINDS, Object, rendered

_POWERS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}


@dataclass(frozen=True)
class PodTemplate:
    """``role`` is head, worker, submitter or other; ``copies`` how many are there at least and at most."""

    folder: str
    kind: str
    name: str
    role: str
    copies: tuple[int, int]
    template: Object

    def __str__(self) -> str:
        return f"{self.folder}/{self.kind}/{self.name}"

    @property
    def spec(self) -> Object:
        spec: Object = self.template["spec"]
        return spec

    @property
    def labels(self) -> dict[str, str]:
        """With those that KubeRay puts on the pods of a Ray cluster, and on which other manifests rely."""
        own: dict[str, str] = self.template["metadata"]["labels"]
        return own | ({"ray.io/node-type": self.role} if self.role in ("head", "worker") else {})

    @property
    def containers(self) -> list[Object]:
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    def requested(self, resource: str) -> float:
        return sum(
            quantity(container["resources"]["requests"].get(resource, 0)) for container in self.spec["containers"]
        )


def cluster_spec(manifest: Object) -> Object:
    """The Ray cluster of a RayService, RayJob or RayCluster."""
    spec: Object = manifest["spec"]
    cluster: Object = spec.get("rayClusterConfig") or spec.get("rayClusterSpec") or spec
    return cluster


def pod_templates(folder: str) -> Iterator[PodTemplate]:
    for manifest in rendered(folder):
        kind, name, spec = manifest["kind"], manifest["metadata"]["name"], manifest.get("spec", {})
        if kind in RAY_KINDS:
            cluster = cluster_spec(manifest)
            yield PodTemplate(folder, kind, f"{name}-head", "head", (1, 1), cluster["headGroupSpec"]["template"])
            for group in cluster["workerGroupSpecs"]:
                copies = (group["minReplicas"], group["maxReplicas"])
                yield PodTemplate(folder, kind, f"{name}-{group['groupName']}", "worker", copies, group["template"])
            if "submitterPodTemplate" in spec:
                yield PodTemplate(folder, kind, f"{name}-submitter", "submitter", (1, 1), spec["submitterPodTemplate"])
        elif kind == "StatefulSet":
            yield PodTemplate(folder, kind, name, "other", (spec["replicas"], spec["replicas"]), spec["template"])
        elif kind == "Pod":
            yield PodTemplate(folder, kind, name, "other", (1, 1), {"metadata": manifest["metadata"], "spec": spec})


def every_pod() -> list[PodTemplate]:
    return [pod for folder in FOLDERS for pod in pod_templates(folder)]


def every_cluster() -> list[tuple[str, Object]]:
    return [(folder, manifest) for folder in FOLDERS for manifest in rendered(folder) if manifest["kind"] in RAY_KINDS]


def quantity(value: Any) -> float:
    """``250m`` is a quarter, ``16Gi`` that many bytes."""
    text = str(value)
    for suffix, power in _POWERS.items():
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * 2**power
    return float(text.removesuffix("m")) / 1000 if text.endswith("m") else float(text)
