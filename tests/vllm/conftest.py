"""Ray Serve for the tests of models, without its HTTP proxy, and one model behind it for all who can share it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.tiny_vllm import save_adapter, served
from vrag_ray.serving.deployments.policy import ServedModel

ADAPTERS = ("careful", "quick")
CONTEXT, PICTURES = 16_000, 16


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="package")
def serving(local_ray: None) -> Iterator[None]:
    from ray import serve

    serve.start(proxy_location="Disabled")
    yield
    serve.shutdown()


@pytest.fixture(scope="package")
def policy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights that ``policy`` begins with, others for it, and its adapters."""
    from tiny_model import Family, save_tiny_model

    folder = tmp_path_factory.mktemp("policy")
    save_tiny_model(folder / "model", seed=0)
    save_tiny_model(folder / "new", seed=1)
    save_tiny_model(folder / "other", Family.QWEN3_VL)
    for seed, name in enumerate(ADAPTERS):
        save_adapter(folder / name, seed)
    return folder


@pytest.fixture(scope="package")
def policy(serving: None, policy_folder: Path) -> Iterator[ServedModel]:
    """A tiny Qwen2.5-VL."""
    with policy_replicas(policy_folder, "policy", 1) as model:
        yield model


@contextmanager
def policy_replicas(folder: Path, name: str, replicas: int) -> Iterator[ServedModel]:
    """Replicas with the weights and adapters of ``policy_folder``."""
    adapters = {adapter: str(folder / adapter) for adapter in ADAPTERS}
    limits = {"max_model_len": CONTEXT, "max_images": PICTURES}
    with served(folder / "model", name, replicas=replicas, adapters=adapters, **limits) as model:
        yield model
