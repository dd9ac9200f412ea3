"""Settings whose folders and keys mean the same in every process of a service."""

from __future__ import annotations

import os

from vrag_ray.config import Settings
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import expanded


def absolute_settings(settings: Settings) -> Settings:
    """The same folders for every process: replicas need not share the working folder of the caller."""
    served = {name: _absolute_root(root) for name, root in settings.served.items()}
    settings = with_changes(settings, {"collection": next(iter(served.values())), "collections": served})
    spaces = {name: space.with_absolute_model() for name, space in settings.spaces.items()}
    settings = with_changes(settings, {"spaces": spaces})
    if settings.vllm is not None:
        from vrag_ray.serving.deployments.policy import with_absolute_folders

        settings = with_changes(settings, {"vllm": with_absolute_folders(settings.vllm)})
    paths = ServingPaths.of(settings)
    folders = {"runs_dir": str(paths.runs), "uploads_dir": str(paths.uploads)}
    return with_changes(settings, {"serving": with_changes(settings.serving, folders)})


def _absolute_root(root: str) -> str:
    root = root.removeprefix("file://")
    return root if "://" in root else str(expanded(root).absolute())


def with_endpoint_key(settings: Settings) -> Settings:
    """With the endpoint's key as a value: replicas may run where its variable is not set.

    Raises VragError where the settings name the variable of a key, and it is not set. Endpoints without keys name none.
    """
    endpoint = settings.openai
    if endpoint is None or endpoint.api_key:
        return settings
    key = os.environ.get(endpoint.api_key_env, "")
    if not key and endpoint.api_key_env and "api_key_env" in endpoint.model_fields_set:
        raise VragError(
            f"openai.api_key_env names the variable {endpoint.api_key_env}, which is not set where this service is "
            "built: set it there (on a running cluster under applications: runtime_env: env_vars), or leave "
            f"api_key_env out where {endpoint.base_url} takes no key"
        )
    return with_changes(settings, {"openai": with_changes(endpoint, {"api_key": key})})
