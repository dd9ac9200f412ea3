"""The Serve application: ``serve run serve_configs/embedded.yaml`` calls ``build``.

Without ``from __future__ import annotations``: Serve reads the type of ``build``'s argument to validate ``args``.
"""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from vrag_ray.config import Settings
from vrag_ray.policies.brains import ready_settings
from vrag_ray.serving.agent import AgentService
from vrag_ray.serving.gateway import create_api
from vrag_ray.serving.handles import HandleBackend
from vrag_ray.serving.library import LibraryService
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.retriever import RetrieverService
from vrag_ray.serving.security import Security

APP_NAME = "vrag"
CPUS = 0.1
"""Logical CPUs of one replica: the parts wait more than they compute, and must all fit a machine with two."""
STREAMS = 1000
"""Open requests of one gateway or agent replica; each reader of a run's events holds one."""
CALLS = 256
FULL = {"status_code": 429, "retry_after_s": 1}


@serve.ingress()
class Gateway:
    """HTTP in front of the other parts. Imports neither an index nor a decoder."""

    def __init__(
        self, settings: Settings, retriever: DeploymentHandle, agent: DeploymentHandle, library: DeploymentHandle
    ) -> None:
        self._settings = settings
        self._backend = HandleBackend(retriever, agent, library)

    def __serve_build_asgi_app__(self) -> FastAPI:
        config = self._settings.serving
        uploads = ServingPaths.of(self._settings).uploads
        return create_api(self._backend, config, Security.from_environment(config), uploads)


def build(args: Settings) -> serve.Application:
    """The application on ``args.collection``. Raises VragError where the settings cannot be served."""
    settings = ready_settings(_absolute(args))
    # Here too, and not only in the replica, so that `serve run` fails at once with the reason.
    Security.from_environment(settings.serving)
    retriever = _deployment(RetrieverService, "Retriever", CALLS).bind(settings)
    library = _deployment(LibraryService, "Library", CALLS).bind(settings, retriever)
    policy = None
    if settings.vllm is not None:
        from vrag_ray.serving.policy import policy_deployment

        policy = policy_deployment(settings).bind(settings)
    agent = _deployment(AgentService, "Agent", STREAMS).bind(settings, retriever, library, policy)
    return _deployment(Gateway, "Gateway", STREAMS).bind(settings, retriever, agent, library)


def _deployment(service: type, name: str, max_ongoing: int) -> Any:
    return serve.deployment(
        name=name,
        max_ongoing_requests=max_ongoing,
        max_queued_requests=max_ongoing,
        backpressure_config=FULL,
        ray_actor_options={"num_cpus": CPUS},
    )(service)


def _absolute(settings: Settings) -> Settings:
    """The same folders for every process: replicas need not share the working folder of whoever calls ``build``."""
    collection = settings.collection.removeprefix("file://")
    if "://" not in collection:
        collection = str(Path(collection).expanduser().absolute())
    settings = settings.model_copy(update={"collection": collection})
    if settings.vllm is not None:
        from vrag_ray.serving.policy import with_absolute_folders

        settings = settings.model_copy(update={"vllm": with_absolute_folders(settings.vllm)})
    paths = ServingPaths.of(settings)
    folders = {"runs_dir": str(paths.runs), "uploads_dir": str(paths.uploads)}
    return settings.model_copy(update={"serving": settings.serving.model_copy(update=folders)})
