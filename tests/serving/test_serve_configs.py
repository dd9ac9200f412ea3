"""Every file in serve_configs: Serve's own schema takes it, and the builder's settings are ours."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.paths import ROOT
from vrag_ray.config import Settings

CONFIGS = sorted((ROOT / "serve_configs").glob("*.yaml"))


def test_there_is_a_config_for_every_way_to_run() -> None:
    assert [path.stem for path in CONFIGS] == [
        "cluster",
        "embedded",
        "openai",
        "text-only",
        "tiny-cpu",
        "vimrag",
        "visual",
        "vrag",
    ]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_config_is_valid_for_serve_and_for_the_builder(path: Path) -> None:
    from ray.serve.schema import ServeDeploySchema

    schema = ServeDeploySchema.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    [application] = schema.applications
    assert application.import_path == "vrag_ray.serving.app:build"
    settings = Settings.model_validate(application.args)
    # A limit on requests would cut event streams, and Serve's own default host is every interface.
    assert schema.http_options.request_timeout_s is None
    assert schema.http_options.host == settings.serving.host == "127.0.0.1"
    assert {"cluster": 0, "embedded": 0, "visual": 0}.get(path.stem, 1) == sum(
        part is not None for part in (settings.openai, settings.vllm)
    )


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_no_config_holds_a_key(path: Path) -> None:
    assert "api_key:" not in path.read_text(encoding="utf-8")
