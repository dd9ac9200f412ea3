"""The Serve configs inside the RayServices are ones that Ray and the application take, and do not drift from those of
``serve_configs/`` that were tried.
"""

from __future__ import annotations

import ast
import copy
from typing import Any

import pytest
from ray.serve.schema import ServeDeploySchema

from tests.deploy.rendering import Object, documents, only
from tests.deploy.serve_configs import SERVICES, application, environment, serve_config
from tests.support.paths import ROOT
from vrag_ray.cluster import ENVIRONMENT
from vrag_ray.config import Auth, Settings
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.types import VragError

DEPLOYMENTS = {"service": set[str](), "service-gpu": {"Policy"}}
"""Beside the four of every service."""


def shipped(name: str) -> Object:
    [config] = documents(ROOT / "serve_configs" / name)
    return config


def dropped(given: Any, taken: Any, where: str = "") -> list[str]:
    """Names in ``given`` that are not in ``taken``: Serve passes over what it does not know, a typo too."""
    if isinstance(given, list) and isinstance(taken, list):
        pairs = zip(given, taken, strict=True)
        return [
            name
            for number, (given_item, taken_item) in enumerate(pairs)
            for name in dropped(given_item, taken_item, f"{where}[{number}]")
        ]
    if not isinstance(given, dict) or not isinstance(taken, dict):
        return []
    lost = [f"{where}.{name}" for name in given if name not in taken]
    return lost + [
        path for name in given if name in taken for path in dropped(given[name], taken[name], f"{where}.{name}")
    ]


@pytest.mark.parametrize("folder", SERVICES)
def test_ray_takes_the_config_and_passes_over_nothing(folder: str):
    config = serve_config(folder)
    taken = ServeDeploySchema.model_validate(config).model_dump(exclude_unset=True)
    assert dropped(config, taken) == []


@pytest.mark.parametrize("name", ["autoscaling_confg", "numreplicas"])
def test_a_name_that_ray_passes_over_is_found(name: str):
    config = copy.deepcopy(serve_config("service"))
    application(config)["deployments"][0][name] = {}
    taken = ServeDeploySchema.model_validate(config).model_dump(exclude_unset=True)
    assert dropped(config, taken) == [f".applications[0].deployments[0].{name}"]


@pytest.mark.parametrize("folder", SERVICES)
def test_the_application_takes_its_arguments_under_the_settings_of_the_pods(
    folder: str, monkeypatch: pytest.MonkeyPatch
):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    settings = Settings.model_validate(application(serve_config(folder))["args"])
    # `build` refuses a service whose collection nobody named.
    assert "collection" in settings.model_fields_set
    assert settings.collection == "/shared/my-collection"
    paths = ServingPaths.of(settings)
    assert (str(paths.runs), str(paths.uploads)) == ("/shared/runs", "/shared/uploads")
    # Also where the collection is on an object store, for which there is no folder beside it.
    monkeypatch.setenv("VRAG_COLLECTION", "s3://bucket/my-collection")
    assert ServingPaths.of(Settings.model_validate(application(serve_config(folder))["args"])) == paths
    assert settings.serving.auth is Auth.KEYS


@pytest.mark.parametrize("folder", SERVICES)
@pytest.mark.parametrize("keys", [{}, {"VRAG_API_KEYS": ""}, {"VRAG_API_KEYS": " , "}])
def test_a_service_whose_keys_were_not_set_does_not_start(folder: str, keys: dict[str, str]):
    serving = Settings.model_validate(application(serve_config(folder))["args"]).serving
    with pytest.raises(VragError, match="VRAG_API_KEYS"):
        Security.from_environment(serving, keys, callers_own=False)


def test_every_setting_in_the_environment_is_one(monkeypatch: pytest.MonkeyPatch):
    """Settings pass over variables that they do not know."""
    before = Settings()
    for name, value in environment().items():
        if name.startswith("VRAG_"):
            with monkeypatch.context() as alone:
                alone.setenv(name, value)
                assert Settings() != before, f"{name} changes nothing"


def test_serve_is_set_up_as_in_what_was_measured():
    ours = {name: value for name, value in environment().items() if name.startswith("RAY_SERVE_")}
    assert ours == {name: value for name, value in ENVIRONMENT.items() if name.startswith("RAY_SERVE_")}


def without_reservations(deployments: list[Object]) -> list[Object]:
    return [
        {key: value for key, value in deployment.items() if key != "ray_actor_options"} for deployment in deployments
    ]


@pytest.mark.parametrize("folder", SERVICES)
def test_the_config_is_that_of_the_cluster_that_was_tried(folder: str):
    tried, ours = shipped("cluster.yaml"), serve_config(folder)
    # Where it listens, and that keys must be there, is what a pod's network needs.
    assert ours["http_options"] == tried["http_options"] | {"host": "0.0.0.0"}
    assert ours["proxy_location"] == tried["proxy_location"]
    app, other = application(ours), application(tried)
    assert {key: app[key] for key in ("name", "route_prefix", "import_path")} == {
        key: other[key] for key in ("name", "route_prefix", "import_path")
    }
    assert app["args"]["index"] == other["args"]["index"]
    own = [deployment for deployment in app["deployments"] if deployment["name"] not in DEPLOYMENTS[folder]]
    assert without_reservations(own) == other["deployments"]


def test_the_service_without_a_model_has_the_arguments_that_were_tried():
    tried = application(shipped("cluster.yaml"))["args"]
    serving = tried["serving"] | {"host": "0.0.0.0", "auth": "keys"}
    assert application(serve_config("service"))["args"] == tried | {"serving": serving}


def test_the_service_with_a_model_has_the_model_of_the_shipped_config():
    ours, other = application(serve_config("service-gpu"))["args"], application(shipped("vimrag.yaml"))["args"]
    assert ours["agent"] == other["agent"]
    # The number of replicas and what they reserve is stated to Serve, so that their number can follow the load.
    set_elsewhere = ("replicas", "tensor_parallel", "num_cpus", "num_gpus")
    assert ours["vllm"] == {key: value for key, value in other["vllm"].items() if key not in set_elsewhere}
    assert Settings.model_validate(ours).vllm is not None
    assert ours["serving"]["max_concurrent_runs"] == other["serving"]["max_concurrent_runs"]


@pytest.mark.parametrize("folder", SERVICES)
def test_every_deployment_is_one_of_the_application(folder: str):
    """Serve refuses a name that the application has not."""
    names = {deployment["name"] for deployment in application(serve_config(folder))["deployments"]}
    files = [ROOT / "vrag_ray/serving/app.py", ROOT / "vrag_ray/serving/deployments/policy.py"]
    texts = {
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    }
    assert names == {"Gateway", "Retriever", "Agent", "Library"} | DEPLOYMENTS[folder]
    assert names <= texts


@pytest.mark.parametrize("folder", SERVICES)
def test_an_old_cluster_stays_until_its_runs_have_ended(folder: str):
    spec = only(folder, "RayService")["spec"]
    settings = Settings.model_validate(application(serve_config(folder))["args"])
    assert spec["rayClusterDeletionDelaySeconds"] > settings.agent.deadline_s
