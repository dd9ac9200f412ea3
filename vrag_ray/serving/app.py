"""The Serve application: a Serve config names ``build``, a process that starts the service calls ``application``.

Without ``from __future__ import annotations``: Serve reads the type of ``build``'s argument to validate ``args``.
"""

import os
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from vrag_ray.config import Settings
from vrag_ray.ha_proxy import SWITCH
from vrag_ray.index.storage.collection import Collection
from vrag_ray.placement import Placement
from vrag_ray.policies.registry import ready_settings
from vrag_ray.serving.deployments.agent import AgentService
from vrag_ray.serving.deployments.handles import handle_parts
from vrag_ray.serving.deployments.library import LibraryService
from vrag_ray.serving.deployments.retriever import RetrieverService
from vrag_ray.serving.deployments.sessions import sticky_sessions
from vrag_ray.serving.http.gateway import create_api
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.placement import served_placement
from vrag_ray.serving.portable_settings import absolute_settings, with_endpoint_key
from vrag_ray.serving.system import ServedSystem
from vrag_ray.types import VragError

APP_NAME = "vrag"
CPUS = 0.1
"""Logical CPUs of one replica: the parts wait more than they compute, and must all fit a machine with two."""
STREAMS = 1000
"""Open requests of one gateway or agent replica; each reader of a run's events holds one."""
CALLS = 256
DRAIN_CHECK_S = 2.0
"""What a replica that is taken away waits for requests on their way to it, and for those that it has."""
FULL = {"status_code": 429, "retry_after_s": 1}


@serve.ingress()
class Gateway:
    """HTTP in front of the other parts. Imports neither an index nor a decoder."""

    def __init__(
        self,
        settings: Settings,
        security: Security,
        retriever: DeploymentHandle,
        agent: DeploymentHandle,
        library: DeploymentHandle,
    ) -> None:
        if os.environ.get(SWITCH) == "1":
            security.check_proxy(_host_of_serve())
        self._settings = settings
        self._security = security
        uploads = ServingPaths.of(settings).uploads
        self._system = ServedSystem(handle_parts(retriever, agent, library), uploads)

    def __serve_build_asgi_app__(self) -> FastAPI:
        return create_api(self._system, self._settings.serving, self._security)


def _host_of_serve() -> str:
    """The host on which the HTTP proxy of this cluster listens."""
    from ray.serve.context import _get_global_client

    return str(_get_global_client().http_config.host)


def build(args: Settings) -> serve.Application:
    """What a Serve config names. On a running cluster this is called in a process of the cluster, where neither the
    variables nor the working folder of the shell that calls `serve run` are known: nothing is taken for granted here.

    Raises VragError where no collection is named, where it is none, and where lost keys would open the service.
    """
    if "collection" not in args.model_fields_set:
        raise VragError(
            "no collection is named: set args.collection in the Serve config to a folder or URI that every node can "
            "read, or VRAG_COLLECTION. A running cluster does not see the variables of `serve run`: pass them under "
            "applications: runtime_env: env_vars"
        )
    return application(args, Security.from_environment(args.serving, callers_own=False))


def application(
    settings: Settings,
    security: Security,
    *,
    drain_check_s: float = DRAIN_CHECK_S,
    placement: Placement | None = None,
) -> serve.Application:
    """The service on ``settings.collection``, which must exist. Everything that comes from the environment is read
    here, and travels to the replicas by value. Serve stops one deployment after another, each after ``drain_check_s``.
    ``placement`` says which parts get a GPU; None: as ``served_placement``, which is logged.

    Raises NotFoundError where there is no collection, VragError where the settings cannot be served.
    """
    settings = ready_settings(with_endpoint_key(absolute_settings(settings)))
    # Here, and not only in the replicas, so that the caller who starts the service gets the reason at once.
    for root in settings.served.values():
        Collection.open(root)

    if placement is None:
        placement = served_placement(settings)
        placement.report(None)

    def deployed(service: type, name: str, max_ongoing: int) -> serve.Deployment:
        return _deployment(service, name, max_ongoing).options(graceful_shutdown_wait_loop_s=drain_check_s)

    resources = {"num_cpus": CPUS, "num_gpus": placement.share("serving.num_gpus")}
    retriever = deployed(RetrieverService, "Retriever", CALLS).options(ray_actor_options=resources)
    if resources["num_gpus"]:
        # The GPU may have no room for its successor, which would be waited for without end.
        retriever = retriever.options(max_surge_percent=0)
    retriever = retriever.bind(settings, placement.share("index.num_gpus"))
    library = deployed(LibraryService, "Library", CALLS).bind(settings, retriever)
    policy = None
    if settings.vllm is not None:
        from vrag_ray.serving.deployments.policy import policy_deployment

        policy = policy_deployment(settings).options(graceful_shutdown_wait_loop_s=drain_check_s).bind(settings)
    agent = deployed(AgentService, "Agent", STREAMS).options(request_router_config=sticky_sessions())
    agents = agent.bind(settings, retriever, library, policy)
    return deployed(Gateway, "Gateway", STREAMS).bind(settings, security, retriever, agents, library)


def _deployment(service: type, name: str, max_ongoing: int) -> Any:
    return serve.deployment(
        name=name,
        max_ongoing_requests=max_ongoing,
        max_queued_requests=max_ongoing,
        backpressure_config=FULL,
        # A new version takes requests before the old one stops.
        max_surge_percent=100,
        ray_actor_options={"num_cpus": CPUS},
    )(service)
