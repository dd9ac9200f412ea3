"""The manifests are what Kubernetes and KubeRay take: every field has a known name and a value of its type.

The CRDs of KubeRay are not in this repository. Who has them sets ``KUBERAY_CRDS`` to their folder
(``ray-operator/config/crd/bases`` of its release), and the manifests are held to them too.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from pydantic import ValidationError

from tests.deploy import crd_schema, ray_kinds
from tests.deploy.pods import PodTemplate, cluster_spec, every_cluster, every_pod
from tests.deploy.rendering import FOLDERS, KUBERAY, RAY_KINDS, Object, documents, every_object, only, rendered

VERSIONS = ("1.30", "1.37")
"""Of Kubernetes: an older one that is still about, and the newest that kubernetes-validate knows."""
CRDS = os.environ.get("KUBERAY_CRDS")
Entry = tuple[str, Object]


def name_of(entry: Any) -> str:
    return f"{entry[0]}-{entry[1]['kind']}-{entry[1]['metadata']['name']}" if isinstance(entry, tuple) else str(entry)


def validate(manifest: Object, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("entry", [entry for entry in every_object() if entry[1]["kind"] not in RAY_KINDS], ids=name_of)
def test_kubernetes_takes_the_object(entry: Entry, version: str):
    validate(entry[1], version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("pod", every_pod(), ids=str)
def test_kubernetes_takes_the_pod(pod: PodTemplate, version: str):
    validate({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": pod.template}, version)


@pytest.mark.parametrize("entry", every_cluster(), ids=name_of)
def test_kuberay_takes_the_object(entry: Entry):
    ray_kinds.BY_NAME[entry[1]["kind"]].model_validate(entry[1])


@pytest.mark.parametrize("entry", every_cluster(), ids=name_of)
def test_kubernetes_takes_what_kuberay_adds_to_a_container(entry: Entry):
    """The autoscaler's resources and security, and the variable of the Redis password."""
    cluster = cluster_spec(entry[1])
    options = cluster.get("autoscalerOptions", {})
    container = {"name": "x", **{key: options[key] for key in ("resources", "securityContext") if key in options}}
    password = cluster.get("gcsFaultToleranceOptions", {}).get("redisPassword")
    if password:
        container["env"] = [{"name": "REDIS_PASSWORD", **password}]
    for version in VERSIONS:
        validate(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [container]}}, version
        )


def test_the_example_of_the_secrets_is_one():
    for secret in documents(KUBERAY / "secrets.example.yaml"):
        validate(secret, VERSIONS[-1])


def test_a_service_jobs_and_a_cluster_are_there():
    kinds = {manifest["kind"] for folder in FOLDERS for manifest in rendered(folder)}
    assert kinds >= {"RayService", "RayJob", "RayCluster", "PodDisruptionBudget", "NetworkPolicy", "ConfigMap"}


def planted(change: str) -> Object:
    """The service with one mistake in it."""
    service = only("service", "RayService")
    cluster = service["spec"]["rayClusterConfig"]
    worker = cluster["workerGroupSpecs"][0]
    match change:
        case "minReplica":
            worker["minReplica"] = worker.pop("minReplicas")
        case "number":
            cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0
        case "place":
            service["spec"]["authOptions"] = cluster.pop("authOptions")
        case "name":
            service["metadata"]["name"] = "2-vrag"
        case _:
            raise AssertionError(change)
    return service


@pytest.mark.parametrize("change", ["minReplica", "number", "place", "name"])
def test_a_planted_mistake_in_a_ray_kind_is_found(change: str):
    with pytest.raises(ValidationError):
        ray_kinds.RayService.model_validate(planted(change))


@pytest.mark.parametrize("key", ["resource", "envfrom", "readinessprobe"])
def test_a_planted_mistake_in_a_pod_is_found(key: str):
    pod = copy.deepcopy(next(candidate for candidate in every_pod() if candidate.role == "worker").template)
    pod["spec"]["containers"][0][key] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        validate({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": pod}, VERSIONS[0])


SMALL_CRD: Object = {
    "kind": "CustomResourceDefinition",
    "spec": {
        "group": "ray.io",
        "names": {"kind": "RayCluster"},
        "versions": [
            {"name": "v1alpha1", "schema": {}},
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "metadata": {"type": "object"},
                            "spec": {
                                "type": "object",
                                "required": ["minReplicas", "maxReplicas"],
                                "properties": {
                                    "minReplicas": {"type": "integer"},
                                    "maxReplicas": {"type": "integer", "default": 9},
                                    "params": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "port": {"type": "string", "x-kubernetes-int-or-string": True},
                                },
                            },
                        },
                    }
                },
            },
        ],
    },
}


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"minReplicas": 1}, 0),
        ({"minReplicas": 1, "params": {"any": "text"}, "port": 8}, 0),
        ({"minReplica": 1}, 2),
        ({"minReplicas": 1, "params": {"any": 0}}, 1),
    ],
)
def test_a_crd_is_read_strictly(spec: Object, wrong: int):
    schema = crd_schema.strict_schema(SMALL_CRD)
    assert len(list(crd_schema.problems({"metadata": {"name": "x"}, "spec": spec}, schema))) == wrong


if CRDS is not None:
    # Not a skip where the variable is not set: then there is no such test.
    @pytest.mark.parametrize("entry", every_cluster(), ids=name_of)
    def test_the_crd_takes_the_object(entry: Entry):
        assert CRDS is not None
        crds = crd_schema.crds_in(Path(CRDS))
        assert entry[1]["kind"] in crds, f"KUBERAY_CRDS={CRDS} has no CRD of {entry[1]['kind']}"
        assert list(crd_schema.problems(entry[1], crd_schema.strict_schema(crds[entry[1]["kind"]]))) == []
