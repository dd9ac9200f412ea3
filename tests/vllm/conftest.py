"""Ray Serve for the tests of models, without its HTTP proxy, and one model behind it for all who can share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
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


@dataclass(frozen=True)
class SharedPolicy:
    """``close`` ends it before its time: for whoever leaves no engine alive."""

    model: ServedModel
    close: Callable[[], None]


@pytest.fixture(scope="package")
def policy(serving: None, policy_folder: Path) -> Iterator[SharedPolicy]:
    """Two replicas of a tiny Qwen2.5-VL."""
    adapters = {name: str(policy_folder / name) for name in ADAPTERS}
    with ExitStack() as stack:
        model = stack.enter_context(
            served(
                policy_folder / "model",
                "policy",
                replicas=2,
                adapters=adapters,
                max_model_len=CONTEXT,
                max_images=PICTURES,
            )
        )
        yield SharedPolicy(model, stack.close)
