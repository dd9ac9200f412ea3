"""Every pod runs as nobody special, asks for what it uses, and finds what it refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.pods import PodTemplate, cluster_spec, every_cluster, every_pod, pod_templates, quantity
from tests.deploy.rendering import FOLDERS, KUBERAY, Object, documents, image_names, only, rendered

PODS = every_pod()
RAY_PODS = [pod for pod in PODS if pod.role in ("head", "worker")]


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_no_pod_runs_as_root_or_can_become_it(pod: PodTemplate):
    assert pod.spec["securityContext"]["runAsNonRoot"] is True
    # By number, or the kubelet cannot know who the image's user is.
    assert pod.spec["securityContext"]["runAsUser"] >= 100
    assert pod.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod.spec)
    assert all("hostPath" not in volume for volume in pod.spec.get("volumes", []))
    for container in pod.containers:
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "runAsUser"} & set(own)


@pytest.mark.parametrize("entry", every_cluster(), ids=lambda entry: entry[1]["metadata"]["name"])
def test_the_autoscaler_that_kuberay_adds_is_held_as_short(entry: tuple[str, Object]):
    cluster = cluster_spec(entry[1])
    if not cluster.get("enableInTreeAutoscaling"):
        assert "autoscalerOptions" not in cluster
        return
    options = cluster["autoscalerOptions"]
    assert options["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert set(options["resources"]) == {"requests", "limits"}
    # Version 2 sets the restart policy itself, and KubeRay refuses any other.
    assert options["version"] == "v2"
    assert all("restartPolicy" not in pod.spec for pod in RAY_PODS if pod.folder == entry[0])


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_every_container_asks_for_what_it_may_use(pod: PodTemplate):
    for container in pod.containers:
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert set(requests) == set(limits) >= {"cpu", "memory"}
        # Memory that is promised to several is killed for; Ray reads its CPUs from the limit.
        assert requests["memory"] == limits["memory"]
        assert quantity(requests["cpu"]) <= quantity(limits["cpu"])
        if pod.role in ("head", "worker"):
            assert requests == limits


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_a_pod_has_a_token_of_kubernetes_only_where_an_autoscaler_needs_it(pod: PodTemplate):
    scaled = pod.role == "head" and cluster_spec(only(pod.folder, pod.kind)).get("enableInTreeAutoscaling", False)
    assert pod.spec.get("automountServiceAccountToken", True) is scaled


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_no_service_of_the_namespace_looks_like_a_setting(pod: PodTemplate):
    """A Service vrag-x would set VRAG_X_PORT, and VRAG_… are the names of settings."""
    assert pod.spec["enableServiceLinks"] is False


@pytest.mark.parametrize("pod", RAY_PODS, ids=str)
def test_every_ray_pod_is_probed(pod: PodTemplate):
    container = pod.containers[0]
    assert container["livenessProbe"]["httpGet"] == {"path": "/api/healthz", "port": 52365}
    ready = container["readinessProbe"]["httpGet"]
    serving = pod.kind == "RayService" and pod.role == "worker"
    assert ready == ({"path": "/-/healthz", "port": "serve"} if serving else {"path": "/api/healthz", "port": 52365})
    # A slow start is no reason for a restart.
    assert container["livenessProbe"]["failureThreshold"] * container["livenessProbe"]["periodSeconds"] >= 120


def test_the_probes_ask_for_paths_that_this_ray_has_and_guards_with_no_token():
    from ray.dashboard.http_server_agent import PUBLIC_EXACT_PATHS

    assert "/api/healthz" in PUBLIC_EXACT_PATHS


@pytest.mark.parametrize("pod", [pod for pod in RAY_PODS if pod.role == "head"], ids=str)
def test_the_head_has_the_ports_that_kuberay_makes_services_of(pod: PodTemplate):
    ports = {port["name"]: port["containerPort"] for port in pod.containers[0]["ports"]}
    served = {"serve": 8000} if pod.kind == "RayService" else {}
    assert ports == {"gcs-server": 6379, "dashboard": 8265, "client": 10001} | served


def defined(folder: str) -> set[tuple[str, str]]:
    """Kind and name of what is there when a folder is applied: ``shared``, the secrets, and its own."""
    objects = [*rendered("shared"), *rendered(folder), *documents(KUBERAY / "secrets.example.yaml")]
    return {(manifest["kind"], manifest["metadata"]["name"]) for manifest in objects}


def keys(folder: str, kind: str, name: str) -> set[str]:
    objects = [*rendered("shared"), *rendered(folder), *documents(KUBERAY / "secrets.example.yaml")]
    [manifest] = [
        candidate for candidate in objects if (candidate["kind"], candidate["metadata"]["name"]) == (kind, name)
    ]
    return set(manifest.get("data", {})) | set(manifest.get("stringData", {}))


def references(value: Any) -> Iterator[tuple[str, str, str | None]]:
    """Kind, name and key of everything that a pod or a Ray kind takes from elsewhere."""
    if isinstance(value, list):
        for part in value:
            yield from references(part)
    if not isinstance(value, dict):
        return
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if f"{field}Ref" in value:
            yield kind, value[f"{field}Ref"]["name"], None
        if f"{field}KeyRef" in value:
            yield kind, value[f"{field}KeyRef"]["name"], value[f"{field}KeyRef"]["key"]
    if isinstance(value.get("configMap"), dict):
        yield "ConfigMap", value["configMap"]["name"], None
    if isinstance(value.get("secret"), dict):
        yield "Secret", value["secret"]["secretName"], None
    if "persistentVolumeClaim" in value:
        yield "PersistentVolumeClaim", value["persistentVolumeClaim"]["claimName"], None
    for part in value.values():
        yield from references(part)


@pytest.mark.parametrize("folder", FOLDERS)
def test_everything_that_is_referred_to_is_defined(folder: str):
    for kind, name, key in references(rendered(folder)):
        assert (kind, name) in defined(folder)
        assert key is None or key in keys(folder, kind, name)


def test_a_reference_to_nothing_is_found():
    planted = {"envFrom": [{"secretRef": {"name": "vrag-kyes"}}], "env": [{"secretKeyRef": {"name": "a", "key": "b"}}]}
    assert list(references(planted)) == [("Secret", "vrag-kyes", None), ("Secret", "a", "b")]
    assert ("Secret", "vrag-kyes") not in defined("service")


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_every_mounted_volume_is_one_of_the_pod(pod: PodTemplate):
    claims = [claim_template["metadata"]["name"] for claim_template in claim_templates(pod)]
    volumes = [volume["name"] for volume in pod.spec.get("volumes", [])] + claims
    mounted = {mount["name"] for container in pod.containers for mount in container.get("volumeMounts", [])}
    assert mounted == set(volumes)
    assert len(volumes) == len(set(volumes))


def claim_templates(pod: PodTemplate) -> list[Object]:
    if pod.kind != "StatefulSet":
        return []
    claims: list[Object] = only(pod.folder, "StatefulSet")["spec"]["volumeClaimTemplates"]
    return claims


@pytest.mark.parametrize("pod", RAY_PODS, ids=str)
def test_every_pod_of_ray_has_the_settings_the_volume_and_one_image_with_its_cluster(pod: PodTemplate):
    [container] = pod.containers
    assert {"configMapRef": {"name": "vrag-settings"}} in container["envFrom"]
    assert {"name": "shared", "mountPath": "/shared"} in container["volumeMounts"]
    # KubeRay gives Redis's password and Ray's token to whom it concerns, and refuses a head with its own.
    assert "env" not in container
    assert container["image"] in image_names().values()
    assert {other.containers[0]["image"] for other in pod_templates(pod.folder) if other.kind == pod.kind} == {
        container["image"]
    }


def test_only_the_service_knows_the_keys_of_its_callers():
    knowing = {pod.folder for pod in PODS if ("Secret", "vrag-keys", None) in references(pod.template)}
    assert knowing == {"service", "service-gpu"}


def test_no_manifest_holds_a_secret():
    for secret in documents(KUBERAY / "secrets.example.yaml"):
        assert not any(secret["stringData"].values())
    assert not any(manifest["kind"] == "Secret" for folder in FOLDERS for manifest in rendered(folder))


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_a_pod_with_a_gpu_tolerates_what_keeps_others_from_its_machine(pod: PodTemplate):
    wants = pod.requested("nvidia.com/gpu") > 0
    tolerated = {toleration["key"] for toleration in pod.spec.get("tolerations", [])}
    assert tolerated == ({"nvidia.com/gpu"} if wants else set())
    assert wants == pod.name.endswith("-gpu")
