"""What runs fits on the pods: by the reading and the bin packing of Ray's own autoscaler for KubeRay."""

from __future__ import annotations

from typing import Any

import pytest
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
from ray.autoscaler._private.resource_demand_scheduler import get_bin_pack_residual

from tests.deploy.pods import cluster_spec, every_cluster, pod_templates
from tests.deploy.rendering import KUBERAY, Object, only
from tests.deploy.serve_configs import SERVICES, application, environment, serve_config
from vrag_ray.config import Settings
from vrag_ray.index.shards.shard_pool import ACTOR_CPUS
from vrag_ray.training.config import RLConfig, load_training

Resources = dict[str, float]


def node_types(folder: str, manifest: Object) -> dict[str, Any]:
    """What Ray's autoscaler makes of the cluster: resources and numbers of each group."""
    cluster = {"metadata": {"name": folder, "namespace": "vrag"}, "spec": cluster_spec(manifest)}
    types: dict[str, Any] = _derive_autoscaling_config_from_ray_cr(cluster)["available_node_types"]
    return types


def nodes(types: dict[str, Any], which: str) -> list[Resources]:
    machines = []
    for name, group in types.items():
        resources = {key: float(value) for key, value in group["resources"].items() if key in ("CPU", "GPU")}
        machines += [dict(resources) for _ in range(1 if name == "headgroup" else group[which])]
    return machines


def demands(folder: str, which: str) -> list[Resources]:
    """What the service reserves with its fewest or most replicas, the shards of all Retrievers included."""
    config = application(serve_config(folder))
    index = Settings.model_validate(config["args"]).index
    requested: list[Resources] = []
    for deployment in config["deployments"]:
        options, replicas = deployment["ray_actor_options"], deployment["autoscaling_config"][which]
        each = {"CPU": float(options["num_cpus"]), "GPU": float(options.get("num_gpus", 0))}
        requested += [{key: value for key, value in each.items() if value}] * replicas
        if deployment["name"] == "Retriever":
            requested += [{"CPU": ACTOR_CPUS}] * (index.shards * index.replicas)
    return requested


def unplaced(where: list[Resources], what: list[Resources]) -> list[Resources]:
    largest_first = sorted(what, key=lambda resources: sorted(resources.items(), reverse=True), reverse=True)
    rest: list[Resources] = get_bin_pack_residual(where, largest_first)[0]
    return rest


@pytest.mark.parametrize("entry", every_cluster(), ids=lambda entry: f"{entry[0]}-{entry[1]['kind']}")
def test_ray_reads_the_groups_as_they_are_meant(entry: tuple[str, Object]):
    types = node_types(*entry)
    head = types["headgroup"]["resources"]
    # Whatever reserves a CPU runs on a worker, and the control service has the head for itself.
    assert (head["CPU"], head.get("GPU", 0)) == (0, 0)
    for name, group in types.items():
        if name == "headgroup":
            continue
        assert (group["resources"].get("GPU", 0) > 0) == (name == "gpu")
        assert group["min_workers"] <= group["max_workers"]


@pytest.mark.parametrize("folder", SERVICES)
def test_the_service_fits_at_its_smallest_and_at_its_largest(folder: str):
    types = node_types(folder, only(folder, "RayService"))
    assert unplaced(nodes(types, "min_workers"), demands(folder, "min_replicas")) == []
    assert unplaced(nodes(types, "max_workers"), demands(folder, "max_replicas")) == []


@pytest.mark.parametrize("folder", SERVICES)
def test_the_largest_service_needs_more_pods_than_the_smallest(folder: str):
    """Otherwise the number of pods would never follow the load."""
    types = node_types(folder, only(folder, "RayService"))
    assert unplaced(nodes(types, "min_workers"), demands(folder, "max_replicas")) != []


def test_a_service_that_does_not_fit_is_found():
    types = node_types("service", only("service", "RayService"))
    assert unplaced(nodes(types, "min_workers")[:1], demands("service", "min_replicas")) != []


def test_nothing_but_the_model_can_settle_on_a_pod_with_a_gpu():
    gpu = node_types("service-gpu", only("service-gpu", "RayService"))["gpu"]
    assert gpu["resources"]["CPU"] == 0
    [policy] = [
        deployment
        for deployment in application(serve_config("service-gpu"))["deployments"]
        if deployment["name"] == "Policy"
    ]
    assert policy["ray_actor_options"] == {"num_cpus": 0, "num_gpus": 1}
    expected = (policy["autoscaling_config"]["min_replicas"], policy["autoscaling_config"]["max_replicas"])
    assert (gpu["min_workers"], gpu["max_workers"]) == expected


def test_a_shard_scans_with_the_cpus_of_its_pod():
    [worker] = [pod for pod in pod_templates("service") if pod.role == "worker"]
    assert float(environment()["VRAG_INDEX__THREADS"]) == worker.requested("cpu")


@pytest.mark.parametrize("folder", ["ingest", "train"])
def test_jobs_that_size_themselves_at_the_start_have_all_their_workers_then(folder: str):
    spec = cluster_spec(only(folder, "RayJob"))
    assert not spec.get("enableInTreeAutoscaling", False)
    [group] = spec["workerGroupSpecs"]
    assert group["replicas"] == group["minReplicas"] == group["maxReplicas"] > 0


def test_the_entrypoint_of_ingest_fits_on_a_worker():
    job = only("ingest", "RayJob")
    assert unplaced(nodes(node_types("ingest", job), "min_workers"), [{"CPU": job["spec"]["entrypointNumCpus"]}]) == []


def test_the_workers_of_a_training_run_fit():
    config = load_training(KUBERAY / "train" / "train.yaml", RLConfig)
    worker = {"CPU": float(config.workers.cpus), "GPU": 1.0 if config.workers.gpu else 0.0}
    there = nodes(node_types("train", only("train", "RayJob")), "min_workers")
    assert unplaced(there, [worker] * config.workers.count) == []
    # The cluster for jobs can do the same.
    there = nodes(node_types("cluster", only("cluster", "RayCluster")), "max_workers")
    assert unplaced(there, [worker] * config.workers.count) == []
