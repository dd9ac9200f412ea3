"""The settings of our application in a configuration of Ray Serve, for a service that `vrag serve` starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, model_validator

from vrag_ray.config.section import without_empty
from vrag_ray.config.setting_names import fault_of, refuse_unknown_variables
from vrag_ray.config.settings import Settings, load_settings
from vrag_ray.config.yaml_file import read_yaml
from vrag_ray.types import VragError
from vrag_ray.types.errors import validation_message

APPLICATION = "vrag_ray.serving.app:build"


class _Read(BaseModel):
    """What is read here; Serve's own schema has more."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _nothing_written(cls, values: object) -> object:
        return without_empty(cls.model_fields, values)


class _Deployment(_Read):
    name: str
    num_replicas: JsonValue = 1

    @property
    def has_options(self) -> bool:
        return bool(self.model_extra) or self.num_replicas != 1


class _Application(_Read):
    import_path: str
    args: dict[str, JsonValue] = {}
    deployments: list[_Deployment] = []


class _ServeConfig(_Read):
    applications: list[_Application] = []
    http_options: dict[str, JsonValue] = {}


def read_serve_config(path: Path | None) -> tuple[Settings, list[str]]:
    """Settings of plain settings YAML, or of our application in a Serve config.

    Also returns the names of deployments whose own options only ``serve run`` applies. Raises VragError, naming the
    file and the place.
    """
    content = read_yaml(path) if path is not None else None
    if path is None or not isinstance(content, Mapping) or "applications" not in content:
        return load_settings(path), []
    beside = sorted(Settings.model_fields.keys() & content.keys())
    if beside:
        raise VragError(
            f"{path} is wrong at {beside[0]}: beside `applications` nothing reads it: move it below `args` of the "
            "application"
        )
    try:
        config = _ServeConfig.model_validate(content)
    except ValidationError as error:
        [fault, *_] = error.errors()
        where = ".".join(str(part) for part in fault["loc"])
        raise VragError(f"{path} is wrong at {where}: {validation_message(fault)}") from error
    ours = [application for application in config.applications if application.import_path == APPLICATION]
    if len(ours) != 1:
        raise VragError(f"{path} has {len(ours)} applications {APPLICATION}, and `vrag serve` runs one")
    args: dict[str, object] = dict(ours[0].args)
    listening = {name: config.http_options[name] for name in ("host", "port") if name in config.http_options}
    serving = args.get("serving")
    if isinstance(serving, Mapping | None):
        args["serving"] = {**(serving or {}), **listening}
    refuse_unknown_variables(Settings, os.environ)
    try:
        settings = Settings.model_validate(args)
    except ValidationError as error:
        raise VragError(f"{path} is wrong at args.{fault_of(Settings, error)}") from error
    return settings, [deployment.name for deployment in ours[0].deployments if deployment.has_options]
