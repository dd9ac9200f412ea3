"""The Serve configs inside the RayServices, and the settings that their pods have."""

from __future__ import annotations

import yaml

from tests.deploy.rendering import Object, only

SERVICES = ("service", "service-gpu")


def serve_config(folder: str) -> Object:
    config: Object = yaml.safe_load(only(folder, "RayService")["spec"]["serveConfigV2"])
    return config


def application(config: Object) -> Object:
    [app] = config["applications"]
    assert isinstance(app, dict)
    return app


def environment() -> dict[str, str]:
    """Of every pod."""
    data: dict[str, str] = only("shared", "ConfigMap")["data"]
    return data
