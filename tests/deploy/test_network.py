"""Who reaches which port, and which pods a drain must leave. Labels select the pods that they mean."""

from __future__ import annotations

import pytest

from tests.deploy.pods import PodTemplate, cluster_spec, every_pod, pod_templates
from tests.deploy.rendering import Object, every_object, only, rendered

PODS = every_pod()
POLICIES = {
    policy["metadata"]["name"]: policy["spec"] for policy in rendered("shared") if policy["kind"] == "NetworkPolicy"
}


def selects(selector: Object, pod: PodTemplate) -> bool:
    assert set(selector) <= {"matchLabels"}
    return selector.get("matchLabels", {}).items() <= pod.labels.items()


def open_to(pod: PodTemplate, caller: PodTemplate | None) -> set[int] | None:
    """Ports that ``caller``, or somebody from elsewhere, reaches by the policies; None for all of them."""
    binding = [policy for policy in POLICIES.values() if selects(policy["podSelector"], pod)]
    if not binding:
        return None
    ports: set[int] = set()
    for rule in (rule for policy in binding for rule in policy["ingress"]):
        sources = rule.get("from")
        inside = [source for source in sources or [] if set(source) == {"podSelector"}]
        if sources is None or (caller is not None and any(selects(source["podSelector"], caller) for source in inside)):
            if "ports" not in rule:
                return None
            ports |= {port["port"] for port in rule["ports"]}
    return ports


@pytest.mark.parametrize("pod", PODS, ids=str)
def test_from_outside_only_the_http_port_of_the_service_is_reached(pod: PodTemplate):
    serving = pod.kind == "RayService" and pod.role == "worker"
    assert open_to(pod, None) == ({8000} if serving else set())


@pytest.mark.parametrize("pod", [pod for pod in PODS if pod.role != "other"], ids=str)
def test_pods_of_one_cluster_reach_each_other_on_all_ports(pod: PodTemplate):
    assert all(open_to(pod, other) is None for other in PODS if (other.folder, other.kind) == (pod.folder, pod.kind))


def test_redis_is_reached_by_the_pods_of_the_service_alone_and_on_its_port():
    [redis] = [pod for pod in pod_templates("service") if pod.kind == "StatefulSet"]
    for pod in PODS:
        assert open_to(redis, pod) == ({6379} if pod.kind == "RayService" else set()), pod


def test_policies_restrict_who_comes_in_and_let_the_operator_reach_the_head():
    assert all(policy["policyTypes"] == ["Ingress"] for policy in POLICIES.values())
    [rule] = [candidate for candidate in POLICIES["vrag-ray"]["ingress"] if "ports" in candidate]
    [source] = rule["from"]
    assert source["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "kuberay-operator"}
    assert source["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "kuberay-system"}
    assert [port["port"] for port in rule["ports"]] == [8265]


@pytest.mark.parametrize("folder", ["service", "service-gpu"])
def test_a_drain_leaves_a_pod_that_serves(folder: str):
    budget = only(folder, "PodDisruptionBudget")["spec"]
    # Of pods that no built-in controller owns, only a whole number of minAvailable can be held.
    assert set(budget) == {"minAvailable", "selector"}
    assert isinstance(budget["minAvailable"], int)
    protected = [pod for pod in pod_templates(folder) if selects(budget["selector"], pod)]
    assert {(pod.kind, pod.role) for pod in protected} == {("RayService", "worker")}
    # More than must stay: otherwise nothing could ever be drained.
    assert sum(pod.copies[0] for pod in protected) > budget["minAvailable"]
    assert not any(selects(budget["selector"], pod) for pod in PODS if pod.kind != "RayService")


def test_the_head_survives_what_no_budget_keeps_from_it():
    for folder in ("service", "service-gpu"):
        options = cluster_spec(only(folder, "RayService"))["gcsFaultToleranceOptions"]
        service = only(folder, "Service")
        assert options["redisAddress"] == f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"


@pytest.mark.parametrize("folder", ["service", "service-gpu"])
def test_services_select_pods(folder: str):
    service = only(folder, "Service")
    selected = [pod for pod in pod_templates(folder) if service["spec"]["selector"].items() <= pod.labels.items()]
    assert [pod.kind for pod in selected] == ["StatefulSet"]
    [port] = selected[0].containers[0]["ports"]
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]


def test_every_cluster_asks_its_own_ports_for_a_token():
    clusters = [manifest for _, manifest in every_object() if manifest["apiVersion"] == "ray.io/v1"]
    assert all(cluster_spec(cluster)["authOptions"] == {"mode": "token"} for cluster in clusters)
